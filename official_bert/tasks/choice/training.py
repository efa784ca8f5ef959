"""Fine-tune on multiple choice (Sec. 4.4): the objective, the evaluation, the run.

Legend: `N` examples, `C` largest number of choices.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.constants import INPUTS, MULTIPLE_CHOICE
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.config_labels import architecture_of, config_with_labels
from official_bert.fine_tuning.job import DevSet, FineTuningJob, Start, crc32_of
from official_bert.fine_tuning.task_file import task_content
from official_bert.json_records import from_json
from official_bert.metrics import glue
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.modeling.multiple_choice import (
    NO_CHOICE,
    MultipleChoiceModel,
    choice_terms,
)
from official_bert.tasks.choice.features import pad_choice_features
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.training.step import mean_over_examples

LOSS = "choice_loss"
ARCHITECTURE = "BertForMultipleChoice"


@dataclasses.dataclass(frozen=True)
class ChoiceTask:
    """How a model reads questions and choices; stored in `task.json`.

    Attributes:
      max_seq_length: maximum number of tokens of a question with one choice.
      metrics: names of the scores. The first one selects the best model.
    """

    TASK: ClassVar[str] = MULTIPLE_CHOICE
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    max_seq_length: int = 128

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`.

        Raises:
          KeyError, ValueError: values are missing or wrong.
        """
        task = from_json(cls, values)
        if task.max_seq_length < 3:
            raise ValueError("max_seq_length is below 3")
        return task


def task_of(config: BertConfig) -> ChoiceTask | None:
    """Return the `ChoiceTask` of a Hugging Face model's config, or None."""
    if architecture_of(config) != ARCHITECTURE:
        return None
    return ChoiceTask(config.max_position_embeddings)


def describe(row: Mapping[str, float]) -> str:
    """Return the loss and the accuracy as one line of text."""
    return f"loss {row['loss']:.3f}  accuracy {row['accuracy']:.4f}"


OBJECTIVE = mean_over_examples(LOSS, choice_terms, describe)


def length_of(choices: Sequence[Features]) -> int:
    """Return the number of tokens of an example's longest choice."""
    return max(len(one.input_ids) for one in choices)


def feature_set(
    features: Sequence[Sequence[Features]], max_seq_length: int
) -> FeatureSet:
    """Return examples as a `FeatureSet` whose batches have C choices per example.

    Args:
      features: list of N lists of `Features`, from
        `choice_features.convert_choices`.
      max_seq_length: see `FeatureSet`.
    """
    num_choices = max(map(len, features))
    pad = functools.partial(pad_choice_features, num_choices=num_choices)
    return FeatureSet(features, max_seq_length, pad, length_of)


def compile_model(
    model: keras.Model,
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Compile the function of a batch of rows; see `outputs_of`."""
    return outputs.compile_model(outputs_of(model))


def outputs_of(model: keras.Model) -> Callable[..., dict[str, tf.Tensor]]:
    """Return a function: rows -> dict with their scores, `logits` float32 [B].

    A row is a question with one of its choices. The score of a choice does not depend
    on the others, so choices need no padding to a common length or number.
    """

    def compute(features, kernels=PLAIN):
        rows = {name: features[name][:, tf.newaxis] for name in INPUTS}
        rows["choice_mask"] = tf.ones_like(rows["input_ids"][:, :, 0])
        return {"logits": model(rows, kernels=kernels)["logits"][:, 0]}

    return compute


def predict(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    features: Sequence[Sequence[Features]],
    batch_size: int,
    max_seq_length: int,
) -> np.ndarray:
    """Return the logits of examples.

    Args:
      score: result of `compile_model`.
      features: list of N lists of `Features`, N >= 1.
      batch_size: number of rows (choices) per batch.
      max_seq_length: see `FeatureSet`.

    Returns:
      float32 [N, C], `NO_CHOICE` for missing choices.
    """
    rows = outputs.run_examples(
        score, _all_choices(features, max_seq_length), batch_size
    )
    return _choice_logits(rows, features)


def _all_choices(features, max_seq_length):
    """Return the choices of all examples as a `FeatureSet`, one row each."""
    flat = list(itertools.chain.from_iterable(features))
    return FeatureSet(flat, max_seq_length, pad_features)


def _choice_logits(rows, features):
    """Return the result of `predict`, from the model's outputs per choice."""
    sizes = np.array([len(choices) for choices in features])
    is_there = np.arange(sizes.max()) < sizes[:, np.newaxis]
    logits = np.full(is_there.shape, NO_CHOICE, np.float32)
    logits[is_there] = [row["logits"] for row in rows]
    return logits


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax over the existing choices, float32 [N, C]."""
    return tf.nn.softmax(logits).numpy()


def evaluate(
    logits: np.ndarray, features: Sequence[Sequence[Features]]
) -> dict[str, float]:
    """Return the mean loss and the accuracy.

    Args:
      logits: float32 [N, C], from `predict`.
      features: list of N lists of `Features` with labels.

    Returns:
      dict of name -> float: `loss`, `accuracy`.
    """
    labels = _labels(features)
    accuracy = glue.accuracy(labels, logits.argmax(axis=1))
    loss = outputs.mean_loss(choice_terms, LOSS, logits, labels)
    return {"loss": loss, "accuracy": accuracy}


def results(
    logits: np.ndarray, features: Sequence[Sequence[Features]], batch_size: int
) -> dict[str, float]:
    """Return the entries of `eval_results.txt`, except `global_step`.

    Args:
      logits: float32 [N, C], from `predict`.
      features: list of N lists of `Features` with labels.
      batch_size: examples per batch. `loss` is the mean over batches, as in the
        original's other tasks.

    Returns:
      dict of name -> float: `eval_accuracy`, `eval_loss`, `loss`.
    """
    row, labels = evaluate(logits, features), _labels(features)
    loss = outputs.mean_loss(choice_terms, LOSS, logits, labels, batch_size)
    return {f"eval_{name}": value for name, value in row.items()} | {"loss": loss}


def _labels(features):
    return np.array([choices[0].label_id for choices in features], np.int32)


def make_job(
    start: Start,
    task: ChoiceTask,
    train_features: Sequence[Sequence[Features]],
    dev_features: Sequence[Sequence[Features]] | None = None,
) -> FineTuningJob:
    """Return the `FineTuningJob` of a model that chooses.

    Args:
      start: `job.Start`.
      task: `ChoiceTask`.
      train_features: list of lists of `Features` with labels.
      dev_features: list of lists of `Features` with labels, which selects the best
        model; None keeps the last model.
    """
    dev_set = None
    if dev_features:
        dev_set = DevSet(
            _all_choices(dev_features, task.max_seq_length),
            lambda rows: evaluate(_choice_logits(rows, dev_features), dev_features),
            outputs_of,
        )
    return FineTuningJob(
        start=start,
        task=task,
        written_config=config_with_labels(start.config, architectures=[ARCHITECTURE]),
        make_model=lambda recompute: MultipleChoiceModel(
            start.trained_config, recompute
        ),
        objective=OBJECTIVE,
        train_set=feature_set(train_features, task.max_seq_length),
        fingerprint={
            "task": task_content(task),
            "num_examples": len(train_features),
            "examples_crc32": crc32_of(_parts_of(train_features)),
            "num_dev_examples": len(dev_features or []),
            "dev_examples_crc32": crc32_of(_parts_of(dev_features or [])),
        },
        dev_set=dev_set,
    )


def _parts_of(features):
    """Yield arrays that distinguish these examples from others."""
    for choices in features:
        yield np.array([len(choices), choices[0].label_id])
        for one in choices:
            yield from (one.input_ids, one.segment_ids)
