"""Fine-tuning on questions and contexts (Sec. 4.2, 4.3): objective, evaluation."""

import dataclasses
import json
import math
import zlib
from typing import ClassVar

import numpy as np
import tensorflow as tf

from official_bert.constants import SQUAD
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.config_labels import config_with_labels
from official_bert.fine_tuning.job import FineTuning, crc32_of
from official_bert.fine_tuning.task_file import task_content, write_task
from official_bert.metrics.squad import BEST_THRESHOLD
from official_bert.modeling.span_prediction import SpanModel, span_terms
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.features import pad_squad_features
from official_bert.training.step import Objective

LOSS = "span_loss"
ARCHITECTURE = "BertForQuestionAnswering"
# What a log line shows of an evaluation, as far as a row has it.
_SHOWN = ("exact_match", "exact", "best_exact", "f1", "best_f1", "best_f1_thresh")


@dataclasses.dataclass(frozen=True)
class SquadTask:
    """How a model reads contexts and chooses answers; kept in `task.json`.

    Attributes:
      max_seq_length: tokens of a window at most.
      doc_stride: tokens from one window's start to the next one's.
      max_query_length: tokens of a question at most.
      decoding: `Decoding`.
    """

    TASK: ClassVar[str] = SQUAD

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64
    decoding: Decoding = dataclasses.field(default_factory=Decoding)

    @property
    def lengths(self):
        """The three lengths, as `squad_features.convert_examples` takes them."""
        return self.max_seq_length, self.doc_stride, self.max_query_length

    @property
    def metrics(self):
        """Names of the scores; by the first a model is the best."""
        if self.decoding.version_2_with_negative:
            return ("best_f1", "best_exact")
        return ("f1", "exact_match")

    def with_threshold(self, threshold):
        """Return the same with another threshold on the null odds, a float."""
        decoding = dataclasses.replace(
            self.decoding, null_score_diff_threshold=threshold
        )
        return dataclasses.replace(self, decoding=decoding)

    def to_dict(self):
        """Return what `from_dict` takes, fit for JSON."""
        values = dataclasses.asdict(self)
        return values | values.pop("decoding")

    @classmethod
    def from_dict(cls, values):
        """Make a task of what `to_dict` returned.

        Raises:
          KeyError, TypeError, ValueError: that is not what it holds.
        """
        whole = ("max_seq_length", "doc_stride", "max_query_length")
        whole_too = ("n_best_size", "max_answer_length")
        for name in (*whole, *whole_too):
            if not isinstance(values[name], int) or values[name] < 1:
                raise ValueError(f"{name} is no whole number above 0")
        with_negative = values["version_2_with_negative"]
        threshold = float(values["null_score_diff_threshold"])
        if not isinstance(with_negative, bool) or not math.isfinite(threshold):
            raise ValueError("no bool, or no finite threshold")
        decoding = Decoding(
            *(values[name] for name in whole_too), with_negative, threshold
        )
        return cls(*(values[name] for name in whole), decoding)


def task_of(config):
    """Return the `SquadTask` of a model that has no `task.json`.

    Nothing tells how it was trained: it reads as the original does by default, and
    always answers.

    Args:
      config: its `BertConfig`.
    """
    usual = SquadTask()
    longest = min(usual.max_seq_length, config.max_position_embeddings)
    return dataclasses.replace(usual, max_seq_length=longest)


def describe(row):
    """Return the loss or the scores of a row, for people."""
    if "loss" in row:
        return f"loss {row['loss']:.3f}  span accuracy {row['span_accuracy']:.4f}"
    return "  ".join(f"{name} {row[name]:.2f}" for name in _SHOWN if name in row)


def _weights(features):
    return {LOSS: tf.cast(tf.shape(features["input_ids"])[0], tf.float32)}


OBJECTIVE = Objective({LOSS: 0.0}, _weights, span_terms, describe)


def compile_model(model):
    """Return the compiled function of a batch.

    Its result is a dict with `start_logits` and `end_logits`, float32 [B, S].
    """
    return outputs.compile_model(model)


def window_logits(
    score,
    task,
    features,
    batch_size,
    break_off=lambda: False,
    pad_to_max_seq_length=False,
):
    """Return the logits of windows.

    Args:
      score: what `compile_model` returned.
      task: `SquadTask`.
      features: list of N `SquadFeatures`.
      batch_size: windows that go through the model together.
      break_off: function that tells whether to stop early.
      pad_to_max_seq_length: whether to pad windows to `task.max_seq_length` and
        keep the logits of padding, which take part in the choice of the n best
        starts and ends in the original.

    Returns:
      (start logits, end logits), lists of N float32 arrays [T], or with padding
      [max_seq_length]; None if it broke off.
    """
    windows = FeatureSet(features, task.max_seq_length, pad_squad_features)
    if pad_to_max_seq_length:
        windows = windows.of_one_length()
    rows = outputs.run_examples(score, windows, batch_size, break_off)
    if rows is None:
        return None
    sizes = [len(one.input_ids) for one in features]
    if pad_to_max_seq_length:
        sizes = [task.max_seq_length] * len(features)
    return tuple(
        [row[name][:size] for row, size in zip(rows, sizes, strict=True)]
        for name in ("start_logits", "end_logits")
    )


def at_best_threshold(task, row):
    """Return a `SquadTask` with the threshold that scored best, if there is one."""
    if BEST_THRESHOLD not in row:
        return task
    return task.with_threshold(float(row[BEST_THRESHOLD]))


@dataclasses.dataclass(frozen=True)
class DevSet:
    """Questions whose answers are known.

    Attributes:
      examples: list of `SquadExample`.
      features: list of their `SquadFeatures`.
      gold_answers: dict, of `squad_files.read_gold_answers`.
      pad_to_max_seq_length: see `window_logits`.
    """

    examples: list
    features: list
    gold_answers: dict
    pad_to_max_seq_length: bool = False


def fine_tuning(config, task, train_features, dev_set, tokenizer, eval_batch_size):
    """Return the `FineTuning` of a model that answers questions.

    Args:
      config: `BertConfig`.
      task: `SquadTask`.
      train_features: list of `SquadFeatures` with positions of answers.
      dev_set: `DevSet` to choose the best model by; or None, and the last one
        is left.
      tokenizer: `FullTokenizer`.
      eval_batch_size: windows that are evaluated together.
    """

    def make_evaluate(model):
        score = compile_model(model)

        def evaluate_now(break_off=lambda: False):
            logits = window_logits(
                score,
                task,
                dev_set.features,
                eval_batch_size,
                break_off,
                dev_set.pad_to_max_seq_length,
            )
            if logits is None:
                return None
            found = squad_answers.decode(
                dev_set.examples, dev_set.features, *logits, tokenizer, task.decoding
            )
            return evaluate_predictions(task.decoding, found, dev_set.gold_answers)

        return evaluate_now

    return FineTuning(
        config=config,
        written_config=config_with_labels(config),
        make_model=lambda recompute: SpanModel(config, recompute),
        # The softmax over a window's places goes over its padding too.
        reads_padding=True,
        objective=OBJECTIVE,
        train_set=FeatureSet(train_features, task.max_seq_length, pad_squad_features),
        identity=_identity(task, train_features, dev_set),
        best_by=task.metrics[0],
        make_evaluate=dev_set and make_evaluate,
        write_task=lambda directory, step, row: write_task(
            directory, at_best_threshold(task, row), step
        ),
    )


def _identity(task, features, dev_set):
    """Return what tells a run's task and questions from others, as a dict."""
    identity = {
        "task": task_content(task),
        "num_windows": len(features),
        "windows_crc32": crc32_of(_parts_of(features)),
    }
    if dev_set:
        answers = json.dumps(dev_set.gold_answers).encode()
        identity["dev_windows_crc32"] = crc32_of(_parts_of(dev_set.features))
        identity["dev_answers_crc32"] = zlib.crc32(answers)
    return identity


def _parts_of(features):
    """Yield what tells windows from others, as arrays."""
    for one in features:
        yield one.input_ids
        yield np.array([one.start_position or 0, one.end_position or 0])
