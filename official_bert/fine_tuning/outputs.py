"""A model's outputs for many examples, compiled once and in any thread."""

import numpy as np
import tensorflow as tf

from official_bert.constants import INPUTS
from official_bert.modeling.fused_layer_norm import fused_where_possible


def compile_model(compute):
    """Return the compiled function from a batch of features to a model's outputs.

    It is traced once, for any shape, and may be called from several threads.

    Args:
      compute: function: dict of the `INPUTS`, int32 tensors [B, S] -> dict of
        tensors [B, …]; such as a Keras model.

    Returns:
      function: dict with these arrays -> what `compute` returns, as arrays.
    """
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids], autograph=False)
    def run(*values):
        with fused_where_possible():
            return compute(dict(zip(INPUTS, values, strict=True)))

    def run_batch(batch):
        tensors = run(*(tf.constant(batch[name]) for name in INPUTS))
        return {name: tensor.numpy() for name, tensor in tensors.items()}

    return run_batch


def run_examples(run_batch, feature_set, batch_size, break_off=lambda: False):
    """Return the outputs of all examples.

    Args:
      run_batch: what `compile_model` returned, or a `TfliteModel`.
      feature_set: `FeatureSet` of N examples.
      batch_size: examples that go through the model together.
      break_off: function: () -> whether to stop early.

    Returns:
      list of N dicts of outputs, in the order of the examples; None if it broke
      off. Outputs with a value for each token are as long as the batch was.
    """
    outputs = [None] * len(feature_set.features)
    for numbers, batch in feature_set.ordered_batches(batch_size):
        if break_off():
            return None
        arrays = run_batch(batch)
        for row, number in enumerate(numbers):
            outputs[number] = {name: array[row] for name, array in arrays.items()}
    return outputs


def mean_of_batches(loss_of, num_examples, batch_size):
    """Return the mean of the losses of batches, the `loss` of the original.

    Args:
      loss_of: function: slice of the examples -> their mean loss.
      num_examples: number of examples.
      batch_size: examples of a batch; the last may have fewer.
    """
    starts = range(0, num_examples, batch_size)
    return float(np.mean([loss_of(slice(n, n + batch_size)) for n in starts]))
