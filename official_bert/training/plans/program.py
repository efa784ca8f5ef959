"""The training step of a run as an XLA program for one of several replicas."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.data import packed_rows
from official_bert.modeling.kernels import whole_program
from official_bert.modeling.kernels.interface import Kernels
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training import pretraining, runs, saving
from official_bert.training.step import Objective, make_train_step


@dataclasses.dataclass(frozen=True)
class RunWithoutData:
    """The training of a command, at the largest shapes that its flags allow.

    Attributes:
      config: `BertConfig`.
      max_seq_length: S.
      make_model: function: whether to recompute -> Keras model with Google's names.
      objective: function: `Kernels` -> `Objective`.
      features: function: number of rows -> a batch with that number of rows.
      predictions_per_seq: masked tokens per sequence; 0 in fine-tuning.
      sequences_per_row: sequences per row, the number of choices of multiple choice.
    """

    config: BertConfig
    max_seq_length: int
    make_model: Callable[[bool], keras.Model]
    objective: Callable[[Kernels], Objective]
    features: Callable[[int], dict[str, tf.Tensor]]
    predictions_per_seq: int = 0
    sequences_per_row: int = 1


def zeros(
    shape: tuple[int, ...], others: Mapping[str, tuple[int, ...]]
) -> dict[str, tf.Tensor]:
    """Return an int32 batch of zeros.

    Args:
      shape: shape of `input_ids`, `input_mask` and `segment_ids`.
      others: name -> shape of the other features.
    """
    names = ("input_ids", "input_mask", "segment_ids")
    shapes = dict.fromkeys(names, shape) | dict(others)
    return {name: tf.zeros(one, tf.int32) for name, one in shapes.items()}


def pretraining_features(
    num_rows: int,
    max_seq_length: int,
    max_predictions_per_seq: int,
    packed: bool = False,
) -> dict[str, tf.Tensor]:
    """Return a batch of zeros with the shapes of pre-training, [B, S] and [B, P].

    Args:
      num_rows: B.
      max_seq_length: S.
      max_predictions_per_seq: P.
      packed: whether several sequences share a row (`packed_rows`).
    """
    if packed:
        return packed_rows.zeros(num_rows, max_seq_length, max_predictions_per_seq)
    masked = (num_rows, max_predictions_per_seq)
    others = {
        "masked_lm_positions": masked,
        "masked_lm_ids": masked,
        "next_sentence_labels": (num_rows, 1),
    }
    batch = zeros((num_rows, max_seq_length), others)
    return batch | {"masked_lm_weights": tf.zeros(masked)}


def pretraining_run(
    config: BertConfig,
    max_seq_length: int,
    max_predictions_per_seq: int,
    next_sentence_prediction: bool = True,
    packed: bool = False,
) -> RunWithoutData:
    """Return the `RunWithoutData` of pre-training.

    Args:
      config: `BertConfig`.
      max_seq_length: S.
      max_predictions_per_seq: P.
      next_sentence_prediction: see `PretrainingModel`.
      packed: whether several sequences share a row.
    """
    return RunWithoutData(
        config,
        max_seq_length,
        lambda recompute: PretrainingModel(config, recompute, next_sentence_prediction),
        lambda kernels: pretraining.make_objective(next_sentence_prediction, kernels),
        lambda num_rows: pretraining_features(
            num_rows, max_seq_length, max_predictions_per_seq, packed
        ),
        max_predictions_per_seq,
    )


def export_run(
    run: RunWithoutData, settings: runs.RunSettings, num_rows: int, num_replicas: int
) -> bytes:
    """Return the training step of a run as a program, see `export_step`.

    Args:
      run: `RunWithoutData`.
      settings: `RunSettings`.
      num_rows: rows of one replica.
      num_replicas: replicas that train together.
    """
    return export_step(
        lambda: run.make_model(settings.recompute),
        run.objective,
        settings,
        run.features(num_rows),
        num_replicas,
    )


def export_step(
    make_model: Callable[[], keras.Model],
    objective: Callable[[Kernels], Objective],
    settings: runs.RunSettings,
    features: dict[str, tf.Tensor],
    num_replicas: int,
) -> bytes:
    """Return the complete training step as a serialized `HloModuleProto`.

    It contains forward and backward passes, the sums over replicas, clipping and the
    optimizer, with the kernels that a TPU would run.

    Args:
      make_model: function: () -> Keras model with Google's names.
      objective: function: `Kernels` -> `Objective`.
      settings: `RunSettings`.
      features: one replica's share of a batch.
      num_replicas: replicas that train together.

    Raises:
      tf.errors.OpError: XLA cannot represent the program, for example because tensors
        are too large.
    """
    step, _ = make_step(make_model, objective, settings, num_replicas)
    return step.experimental_get_compiler_ir(features)(stage="hlo_serialized")


def make_step(
    make_model: Callable[[], keras.Model],
    objective: Callable[[Kernels], Objective],
    settings: runs.RunSettings,
    num_replicas: int,
) -> tuple[Any, saving.State]:
    """Return the training step as one XLA-compiled function, and its state.

    Args:
      make_model: function: () -> Keras model with Google's names.
      objective: function: `Kernels` -> `Objective`.
      settings: `RunSettings`.
      num_replicas: replicas that train together.
    """
    strategy = tf.distribute.get_strategy()
    state = runs.make_state(strategy, make_model, settings)
    kernels = whole_program.kernels_for(tf.as_dtype(settings.precision))
    step = make_train_step(
        strategy,
        state.model,
        state.optimizer,
        state.guard,
        objective(kernels),
        settings.step,
        kernels,
        _make_all_reduce(num_replicas),
    )
    function: Any = step
    compiled = tf.function(function.python_function, jit_compile=True, autograph=False)
    return compiled, state


def _make_all_reduce(num_replicas):
    """Return the function that sums nests of tensors over the replicas."""
    if num_replicas == 1:
        return None

    def total(tensor):
        return tf.raw_ops.CollectiveReduceV2(
            input=tensor,
            group_size=num_replicas,
            group_key=1,
            instance_key=1,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
        )

    return lambda nest: tf.nest.map_structure(total, nest)
