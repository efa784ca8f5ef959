"""One update is one update: on devices and processes, in micro-batches, packed."""

import numpy as np
import processes
import pytest

KINDS = {
    "one": ["one", "half:micro_batch_size=8", "fourth:micro_batch_size=4"],
    "mirrored": [
        "two_devices",
        "two_devices_half:micro_batch_size=4",
        "two_devices_packed:pack=1,micro_batch_size=2",
    ],
    "worker": ["two_workers", "two_workers_half:micro_batch_size=4"],
}
# These compute the same in another way.
ALSO = [
    "xla:xla=1",
    "xla_half:xla=1,micro_batch_size=8",
    "recompute:recompute=1",
    "packed:pack=1",
    "packed_xla:pack=1,xla=1,recompute=1",
]
# The original's, which is another update on two replicas.
APART = [
    "two_devices_apart:per_replica_update=1",
    "two_devices_apart_packed:per_replica_update=1,pack=1",
]
NAMES = [
    run.partition(":")[0]
    for run in (*KINDS["one"], *ALSO, *KINDS["mirrored"], *KINDS["worker"])
]


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Name of a way to make ten updates -> how far each weight moved."""
    folder = tmp_path_factory.mktemp("moved")
    script = "device_table.py"
    for kind, also in (("one", ALSO), ("mirrored", APART)):
        process = processes.start(script, kind, folder, *KINDS[kind], *also)
        with processes.running(process):
            processes.finish(process)
    workers = [
        processes.start(script, "worker", folder, *KINDS["worker"], TF_CONFIG=config)
        for config in processes.cluster()
    ]
    with processes.running(*workers):
        for worker in workers:
            processes.finish(worker)
    names = [*NAMES, *(run.partition(":")[0] for run in APART)]
    return {name: dict(np.load(folder / f"{name}.npz")) for name in names}


def largest(arrays):
    return max(float(np.abs(array).max()) for array in arrays)


def ratio(moved, name, than="one"):
    """Return max|Δa - Δb| / max|Δ|, the Δ being movements from the first weights."""
    one, other = moved[than], moved[name]
    assert set(one) == set(other)
    paths = set(one) - {"gradient_norms"}
    difference = largest(one[path] - other[path] for path in paths)
    return difference / largest(one[path] for path in paths)


def test_the_ten_updates_are_worth_comparing(moved):
    one = moved["one"]
    assert len(one["gradient_norms"]) == 10
    assert min(one["gradient_norms"]) > 1.0
    assert largest(one[path] for path in set(one) - {"gradient_norms"}) >= 1e-3


@pytest.mark.parametrize("name", NAMES[1:])
def test_the_same_updates(moved, name):
    print(f"{name}: {ratio(moved, name):.1e}")
    assert ratio(moved, name) <= 1e-4


def test_means_and_clipping_on_each_replica_are_another_update(moved):
    assert ratio(moved, "two_devices_apart") > 1e-2
    packed = ratio(moved, "two_devices_apart_packed", than="two_devices_apart")
    assert packed <= 1e-4
