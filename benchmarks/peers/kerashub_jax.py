"""Measure KerasHub on JAX, without TensorFlow. See `benchmarks/contender.py`."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import keras_hub
import numpy as np

from benchmarks import workload
from benchmarks.accelerators.on_jax import device_memory  # noqa: F401

jax.config.update("jax_enable_x64", False)


def versions():
    """Return library -> version."""
    return {"keras": keras.__version__, "keras_hub": keras_hub.__version__}


def training(size, batch, length, precision, products, steps):
    """Return a function that runs several training steps, compiled by XLA.

    The model is `BertBackbone` with `MaskedLMHead`. Weights and moments are
    donated. KerasHub has no next-sentence head.

    Args:
      size: name of a released size.
      batch: sequences.
      length: tokens per sequence.
      precision: "float32" or "bfloat16", with float32 weights.
      products: precision of products of float32 matrices, "HIGHEST" or "DEFAULT".
      steps: number of steps. The loss is fetched after the last one.
    """
    jax.config.update("jax_default_matmul_precision", products.lower())
    is_mixed = precision != "float32"
    keras.config.set_dtype_policy(f"mixed_{precision}" if is_mixed else precision)
    sizes = workload.size_of(size)
    model = masked_lm(sizes, workload.predictions_of(length))
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)
    update = jax.jit(make_update(model, optimizer), donate_argnums=0)
    features = workload.pretraining_batch(sizes["vocab_size"], batch, length, length)
    values = jax.device_put(
        (
            {
                "token_ids": features["input_ids"],
                "padding_mask": features["input_mask"],
                "segment_ids": features["segment_ids"],
                "mask_positions": features["masked_lm_positions"],
            },
            features["masked_lm_ids"],
            features["masked_lm_weights"],
        )
    )
    kinds = (model.trainable_variables, model.non_trainable_variables)
    # Copies, because the variables' own arrays cannot be donated.
    state = [
        [jax.device_put(np.asarray(one.value)) for one in kind]
        for kind in (*kinds, optimizer.variables)
    ]

    def compute():
        nonlocal state
        for _ in range(steps):
            state, loss = update(state, values)
        return float(loss)

    return compute


def make_update(model, optimizer):
    """Return the training step, a function (state, batch) -> (state, loss).

    The state is a list: trainable weights, other weights, and the optimizer's
    variables. A batch is (features, labels, weights of the labels).
    """

    def loss_of(trainable, other, inputs, labels, weights):
        logits, other = model.stateless_call(trainable, other, inputs, training=True)
        logits = keras.ops.cast(logits, "float32")
        losses = keras.ops.sparse_categorical_crossentropy(
            labels, logits, from_logits=True
        )
        return (losses * weights).sum() / (weights.sum() + 1e-5), other

    def update(state, batch):
        trainable, other, moments = state
        compute = jax.value_and_grad(loss_of, has_aux=True)
        (loss, other), gradients = compute(trainable, other, *batch)
        trainable, moments = optimizer.stateless_apply(moments, gradients, trainable)
        return [trainable, other, moments], loss

    return update


def masked_lm(sizes, predictions):
    """Return KerasHub's masked language model, with its default dropout of 0.1.

    Args:
      sizes: dict with the names of `BertConfig`.
      predictions: masked tokens per sequence.
    """
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=sizes["vocab_size"],
        num_layers=sizes["num_hidden_layers"],
        num_heads=sizes["num_attention_heads"],
        hidden_dim=sizes["hidden_size"],
        intermediate_dim=sizes["intermediate_size"],
    )
    places = keras.Input((predictions,), dtype="int32", name="mask_positions")
    logits = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        # The tanh form, as in the backbone and in our head.
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
    )(backbone.output["sequence_output"], mask_positions=places)
    return keras.Model({**backbone.input, "mask_positions": places}, logits)
