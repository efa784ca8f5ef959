"""Measure an exported training step with JAX. See `benchmarks/contender.py`.

It needs JAX, not TensorFlow. `compile_program` uses private names of JAX that
exist in JAX 0.10.2 and 0.11.2.
"""

import re

import jax
import numpy as np

from benchmarks.accelerators import exported

# Counters are int64.
jax.config.update("jax_enable_x64", True)


def versions():
    """Return library -> version, and the device."""
    return {"jax": jax.__version__, "device": jax.devices()[0].device_kind}


def device_memory():
    """Return the peak of the device's memory in bytes; 0 on CPUs."""
    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)


def compile_program(program, products):
    """Return a program, compiled for the first device.

    Args:
      program: a serialized `HloModuleProto`.
      products: precision of the products of float32 matrices, "HIGHEST" or
        "DEFAULT", which is TF32 on NVIDIA's GPUs and float32 on CPUs.
    """
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
    from jaxlib.xla_client import XlaComputation

    device = jax.devices()[0]
    text = _jax.mlir.xla_computation_to_mlir_module(XlaComputation(program))
    # TensorFlow copies arguments that are also results; StableHLO cannot.
    text = re.sub(
        r"= mhlo\.copy (%[\w#]+)((?: \{[^}]*\})?) : (tensor<[^>]*>)",
        r"= stablehlo.reshape \1 : (\3) -> \3",
        text,
    )
    text = re.sub(
        r"precision = \[\w+, \w+\]", f"precision = [{products}, {products}]", text
    )
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
    options = compiler.get_compile_options(
        num_replicas=1, num_partitions=1, device_assignment=np.zeros((1, 1), int)
    )
    devices = _jax.DeviceList((device,))
    return device.client.compile_and_load(module, devices, options)


class Training:
    """A training run of an exported step.

    As in the real run, the variables' memory is donated: the program overwrites
    them.
    """

    def __init__(self, folder, name, products="HIGHEST"):
        self.step, program = exported.read(folder, name)
        self.program = compile_program(program, products)
        reports = [
            index
            for index, result in enumerate(self.step.results)
            if result["name"] not in {one["name"] for one in self.step.arguments}
        ]
        self.num_reports = len(reports)
        self.num_features = len(self.step.arguments) - (
            len(self.step.results) - self.num_reports
        )
        self.variables = [
            jax.device_put(exported.first_value(**one))
            for one in self.step.arguments[self.num_features :]
        ]

    def put(self, features):
        """Return a batch on the device, in the order of the arguments."""
        names = [one["name"] for one in self.step.arguments[: self.num_features]]
        return [jax.device_put(features[name]) for name in names]

    def update(self, features):
        """Run one training step; return name -> scalar on the device.

        Args:
          features: see `put`.
        """
        done = self.program.execute_sharded([*features, *self.variables])
        arrays = [one[0] for one in done.disassemble_into_single_device_arrays()]
        self.variables = arrays[self.num_reports :]
        names = [result["name"] for result in self.step.results]
        return dict(zip(names, arrays[: self.num_reports], strict=False))

    def weights(self):
        """Return name -> array of the weights."""
        names = [one["name"] for one in self.step.arguments[self.num_features :]]
        values = zip(names, self.variables, strict=True)
        return {
            name: np.asarray(value)
            for name, value in values
            if exported.is_weight(name)
        }


def training(folder, name, products, steps):
    """Return a function that runs several training steps on one full batch.

    Args:
      folder: folder of the exported steps.
      name: name of the step.
      products: see `compile_program`.
      steps: number of steps. The loss is fetched after the last one.
    """
    run = Training(folder, name, products)
    features = run.put(run.step.batch_of(0, run.step.length))

    def compute():
        for _ in range(steps):
            report = run.update(features)
        return float(report["masked_lm_loss"])

    return compute


def product(size, dtype, products):
    """Return a function that computes the product of two square matrices.

    Args:
      size: rows and columns.
      dtype: dtype of the matrices and the product.
      products: see `compile_program`.
    """
    key = jax.random.key(0)
    matrix = jax.random.normal(key, (size, size), "float32").astype(dtype)
    multiply = jax.jit(lambda a: jax.numpy.matmul(a, a, precision=products.lower()))
    return lambda: multiply(matrix).block_until_ready()
