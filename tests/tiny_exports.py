"""Small models of every kind with random weights, and texts for them."""

import dataclasses
import functools
import pathlib
import random
import tempfile

import keras
import numpy as np
import tensorflow as tf
import tiny_model
from marks import slow

from official_bert.checkpoints import google, model_directory
from official_bert.export.saved_model import exports
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.multiple_choice import MultipleChoiceModel
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.choice.training import ChoiceTask
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.embedding import training as embedding
from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.features import tag_names
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.training import SquadTask

CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG, max_position_embeddings=64, initializer_range=0.6
)
LENGTHS = (8, 16, 32, 64)
LABELS = ("bad", "so so", "schön")
TAGS = tag_names(["LOC", "PER"])
SINGLE = ClassifierTask("single_label", LABELS, ("accuracy",), 24)
WINDOWS = ClassifierTask(
    "multi_label", LABELS, ("accuracy",), 12, long_text="window", threshold=0.4
)
NUMBER = ClassifierTask("regression", (), ("pearson",), 24)
MAY_NOT = Decoding(20, 5, True, 0.3)

# Name of a kind -> (task, whether it takes pairs, whether it lowercases).
KINDS = {
    "label": (SINGLE, False, True),
    "label of pairs": (SINGLE, True, False),
    "labels": (WINDOWS, False, True),
    "labels of pairs": (WINDOWS, True, True),
    "number": (NUMBER, True, True),
    "squad 1.1": (SquadTask(24, 6, 5, Decoding(20, 4)), None, True),
    "squad 2.0": (SquadTask(24, 6, 5, MAY_NOT), None, False),
    "squad of the best": (
        SquadTask(24, 6, 5, Decoding(1, 5, True, -9.0)),
        None,
        True,
    ),
    "squad of ties": (SquadTask(24, 7, 5, Decoding(5, 3, True)), None, True),
    "tags": (NerTask(TAGS, 16), None, False),
    "tags of features": (
        NerTask(TAGS, 24, 9, feature_based="last"),
        None,
        True,
    ),
    "choice": (ChoiceTask(24), None, True),
    "vectors": (EmbeddingTask(12, size=9, long_text="window"), None, True),
    "masks": (None, None, True),
    "encoder": (None, None, True),
}

# A faster test covers the difference between these and other kinds.
LIKE_OTHERS = ("labels of pairs", "squad of the best", "tags of features")


def cases(kinds):
    """Return kinds as cases of a test; similar kinds are slow cases."""
    return [slow(kind) if kind in LIKE_OTHERS else kind for kind in kinds]


@functools.cache
def open_kind(kind):
    """Return (directory, `Export`) of a kind, created once per process."""
    directory = write_kind(pathlib.Path(_folder().name), kind)
    return directory, open_directory(directory, kind)


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()


def open_directory(directory, kind):
    """Return the `Export` of a directory of `write_kind`."""
    return exports.open_export(directory, KINDS[kind][1], LENGTHS)


def write_kind(folder, kind):
    """Write a model directory of a kind below a folder; return its path."""
    task, _, do_lower_case = KINDS[kind]
    directory = folder / kind.replace(" ", "-")
    directory.mkdir()
    keras.utils.set_random_seed(list(KINDS).index(kind))
    model = _make_model(kind, task)
    _spread(model, 0.0 if kind == "squad of ties" else 3.0)
    vocab = str(write_vocab(folder / f"{directory.name}.txt"))
    model_directory.save(str(directory), model, vocab, do_lower_case)
    if task is not None:
        write_task(str(directory), task, 7)
    return str(directory)


def write_without_pooler(directory, heads=True):
    """Write a model like a masked-LM model of Hugging Face; return its path."""
    directory.mkdir()
    names = ("bert/embeddings", "bert/encoder", *["cls/predictions"][: int(heads)])
    values = tiny_model.tensors(CONFIG)
    values = {name: v for name, v in values.items() if name.startswith(names)}
    checkpoint = dataclasses.replace(
        tiny_model.checkpoint(CONFIG),
        shapes={name: value.shape for name, value in values.items()},
        read=values.__getitem__,
    )
    google.write_model(str(directory), checkpoint)
    return str(directory)


def write_vocab(path):
    """Write the mini vocabulary, with marks that lowercasing reorders."""
    pieces = [*tiny_model.VOCAB.read_text().splitlines(), "##\u302e", "##\u1b44"]
    path.write_text("".join(f"{piece}\n" for piece in pieces))
    return path


def _make_model(kind, task):
    if isinstance(task, ClassifierTask):
        return ClassificationModel(CONFIG, task.num_outputs)
    if isinstance(task, SquadTask):
        return SpanModel(CONFIG)
    if isinstance(task, NerTask):
        return ner.make_model(CONFIG, task)
    if isinstance(task, ChoiceTask):
        return MultipleChoiceModel(CONFIG)
    if isinstance(task, EmbeddingTask):
        return embedding.make_model(CONFIG, task)
    return PretrainingModel(CONFIG) if kind == "masks" else BertEncoder(CONFIG)


def _spread(model, scale):
    """Scale the head's weights, so that predictions differ between texts."""
    draw = np.random.default_rng(5)
    for weight in model.weights:
        if weight.path.endswith("output_weights"):
            weight.assign(weight.numpy() * scale)
        elif "bias" in weight.path or "beta" in weight.path:
            size = 0.1 * min(scale, 1.0)
            weight.assign(draw.normal(size=weight.shape) * size)


@functools.cache
def traced(kind, signature):
    """Return a signature of a kind as a compiled function."""
    return open_kind(kind)[1].signatures[signature].traced()


def ask(kind, signature, inputs):
    """Return the outputs of a signature, a dict of arrays.

    Args:
      kind: name in `KINDS`.
      signature: its name.
      inputs: dict of name -> list or array.
    """
    specs = open_kind(kind)[1].signatures[signature].specs
    assert list(inputs) == list(specs)
    values = [tf.constant(inputs[n], spec.dtype) for n, spec in specs.items()]
    return {n: v.numpy() for n, v in traced(kind, signature)(*values).items()}


def assert_same(found, wanted, tolerance=5e-5):
    """Numbers may differ slightly, relative to those above 1; nothing else may."""
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        if value.dtype.kind == "f":
            error = np.abs(found[name] - value) / np.maximum(1, np.abs(value))
            assert not (error > tolerance).any(), (name, error.max())
            assert np.isfinite(found[name]).all()
        else:
            assert found[name].tolist() == value.tolist(), name


SPECIAL_TEXTS = (
    "",
    " ",
    " \t\n\u00a0\u3000",
    "\u0301",
    "\u0301\u0300 \u0327",
    "\u200d\ufeff\x00\ufffd",
    "the horse is on ne\u0301 water , in \u5e08\u8001 .",
    "THE \u0130 LIGHT I\u0307 \u0391\u03a3 \u1e9e \ufb01 \u01c5",
    "\U0001f600\U0001f44d\U0001f3fd grand\U0001f600horse",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05b8\u05dc\u05d5\u05b9\u05dd her",
    "a" * 201 + " on " + "b" * 200,
    "[MASK] [SEP] [CLS] [UNK] ##ing",
    "a\u0301\u0323\u0301b , e\u0323\u0301.\u0301\u0301!",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab horse",
    "horse,water;light:years" * 12,
)
_WORDS = (
    "the of in that is and on water her she one logbook years found than time dough "
    "crust was he it light over grand horse count horseshoe unafraid lighthouse , . ! "
    "( ) - \u00b1 \u0142 \u8001 \u5e08 "
    "a\u302e\u1b44b h\u302e\u1b44 e\u302e\u1b44\u302e\u1b44n"
)
_PIECES = _WORDS.split()
_CHARACTERS = [chr(code) for code in range(1, 0x3000)]


def random_texts(number, seed, longest=40):
    """Return texts: special ones, and texts of known words and odd characters."""
    draw = random.Random(seed)

    def word():
        kind = draw.random()
        if kind < 0.8:
            return draw.choice(_PIECES)
        if kind < 0.9:
            return draw.choice(_PIECES).title() + draw.choice(("\u0301", "s", ",", "é"))
        return "".join(draw.choices(_CHARACTERS, k=draw.randrange(1, 4)))

    def text():
        words = [word() for _ in range(draw.randrange(1, longest + 1))]
        return draw.choice((" ", " ", "\n", "  ")).join(words)

    texts = [*SPECIAL_TEXTS, *(text() for _ in range(number))]
    draw.shuffle(texts)
    return texts
