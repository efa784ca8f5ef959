"""Small models as `.tflite`, each made once per process, and one trained model."""

import dataclasses
import functools
import pathlib
import random
import tempfile

import pytest
import tensorflow as tf
import tiny_exports
import tiny_model
from run_settings import fine_tuning_settings, start_of

from official_bert.checkpoints import model_directory
from official_bert.export.tflite import labeled_sets, writer
from official_bert.export.tflite.model import open_device_model
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning.task_file import write_task
from official_bert.tables.columns import Columns
from official_bert.tables.examples import Example
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.predictor import load
from official_bert.tokenization.full import FullTokenizer

COLUMNS = Columns("text", None, "label", True)
# Wide enough that weights, not the graph, dominate the size of the file.
WIDE = dataclasses.replace(
    tiny_model.MINI_CONFIG,
    hidden_size=128,
    intermediate_size=512,
    num_hidden_layers=2,
    initializer_range=0.05,
)
HORSE = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 24, "", "truncate")
HORSE = dataclasses.replace(HORSE, columns=COLUMNS)
_WORDS = ["the", "of", "in", "that", "is", "and", "on", "water", "her", "light", "over"]


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()


def _place(*parts):
    return pathlib.Path(_folder().name, "-".join(parts).replace(" ", "-"))


@functools.cache
def directory_of(kind):
    """Return the directory of a kind of `tiny_exports.KINDS`."""
    parent = _place("models", kind)
    parent.mkdir()
    return tiny_exports.write_kind(parent, kind)


@functools.cache
def exported(kind, quantization="float32"):
    """Return (folder with the `.tflite`, `Report`) of a kind.

    A few kinds have two lengths; the others have one, to save time.
    """
    folder = _place("export", kind, quantization)
    lengths = (12,) if kind in ("label", "squad 2.0") else ()
    model = open_device_model(directory_of(kind), lengths)
    return folder, writer.write(folder, model, quantization)


@functools.cache
def horse_directory():
    """Return the directory of a classifier that detects the word horse.

    The score of "no" is set to 0, which changes no probability. Calibration
    texts without the word therefore never show a score above 0.
    """
    made = _place("trained")
    made.mkdir()
    tokenizer = FullTokenizer(str(tiny_model.VOCAB), True)
    train, dev = (
        classifier_features.encode(
            HORSE,
            [Example(n, text, label=label) for n, (text, label) in enumerate(rows)],
            tokenizer,
        )
        for rows in (horse_texts(200, 1), horse_texts(50, 2))
    )
    settings = fine_tuning_settings(
        output_dir=str(made), learning_rate=1e-3, num_train_steps=30
    )
    start, features = start_of(WIDE), [one for (one,) in train]
    job = classifier.make_job(start, HORSE, features, dev)
    fine_tuning.fine_tune(tf.distribute.get_strategy(), job, settings)
    model = load(made).model
    for weight in model.weights:
        if weight.path.endswith(("output_weights", "output_bias")):
            weight.assign(weight.numpy() - weight.numpy()[:1])
    directory = _place("horse")
    directory.mkdir()
    model_directory.save(str(directory), model, str(tiny_model.VOCAB), True)
    write_task(str(directory), HORSE, 20)
    return directory


def horse_texts(number, seed, labels=HORSE.labels):
    """Return random (text, label) pairs."""
    draw = random.Random(seed)
    rows = []
    for _ in range(number):
        words, label = (
            draw.choices(_WORDS, k=draw.randrange(3, 20)),
            draw.choice(labels),
        )
        if label == "yes":
            words[draw.randrange(len(words))] = "horse"
        rows.append((" ".join(words), label))
    return rows


def table(path, rows):
    """Write a table of (text, label); return its path."""
    lines = ["text,label", *(f"{text},{label}" for text, label in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@functools.cache
def horse_set(number, seed, labels=HORSE.labels):
    """Return the `LabeledSet` of such texts."""
    path = table(
        _place(f"{number}-{seed}-{len(labels)}.csv"), horse_texts(number, seed, labels)
    )
    predictor = load(horse_directory())
    return labeled_sets.read(predictor, str(path), "--dev_file")


@functools.cache
def horse(quantization):
    """Return (folder with the `.tflite`, `Report`) of that model, with one length."""
    folder = _place("export", "horse", quantization)
    model = open_device_model(horse_directory(), (24,))
    calibration = horse_set(60, 3) if quantization == "full_int8" else None
    with pytest.MonkeyPatch.context() as patch:
        # A small model with large weights amplifies rounding more than others.
        patch.setattr(writer, "TOLERANCE", 1e-3)
        report = writer.write(
            folder, model, quantization, calibration, horse_set(200, 2)
        )
    return folder, report
