"""Gradients of a loss that compares all examples of a batch, on all devices.

A contrastive loss needs the outputs of the whole batch. Each replica encodes its own
rows, receives the outputs of the others, and computes the loss of the whole batch. It
differentiates with respect to its own outputs only. The sum over the replicas equals
the gradient of one device with the whole batch.

Micro-batches need two passes (gradient caching, Gao et al. 2021). The first pass
computes the outputs of all micro-batches without a gradient. The loss then gives the
gradient of each output. The second pass runs each micro-batch through the model again,
with the same dropout masks, and multiplies with these gradients. Memory is that of one
micro-batch.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.constants import INPUTS, WINDOW_WEIGHTS
from official_bert.modeling.kernels.interface import Kernels
from official_bert.training.gradients.micro_batches import (
    joined_over,
    rows_of,
    sum_over,
)

Tensors = dict[str, tf.Tensor]


def make_gradients_of(
    model: keras.Model,
    terms_of: Callable[[Tensors, Tensors], Mapping[str, tuple[tf.Tensor, tf.Tensor]]],
    micro_batch_size: int,
    seed_step: int,
    xla: bool,
    kernels: Kernels,
) -> Callable[..., tuple[list[tf.Tensor], dict[str, tuple[tf.Tensor, tf.Tensor]]]]:
    """Return a function that computes the gradients of one replica's rows.

    Args:
      model: a Keras model whose outputs are a dict of tensors [B, …].
      terms_of: function: (outputs and features of the whole batch) -> terms, see
        `Objective`. It gets the features that only the loss reads, as float32.
      micro_batch_size: rows per pass through the model; 0 for all.
      seed_step: difference between the dropout seeds of two micro-batches.
      xla: whether XLA compiles the model. It does not compile the loss.
      kernels: `Kernels` of the model.

    Returns:
      function: (features, denominators, dropout seed, loss scale or None, `Replicas`)
      -> (dense float32 gradients, terms). The caller sums both over the replicas.
    """
    values = [variable.value for variable in model.trainable_variables]

    def encode(features, seed):
        return model(features, training=True, dropout_seed=seed, kernels=kernels)

    if xla:
        encode = tf.function(encode, jit_compile=True, autograph=False)

    def of_rows(features, seed, gradients_of_outputs):
        with tf.GradientTape() as tape:
            outputs = encode(features, seed)
        of_outputs, terms = gradients_of_outputs(outputs)
        gradients = [
            tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(outputs, values, of_outputs)
        ]
        # After XLA compilation, the shapes of embedding gradients are unknown.
        for gradient, value in zip(gradients, values, strict=True):
            gradient.set_shape(value.shape)
        return gradients, terms

    def of_share(features, denominators, seed, scale, replicas):
        rows = next(iter(features.values())).shape[0]

        def of_outputs(outputs):
            return _of_outputs(
                terms_of, outputs, features, denominators, scale, replicas
            )

        if not micro_batch_size or rows == micro_batch_size:
            gradients, terms = of_rows(features, seed, of_outputs)
            return _unscaled(gradients, scale), terms

        def part_of(tensors, number):
            start = number * micro_batch_size
            return {
                name: rows_of(value, start, micro_batch_size)
                for name, value in tensors.items()
            }

        def seed_of(number):
            offset = tf.cast(number, tf.int64) * seed_step
            return seed + tf.stack([tf.constant(0, tf.int64), offset])

        count = rows // micro_batch_size
        outputs = joined_over(
            count, lambda number: encode(part_of(features, number), seed_of(number))
        )
        cached, terms = of_outputs(outputs)

        def of_micro_batch(number):
            own = part_of(cached, number)
            gradients, _ = of_rows(
                part_of(features, number), seed_of(number), lambda _: (own, None)
            )
            return gradients

        return _unscaled(sum_over(count, of_micro_batch), scale), terms

    return of_share


class Replicas:
    """The replicas of a step, seen from one of them.

    Attributes:
      count: number of replicas.
      number: number of this replica, from 0.
    """

    def __init__(self, count: int, number: Any, total: Callable[[Any], Any]):
        """Store the replicas; `total` sums a nest of tensors over them."""
        self.count, self.number, self._total = count, number, total

    def gathered(self, tensors: Tensors) -> Tensors:
        """Return the rows of all replicas, in their order, as float32 [B, …].

        Only this replica's rows have a gradient. Shares may differ in size.
        """
        tensors = {name: tf.cast(value, tf.float32) for name, value in tensors.items()}
        if self.count == 1:
            return tensors
        rows = tf.shape(next(iter(tensors.values())))[0]
        own = tf.one_hot(self.number, self.count)
        sizes = tf.cast(self._total(own * tf.cast(rows, tf.float32)), tf.int32)
        before = tf.reduce_sum(sizes[: self.number])
        after = tf.reduce_sum(sizes) - before - rows

        def padded(value):
            around = [[before, after]] + [[0, 0]] * (value.shape.rank - 1)
            return tf.pad(tf.stop_gradient(value), around)

        # Each row is nonzero on one replica only, so the sum is exact.
        whole = self._total({name: padded(value) for name, value in tensors.items()})
        return {
            name: tf.concat(
                [whole[name][:before], value, whole[name][before + rows :]], 0
            )
            for name, value in tensors.items()
        }


def _of_outputs(terms_of, outputs, features, denominators, scale, replicas):
    """Return (gradients of this replica's outputs, its share of the terms)."""
    of_model = (*INPUTS, WINDOW_WEIGHTS)
    others = {name: features[name] for name in features if name not in of_model}
    names = list(outputs)
    with tf.GradientTape() as tape:
        tape.watch([outputs[name] for name in names])
        whole = replicas.gathered({**outputs, **others})
        terms = terms_of(
            {name: whole[name] for name in names},
            {name: whole[name] for name in others},
        )
        loss = sum(terms[name][0] / denominators[name] for name in denominators)
        if scale is not None:
            loss *= scale
    gradients = tape.gradient(loss, [outputs[name] for name in names])
    # Every replica has computed the terms of the whole batch, so divide them.
    shares = tf.nest.map_structure(lambda value: value / replicas.count, dict(terms))
    return dict(zip(names, gradients, strict=True)), shares


def _unscaled(gradients, scale):
    return gradients if scale is None else [each / scale for each in gradients]
