"""Compile a program with the TPU compiler, which needs no TPU.

    python official_bert/training/plans/tpu_compiler.py STEP.hlo.pb v5e:4x4 16

It prints the costs and the optimized program as one line of JSON. It runs in a separate
process, without TensorFlow. Only this module uses private names of JAX. The extra
`plan` pins the versions that have them.
"""

import json
import os
import re
import sys
import time
from typing import Any

COMPILER_ENVIRONMENT = {
    # Without this, the compiler queries a metadata server about the machine.
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    # Without this, two plans at once would compete for a TPU, though none is attached.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


def compile_program(program: bytes, topology: str, num_replicas: int) -> dict[str, Any]:
    """Return the costs of a program on one chip of a TPU slice.

    Args:
      program: a serialized `HloModuleProto`.
      topology: the compiler's name of the slice, such as "v5e:4x4".
      num_replicas: number of chips that run it, each with its own data.

    Returns:
      dict with these keys. Memory: `argument_bytes`, `output_bytes`, `alias_bytes`
      (outputs that reuse arguments' memory), `temp_bytes` and `code_bytes`. Work:
      `flops`; `bytes_accessed`, the bytes that fused operations read and write, with
      the operations of a loop counted once. Also `text` of the optimized program and
      `compile_seconds`.
    """
    os.environ.update(COMPILER_ENVIRONMENT)
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax.experimental import topologies
    from jaxlib import _jax
    from jaxlib.mlir import ir
    from jaxlib.xla_client import XlaComputation

    described = topologies.get_topology_desc(
        platform="tpu",
        topology_name=topology,
        # A v4 chip has two cores. This makes one device of both, like its runtime. The
        # other chips do so by default, or have one core.
        **({"chip_config_name": "megacore"} if topology.startswith("v4:") else {}),
    )
    if len(described.devices) < num_replicas:
        raise ValueError(f"{topology} has {len(described.devices)} devices")
    text = _jax.mlir.xla_computation_to_mlir_module(XlaComputation(program))
    # TensorFlow copies arguments that are also results. StableHLO has no copy.
    text = re.sub(
        r"= mhlo\.copy (%[\w#]+)((?: \{[^}]*\})?) : (tensor<[^>]*>)",
        r"= stablehlo.reshape \1 : (\3) -> \3",
        text,
    )
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
    options = compiler.get_compile_options(
        num_replicas=num_replicas,
        num_partitions=1,
        device_assignment=np.arange(num_replicas).reshape(num_replicas, 1),
    )
    devices = _jax.DeviceList(tuple(described.devices[:num_replicas]))
    began = time.monotonic()
    compiled = described.devices[0].client.compile(module, devices, options)
    seconds = time.monotonic() - began
    memory, costs = compiled.get_compiled_memory_stats(), compiled.cost_analysis()
    if isinstance(costs, (list, tuple)):
        costs = costs[0]
    return {
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "temp_bytes": memory.temp_size_in_bytes,
        "code_bytes": memory.generated_code_size_in_bytes,
        "alias_bytes": memory.alias_size_in_bytes,
        "flops": costs["flops"],
        "bytes_accessed": costs["bytes accessed"],
        "text": compiled.hlo_modules()[0].to_string(),
        "compile_seconds": seconds,
    }


def parse_program(text: str) -> bytes:
    """Return the serialized `HloModuleProto` of a program in HLO text; for tests."""
    from jaxlib import _hlo

    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def main(path: str, topology: str, num_replicas: str) -> None:
    """Print the costs of the program in a file."""
    with open(path, "rb") as source:
        program = source.read()
    print(json.dumps(compile_program(program, topology, int(num_replicas))))


if __name__ == "__main__":
    main(*sys.argv[1:])
