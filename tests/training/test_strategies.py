"""The devices that train, the rows of each replica, and refused settings."""

import contextlib
import itertools
import json
import os
import types

import numpy as np
import pytest
import tensorflow as tf
import updates
import warm_python
from places import ROOT

from official_bert.errors import UserError
from official_bert.training import step, strategies
from official_bert.training.strategies import make_strategy, share_of

HOSTS = ["host0:1", "host1:1"]


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def refusal(function, *arguments, **options):
    """Return the message with which a call is refused."""
    with pytest.raises(UserError) as error:
        function(*arguments, **options)
    sentence = str(error.value)
    assert "\n" not in sentence
    return sentence


class FakeStrategy:
    """Replicas without devices; this process feeds the `local` ones."""

    def __init__(self, replicas, local=None):
        self.num_replicas_in_sync = replicas
        self.local = range(replicas) if local is None else local

    def experimental_distribute_values_from_function(self, function):
        return [function(Replica(number)) for number in self.local]


class Replica:
    """The context that a replica's function gets."""

    def __init__(self, number):
        self.replica_id_in_sync_group = number


# Shares of a batch.


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("rows", [8, 9, 15, 64])
def test_shares_are_all_of_the_rows_in_order_and_even(rows, replicas):
    shares = [share_of(rows, replica, replicas) for replica in range(replicas)]
    assert (shares[0][0], shares[-1][1]) == (0, rows)
    for (_, stop), (start, _) in itertools.pairwise(shares):
        assert stop == start
    sizes = {stop - start for start, stop in shares}
    assert max(sizes) - min(sizes) <= 1


def test_rows_that_a_process_needs():
    assert strategies.local_rows(FakeStrategy(1), 7) == (0, 7)
    assert strategies.local_rows(FakeStrategy(3), 7) == (0, 7)
    assert strategies.local_rows(FakeStrategy(3, [0]), 7) == (0, 2)
    assert strategies.local_rows(FakeStrategy(3, [1, 2]), 7) == (2, 7)


def numbered(rows, first=0):
    """Return a batch whose rows contain their number, and a scalar."""
    numbers = tf.range(first, first + rows)
    wide = tf.stack([numbers, 10 * numbers], axis=1)
    return {"stop": tf.constant(1.5), "ids": wide, "labels": numbers}


def rows_of(shares):
    for share in shares:
        ids, labels = share["ids"].numpy(), share["labels"].numpy().tolist()
        assert ids.tolist() == [[label, 10 * label] for label in labels]
        assert float(share["stop"]) == 1.5
    return [share["labels"].numpy().tolist() for share in shares]


def test_rows_are_shared_out_as_even_as_can_be():
    shares = strategies.distribute(FakeStrategy(3), numbered(7))
    assert rows_of(shares) == [[0, 1], [2, 3], [4, 5, 6]]


def test_a_worker_shares_out_only_the_rows_that_it_has():
    strategy = FakeStrategy(3, [1, 2])
    shares = strategies.distribute(strategy, numbered(5, first=2), 7, first_row=2)
    assert rows_of(shares) == [[2, 3], [4, 5, 6]]


def test_several_batches_are_shared_out_along_the_second_axis():
    together = {
        name: tf.stack([value, value + 100])
        for name, value in numbered(7).items()
        if name != "stop"
    }
    shares = strategies.distribute(FakeStrategy(3), together, 7, rows_axis=1)
    assert [share["labels"].numpy().tolist() for share in shares] == [
        [[0, 1], [100, 101]],
        [[2, 3], [102, 103]],
        [[4, 5, 6], [104, 105, 106]],
    ]


def test_copies_on_devices(monkeypatch):
    """Integers on a GPU are int64. TensorFlow would move int32 back to the host."""
    strategy = FakeStrategy(3, [1, 2])
    strategy.extended = types.SimpleNamespace(worker_devices=["CPU:0", "CPU:0"])
    batch = numbered(5, first=2)
    shares = strategies.distribute(strategy, batch, 7, first_row=2, copies=True)
    assert rows_of(shares) == [[2, 3], [4, 5, 6]]
    assert shares[0]["labels"].dtype == tf.int32
    (device,) = strategies.replica_devices(tf.distribute.get_strategy())
    alone = strategies.distribute(tf.distribute.get_strategy(), batch, copies=True)
    assert device.endswith("CPU:0") and alone["labels"].device.endswith("CPU:0")
    placed = []
    nowhere = contextlib.nullcontext()
    monkeypatch.setattr(tf, "device", lambda name: placed.append(name) or nowhere)
    wide = strategies.copied(batch, "/device:GPU:0")
    assert [wide[name].dtype for name in ("stop", "ids")] == [tf.float32, tf.int64]
    assert wide["ids"].numpy().tolist() == batch["ids"].numpy().tolist()
    assert placed.count("/device:GPU:0") == len(batch)


def test_one_replica_gets_the_batch_itself():
    batch = numbered(7)
    assert strategies.distribute(FakeStrategy(1), batch) is batch


@pytest.mark.parametrize(
    ("replicas", "batch_size", "micro"),
    [(1, 7, 0), (1, 8, 4), (4, 4, 0), (4, 7, 0), (4, 16, 2), (4, 16, 4)],
)
def test_batches_that_can_be_shared_out(replicas, batch_size, micro):
    strategies.check_shares(FakeStrategy(replicas), batch_size, micro)


@pytest.mark.parametrize(
    ("replicas", "batch_size", "micro", "words"),
    [
        (4, 3, 0, ["--train_batch_size=3", "4 devices", "larger"]),
        (4, 10, 1, ["--train_batch_size=10", "4 devices", "Use 8 or 12."]),
        (4, 16, 3, ["--micro_batch_size=3", "the 4 sequences", "on 4 device(s)"]),
        (4, 16, 8, ["--micro_batch_size=8", "the 4 sequences", "on 4 device(s)"]),
        (1, 8, 16, ["--micro_batch_size=16", "the 8 sequences", "on 1 device(s)"]),
        (2, 4096, 1, ["into 2048 micro-batches", "at most 1024 can"]),
    ],
)
def test_batches_that_cannot(replicas, batch_size, micro, words):
    assert strategies.MOST_MICRO_BATCHES * step.MICRO_BATCH == step.REPLICA
    strategy = FakeStrategy(replicas)
    sentence = refusal(strategies.check_shares, strategy, batch_size, micro)
    assert sentence.endswith(".")
    for word in words:
        assert word in sentence


def test_a_tpu_has_even_shares_only(monkeypatch):
    monkeypatch.setattr(tf.distribute, "TPUStrategy", FakeStrategy)
    strategies.check_shares(FakeStrategy(8), 24)
    sentence = refusal(strategies.check_shares, FakeStrategy(8), 28)
    assert sentence.endswith("Use 24 or 32.")


# Workers.


def set_cluster(monkeypatch, config):
    monkeypatch.setenv(
        "TF_CONFIG", config if isinstance(config, str) else json.dumps(config)
    )


def cluster(workers, task_type="worker", index=0, **others):
    task = {"type": task_type, "index": index}
    return {"cluster": {"worker": workers, **others}, "task": task}


class FakeMultiWorker(FakeStrategy):
    """A strategy of several workers that does not wait for others."""

    def __init__(self, task_type="worker", index=0, jobs=None):
        super().__init__(2)
        self.cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(jobs or {"worker": HOSTS}),
            task_type=task_type,
            task_id=index,
        )


@pytest.fixture
def multi_worker(monkeypatch):
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", FakeMultiWorker)


@pytest.mark.parametrize("name", ["multi_worker", "auto"])
@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("worker 0", "JSONDecodeError"),
        ([HOSTS], "AttributeError"),
        ({"cluster": {"worker": HOSTS}}, "KeyError"),
        ({"cluster": {"worker": HOSTS}, "task": {"type": "worker"}}, "KeyError"),
        (cluster(HOSTS, index=2), "IndexError"),
        (cluster(HOSTS, index="first"), "ValueError"),
        (cluster(HOSTS, "chief"), "KeyError"),
        (cluster(3), "TypeError"),
    ],
)
def test_a_cluster_that_is_none(monkeypatch, multi_worker, name, config, word):
    set_cluster(monkeypatch, config)
    sentence = refusal(make_strategy, name)
    assert sentence.startswith("TF_CONFIG is ")
    assert word in sentence
    assert strategies.EXAMPLE in sentence


@pytest.mark.parametrize("config", [None, "", "{}", {"cluster": {}}])
def test_several_workers_need_a_cluster(monkeypatch, multi_worker, config):
    if config is not None:
        set_cluster(monkeypatch, config)
    sentence = refusal(make_strategy, "multi_worker")
    assert "--strategy=multi_worker" in sentence
    assert "TF_CONFIG" in sentence
    assert strategies.EXAMPLE in sentence


def test_the_example_in_the_messages_is_a_cluster(monkeypatch, multi_worker):
    set_cluster(monkeypatch, strategies.EXAMPLE.strip("'"))
    assert isinstance(make_strategy("multi_worker"), FakeMultiWorker)


def test_all_workers_are_named_while_waiting(monkeypatch, multi_worker, capsys):
    set_cluster(monkeypatch, cluster(HOSTS, chief=["boss:1"]))
    make_strategy("multi_worker")
    expected = "Waiting for all 3 workers: boss:1, host0:1, host1:1.\n"
    assert capsys.readouterr().out == expected


def test_workers_do_not_split_their_cpus(monkeypatch, multi_worker):
    set_devices(monkeypatch)
    set_cluster(monkeypatch, cluster(HOSTS))
    sentence = refusal(make_strategy, "multi_worker", 2)
    assert "--num_devices is 2" in sentence
    assert "0 GPUs" in sentence


def test_a_worker_uses_as_many_gpus_as_it_was_told(monkeypatch, multi_worker):
    set_devices(monkeypatch, gpus=3)
    set_cluster(monkeypatch, cluster(HOSTS))
    seen = []
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *a: seen.append(a))
    make_strategy("multi_worker")
    assert seen == []
    make_strategy("multi_worker", 2)
    assert seen == [(["GPU:0", "GPU:1"], "GPU")]


@pytest.mark.parametrize(
    ("task_type", "index", "number"),
    [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)],
)
def test_workers_come_after_the_chief(multi_worker, task_type, index, number):
    jobs = {"chief": ["boss:1"], "worker": HOSTS}
    strategy = FakeMultiWorker(task_type, index, jobs)
    assert strategies.worker_number(strategy) == number
    assert strategies.is_chief(strategy) == (number == 0)


@pytest.mark.parametrize("index", [0, 1])
def test_without_a_chief_the_first_worker_is_it(multi_worker, index):
    strategy = FakeMultiWorker(index=index)
    assert strategies.worker_number(strategy) == index
    assert strategies.is_chief(strategy) == (index == 0)


def test_a_single_process_is_the_chief():
    strategy = tf.distribute.get_strategy()
    assert not strategies.is_multi_worker(strategy)
    assert strategies.worker_number(strategy) == 0
    assert strategies.is_chief(strategy)
    assert strategies.local_replicas(strategy) == [0]
    assert strategies.from_chief(strategy, 7) == 7


# Devices of one machine.


def set_devices(monkeypatch, gpus=0):
    """Let the machine have one CPU and some GPUs."""
    found = {"GPU": [f"GPU:{number}" for number in range(gpus)], "CPU": ["CPU:0"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", found.__getitem__)


@pytest.fixture
def mirrored(monkeypatch):
    """Make `MirroredStrategy` return its device list; return the list of splits."""
    split = []
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda devices: devices)
    monkeypatch.setattr(
        tf.config,
        "set_logical_device_configuration",
        lambda device, logical: split.append((device, len(logical))),
    )
    return split


@pytest.mark.parametrize(
    ("gpus", "num_devices", "devices"),
    [
        (0, 0, None),
        (0, 1, None),
        (1, 0, None),
        (3, 1, None),
        (3, 0, ["GPU:0", "GPU:1", "GPU:2"]),
        (3, 2, ["GPU:0", "GPU:1"]),
        (0, 2, ["CPU:0", "CPU:1"]),
    ],
)
def test_auto(monkeypatch, mirrored, caplog, gpus, num_devices, devices):
    set_devices(monkeypatch, gpus)
    strategy = make_strategy("auto", num_devices)
    expected = tf.distribute.get_strategy() if devices is None else devices
    assert strategy == expected
    on_cpus = devices is not None and not gpus
    assert mirrored == ([("CPU:0", num_devices)] if on_cpus else [])
    told = "TensorFlow sees no GPU. Training uses the CPU as 2 devices"
    assert (told in caplog.text) == on_cpus


@pytest.mark.parametrize("workers", [1, 2])
def test_auto_takes_several_workers_where_there_are_some(
    monkeypatch, mirrored, multi_worker, workers
):
    set_devices(monkeypatch)
    set_cluster(monkeypatch, cluster(HOSTS[:workers]))
    strategy = make_strategy("auto")
    assert isinstance(strategy, FakeMultiWorker) == (workers == 2)


def test_a_cluster_does_not_matter_to_who_asks_for_one_machine(
    monkeypatch, mirrored, caplog
):
    set_cluster(monkeypatch, "no JSON")
    set_devices(monkeypatch)
    assert make_strategy("one_device") is tf.distribute.get_strategy()
    assert not caplog.text
    assert make_strategy("mirrored") == ["CPU:0"]
    assert "TensorFlow sees no GPU. Training uses the CPU, which" in caplog.text


def test_more_gpus_than_there_are(monkeypatch, mirrored):
    set_devices(monkeypatch, gpus=1)
    sentence = refusal(make_strategy, "mirrored", 2)
    assert "--num_devices is 2" in sentence
    assert "1 GPUs" in sentence


def test_one_device_is_not_two():
    sentence = refusal(make_strategy, "one_device", 2)
    assert "--num_devices is 2" in sentence
    assert "--strategy=mirrored" in sentence


def test_a_cpu_is_not_split_after_the_start():
    tf.config.list_logical_devices()
    sentence = refusal(make_strategy, "mirrored", 64)
    assert "--num_devices is 64" in sentence
    assert "already started" in sentence


# TPUs: the calls to TensorFlow, and a step that a TPU could run.


@pytest.fixture
def tpu_calls(monkeypatch):
    """Calls in the order in which a TPU would get them."""
    calls = []

    def resolver(name, zone=None, project=None):
        calls.append(("find", name, zone, project))
        return "resolver"

    def note(what):
        return lambda found: calls.append((what, found)) or what

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", resolver)
    for place, name in (
        (tf.config, "experimental_connect_to_cluster"),
        (tf.tpu.experimental, "initialize_tpu_system"),
        (tf.distribute, "TPUStrategy"),
    ):
        monkeypatch.setattr(place, name, note(name))
    return calls


@pytest.mark.parametrize("name", [None, "local"])
def test_the_tpu_of_this_machine_is_not_connected_to(tpu_calls, name):
    assert make_strategy("tpu", tpu_name=name) == "TPUStrategy"
    assert tpu_calls == [
        ("find", "local", None, None),
        ("initialize_tpu_system", "resolver"),
        ("TPUStrategy", "resolver"),
    ]


def test_a_cloud_tpu_is_connected_to(tpu_calls):
    strategy = make_strategy(
        "tpu", tpu_name="mine", tpu_zone="us-central1-b", gcp_project="my-project"
    )
    assert strategy == "TPUStrategy"
    assert tpu_calls == [
        ("find", "mine", "us-central1-b", "my-project"),
        ("experimental_connect_to_cluster", "resolver"),
        ("initialize_tpu_system", "resolver"),
        ("TPUStrategy", "resolver"),
    ]


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.NotFoundError(None, None, "No TPU.\nSecond line"),
        ValueError("No TPU."),
        RuntimeError("No TPU."),
        OSError("No TPU."),
        ImportError("No TPU."),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(
    ("given", "words"),
    [(None, "no free TPU on this machine"), ("mine", "cannot connect to a TPU named")],
)
def test_no_tpu_answers(monkeypatch, tpu_calls, error, given, words):
    """The message does not contain TensorFlow's reason."""

    def fail(resolver):
        raise error

    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", fail)
    sentence = refusal(make_strategy, "tpu", tpu_name=given)
    assert words in sentence
    assert "--tpu_name" in sentence and "No TPU." not in sentence


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("TPU")), reason="this machine has a TPU"
)
def test_no_tpu_on_this_machine():
    """The handled exceptions include the one that TensorFlow really raises."""
    assert "no free TPU on this machine" in refusal(make_strategy, "tpu")


def whole_step(config):
    """Return (state, the step as one XLA function, the ordinary step)."""
    state = updates.make_state(config)
    step = updates.make_step(state)
    whole = tf.function(step.python_function, jit_compile=True, autograph=False)
    return state, whole, step


@pytest.mark.slow
def test_xla_takes_the_whole_step_and_makes_the_same_update():
    """A TPU runs only XLA programs, so this is the best test that a CPU allows."""
    ends, reports = [], []
    for number in (0, 1):
        state, *steps = whole_step(updates.WITHOUT_DROPOUT)
        before = updates.numbers(state)
        reports.append(steps[number](updates.batch()))
        ends.append(updates.numbers(state))
    for name, value in ends[1].items():
        np.testing.assert_allclose(ends[0][name], value, atol=1e-5, err_msg=name)
    # The weights moved much further than the allowed difference.
    assert updates.largest_difference(ends[1].values(), before.values()) > 1e-3
    for name, value in reports[1].items():
        assert float(reports[0][name]) == pytest.approx(float(value), rel=1e-5)


# Operations that need the host: Python, the terminal, files.
HOST_WORK = ("PyFunc", "Print", "File", "Save", "Restore", "Summary", "Queue")


def test_the_step_has_static_shapes_and_no_work_for_the_host():
    """This includes dropout, whose masks are drawn on the device."""
    _, whole, _ = whole_step(updates.CONFIG)
    features = updates.batch()
    graph = whole.get_concrete_function(features).graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    kinds = {node.op for node in nodes}
    assert not {kind for kind in kinds if any(word in kind for word in HOST_WORK)}
    assert {"MatMul", "ResourceApplyAdam"} <= kinds
    assert any(kind.startswith("StatelessRandom") for kind in kinds)
    # XLA cannot translate a shape that is known only at run time.
    translated = whole.experimental_get_compiler_ir(features)(stage="hlo")
    assert "ENTRY" in translated
    assert "<=" not in translated


def test_an_unknown_strategy():
    with pytest.raises(
        UserError, match="--strategy=mirorred is unknown. Use one of auto,"
    ):
        strategies.make_strategy("mirorred")


@pytest.mark.parametrize("is_given", [True, False])
def test_deterministic_is_told_to_tensorflow(is_given):
    code = (
        "import sys; from official_bert.command_line import training_flags as t; "
        "t.FLAGS(sys.argv); t.make_strategy(); "
        "from tensorflow.python.framework import config; "
        "print(config.is_op_determinism_enabled())"
    )
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = ["--deterministic"] * is_given
    done = warm_python.run(["-c", code, *arguments], env=path)
    assert done.stdout.split()[-1:] == [str(is_given)], done.stderr
