"""A training run on disk: `model.ckpt-N` with everything the run needs.

The files are checkpoints as the original wrote them, weights, `adam_m`,
`adam_v` and `global_step`, so that any TensorFlow tool reads them. The order
of the data and the dropout masks need no saving: both are functions of the
seed and the step.
"""

import os
import reprlib

import numpy as np

from official_bert import files
from official_bert.checkpoints import google, names
from official_bert.errors import UserError

# The original's Estimator kept as many.
KEPT = 5

SETTINGS_FILE = "training.json"


def save_state(directory, model, optimizer):
    """Write `model.ckpt-<step>` and forget all but the newest `KEPT`.

    Args:
      directory: the run's output directory.
      model: the model, with Google's names.
      optimizer: a built `BertAdam`; its `iterations` is the step.
    """
    step = int(optimizer.iterations.numpy())
    tensors = {names.GLOBAL_STEP: np.int64(step)}
    for name, variable in _saved_variables(model, optimizer).items():
        tensors[name] = variable.numpy()
    google.write_checkpoint(os.path.join(directory, f"model.ckpt-{step}"), tensors)
    kept = google.numbered_checkpoints(directory)
    for old in kept[:-KEPT]:
        google.delete_checkpoint(os.path.join(directory, f"model.ckpt-{old}"))
    _write_latest(directory, kept[-KEPT:])


def restore_state(directory, model, optimizer):
    """Continue from the newest `model.ckpt-N`, if there is one.

    Returns:
      the step it was saved at, or 0.

    Raises:
      UserError: the checkpoint is of another model.
    """
    steps = google.numbered_checkpoints(directory)
    if not steps:
        return 0
    prefix = os.path.join(directory, f"model.ckpt-{steps[-1]}")
    reader = google.open_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    variables = _saved_variables(model, optimizer)
    for name, variable in variables.items():
        if tuple(shapes.get(name, ())) != tuple(variable.shape):
            raise UserError(
                f"--output_dir: {directory} holds the training of a different "
                f"model ({name} is {shapes.get(name, 'missing')} in {prefix}, "
                f"and {list(variable.shape)} now); choose another directory."
            )
    for name, variable in variables.items():
        variable.assign(google.read_tensor(reader, name, prefix))
    optimizer.iterations.assign(steps[-1])
    return steps[-1]


def check_settings(directory, settings):
    """Record the settings of a run, or compare them with those it began with.

    Args:
      directory: the run's output directory.
      settings: dict of what must not change when the run is continued.

    Raises:
      UserError: they differ; the message names the first difference.
    """
    path = os.path.join(directory, SETTINGS_FILE)
    model = os.path.join(directory, google.MODEL_PREFIX + ".index")
    begun = google.numbered_checkpoints(directory) and os.path.exists(path)
    if os.path.exists(model) and not begun:
        raise UserError(
            f"--output_dir: {directory} holds a model and no run to continue; "
            "choose another directory, or give it as --init_checkpoint."
        )
    if not begun:
        files.write_json(path, settings)
        return
    before = files.read_json(path, "the settings of a run")
    difference = _first_difference(before, settings)
    if difference:
        name, old, new = difference
        raise UserError(
            f"--output_dir: {directory} holds a run with {name} "
            f"{reprlib.repr(old)}, and now it is {reprlib.repr(new)}; choose another "
            "directory, or give the same flags to continue that run."
        )


def _first_difference(before, settings, prefix=""):
    """Return (name, old value, new value) of a setting that differs, or None."""
    for name, value in settings.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            found = _first_difference(old, value, f"{name}: ")
            if found:
                return found
        elif old != value:
            return prefix + name, old, value
    return None


def _saved_variables(model, optimizer):
    """Name -> Keras variable, for the weights and both moments."""
    variables = {}
    for index, weight in enumerate(model.trainable_variables):
        name = names.google_name(weight)
        variables[name] = weight
        variables[f"{name}/{names.FIRST_MOMENT}"] = optimizer.adam_m[index]
        variables[f"{name}/{names.SECOND_MOMENT}"] = optimizer.adam_v[index]
    return variables


def _write_latest(directory, steps):
    """Write the `checkpoint` file that `tf.train.latest_checkpoint` reads."""
    lines = [f'model_checkpoint_path: "model.ckpt-{steps[-1]}"']
    lines += [f'all_model_checkpoint_paths: "model.ckpt-{step}"' for step in steps]
    files.write_text(os.path.join(directory, "checkpoint"), "\n".join(lines) + "\n")
