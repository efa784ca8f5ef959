"""Compile KerasHub's training step on JAX with the TPU's compiler.

    python -m benchmarks.plans.kerashub base 32 128 20

The arguments are model, sequences, tokens per sequence and masked tokens per
sequence. It prints one line of JSON, for one chip of v5e:2x2 in bfloat16.

The step contains KerasHub's parts for BERT: its backbone with dropout 0.1, its
masked-LM head with the tied word embeddings, AdamW, and clipping by the global
norm. KerasHub has no next-sentence head. Weights and moments are donated, as in
ours.
"""

import json
import os
import sys

from official_bert.training.plans.tpu_compiler import COMPILER_ENVIRONMENT

os.environ.update(COMPILER_ENVIRONMENT, KERAS_BACKEND="jax", TF_CPP_MIN_LOG_LEVEL="2")

import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402

from benchmarks.peers.kerashub_jax import make_update, masked_lm  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.training.plans import hlo_text, plan  # noqa: E402
from official_bert.training.plans.chips import parse_topology  # noqa: E402

SLICE = parse_topology("v5e:2x2")
SEQUENCE_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def main(size: str, rows: str, length: str, predictions: str) -> None:
    """Compile the step and print its plan."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = masked_lm(BertConfig.named(size).to_dict(), int(predictions))
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
        make_update(model, optimizer),
        in_shardings=on_chip,
        out_shardings=on_chip,
        donate_argnums=0,
    )
    weights = (model.trainable_variables, model.non_trainable_variables)
    state = [shapes(kind) for kind in (*weights, optimizer.variables)]
    compiled = step.lower(state, batch).compile()
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
