"""The original's six training steps, made by this project, and the differences.

As a script it uses two replicas on the CPU. Logical devices must be created before
TensorFlow starts, so this needs a separate process. The script prints the results of
`distances` for the given `WAYS` as JSON.
"""

import dataclasses
import json
import sys

import keras
import numpy as np
import original_head
import tensorflow as tf

from official_bert.modeling.kernels import packing, whole_program
from official_bert.modeling.kernels.choose import training_kernels
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.pretraining import make_objective
from official_bert.training.schedule import WarmupLinearDecay
from official_bert.training.step import StepSettings, make_train_step

# The kernels that a training step may use, and the settings of the step.
WAYS = {
    "plain": PLAIN,
    "plain, packed": dataclasses.replace(PLAIN, pack=packing.pack_tokens),
    "hand-written gradients": training_kernels(),
    "hand-written gradients, packed": training_kernels(skip_padding=True),
    "in few passes": training_kernels(is_compiled=True),
    "in few passes, packed in groups": training_kernels(True, skip_padding=True),
    "one program": whole_program.kernels_for(tf.float32),
}
SETTINGS = {"one program": {"xla": True}}


def two_replicas():
    """Return a strategy of two replicas on the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, logical)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distribute(strategy, features):
    """Give each replica its share of the rows."""
    rows = len(features["input_ids"]) // strategy.num_replicas_in_sync

    def share(context):
        start = context.replica_id_in_sync_group * rows
        return {k: tf.constant(v[start : start + rows]) for k, v in features.items()}

    return strategy.experimental_distribute_values_from_function(share)


def start(strategy, kernels, **options):
    """Return the model with its recorded weights, its optimizer and its step."""
    settings = original_head.SETTINGS
    schedule = WarmupLinearDecay(
        settings["learning_rate"],
        settings["num_train_steps"],
        settings["num_warmup_steps"],
    )
    with strategy.scope():
        model = PretrainingModel(original_head.head_config())
        optimizer = BertAdam(schedule)
        optimizer.build(model.trainable_variables)
        guard = Guard()
    original_head.assign(model, original_head.recording())
    chosen = StepSettings(seed=1, **options)
    objective = make_objective(kernels=kernels)
    step = make_train_step(
        strategy, model, optimizer, guard, objective, chosen, kernels
    )
    return model, optimizer, step


def distances(strategy, way):
    """Make the six steps.

    Args:
      strategy: a `tf.distribute` strategy.
      way: key of `WAYS`.

    Returns:
      dict: the largest differences from the recording in `mlm`, `nsp` (losses),
      `rate`, `weights`, `adam_m`, `adam_v`; the smallest `norm` before clipping; the
      distance by which the weights `moved`; the largest difference of a weight between
      `replicas`; and the number of `steps`.
    """
    arrays = original_head.recording()
    model, optimizer, step = start(strategy, WAYS[way], **SETTINGS.get(way, {}))
    reports = []
    for number in range(original_head.SETTINGS["steps"]):
        features = original_head.features(arrays, number)
        report = step(distribute(strategy, features))
        reports.append({name: float(value) for name, value in report.items()})
    far = {name: 0.0 for name in ("weights", "adam_m", "adam_v", "moved", "replicas")}
    for i, variable in enumerate(model.trainable_variables):
        name = variable.path.replace("/", "|")
        final = arrays["final_" + name]
        pairs = {
            "weights": (variable, final),
            "adam_m": (optimizer.adam_m[i], arrays[f"final_{name}|adam_m"]),
            "adam_v": (optimizer.adam_v[i], arrays[f"final_{name}|adam_v"]),
            "moved": (final, arrays["init_" + name]),
        }
        for key, (ours, recorded) in pairs.items():
            ours = keras.ops.convert_to_numpy(ours)
            far[key] = max(far[key], float(np.abs(ours - recorded).max()))
        copies = strategy.experimental_local_results(variable.value)
        apart = np.ptp([copy.numpy() for copy in copies], axis=0).max()
        far["replicas"] = max(far["replicas"], float(apart))
    return (
        far
        | _report_distances(reports, arrays)
        | {"steps": int(optimizer.iterations.numpy())}
    )


def _report_distances(reports, arrays):
    def furthest(ours, recorded):
        pairs = zip(ours, recorded, strict=True)
        return max(abs(a - float(b)) for a, b in pairs)

    mlm = [r["masked_lm_loss"] / (r["masked_lm_loss/weight"] + 1e-5) for r in reports]
    nsp = [r["next_sentence_loss"] / r["next_sentence_loss/weight"] for r in reports]
    steps = range(len(reports))
    return {
        "mlm": furthest(mlm, [arrays[f"loss_{i}_mlm"] for i in steps]),
        "nsp": furthest(nsp, [arrays[f"loss_{i}_nsp"] for i in steps]),
        "rate": furthest(
            [r["learning_rate"] for r in reports], arrays["learning_rates"]
        ),
        "norm": min(r["gradient_norm"] for r in reports),
    }


if __name__ == "__main__":
    replicas = two_replicas()
    print(json.dumps({way: distances(replicas, way) for way in sys.argv[1:]}))
