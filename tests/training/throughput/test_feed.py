"""Copying batches to the devices, and that it does not change results."""

import json
import os
import signal
import threading
import time
import types

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from marks import slow
from run_settings import changed, fine_tuning_settings

from official_bert.fine_tuning.batches import FeatureSet
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS, training_kernels
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.training import loop, runs, strategies
from official_bert.training.logs.run_log import RATES
from official_bert.training.throughput import feed
from official_bert.training.throughput.feed import Feeding
from official_bert.training.throughput.model_flops import (
    BatchSize,
    Heads,
    heads_of,
    static_size,
    step_flops,
)

STRATEGY = tf.distribute.get_strategy()
TASK = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 16)
# Log lines every 5 steps, checkpoints every 7: no call may cross either.
SETTINGS = fine_tuning_settings(
    train_batch_size=2,
    num_train_steps=16,
    num_warmup_steps=2,
    save_checkpoints_steps=7,
    keep_checkpoint_max=9,
    iterations_per_loop=5,
)
IDS = np.array([7, 40, 41, 8], np.int32)
TRAIN = [Features(IDS + i % 3, np.zeros_like(IDS), i % 2, 0) for i in range(8)]
WAYS = {
    "ahead": Feeding(ahead=True),
    "several": Feeding(steps_per_call=4),
    "several ahead": Feeding(ahead=True, steps_per_call=5),
}


def run(directory, feeding=None, calls=None, kernels=WITH_GRADIENTS):
    """Train; return (whether it is complete, step, weights and moments).

    Args:
      directory: output directory.
      feeding: `Feeding`.
      calls: list, for the number of steps of each call.
      kernels: `Kernels`.
    """
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory))
    config = tiny_model.MINI_CONFIG
    state = runs.make_state(STRATEGY, lambda: ClassificationModel(config, 2), settings)
    fixed = runs.fingerprint(config, classifier.fingerprint(TASK, TRAIN), settings)
    run_id = runs.resume_or_begin(STRATEGY, state, fixed, settings)
    with pytest.MonkeyPatch.context() as patch:
        step = loop.RunLog.step

        def noted(log, count):
            if calls is not None:
                calls.append(count)
            step(log, count)

        patch.setattr(loop.RunLog, "step", noted)
        complete = loop.train(
            STRATEGY,
            state,
            classifier.objective(TASK),
            FeatureSet(TRAIN, 16, pad_features).of_one_length(),
            settings,
            run_id,
            None,
            kernels,
            feeding=feeding,
        )
    values = {name: v.numpy() for name, v in state.weights_and_slots().items()}
    return complete, state.step, values


def rows(directory):
    return [json.loads(line) for line in (directory / "metrics.jsonl").open()]


def without_rates(directory):
    return [
        {name: value for name, value in row.items() if name not in RATES}
        for row in rows(directory)
    ]


def assert_same(ours, theirs):
    assert ours[:2] == theirs[:2]
    assert set(ours[2]) == set(theirs[2])
    for name, value in theirs[2].items():
        np.testing.assert_array_equal(ours[2][name], value, err_msg=name)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """(directory, result) of a run with one step per call."""
    directory, calls = tmp_path_factory.mktemp("plain"), []
    result = run(directory, calls=calls)
    assert result[:2] == (True, 16) and calls == [1] * 16
    assert tiny_model.MINI_CONFIG.hidden_dropout_prob == 0.1
    return directory, result


@pytest.mark.parametrize("way", WAYS)
def test_the_same_run(plain, tmp_path, way):
    calls = []
    assert_same(run(tmp_path, WAYS[way], calls), plain[1])
    assert without_rates(tmp_path) == without_rates(plain[0])
    assert [row["step"] for row in rows(tmp_path)] == [5, 7, 10, 14, 15, 16]
    names = [path.name for path in sorted(tmp_path.glob("model.ckpt-*.index"))]
    assert names == [f"model.ckpt-{step}.index" for step in (14, 16, 7)]
    expected = {"ahead": [1] * 16, "several": [4, 1, 2, 3, 4, 1, 1]}
    assert calls == expected.get(way, [5, 2, 3, 4, 1, 1])
    for row in rows(tmp_path):
        assert row["model_flops_per_second"] > 0 and row["mfu"] > 0


@pytest.mark.parametrize("way", [slow("ahead"), slow("several"), "several ahead"])
def test_sigterm_between_two_calls(plain, tmp_path, way, monkeypatch):
    """The state is saved at the end of the call. The same command then resumes."""
    step, made = loop.RunLog.step, []

    def noted(log, count):
        made.append(count)
        if sum(made) >= 8 > sum(made[:-1]):
            os.kill(os.getpid(), signal.SIGTERM)
        step(log, count)

    with monkeypatch.context() as patch:
        patch.setattr(loop.RunLog, "step", noted)
        # `run` replaces `distribute` and calls this one.
        complete, stopped, _ = run(tmp_path, WAYS[way])
    assert not complete
    assert stopped == {"ahead": 8, "several": 10, "several ahead": 10}[way]
    assert_same(run(tmp_path, WAYS[way]), plain[1])
    # Stopping splits one row. All other rows are equal.
    ends = {row["step"]: row for row in without_rates(tmp_path)}
    for row in without_rates(plain[0]):
        if row["step"] != 10:
            assert ends[row["step"]] == row


def test_killed_between_two_calls(plain, tmp_path, monkeypatch):
    """The run resumes from the checkpoint of step 7, with calls of other sizes."""
    add = loop.Meter.add

    def add_and_die(meter, report, flops):
        if (tmp_path / "model.ckpt-7.index").exists():
            raise KeyboardInterrupt
        add(meter, report, flops)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Meter, "add", add_and_die)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, WAYS["several ahead"])
    assert_same(run(tmp_path, WAYS["several"]), plain[1])
    assert without_rates(tmp_path) == without_rates(plain[0])


@pytest.mark.parametrize("skip_padding", [False, True])
def test_what_counts_in_a_step(tmp_path, monkeypatch, skip_padding):
    """Two texts of 4 tokens, padded to 16."""
    counted, add = [], loop.Meter.add

    def noted(meter, report, flops):
        counted.append(flops)
        add(meter, report, flops)

    monkeypatch.setattr(loop.Meter, "add", noted)
    run(tmp_path, kernels=training_kernels(skip_padding=skip_padding))
    config = tiny_model.MINI_CONFIG
    heads = Heads(per_row=config.hidden_size * (config.hidden_size + 2))
    size = (
        BatchSize(2, 2 * 16, 2 * 4, 2 * 4 * 4) if skip_padding else static_size(2, 16)
    )
    assert counted == [step_flops(config, size, heads)] * 16


def test_a_worker_counts_for_all(monkeypatch):
    """Each worker reads one of the two rows of a batch."""
    state = types.SimpleNamespace(
        model=ClassificationModel(tiny_model.MINI_CONFIG, 2), step=0
    )
    monkeypatch.setattr(strategies, "local_rows", lambda *_: (1, 2))
    data = FeatureSet(TRAIN, 16, pad_features).of_one_length()
    settings = changed(SETTINGS, num_train_steps=1)
    training = loop._Training(
        STRATEGY, state, settings, 1, None, "accuracy", None, None
    )
    ((shares,), count, flops), *others = training._calls(data, 0, False)
    assert shares["input_ids"].shape == (1, 16) and count == 1 and not others
    config = tiny_model.MINI_CONFIG
    heads = heads_of(state.model)
    assert flops == step_flops(config, static_size(2, 16), heads)


def test_no_thread_is_left():
    before = threading.active_count()
    with feed.one_ahead(iter(range(3))) as numbers:
        assert list(numbers) == [0, 1, 2]
    with feed.one_ahead(iter(range(3))) as numbers:
        assert next(numbers) == 0
    assert threading.active_count() == before


def test_the_next_element_is_made_meanwhile():
    made, allowed = [], threading.Semaphore(2)

    def elements():
        for number in range(4):
            allowed.acquire()
            made.append((number, threading.current_thread().name))
            yield number

    with feed.one_ahead(elements()) as numbers:
        assert next(numbers) == 0
        deadline = time.monotonic() + 20
        while len(made) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        # The thread fetches only one element ahead.
        assert [number for number, _ in made] == [0, 1]
        allowed.release(2)
        assert list(numbers) == [1, 2, 3]
    assert len({name for _, name in made} | {threading.current_thread().name}) == 2


def test_an_exception_is_raised_where_its_element_is_due():
    def elements():
        yield 1
        raise tf.errors.DataLossError(None, None, "a damaged record")

    with feed.one_ahead(elements()) as numbers:
        assert next(numbers) == 1
        with pytest.raises(tf.errors.DataLossError, match="a damaged record"):
            next(numbers)


def test_a_short_stack_is_filled_up():
    batches = [{"ids": tf.constant([[n, n]]), "w": tf.constant([1.0])} for n in (3, 4)]
    stacked = feed.stack(batches, 3)
    assert stacked["ids"].numpy().tolist() == [[[3, 3]], [[4, 4]], [[4, 4]]]
    assert stacked["w"].shape == (3, 1)


def test_what_each_device_needs(monkeypatch):
    assert feed.choose_feeding(STRATEGY, 100) == Feeding(False, 1)
    with monkeypatch.context() as patch:
        patch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
        assert feed.choose_feeding(STRATEGY, 100) == Feeding(True, 1)
    monkeypatch.setattr(strategies, "is_tpu", lambda strategy: True)
    assert feed.choose_feeding(STRATEGY, 50) == Feeding(True, 50)
    # A longer call would exceed the time that SIGTERM leaves.
    assert feed.choose_feeding(STRATEGY, 1000) == Feeding(True, 100)
