"""The signatures of an export: their names, inputs and functions."""

import dataclasses
from collections.abc import Callable, Iterable

import tensorflow as tf

from official_bert.constants import INPUTS
from official_bert.export.saved_model.rows import placed, row_lengths

SERVING, TOKENS = "serving_default", "tokens"
EXAMPLES, FILL_MASK = "examples", "fill_mask"
ATTENTION = "attention"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A signature: a function with named inputs."""

    # Function: tensors, named as in `specs` -> dict of tensors.
    compute: Callable[..., dict[str, tf.Tensor]]
    specs: dict[str, tf.TensorSpec]

    def traced(self) -> Callable[..., dict[str, tf.Tensor]]:
        """Return the signature as a function that can be saved."""
        named = [tf.TensorSpec.from_spec(spec, n) for n, spec in self.specs.items()]

        @tf.function(input_signature=named, autograph=False)
        def run(*values):
            return self.compute(**dict(zip(self.specs, values, strict=True)))

        return run


def of_strings(
    compute: Callable[..., dict[str, tf.Tensor]],
    names: Iterable[str],
    pairs: Iterable[str] = (),
) -> Signature:
    """Return the `Signature` of a function of raw text.

    Its inputs are string tensors: `names` are [B], `pairs` are [B, C].
    """
    return Signature(
        compute,
        {name: tf.TensorSpec([None], tf.string) for name in names}
        | {name: tf.TensorSpec([None, None], tf.string) for name in pairs},
    )


def of_tokens(
    compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]], rank: int = 2
) -> Signature:
    """Return the `Signature` for a function of `INPUTS`, int32 of the given rank."""
    spec = tf.TensorSpec([None] * rank, tf.int32)

    def check_and_compute(**inputs):
        shape = tf.shape(inputs["input_ids"])
        for name in INPUTS[1:]:
            tf.debugging.assert_equal(
                tf.shape(inputs[name]),
                shape,
                f"{name} must have the shape of input_ids.",
            )
        return compute(inputs)

    return Signature(check_and_compute, dict.fromkeys(INPUTS, spec))


def of_examples(
    compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
) -> Signature:
    """Return the `Signature` for a function of `INPUTS`, stored in records.

    Its input `examples` is string [B]: serialized `tf.train.Example` records
    with `input_ids` of any length up to the model's maximum. `input_mask` and
    `segment_ids` have the same length, and may be missing if they are all 1 and
    all 0.
    """

    def parse(examples):
        ragged = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
        features = tf.io.parse_example(examples, dict.fromkeys(INPUTS, ragged))
        features = {name: tf.cast(rows, tf.int32) for name, rows in features.items()}
        ids = features["input_ids"]
        # Zero records, or records without ids, still make one column of
        # padding.
        size = tf.reduce_max(tf.concat([[1], row_lengths(ids)], 0))
        starts = tf.zeros([ids.nrows(tf.int32)], tf.int32)
        usual = {
            "input_mask": tf.sequence_mask(ids.row_lengths(), size, tf.int32),
            "segment_ids": tf.zeros([ids.nrows(tf.int32), size], tf.int32),
        }
        inputs = {"input_ids": placed(ids, starts, size)}
        for name, default in usual.items():
            is_there = features[name].row_lengths()[:, None] > 0
            given = placed(features[name], starts, size)
            inputs[name] = tf.where(is_there, given, default)
        return compute(inputs)

    return Signature(parse, {"examples": tf.TensorSpec([None], tf.string)})
