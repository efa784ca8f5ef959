"""Distill a fine-tuned classifier into a smaller one with the same vocabulary."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.job import FineTuningJob, crc32_of
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.distillation import (
    DistillationModel,
    hidden_losses,
    logit_losses,
)
from official_bert.tables.labels import MULTI_LABEL
from official_bert.tasks.classifier import training
from official_bert.tasks.classifier.features import pad_features
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.training.step import Objective


@dataclasses.dataclass(frozen=True)
class DistillationSettings:
    """The flags of `distill.py`, with the same names.

    Attributes:
      temperature: divides the logits in the loss on logits.
      label_weight: weight of the loss on labels; that on logits has the rest of 1.
      hidden_weight: weight of the loss on hidden states.
    """

    temperature: float
    label_weight: float
    hidden_weight: float


class TaughtFeatures(NamedTuple):
    """`Features` with the teacher's outputs.

    Attributes:
      input_ids: int32 [T].
      segment_ids: int32 [T].
      label_id: see `Features`.
      num_cut: see `Features`.
      logits: float32 [C].
      vectors: float32 [L, width], one per layer of the student.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    label_id: Any
    num_cut: int
    logits: np.ndarray
    vectors: np.ndarray


def matched_layers(student_layers: int, teacher_layers: int) -> list[int]:
    """Return the teacher's layer, from 0, for each layer of the student.

    The layers are evenly spaced, and the last ones match (Jiao et al., 2020).
    """
    return [
        max(1, round(layer * teacher_layers / student_layers)) - 1
        for layer in range(1, student_layers + 1)
    ]


def distilling(
    job: FineTuningJob,
    teacher: ClassifierPredictor,
    settings: DistillationSettings,
) -> FineTuningJob:
    """Return the job of a classifier that also learns the teacher's outputs.

    The teacher's outputs are computed once, before the training.

    Args:
      job: the student's job from `training.make_job`.
      teacher: the fine-tuned teacher.
      settings: `DistillationSettings`.

    Raises:
      UserError: the teacher has another vocabulary, other labels or another form.
    """
    _check(job, teacher)
    config, width = job.start.trained_config, teacher.model.config.hidden_size
    count = job.task.num_outputs  # type: ignore[attr-defined]
    layers = matched_layers(
        config.num_hidden_layers, teacher.model.config.num_hidden_layers
    )
    taught = _taught(job.train_set, teacher, layers)
    return dataclasses.replace(
        job,
        make_model=lambda recompute: DistillationModel(config, count, width, recompute),
        objective=objective(job, settings),
        train_set=dataclasses.replace(
            job.train_set, features=taught, pad=pad_taught_features
        ),
        fingerprint={
            **job.fingerprint,
            "distillation": dataclasses.asdict(settings),
            # The bits of its outputs depend on the processor and the batch size.
            "teacher_crc32": crc32_of(
                variable.numpy() for variable in teacher.model.trainable_variables
            ),
        },
        written_model=lambda model: model.student(),
    )


def _check(job, teacher):
    """Raise `UserError` unless a teacher fits the student's job."""
    model, task = teacher.model, job.task
    if not isinstance(model, ClassificationModel) or model.bilstm:
        raise UserError(
            "--teacher: the teacher must be a classifier in a checkpoint, without "
            "--bilstm. Give the output directory of a fine-tuning."
        )
    if task.kind == MULTI_LABEL:
        raise UserError(
            "--teacher: distillation needs one label or one number per text, but this "
            "task is multi_label. Use run_classifier.py."
        )
    ours, theirs = job.start.tokenizer, teacher.tokenizer
    if (ours.vocab, ours.do_lower_case) != (theirs.vocab, theirs.do_lower_case):
        raise UserError(
            "--teacher: teacher and student have different vocabularies or casing. "
            "Choose models with the same vocab.txt."
        )
    if (task.kind, tuple(task.labels)) != (
        teacher.task.kind,
        tuple(teacher.task.labels),
    ):
        raise UserError(
            f"--teacher: the teacher predicts {_predicted(teacher.task)}, but the data "
            f"have {_predicted(task)}. Fine-tune the teacher on the same task."
        )
    limit = model.config.max_position_embeddings
    longest = max(len(one.input_ids) for one in job.train_set.features)
    if longest > limit:
        raise UserError(
            f"--teacher: the teacher has {limit} positions, but a text has {longest} "
            f"tokens. Use --max_seq_length={limit}."
        )
    if job.start.config.causal_attention or model.config.causal_attention:
        raise UserError(
            "--teacher: distillation compares vectors of [CLS], but a left-to-right "
            "model has no context there. Use bidirectional models."
        )


def _predicted(task):
    """Return what a task predicts, as words of a message."""
    return f"the labels {', '.join(task.labels)}" if task.labels else "numbers"


def _taught(train_set, teacher, layers):
    """Return the training examples as `TaughtFeatures`."""
    model = teacher.model

    def compute(batch, kernels):
        encoded = model.bert(batch, kernels=kernels)
        states = [encoded["all_encoder_layers"][layer][:, 0] for layer in layers]
        return {
            "logits": model.classifier(encoded["pooled_output"]),
            "vectors": tf.stack(states, axis=1),
        }

    score = outputs.compile_model(compute)
    rows = outputs.run_examples(score, train_set, teacher.batch_size)
    return [
        TaughtFeatures(
            one.input_ids,
            one.segment_ids,
            one.label_id,
            one.num_cut,
            row["logits"],
            row["vectors"],
        )
        for one, row in zip(train_set.features, rows, strict=True)
    ]


def pad_taught_features(
    features: Sequence[TaughtFeatures], length: int
) -> dict[str, np.ndarray]:
    """Return the arrays of one batch.

    Returns:
      dict as from `pad_features`, with float32 `teacher_logits` [B, C] and
      `teacher_vectors` [B, L, width].
    """
    batch = pad_features(features, length)  # type: ignore[arg-type]
    batch["teacher_logits"] = np.stack([one.logits for one in features])
    batch["teacher_vectors"] = np.stack([one.vectors for one in features])
    return batch


def objective(job: FineTuningJob, settings: DistillationSettings) -> Objective:
    """Return the weighted sum of the losses on labels, logits and hidden states."""
    loss = next(iter(job.objective.losses))
    names = ("label_loss", "logit_loss", "hidden_loss")

    def weights(features):
        return dict.fromkeys(names, job.objective.weights(features)[loss])

    def terms(model_outputs, features):
        found = job.objective.terms(model_outputs, features)
        total, count = found.pop(loss)
        logits = logit_losses(
            model_outputs["logits"], features["teacher_logits"], settings.temperature
        )
        hidden = hidden_losses(model_outputs["vectors"], features["teacher_vectors"])
        share = settings.label_weight
        return {
            "label_loss": (share * total, count),
            "logit_loss": ((1.0 - share) * tf.reduce_sum(logits), count),
            "hidden_loss": (settings.hidden_weight * tf.reduce_sum(hidden), count),
            **found,
        }

    return Objective(dict.fromkeys(names, 0.0), weights, terms, training.describe)
