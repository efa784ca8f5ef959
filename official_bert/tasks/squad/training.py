"""Fine-tune on questions about contexts (Sec. 4.2, 4.3): objective, evaluation."""

import dataclasses
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from official_bert.config import BertConfig
from official_bert.constants import SQUAD
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.config_labels import config_with_labels
from official_bert.fine_tuning.job import DevSet, FineTuningJob, Start, crc32_of
from official_bert.fine_tuning.task_file import task_content
from official_bert.json_records import from_json
from official_bert.metrics.squad import BEST_THRESHOLD
from official_bert.modeling.span_prediction import SpanModel, span_terms
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.features import SquadFeatures, pad_squad_features
from official_bert.tasks.squad.files import SquadExample
from official_bert.tokenization.full import FullTokenizer
from official_bert.training.step import mean_over_examples

# Batch -> dict with `start_logits` and `end_logits`, float32 [B, S].
compile_model = outputs.compile_model

LOSS = "span_loss"
ARCHITECTURE = "BertForQuestionAnswering"


@dataclasses.dataclass(frozen=True)
class SquadTask:
    """How a model reads contexts and chooses answers; stored in `task.json`.

    Attributes:
      max_seq_length: maximum number of tokens per window.
      doc_stride: context tokens from the start of a window to the next start.
      max_query_length: maximum number of tokens of a question.
      decoding: `Decoding`.
    """

    TASK: ClassVar[str] = SQUAD

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64
    decoding: Decoding = dataclasses.field(default_factory=Decoding)

    @property
    def lengths(self) -> tuple[int, int, int]:
        """The three lengths, in the order of `squad_features.convert_examples`."""
        return self.max_seq_length, self.doc_stride, self.max_query_length

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores. The first one selects the best model."""
        if self.decoding.version_2_with_negative:
            return ("best_f1", "best_exact")
        return ("f1", "exact_match")

    def with_threshold(self, threshold: float) -> Self:
        """Return a copy with another threshold on the null odds, a float."""
        decoding = dataclasses.replace(
            self.decoding, null_score_diff_threshold=threshold
        )
        return dataclasses.replace(self, decoding=decoding)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""
        values = dataclasses.asdict(self)
        return values | values.pop("decoding")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`.

        Raises:
          KeyError, ValueError: values are missing or wrong.
        """
        task = from_json(cls, {**values, "decoding": values})
        if min(task.lengths) < 1:
            raise ValueError("a length is not above 0")
        return task


def task_of(config: BertConfig) -> SquadTask:
    """Return the `SquadTask` of a model that has no `task.json`.

    Its training settings are unknown. It gets the original's default lengths, and
    always answers.

    Args:
      config: its `BertConfig`.
    """
    usual = SquadTask()
    longest = min(usual.max_seq_length, config.max_position_embeddings)
    return dataclasses.replace(usual, max_seq_length=longest)


def describe(row: Mapping[str, float]) -> str:
    """Return the loss or the scores as one line of text."""
    if "loss" in row:
        return f"loss {row['loss']:.3f}  span accuracy {row['span_accuracy']:.4f}"
    shown = ("exact_match", "exact", "best_exact", "f1", "best_f1", "best_f1_thresh")
    return "  ".join(f"{name} {row[name]:.2f}" for name in shown if name in row)


OBJECTIVE = mean_over_examples(LOSS, span_terms, describe)


def window_logits(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    task: SquadTask,
    features: Sequence[SquadFeatures],
    batch_size: int,
    pad_to_max_seq_length: bool = False,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the logits of windows.

    Args:
      score: result of `compile_model`.
      task: `SquadTask`.
      features: list of N `SquadFeatures`.
      batch_size: number of windows per batch.
      pad_to_max_seq_length: whether to pad windows to `task.max_seq_length` and keep
        the logits of padding. The original includes them in the choice of the n
        best starts and ends.

    Returns:
      (start logits, end logits), lists of N float32 arrays [T], or with padding
      [max_seq_length].
    """
    windows = _feature_set(task, features, pad_to_max_seq_length)
    rows = outputs.run_examples(score, windows, batch_size)
    return _logits_of(rows, task, features, pad_to_max_seq_length)


def _feature_set(task, features, pad_to_max_seq_length):
    windows = FeatureSet(features, task.max_seq_length, pad_squad_features)
    return windows.of_one_length() if pad_to_max_seq_length else windows


def _logits_of(rows, task, features, pad_to_max_seq_length):
    """Return the result of `window_logits`, from the model's outputs per window."""
    sizes = [len(one.input_ids) for one in features]
    if pad_to_max_seq_length:
        sizes = [task.max_seq_length] * len(features)
    return tuple(
        [row[name][:size] for row, size in zip(rows, sizes, strict=True)]
        for name in ("start_logits", "end_logits")
    )


def at_best_threshold(task: SquadTask, row: Mapping[str, float]) -> SquadTask:
    """Return a `SquadTask` with the threshold that scored best, if it is known."""
    if BEST_THRESHOLD not in row:
        return task
    return task.with_threshold(float(row[BEST_THRESHOLD]))


@dataclasses.dataclass(frozen=True)
class AnsweredQuestions:
    """Questions with known answers.

    Attributes:
      examples: list of `SquadExample`.
      features: list of their `SquadFeatures`.
      gold_answers: dict, from `squad_files.read_gold_answers`.
      pad_to_max_seq_length: see `window_logits`.
    """

    examples: Sequence[SquadExample]
    features: Sequence[SquadFeatures]
    gold_answers: Mapping[str, Sequence[str]]
    pad_to_max_seq_length: bool = False

    def measure(
        self,
        rows: Sequence[Mapping[str, np.ndarray]],
        task: SquadTask,
        tokenizer: FullTokenizer,
    ) -> dict[str, float]:
        """Return the scores of a model, from its outputs for each window."""
        start_logits, end_logits = _logits_of(
            rows, task, self.features, self.pad_to_max_seq_length
        )
        predictions = squad_answers.decode(
            self.examples,
            self.features,
            start_logits,
            end_logits,
            tokenizer,
            task.decoding,
        )
        return evaluate_predictions(task.decoding, predictions, self.gold_answers)


def make_job(
    start: Start,
    task: SquadTask,
    train_features: Sequence[SquadFeatures],
    dev: AnsweredQuestions | None = None,
    epoch_size: int | None = None,
) -> FineTuningJob:
    """Return the `FineTuningJob` of a model that answers questions.

    Args:
      start: `job.Start`.
      task: `SquadTask`.
      train_features: list of `SquadFeatures` with positions of answers.
      dev: `AnsweredQuestions` that selects the best model; None keeps the last
        model.
      epoch_size: number of windows per epoch; None for all.
    """
    dev_set = None
    if dev is not None:
        dev_set = DevSet(
            _feature_set(task, dev.features, dev.pad_to_max_seq_length),
            lambda rows: dev.measure(rows, task, start.tokenizer),
        )
    return FineTuningJob(
        start=start,
        task=task,
        written_config=config_with_labels(start.config),
        make_model=lambda recompute: SpanModel(start.trained_config, recompute),
        # The softmax over a window's positions includes its padding.
        reads_padding=True,
        objective=OBJECTIVE,
        train_set=FeatureSet(train_features, task.max_seq_length, pad_squad_features),
        fingerprint=_fingerprint(task, train_features, dev),
        dev_set=dev_set,
        epoch_size=epoch_size,
        finished_task=at_best_threshold,
    )


def _fingerprint(task, features, dev):
    """Return a dict that distinguishes this task and its questions from others."""
    values = {
        "task": task_content(task),
        "num_windows": len(features),
        "windows_crc32": crc32_of(_parts_of(features)),
    }
    if dev:
        answers = json.dumps(dev.gold_answers).encode()
        values["dev_windows_crc32"] = crc32_of(_parts_of(dev.features))
        values["dev_answers_crc32"] = zlib.crc32(answers)
    return values


def _parts_of(features):
    """Yield arrays that distinguish these windows from others."""
    for one in features:
        yield one.input_ids
        yield np.array([one.start_position or 0, one.end_position or 0])
