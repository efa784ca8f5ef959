"""KerasHub's training step on JAX, compiled by the TPU's compiler.

    python -m benchmarks.plans.kerashub base 32 128 20

The arguments are model, sequences, tokens of a sequence and masked tokens of it. It
prints one line of JSON, of one chip of v5e:2x2 in bfloat16.

The step is what KerasHub offers for BERT: its backbone with dropout 0.1, its head for
masked tokens with the tied word embeddings, AdamW, and clipping by the global norm.
KerasHub has no next-sentence head. Weights and moments are donated, as in ours.
"""

import json
import os
import sys

os.environ.update(
    KERAS_BACKEND="jax",
    TF_CPP_MIN_LOG_LEVEL="2",
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_ACCELERATOR_TYPE="v5litepod-4",
    TPU_WORKER_HOSTNAMES="localhost",
    TPU_WORKER_ID="0",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

import jax  # noqa: E402
import keras  # noqa: E402
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402

from official_bert.config import BertConfig  # noqa: E402
from official_bert.training.plans import hlo_text, plan  # noqa: E402
from official_bert.training.plans.chips import parse_topology  # noqa: E402

SLICE = parse_topology("v5e:2x2")
SEQUENCE_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def make_model(config: BertConfig, length: int, predictions: int) -> keras.Model:
    """Return KerasHub's masked language model of a `BertConfig`."""
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
    )
    inputs = {
        name: keras.Input((length,), dtype="int32", name=name)
        for name in SEQUENCE_INPUTS
    }
    positions = keras.Input((predictions,), dtype="int32", name="mask_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=config.vocab_size,
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
        activation="linear",
    )
    logits = head(backbone(inputs)["sequence_output"], mask_positions=positions)
    return keras.Model({**inputs, "mask_positions": positions}, logits)


def make_step(model: keras.Model, optimizer: keras.optimizers.Optimizer):
    """Return the training step: weights, state and a batch -> the same and the loss."""

    def loss_of(weights, others, batch):
        features, labels, label_weights = batch
        logits, others = model.stateless_call(weights, others, features, training=True)
        losses = keras.ops.sparse_categorical_crossentropy(
            labels, keras.ops.cast(logits, "float32"), from_logits=True
        )
        total = keras.ops.sum(losses * label_weights)
        return total / (keras.ops.sum(label_weights) + 1e-5), others

    def step(weights, others, moments, batch):
        compute = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = compute(weights, others, batch)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        return weights, others, moments, loss

    return step


def main(size: str, rows: str, length: str, predictions: str) -> None:
    """Compile the step and print its plan."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = make_model(BertConfig.named(size), int(length), int(predictions))
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)

    def shapes(variables):
        return [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in variables]

    def array(width, dtype="int32"):
        return jax.ShapeDtypeStruct((int(rows), int(width)), dtype)

    features = {name: array(length) for name in SEQUENCE_INPUTS}
    features["mask_positions"] = array(predictions)
    batch = (features, array(predictions), array(predictions, "float32"))
    described = topologies.get_topology_desc(
        platform="tpu", topology_name=SLICE.compiler_name
    )
    mesh = jax.sharding.Mesh(np.array(described.devices[:1]), ("chip",))
    on_chip = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    step = jax.jit(
        make_step(model, optimizer),
        in_shardings=on_chip,
        out_shardings=on_chip,
        donate_argnums=(0, 1, 2),
    )
    state = (model.trainable_variables, model.non_trainable_variables)
    lowered = step.lower(*map(shapes, (*state, optimizer.variables)), batch)
    compiled = lowered.compile()
    memory, costs = compiled.memory_analysis(), compiled.cost_analysis()
    made = plan.with_costs(
        plan.Plan(SLICE.name, 1, False, True),
        SLICE,
        "bfloat16",
        flops=costs["flops"],
        bytes_accessed=costs["bytes accessed"],
        main_memory_bytes=hlo_text.main_memory_bytes(compiled.as_text()),
        argument_gb=(
            memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            - memory.alias_size_in_bytes
        )
        / plan.GIGA,
        temp_gb=memory.temp_size_in_bytes / plan.GIGA,
        code_gb=memory.generated_code_size_in_bytes / plan.GIGA,
        collectives={},
    )
    print(json.dumps(made.to_dict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
