"""A student learns from a fine-tuned teacher, resumes, and is an ordinary model."""

import dataclasses

import numpy as np
import pytest
import tiny_model
from killed_run import assert_same_bytes, killed_at
from run_settings import changed, start_of
from test_classifier import CONFIG, DEV, SETTINGS, STRATEGY, TASK, TRAIN, run

from official_bert.checkpoints import any_format
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.tasks.classifier import distillation
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tokenization.full import FullTokenizer

STUDENT = dataclasses.replace(CONFIG, hidden_size=8, intermediate_size=16)
HOW = distillation.DistillationSettings(2.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    directory = tmp_path_factory.mktemp("teacher")
    run(directory, None)
    return ClassifierPredictor(directory)


def make_job(teacher, how=HOW, task=TASK, start=None):
    job = classifier.make_job(start or start_of(STUDENT), task, TRAIN, DEV)
    return distillation.distilling(job, teacher, how)


def distill(directory, teacher, how=HOW, **changes):
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    return fine_tuning.fine_tune(STRATEGY, make_job(teacher, how), settings)


def tensors(directory):
    with any_format.opened(directory) as checkpoint:
        return checkpoint.tensors()


def test_the_last_layers_match():
    assert distillation.matched_layers(2, 12) == [5, 11]
    assert distillation.matched_layers(4, 12) == [2, 5, 8, 11]
    assert distillation.matched_layers(3, 3) == [0, 1, 2]
    assert distillation.matched_layers(4, 2) == [0, 0, 1, 1]


def test_a_student_learns_without_labels(tmp_path, teacher):
    how = dataclasses.replace(HOW, label_weight=0.0)
    row = distill(tmp_path, teacher, how)
    assert row["accuracy"] > 0.9
    student = ClassifierPredictor(tmp_path)
    assert student.model.config.hidden_size == 8
    assert not any("distillation" in name for name in tensors(tmp_path))
    examples = [[one] for one in TRAIN[:50]]
    ours, theirs = (each.outputs(examples, examples) for each in (student, teacher))
    assert np.mean(ours.argmax(axis=1) == theirs.argmax(axis=1)) > 0.9


def test_a_killed_run_ends_like_an_undisturbed_one(tmp_path, teacher):
    changes = {"num_train_steps": 20, "iterations_per_loop": 5}
    changes |= {"save_checkpoints_steps": 10}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    row = distill(whole, teacher, **changes)
    killed_at(15, lambda: distill(killed, teacher, **changes), pytest.MonkeyPatch)
    assert distill(killed, teacher, **changes) == row
    assert_same_bytes(tensors(killed), tensors(whole))
    other = dataclasses.replace(HOW, temperature=3.0)
    with pytest.raises(UserError, match="temperature"):
        distill(killed, teacher, other, **changes)


def test_a_run_may_resume_with_another_batch_size_of_the_teacher(teacher, monkeypatch):
    first = make_job(teacher).fingerprint
    monkeypatch.setattr(teacher, "batch_size", 3)
    assert make_job(teacher).fingerprint == first


def test_the_examples_hold_the_teachers_outputs(teacher):
    job = make_job(teacher)
    examples = [[one] for one in TRAIN]
    logits = teacher.outputs(examples, examples)
    found = np.stack([one.logits for one in job.train_set.features])
    np.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-5)
    batch = job.train_set.pad(job.train_set.features[:3], 16)
    assert batch["teacher_logits"].shape == (3, 2)
    assert batch["teacher_vectors"].shape == (3, 1, CONFIG.hidden_size)


def test_a_teacher_of_other_labels_or_words_is_refused(teacher, tmp_path):
    task = dataclasses.replace(TASK, labels=("yes", "no"))
    with pytest.raises(UserError, match="predicts the labels no, yes, but"):
        make_job(teacher, task=task)
    words = tiny_model.VOCAB.read_text().splitlines()
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*words[:-2], words[-1], words[-2]]) + "\n")
    start = start_of(STUDENT)
    start = dataclasses.replace(start, tokenizer=FullTokenizer(str(path), True))
    with pytest.raises(UserError, match="different vocabularies"):
        make_job(teacher, start=start)


def test_a_teacher_of_numbers_or_of_short_texts_is_refused(teacher, monkeypatch):
    numbers = dataclasses.replace(TASK, kind="number", labels=())
    with monkeypatch.context() as patch:
        patch.setattr(teacher, "task", numbers)
        with pytest.raises(UserError, match="teacher predicts numbers, but the data"):
            make_job(teacher)
    short = dataclasses.replace(teacher.model.config, max_position_embeddings=3)
    monkeypatch.setattr(teacher.model, "config", short)
    with pytest.raises(UserError, match="3 positions, .* Use --max_seq_length=3"):
        make_job(teacher)
