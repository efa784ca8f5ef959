"""The training step of a run as a program for XLA, for one replica of several."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from official_bert.data import packed_rows
from official_bert.modeling.kernels import whole_program
from official_bert.training import runs, saving
from official_bert.training.step import Objective, make_train_step


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
    sequence = tf.zeros([num_rows, max_seq_length], tf.int32)
    masked = tf.zeros([num_rows, max_predictions_per_seq], tf.int32)
    return {
        "input_ids": sequence,
        "input_mask": sequence,
        "segment_ids": sequence,
        "masked_lm_positions": masked,
        "masked_lm_ids": masked,
        "masked_lm_weights": tf.cast(masked, tf.float32),
        "next_sentence_labels": tf.zeros([num_rows, 1], tf.int32),
    }


def export_step(
    make_model: Callable[[], keras.Model],
    objective: Objective,
    settings: runs.RunSettings,
    features: dict[str, tf.Tensor],
    num_replicas: int,
) -> bytes:
    """Return the whole training step as a serialized `HloModuleProto`.

    It has forward and backward passes, the sums over replicas, clipping and the
    optimizer, with the kernels that a TPU would run.

    Args:
      make_model: function: () -> Keras model with Google's names.
      objective: `Objective`.
      settings: `RunSettings`.
      features: a batch of one replica's share.
      num_replicas: replicas that train together.
    """
    step, _ = make_step(make_model, objective, settings, num_replicas)
    return step.experimental_get_compiler_ir(features)(stage="hlo_serialized")


def make_step(
    make_model: Callable[[], keras.Model],
    objective: Objective,
    settings: runs.RunSettings,
    num_replicas: int,
) -> tuple[Any, saving.State]:
    """Return the training step as one function that XLA compiles, and its state.

    Args:
      make_model: see `export_step`.
      objective: likewise.
      settings: likewise.
      num_replicas: likewise.
    """
    strategy = tf.distribute.get_strategy()
    state = runs.make_state(strategy, make_model, settings)
    step = make_train_step(
        strategy,
        state.model,
        state.optimizer,
        state.guard,
        objective,
        settings.step,
        whole_program.kernels_for(tf.as_dtype(settings.precision)),
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
