"""Convert a Keras model to a `.tflite`; only this module uses the converter.

`tf.lite` and its classes of the `.tflite` schema are imported here only. To replace the
converter, change this module. (`fine_tuning.tflite_model.interpreter` uses LiteRT if it
is installed, and TensorFlow's interpreter otherwise.)
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from official_bert.constants import FLOAT16, FLOAT32, FULL_INT8, INPUTS
from official_bert.errors import UserError
from official_bert.fine_tuning.tflite_model import SIGNATURE

__all__ = ["FixedLengths", "convert", "flatbuffer_utils", "schema"]


class FixedLengths(tf.Module):
    """A function of rows with one signature per length, all with the same weights."""

    def __init__(
        self,
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
        weights: Iterable[keras.Variable],
        lengths: Iterable[int],
        others: Mapping[str, Callable[..., dict[str, tf.Tensor]]] | None = None,
    ):
        """Hold a function and the Keras variables that it reads.

        The function takes a dict of `INPUTS` int32 [1, S], S one of `lengths`,
        and returns a dict of tensors [1, …]. `others` are additional signatures
        with the same weights: dict of name -> `tf.function` with an input
        signature.
        """
        super().__init__()
        self._others = dict(others or {})
        self._variables = [weight.value for weight in weights]
        self._compute = compute
        self.lengths = tuple(lengths)

    def signatures(self) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
        """Return a dict of name -> `tf.function`; most of them take `INPUTS`."""
        signatures = dict(self._others)
        for length in self.lengths:
            specs = [tf.TensorSpec([1, length], tf.int32, name) for name in INPUTS]

            @tf.function(input_signature=specs, autograph=False)
            def predict(*values):
                return self._compute(dict(zip(INPUTS, values, strict=True)))

            signatures[SIGNATURE.format(length)] = predict
        return signatures


def convert(
    model: FixedLengths,
    quantization: str,
    calibration: Sequence[dict[str, np.ndarray]] = (),
) -> bytes:
    """Convert a model.

    Args:
      model: `FixedLengths`.
      quantization: one of `constants.QUANTIZATIONS`.
      calibration: for `FULL_INT8`, dicts of `INPUTS` int32 [1, S], S one of the
        lengths.

    Returns:
      bytes, the flatbuffer, with only TFLite ops.

    Raises:
      UserError: TFLite has no op for a part of the model.
    """
    with tempfile.TemporaryDirectory() as folder:
        signatures = model.signatures()
        _quietly(tf.saved_model.save, model, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=list(signatures)
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantization != FLOAT32:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization == FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        if quantization == FULL_INT8:
            converter.target_spec.supported_ops = [
                tf.lite.OpsSet.TFLITE_BUILTINS_INT8,
                tf.lite.OpsSet.TFLITE_BUILTINS,
            ]
            converter.representative_dataset = lambda: (
                (SIGNATURE.format(row["input_ids"].shape[1]), row)
                for row in calibration
            )
        try:
            return _quietly(converter.convert)
        except Exception as error:  # The converter has no exception class for this.
            raise UserError(
                "Cannot convert the model to a .tflite with only TFLite ops: "
                f"{str(error).strip().splitlines()[-1]}"
            ) from error


def _quietly(function, *args, **kwargs):
    """Call a function without its harmless messages on stderr."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # The converter's calibration uses a deprecated interpreter.
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    finally:
        logging.set_verbosity(verbosity)
