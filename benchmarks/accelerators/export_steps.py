r"""Export training steps for machines that have JAX and a GPU, but no TensorFlow.

    python benchmarks/accelerators/export_steps.py --out=steps
    python benchmarks/accelerators/export_steps.py --out=steps --sizes=tiny --batch=8

`run_steps.py` runs them. For the correctness check, the first command also runs
ten training steps of tiny, 4 x 128, with TensorFlow on this machine. It stores
the losses and the final weights. Initial weights and batches are not stored:
both machines compute them from seeds. The default files have about 40 MB.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from benchmarks import workload  # noqa: E402
from benchmarks.accelerators import exported  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.parameter_count import training_flops  # noqa: E402

# Default number of tokens in a batch.
TOKENS = {"tiny": 32768, "base": 32768, "large": 8192}
CHECKED = {"size": "tiny", "batch": 4, "length": 128}


def main():
    """Export the steps selected by the flags, and those of the check."""
    given = _flags()
    pathlib.Path(given.out).mkdir(parents=True, exist_ok=True)
    start_tensorflow()
    for precision in given.precisions:
        if given.check:
            export(given.out, **CHECKED, precision=precision, is_checked=True)
        for size in given.sizes:
            for length in given.lengths:
                batch = given.batch or TOKENS[size] // length
                work = {"size": size, "batch": batch, "length": length}
                if not given.check or work != CHECKED:
                    export(given.out, **work, precision=precision)


def _flags():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])

    def names(text):
        return text.split(",")

    def numbers(text):
        return [int(one) for one in text.split(",")]

    parser.add_argument("--out", required=True, help="folder for the files")
    parser.add_argument("--sizes", type=names, default=list(TOKENS))
    parser.add_argument("--lengths", type=numbers, default=[128, 512])
    parser.add_argument("--precisions", type=names, default=["float32", "bfloat16"])
    parser.add_argument(
        "--batch", type=int, help="sequences (default: 32768 tokens; large: 8192)"
    )
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to compute the reference for tiny, 4 x 128",
    )
    return parser.parse_args()


def export(folder, size, batch, length, precision, is_checked=False):
    """Write one step, and its reference if it `is_checked`."""
    import tensorflow as tf

    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training.plans import program
    from official_bert.training.pretraining import make_objective

    # Products then have the precision HIGHEST; `run_steps.py` changes it for TF32.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    config = BertConfig.named(size)
    compiled, state = program.make_step(
        lambda: PretrainingModel(config),
        lambda kernels: make_objective(kernels=kernels),
        _settings(precision),
        1,
    )
    predictions = workload.predictions_of(length)
    features = program.pretraining_features(batch, length, predictions)
    arguments, results, variables = _signature(compiled, state, features)
    flops = batch * training_flops(config, length, predictions)
    step = exported.Step(size, precision, batch, length, flops, arguments, results)
    serialized = compiled.experimental_get_compiler_ir(features)(stage="hlo_serialized")
    exported.write(folder, step, serialized)
    if is_checked:
        losses = train(compiled, variables, step)
        weights = {
            name: variable.numpy()
            for name, variable in variables.items()
            if exported.is_weight(name)
        }
        path = pathlib.Path(folder) / f"{step.name}.npz"
        np.savez_compressed(path, losses=losses, **weights)
    print(f"{step.name}: {len(serialized) / 1e6:.1f} MB of HLO", flush=True)


def train(compiled, variables, step):
    """Run the training steps of the check with TensorFlow; return their losses.

    Args:
      compiled: function: features -> report.
      variables: dict of name -> `tf.Variable`.
      step: `exported.Step`.
    """
    for name, variable in variables.items():
        variable.assign(exported.first_value(name, variable.shape, variable.dtype.name))
    losses = []
    for seed in range(exported.NUM_CHECKED):
        report = compiled(step.batch_of(seed, step.length // 2))
        losses.append([float(report[name]) for name in LOSSES])
    return np.array(losses)


LOSSES = ("masked_lm_loss", "next_sentence_loss")


def _signature(compiled, state, features):
    """Return (arguments, results, name -> variable); see `exported.Step`.

    The arguments of the program are the features, sorted by name, and the variables
    that the function captures. The results are the report, sorted by name, and all
    variables that the step assigns.
    """
    function = compiled.get_concrete_function(features)
    keras_variables = {
        **state.weights(),
        **state.slots(),
        "global_step": state.optimizer.iterations,
    }
    variables = {name: one.value for name, one in keras_variables.items()}
    # A report uses the names of the guard's variables.
    for name, variable in state.guard.variables().items():
        variables[f"training/{name}"] = variable
    names = {id(one.handle): name for name, one in variables.items()}
    captured = [names[id(tensor)] for tensor in function.captured_inputs]
    arguments = [
        {"name": name, "shape": list(one.shape), "dtype": one.dtype.name}
        for name, one in (
            *sorted(features.items()),
            *((name, variables[name]) for name in captured),
        )
    ]
    reports = sorted(function.structured_outputs)
    results = [{"name": name} for name in (*reports, *captured)]
    return arguments, results, {name: variables[name] for name in captured}


def _settings(precision):
    """Return the `RunSettings` of a run with default flags."""
    from official_bert.training import runs
    from official_bert.training.loop import LoopSettings
    from official_bert.training.recipes.optimization import OptimizationSettings
    from official_bert.training.step import StepSettings

    return runs.RunSettings(
        output_dir="",
        init_checkpoint=None,
        continue_from=None,
        optimization=OptimizationSettings(1e-4, 1_000_000, 10),
        step=StepSettings(seed=1),
        loop=LoopSettings(0, 0, 0, 0, 0),
        precision=precision,
        recompute=False,
        deterministic=False,
        allow_changed_settings=False,
    )


if __name__ == "__main__":
    main()
