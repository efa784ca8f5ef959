"""Early stopping: when it ends a run, and that a kill does not change this."""

import json
import math
import os
import signal
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from run_settings import changed, fine_tuning_settings

from official_bert.checkpoints import names
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.training import loop, runs, saving
from official_bert.training.logs.run_log import RATES

STRATEGY = tf.distribute.get_strategy()
TASK = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 16)
SETTINGS = fine_tuning_settings(
    train_batch_size=2,
    early_stopping_patience=2,
    learning_rate=1e-3,
    num_train_steps=16,
    num_warmup_steps=2,
    save_checkpoints_steps=2,
    iterations_per_loop=2,
)
IDS = np.array([7, 40, 41, 8], np.int32)
TRAIN = [Features(IDS + i % 3, np.zeros_like(IDS), i % 2, 0) for i in range(8)]
# Scores of the evaluations at steps 2, 4, 6, …: the best is at step 4. The second
# evaluation without an improvement after it is at step 8.
SCORES = {2: 0.5, 4: 0.7, 6: 0.6, 8: 0.7, 10: 0.9, 12: 0.9, 14: 0.9, 16: 0.9}


class SmallModel(keras.Model):
    """A unigram model with dropout, which is traced much faster than a BERT."""

    def __init__(self):
        super().__init__(name="small")
        self.config = tiny_model.MINI_CONFIG
        shape = (self.config.vocab_size, 2)
        self.scores = self.add_weight(shape=shape, name="scores")
        self.built = True

    def call(self, inputs, training=False, dropout_seed=None, kernels=None):
        words = tf.gather(self.scores, inputs["input_ids"])
        if training:
            words = tf.nn.experimental.stateless_dropout(words, 0.5, dropout_seed)
        return {"logits": tf.reduce_sum(words, axis=1)}


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        ([], "accuracy", 0),
        ([0.5], "accuracy", 0),
        ([0.5, 0.6, 0.7], "accuracy", 0),
        ([0.7, 0.6, 0.65], "accuracy", 2),
        # A score equal to the best is not better.
        ([0.7, 0.7, 0.7], "accuracy", 2),
        ([0.5, 0.4, 0.6, 0.55], "f1", 1),
        ([0.5, 0.6, 0.7], "loss", 2),
        ([0.5, 0.4, 0.3], "loss", 0),
        ([0.5, 0.4, 0.6, 0.4], "masked_lm_loss", 2),
        ([None, None], "loss", 2),
        ([None, 0.5, None, None], "accuracy", 2),
        ([None, 0.5], "loss", 0),
        ([0.5, None, 0.4], "loss", 0),
        # Scores may be negative, and the first may be 0.
        ([0.0, -0.1], "matthews_correlation", 1),
        ([-0.2, -0.1], "pearson", 0),
    ],
)
def test_evaluations_since_the_best(values, name, expected):
    assert saving.evaluations_since_best(values, name) == expected


def test_a_loss_is_better_when_lower_and_a_score_when_higher():
    assert saving.is_better(1.0, 2.0, "loss")
    assert not saving.is_better(2.0, 1.0, "loss")
    assert not saving.is_better(1.0, 1.0, "loss")
    assert saving.is_better(2.0, 1.0, "accuracy")
    assert not saving.is_better(1.0, 2.0, "accuracy")
    assert not saving.is_better(1.0, 1.0, "accuracy")
    assert saving.is_better(-5.0, None, "accuracy")
    assert saving.is_better(5.0, None, "loss")
    # NaN is never better.
    assert not saving.is_better(math.nan, 1.0, "loss")
    assert not saving.is_better(math.nan, 1.0, "accuracy")
    assert saving.is_better(1.0, math.nan, "accuracy")
    assert not saving.is_better(math.nan, math.nan, "accuracy")


def run(directory, scores=SCORES, name="accuracy", seen=None, **changes):
    """Train with invented scores; return (complete, step, weights).

    Args:
      directory: output directory.
      scores: dict of step -> score of the evaluation at that step, or an exception to
        raise instead, or a signal that interrupts it.
      name: name of the score.
      seen: list, for the steps at which evaluations were requested.
      **changes: changed settings.
    """
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    state = runs.make_state(STRATEGY, SmallModel, settings)
    data = classifier.fingerprint(TASK, TRAIN)
    fixed = runs.fingerprint(tiny_model.MINI_CONFIG, data, settings)
    run_id = runs.resume_or_begin(STRATEGY, state, fixed, settings)

    def evaluate(break_off):
        if seen is not None:
            seen.append(state.step)
        if isinstance(scores[state.step], BaseException):
            raise scores[state.step]
        if isinstance(scores[state.step], signal.Signals):
            assert not break_off()
            os.kill(os.getpid(), scores[state.step])
            assert break_off()
            return None
        return {"loss": 1.0, name: scores[state.step]}

    complete = loop.train(
        STRATEGY,
        state,
        classifier.objective(TASK),
        FeatureSet(TRAIN, 16, pad_features),
        settings,
        run_id,
        evaluate,
        PLAIN,
        best_by=name,
    )
    weights = {v.path: v.numpy() for v in state.model.trainable_variables}
    return complete, state.step, weights


class SlowScores(dict):
    """Makes an evaluation take one second; an evaluation reads its score twice."""

    def __getitem__(self, step):
        time.sleep(0.5)
        return super().__getitem__(step)


@pytest.mark.slow
def test_the_rate_leaves_evaluations_out(tmp_path):
    run(tmp_path / "run", SlowScores(SCORES), num_train_steps=6)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line).get("sequences_per_second") for line in lines]
    # A row has four sequences. With the second of evaluation, the rate would be <= 4.
    assert [rate > 4.0 for rate in filter(None, found[1:])] == [True, True]


def rows(directory):
    found = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    for row in found:
        for name in RATES:
            row.pop(name, None)
    return found


def assert_same(left, right):
    assert left[:2] == right[:2]
    for name, value in right[2].items():
        np.testing.assert_array_equal(left[2][name], value, err_msg=name)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """(directory, result) of a run that early stopping has ended."""
    directory = tmp_path_factory.mktemp("ended")
    return directory, run(directory)


def test_a_run_ends_by_patience(ended):
    directory, (complete, step, _) = ended
    assert complete and step == 8
    assert [r["step"] for r in rows(directory) if "eval_accuracy" in r] == [2, 4, 6, 8]
    # The best is kept in addition to the newest.
    assert saving.best_step(str(directory)) == 4
    assert names.numbered_checkpoints(directory) == [4, 8]


def test_it_says_so(tmp_path, capsys):
    run(tmp_path, num_train_steps=16, early_stopping_patience=1)
    expected = (
        "Stopped early at step 6: the last 1 evaluations did not improve on the best."
    )
    out = capsys.readouterr().out
    assert expected in out and "Stopped at" not in out


def test_run_again_it_makes_no_more_updates(ended):
    directory, result = ended
    before, seen = rows(directory), []
    assert_same(run(directory, seen=seen), result)
    assert seen == []
    assert rows(directory) == before
    assert names.numbered_checkpoints(directory) == [4, 8]


def test_more_patience_goes_on_and_none_goes_to_the_end(ended, tmp_path):
    directory, _ = ended
    for name in ("longer", "whole"):
        (tmp_path / name).mkdir()
        for path in directory.iterdir():
            if path.is_file():
                (tmp_path / name / path.name).write_bytes(path.read_bytes())
    complete, step, _ = run(tmp_path / "longer", early_stopping_patience=3)
    # Three evaluations without an improvement follow the best one of step 10.
    assert complete and step == 16
    scores = SCORES | {10: 0.6}
    complete, step, _ = run(tmp_path / "whole", scores, early_stopping_patience=None)
    assert complete and step == 16


@pytest.mark.parametrize("when", [5, 7])
def test_killed_between_evaluations_it_decides_the_same(
    ended, tmp_path, monkeypatch, when
):
    add, count = loop.Meter.add, []

    def add_and_die(self, report, flops):
        count.append(report)
        if len(count) == when:
            raise KeyboardInterrupt
        add(self, report, flops)

    monkeypatch.setattr(loop.Meter, "add", add_and_die)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.undo()
    assert_same(run(tmp_path), ended[1])
    assert rows(tmp_path) == rows(ended[0])


@pytest.mark.parametrize("step", [4, 8])
def test_killed_during_an_evaluation_it_decides_the_same(ended, tmp_path, step):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, SCORES | {step: KeyboardInterrupt()})
    assert_same(run(tmp_path), ended[1])
    assert rows(tmp_path) == rows(ended[0])
    assert saving.best_step(str(tmp_path)) == 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(directory, result) of a run without early stopping."""
    directory = tmp_path_factory.mktemp("whole")
    return directory, run(directory, early_stopping_patience=None)


@pytest.mark.parametrize("step", [4, 16])
def test_an_evaluation_that_a_signal_broke_off_is_made_up(
    whole, tmp_path, step, capsys
):
    """This holds for several interruptions, and for the last evaluation."""
    stopped = SCORES | {step: signal.SIGTERM}
    for _ in range(2):
        found = run(tmp_path, stopped, early_stopping_patience=None)
        assert found[:2] == (False, step)
        assert f"Stopped at step {step} and saved" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, SCORES | {step: signal.SIGINT}, early_stopping_patience=None)
    assert_same(run(tmp_path, early_stopping_patience=None), whole[1])
    assert rows(tmp_path) == rows(whole[0])
    assert saving.best_step(str(tmp_path)) == saving.best_step(str(whole[0])) == 10


def test_the_log_is_on_the_disk_before_the_checkpoint(tmp_path, monkeypatch):
    """A power failure loses no rows of steps that will not run again."""
    order, save, sync = [], saving.save_state, os.fsync

    def count():
        return len(rows(tmp_path)) if (tmp_path / "metrics.jsonl").exists() else 0

    def note(descriptor):
        log = tmp_path / "metrics.jsonl"
        is_log = log.exists() and os.path.samestat(os.fstat(descriptor), log.stat())
        order.append(("metrics.jsonl" if is_log else "another file", count()))
        sync(descriptor)

    def save_now(*arguments):
        order.append(("save", count()))
        save(*arguments)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(saving, "save_state", save_now)
    run(tmp_path, num_train_steps=4)
    saves = [place for place, (name, _) in enumerate(order) if name == "save"]
    assert len(saves) == 2
    for place in saves:
        assert order[place - 1] == ("metrics.jsonl", order[place][1])


def test_killed_before_the_best_was_noted(ended, tmp_path, monkeypatch):
    """The row of step 8 is in the log, and nothing after it was done."""
    note = saving.note_evaluation

    def die(directory, step, *others):
        if step == 8:
            raise KeyboardInterrupt
        note(directory, step, *others)

    monkeypatch.setattr(saving, "note_evaluation", die)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.undo()
    seen = []
    assert_same(run(tmp_path, seen=seen), ended[1])
    assert seen == [] and saving.best_step(str(tmp_path)) == 4


def test_by_the_loss(tmp_path):
    falling = dict(zip(SCORES, (3.0, 2.0, 1.0, 1.5, 0.5, 0.6, 0.7, 0.8), strict=True))
    complete, step, _ = run(tmp_path, falling, "loss")
    assert complete and step == 14
    assert saving.best_step(str(tmp_path)) == 10


def test_a_measure_that_is_not_finite_is_no_better(tmp_path):
    scores = SCORES | {2: math.nan, 4: 0.7, 6: math.nan, 8: math.nan}
    complete, step, _ = run(tmp_path, scores)
    assert complete and step == 8
    assert saving.best_step(str(tmp_path)) == 4


def test_a_run_whose_last_measure_is_not_finite_goes_on(tmp_path):
    """The log contains `null` for such a measure."""
    scores = SCORES | {2: math.nan}
    run(tmp_path, scores, stop_at_step=2)
    complete, step, _ = run(tmp_path, scores)
    assert complete and step == 8


def test_patience_that_ends_at_the_last_step(tmp_path, capsys):
    """It is complete in both cases, and was not stopped early."""
    complete, step, _ = run(tmp_path, num_train_steps=8)
    assert complete and step == 8
    assert "Stopped early" not in capsys.readouterr().out


def test_no_worker_breaks_off_an_evaluation(monkeypatch):
    """The other workers would wait for it forever, because all take part in sums."""
    monkeypatch.setattr(loop.strategies, "is_chief", lambda strategy: False)
    asked = []

    def evaluate(break_off):
        asked.append(break_off())

    for together in (False, True):
        monkeypatch.setattr(
            loop.strategies, "is_multi_worker", lambda strategy, it=together: it
        )
        loop._Training(STRATEGY, None, None, 1, evaluate, "loss", True, None)._evaluate(
            4
        )
    assert asked == [True, False]
