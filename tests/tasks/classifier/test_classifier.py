"""Fine-tuning on tiny tasks learns, resumes, and keeps the best model."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from killed_run import assert_same_bytes, killed_at
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.checkpoints import any_format, model_directory
from official_bert.checkpoints.initialize import load_weights
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.training import loop, saving

# A narrow model learns quickly if its initial weights are larger than usual.
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.2)
STRATEGY = tf.distribute.get_strategy()
TASK = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 16)
SETTINGS, START = fine_tuning_settings(), start_of(CONFIG)
CLS, SEP, YES = 2, 3, 20


def examples(count, seed, label_of=int):
    """Return random texts; the label is whether a text contains the token 20."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        words = rng.integers(21, 100, rng.integers(3, 12))
        is_yes = bool(rng.integers(2))
        if is_yes:
            words[rng.integers(len(words))] = YES
        ids = np.array([CLS, *words, SEP], np.int32)
        found.append(Features(ids, np.zeros_like(ids), label_of(is_yes), 0))
    return found


def alone(features):
    """Return features in lists, each as the only window of its example."""
    return [[one] for one in features]


TRAIN, DEV = examples(200, 1), alone(examples(50, 2))


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A checkpoint with all heads, including a classifier of three classes."""
    return tiny_model.write(tmp_path_factory.mktemp("start") / "model")


def run(directory, start, task=TASK, train=TRAIN, dev=DEV, begin=START, **changes):
    settings = changed(
        SETTINGS,
        output_dir=str(directory),
        **{"init_checkpoint": None if start is None else str(start), **changes},
    )
    job = classifier.make_job(begin, task, train, dev)
    return fine_tuning.fine_tune(STRATEGY, job, settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return (output directory, scores) of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole")
    return directory, run(directory, None)


def tensors(directory):
    with any_format.opened(directory) as checkpoint:
        return checkpoint.tensors()


def test_it_learns(whole):
    _, row = whole
    assert row["accuracy"] > 0.9


def test_the_best_model_is_left(whole):
    directory, row = whole
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    scores = {r["step"]: r["eval_accuracy"] for r in rows if "eval_accuracy" in r}
    assert list(scores) == [20, 40, 60]
    best = max(scores, key=scores.get)
    assert row["global_step"] == best and row["accuracy"] == scores[best]
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{best}"))
    for name, value in tensors(directory).items():
        np.testing.assert_array_equal(value, reader.get_tensor(name))


def test_it_is_a_model_directory_that_knows_its_labels(whole):
    directory, _ = whole
    task = json.loads((directory / "task.json").read_text())
    assert task["labels"] == ["no", "yes"] and task["kind"] == "single_label"
    assert task["max_seq_length"] == 16
    assert {"output_weights", "output_bias"} <= set(tensors(directory))
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        assert (directory / name).exists()


@pytest.mark.parametrize(
    "reads_padding, xla", [(False, False), (True, False), (False, True)]
)
def test_padding_is_skipped_unless_it_counts(tmp_path, monkeypatch, reads_padding, xla):
    seen = []

    def train(*args, **kwargs):
        *_, kernels, _ = args
        seen.append(kernels.pack is not None)

    monkeypatch.setattr(loop, "train", train)
    settings = changed(SETTINGS, output_dir=str(tmp_path), xla=xla)
    job = classifier.make_job(START, TASK, TRAIN, DEV)
    job = dataclasses.replace(job, reads_padding=reads_padding)
    fine_tuning.fine_tune(STRATEGY, job, settings)
    assert seen == [not (reads_padding or xla)]


@pytest.mark.slow
def test_killed_and_started_again_it_ends_the_same(whole, tmp_path, monkeypatch):
    killed_at(50, lambda: run(tmp_path, None), monkeypatch)
    row = run(tmp_path, None)
    assert row == whole[1]
    assert_same_bytes(tensors(tmp_path), tensors(whole[0]))


@pytest.mark.slow
def test_no_task_is_there_without_its_model(tmp_path, monkeypatch):
    """Otherwise, after a full disk, the directory would predict with wrong weights."""
    run(tmp_path, None, stop_at_step=20)

    def save(*arguments):
        raise UserError("No space left on the disk.")

    with monkeypatch.context() as patch:
        patch.setattr(model_directory, "save", save)
        with pytest.raises(UserError, match="No space"):
            run(tmp_path, None, stop_at_step=40)
    assert not (tmp_path / "task.json").exists()
    row = run(tmp_path, None, stop_at_step=40)
    task = json.loads((tmp_path / "task.json").read_text())
    assert task["global_step"] == row["global_step"]


@pytest.mark.slow
def test_what_somebody_deleted_is_written_again(tmp_path):
    """Files are also missing after a sweep was killed while it moved the model."""
    run(tmp_path, None, num_train_steps=20)
    before = {name: (tmp_path / name).read_bytes() for name in fine_tuning.MODEL_FILES}
    for name in before:
        (tmp_path / name).unlink()
        run(tmp_path, None, num_train_steps=20)
        assert (tmp_path / name).read_bytes() == before[name]


def test_other_examples_or_labels_are_another_run(whole, tmp_path):
    run(tmp_path, None, num_train_steps=20)
    with pytest.raises(UserError, match="examples_crc32"):
        run(tmp_path, None, train=TRAIN[1:] + TRAIN[:1], num_train_steps=20)
    corrected = [TRAIN[0]._replace(label_id=1 - TRAIN[0].label_id), *TRAIN[1:]]
    with pytest.raises(UserError, match="examples_crc32"):
        run(tmp_path, None, train=corrected, num_train_steps=20)
    corrected = [DEV[0][0]._replace(label_id=1 - DEV[0][0].label_id)]
    with pytest.raises(UserError, match="crc32"):
        run(tmp_path, None, dev=[corrected, *DEV[1:]], num_train_steps=20)
    other = dataclasses.replace(TASK, labels=("bad", "good"))
    with pytest.raises(UserError, match="task: labels"):
        run(tmp_path, None, task=other, num_train_steps=20)


def test_it_starts_from_a_checkpoint_s_own_classifier(start, tmp_path, capsys):
    task = dataclasses.replace(TASK, labels=("a", "b", "c"))
    run(tmp_path, start, task, num_train_steps=20, learning_rate=1e-9)
    assert "Unused weights of the checkpoint: cls/" in capsys.readouterr().out
    before, after = tiny_model.tensors(), tensors(tmp_path)
    np.testing.assert_allclose(
        after["output_weights"], before["output_weights"], atol=1e-6
    )


def test_a_number(tmp_path):
    task = ClassifierTask("regression", (), ("pearson", "spearman"), 16)
    train, dev = (
        examples(n, s, label_of=lambda y: 5.0 * y) for n, s in ((200, 1), (50, 2))
    )
    row = run(tmp_path, None, task, train, alone(dev))
    assert row["pearson"] > 0.8
    assert set(row) == {"global_step", "loss", "pearson", "spearman"}


def test_several_labels(tmp_path):
    task = ClassifierTask("multi_label", ("yes", "no", "never"), ("f1", "accuracy"), 16)
    train, dev = (
        examples(n, s, label_of=lambda y: (int(y), int(not y), 0))
        for n, s in ((200, 1), (50, 2))
    )
    row = run(tmp_path, None, task, train, alone(dev), num_train_steps=100)
    assert row["accuracy"] > 0.9 and row["f1"] > 0.9


def test_scores_come_in_the_order_of_the_examples(whole):
    directory, row = whole
    model = classifier.ClassificationModel(CONFIG, 2)
    load_weights(model, directory)
    score = classifier.compile_model(model)
    logits = classifier.predict(score, DEV, 8, 16)
    single = [classifier.predict(score, [each], 1, 16) for each in DEV]
    np.testing.assert_allclose(logits, np.concatenate(single), atol=1e-4)
    found = classifier.evaluate(TASK, logits, DEV)
    assert found["accuracy"] == row["accuracy"]


def test_one_class_only_is_called_out():
    always_no = np.tile([1.0, 0.0], (len(DEV), 1)).astype(np.float32)
    assert classifier.only_class(TASK, always_no, DEV) == "no"
    assert classifier.only_class(TASK, always_no[::-1] * [[1, 1]], DEV) == "no"
    always_no[0] = [0.0, 1.0]
    assert classifier.only_class(TASK, always_no, DEV) is None
    same = [each for each in DEV if each[0].label_id == 0]
    assert classifier.only_class(TASK, always_no[1 : len(same) + 1], same) is None


def test_a_run_that_learns_nothing_says_so(tmp_path):
    same = [one._replace(label_id=1) for one in TRAIN]
    row = run(tmp_path, None, train=same, num_train_steps=20)
    assert row["predicted_classes"] == 1
    job = classifier.make_job(START, TASK, same, DEV)
    assert "All 50 dev examples are predicted as the same label" in job.trouble(row)
    assert job.trouble({**row, "predicted_classes": 2}) is None


def test_the_best_is_by_the_task_s_metric(whole):
    note = json.loads((whole[0] / saving.BEST_FILE).read_text())
    assert set(note) == {"step", "accuracy"}
