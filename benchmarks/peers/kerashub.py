"""Measure KerasHub. See `benchmarks/contender.py`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import keras_hub
import tensorflow as tf

from benchmarks import workload


def versions():
    """Return library -> version."""
    return {"keras_hub": keras_hub.__version__}


def training(size, batch, jit_compile, shortest=workload.SHORTEST):
    """Return a function that runs one pre-training step, as in `fit`.

    The model is `BertBackbone` with `MaskedLMHead`. AdamW is Keras' own, with
    the same clipping. KerasHub has no next-sentence head.

    Args:
      size: name of a released size.
      batch: sequences.
      jit_compile: argument of `compile`.
      shortest: see `workload.pretraining_batch`.
    """
    sizes = workload.size_of(size)
    model = _masked_lm(sizes)
    model.compile(
        keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    features = workload.pretraining_batch(sizes["vocab_size"], batch, shortest)
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
        "mask_positions": features["masked_lm_positions"],
    }
    values = inputs, features["masked_lm_ids"], features["masked_lm_weights"]
    # Builds the loss, the optimizer and the function that `fit` calls.
    model.train_on_batch(*values)
    model.make_train_function(force=True)
    batches = iter(tf.data.Dataset.from_tensors(values).repeat())
    return lambda: float(model.train_function(batches)["loss"])


def encoding(size, batch, jit_compile):
    """Return a function that runs `BertBackbone` on one full batch, as in `predict`."""
    sizes = workload.size_of(size)
    backbone = _backbone(sizes)
    compute = tf.function(backbone, jit_compile=jit_compile)
    ids, mask, segments = map(
        tf.constant, workload.full_batch(sizes["vocab_size"], batch)
    )
    inputs = {"token_ids": ids, "padding_mask": mask, "segment_ids": segments}
    return lambda: {name: value.numpy() for name, value in compute(inputs).items()}


def _backbone(sizes):
    return keras_hub.models.BertBackbone(
        vocabulary_size=sizes["vocab_size"],
        num_layers=sizes["num_hidden_layers"],
        num_heads=sizes["num_attention_heads"],
        hidden_dim=sizes["hidden_size"],
        intermediate_dim=sizes["intermediate_size"],
    )


def _masked_lm(sizes):
    backbone = _backbone(sizes)
    places = keras.Input((workload.PREDICTIONS,), dtype="int32", name="mask_positions")
    logits = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        # The tanh form, as in the backbone and in our head.
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
    )(backbone.output["sequence_output"], mask_positions=places)
    return keras.Model({**backbone.input, "mask_positions": places}, logits)
