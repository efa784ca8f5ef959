"""A training step is the same on devices, processes, micro-batches and packed rows."""

import numpy as np
import processes
import pytest
from marks import slow

# Ways to make ten training steps: on one device, two devices, and two processes. All
# must equal the first way.
QUICK = {
    "one": ["one", "fourth:micro_batch_size=4", "packed:pack=1"],
    "mirrored": ["two_devices", "two_devices_packed:pack=1,micro_batch_size=2"],
    "worker": ["two_workers"],
}
# `make commands` runs these.
SLOW = {
    "one": [
        "one",
        "half:micro_batch_size=8",
        "xla:xla=1",
        "xla_half:xla=1,micro_batch_size=8",
        "recompute:recompute=1",
        "packed_xla:pack=1,xla=1,recompute=1",
    ],
    "mirrored": ["two_devices_half:micro_batch_size=4"],
    "worker": ["two_workers_half:micro_batch_size=4"],
}
# The original's way, which is a different training step on two replicas.
APART = [
    "two_devices_apart:per_replica_update=1",
    "two_devices_apart_packed:per_replica_update=1,pack=1",
]


def names_of(ways):
    return [way.partition(":")[0] for kind in ways.values() for way in kind]


CASES = [*names_of(QUICK)[1:], *(slow(name) for name in names_of(SLOW)[1:])]


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Name of a quick way to make ten steps -> the movement of each weight."""
    ways = QUICK | {"mirrored": QUICK["mirrored"] + APART}
    return run_ways(tmp_path_factory.mktemp("moved"), ways)


@pytest.fixture(scope="module")
def slowly_moved(tmp_path_factory):
    """The same for the slow ways."""
    return run_ways(tmp_path_factory.mktemp("slowly_moved"), SLOW)


def run_ways(folder, ways):
    script = "device_table.py"
    for kind in ("one", "mirrored"):
        process = processes.start(script, kind, folder, *ways[kind])
        with processes.running(process):
            processes.finish(process)
    workers = [
        processes.start(script, "worker", folder, *ways["worker"], TF_CONFIG=config)
        for config in processes.cluster()
    ]
    with processes.running(*workers):
        for worker in workers:
            processes.finish(worker)
    return {name: dict(np.load(folder / f"{name}.npz")) for name in names_of(ways)}


def largest(arrays):
    return max(float(np.abs(array).max()) for array in arrays)


def ratio(moved, name, than="one"):
    """Return max|Δa - Δb| / max|Δ|; each Δ is a movement from the first weights."""
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


@pytest.mark.parametrize("name", CASES)
def test_the_same_updates(request, name):
    quick = name in names_of(QUICK)
    moved = request.getfixturevalue("moved" if quick else "slowly_moved")
    print(f"{name}: {ratio(moved, name):.1e}")
    assert ratio(moved, name) <= 1e-4


def test_means_and_clipping_on_each_replica_are_another_update(moved):
    assert ratio(moved, "two_devices_apart") > 1e-2
    packed = ratio(moved, "two_devices_apart_packed", than="two_devices_apart")
    assert packed <= 1e-4
