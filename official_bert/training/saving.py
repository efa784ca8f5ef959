"""The state of a training run on disk: `model.ckpt-N`.

The files have the original's format, so that any TensorFlow tool can read them:
weights, `adam_m`, `adam_v` and `global_step`. Additional state is under `training/`.
The order of the data and the dropout masks are not saved, because both are functions
of the seed and the step.
"""

import dataclasses
import math
import os
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from official_bert import files, lease
from official_bert.checkpoints import google, names
from official_bert.errors import StoreError, UserError
from official_bert.training.guard import Guard

BEST_FILE = "best_checkpoint.json"
RUN_ID = names.TRAINING + "run_id"


@dataclasses.dataclass(frozen=True)
class State:
    """All state that training changes.

    Attributes:
      model: a Keras model with Google's names.
      optimizer: built; its `iterations` is the step, its `slots()` its state.
      guard: `Guard`.
    """

    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    guard: Guard

    @property
    def step(self) -> int:
        """Number of completed training steps."""
        return int(self.optimizer.iterations.numpy())

    def weights(self) -> dict[str, keras.Variable]:
        """Return name -> Keras variable of the model."""
        return {names.google_name(weight): weight for weight in self.model.weights}

    def slots(self) -> dict[str, keras.Variable]:
        """Return name -> Keras variable of the moments."""
        weights = map(names.google_name, self.model.trainable_variables)
        slots = self.optimizer.slots().items()
        return {
            f"{name}/{slot}": values[index]
            for index, name in enumerate(weights)
            for slot, values in slots
            if values[index] is not None
        }

    def guard_variables(self) -> dict[str, tf.Variable]:
        """Return name -> variable of the state that original checkpoints lack."""
        return {
            names.TRAINING + name: variable
            for name, variable in self.guard.variables().items()
        }

    def weights_and_slots(self) -> dict[str, keras.Variable]:
        """Return name -> Keras variable of the model and of the moments."""
        return self.weights() | self.slots()


def save_state(
    directory: str | os.PathLike[str], state: State, run_id: int, keep: int
) -> None:
    """Write `model.ckpt-<step>` and delete old checkpoints.

    Args:
      directory: the run's output directory.
      state: `State`.
      run_id: int, the id of the run that the checkpoint belongs to.
      keep: number of newest checkpoints to keep, in addition to the best.
    """
    if files.is_remote(directory):
        lease.require_held(os.fspath(directory))
    tensors = {names.GLOBAL_STEP: np.int64(state.step), RUN_ID: np.int64(run_id)}
    for name, variable in (state.weights_and_slots() | state.guard_variables()).items():
        tensors[name] = variable.numpy()
    google.write_checkpoint(_prefix(directory, state.step), tensors)
    forget_old(directory, keep)


def forget_old(directory: str | os.PathLike[str], keep: int) -> None:
    """Delete all checkpoints except the newest `keep` and the best."""
    steps = names.numbered_checkpoints(directory)
    kept = [
        step for step in steps if step in steps[-keep:] or step == best_step(directory)
    ]
    # `tf.train.latest_checkpoint` reads the `checkpoint` file.
    lines = [f'model_checkpoint_path: "model.ckpt-{kept[-1]}"']
    lines += [f'all_model_checkpoint_paths: "model.ckpt-{step}"' for step in kept]
    files.write_text(os.path.join(directory, "checkpoint"), "\n".join(lines) + "\n")
    for step in sorted(set(steps) - set(kept)):
        google.delete_checkpoint(_prefix(directory, step))


def is_better(value: float, best: float | None, name: str) -> bool:
    """Return whether a held-out measure is better than the best so far.

    Args:
      value: float.
      best: float, or None for the first evaluation.
      name: name of the measure. Lower is better if it ends with "loss"; otherwise
        higher is better.
    """
    if best is None:
        return True
    if math.isnan(best):
        return not math.isnan(value)
    return value < best if name.endswith("loss") else value > best


def evaluations_since_best(values: Iterable[float | None], name: str) -> int:
    """Return the number of evaluations after the best one.

    Args:
      values: list of the measure at each evaluation; None if it was not finite.
      name: see `is_better`.
    """
    best, since = None, 0
    for value in values:
        since += 1
        if value is not None and is_better(value, best, name):
            best, since = value, 0
    return since


def note_evaluation(
    directory: str | os.PathLike[str],
    step: int,
    value: float | None,
    name: str = "loss",
) -> None:
    """Record a checkpoint as the best if its held-out measure is the best so far.

    Args:
      directory: the run's output directory.
      step: step of the checkpoint.
      value: its held-out measure; None if it was not finite.
      name: name of the measure, see `is_better`.
    """
    if value is None or not math.isfinite(value):
        return
    if is_better(value, _best(directory).get(name), name):
        path = os.path.join(directory, BEST_FILE)
        files.write_json(path, {"step": step, name: value})


def best_step(directory: str | os.PathLike[str]) -> int | None:
    """Return the step of the best checkpoint so far, or None."""
    return _best(directory).get("step")


def _best(directory):
    """Return the record of the best checkpoint; {} if that checkpoint is missing."""
    path = os.path.join(directory, BEST_FILE)
    if not files.exists(path):
        return {}
    note = files.read_json(path, "the note of the best checkpoint")
    return note if note.get("step") in names.numbered_checkpoints(directory) else {}


def restore_state(
    directory: str | os.PathLike[str],
    state: State,
    run_id: int | None = None,
    step: int | None = None,
    flag: str = "--output_dir",
    weights_only: bool = False,
) -> int:
    """Restore the newest readable `model.ckpt-N`, if a checkpoint exists.

    Args:
      directory: an output directory.
      state: `State`; it changes only after a complete checkpoint was read.
      run_id: the run that the checkpoint must belong to; None for any.
      step: the N to read, if another worker has chosen it.
      flag: name of the flag with the directory, for messages.
      weights_only: whether the moments are ignored. Evaluation does not need the
        optimizer with which the weights were trained.

    Returns:
      the step of the checkpoint, or 0.

    Raises:
      UserError: the checkpoint belongs to another model or run, or no checkpoint can
        be read.
    """
    steps = names.numbered_checkpoints(directory) if step is None else [step]
    damaged = []
    for number in reversed(steps):
        values = _read(_prefix(directory, number), state, weights_only)
        if values is None:
            damaged.append(f"{_prefix(directory, number)} is damaged.")
            continue
        own_id = values.pop(RUN_ID, None)
        if None not in (own_id, run_id) and int(own_id) != run_id:
            raise UserError(
                f"--output_dir: {_prefix(directory, number)} belongs to another run "
                f"(run_id {int(own_id)}) than training.json in the same directory "
                f"(run_id {run_id}). Choose another directory or remove the checkpoint."
            )
        for sentence in damaged:
            print(f"{sentence} Resuming from model.ckpt-{number}.", flush=True)
        _assign(state, values, number)
        return number
    if damaged:
        raise UserError(
            f"{flag}: no checkpoint in {directory} can be read. "
            f"{' '.join(damaged)} Choose another directory."
        )
    return 0


def restore_prefix(prefix: str | os.PathLike[str], state: State) -> int:
    """Restore a checkpoint with moments, such as one of the original.

    Args:
      prefix: see `google.find_prefix`.
      state: `State`; it changes only after the complete checkpoint was read.

    Returns:
      the step of the checkpoint.

    Raises:
      UserError: it is damaged, has no moments, or belongs to another model.
    """
    prefix = google.find_prefix(prefix)
    reader = google.open_checkpoint(prefix)
    if not reader.has_tensor(names.GLOBAL_STEP):
        raise UserError(
            f"{prefix} has no {names.GLOBAL_STEP}, so it is a model and not a training "
            "run. To start from its weights, use --model."
        )
    step = google.read_tensor(reader, names.GLOBAL_STEP, prefix)
    values = _read(prefix, state)
    if values is None:
        raise UserError(f"{prefix} is damaged. Use another checkpoint.")
    values.pop(RUN_ID, None)
    _assign(state, values, int(step))
    return int(step)


def set_aside_newer(directory: str | os.PathLike[str], step: int) -> None:
    """Rename newer, unreadable checkpoints, so that they do not count as kept."""
    for newer in names.numbered_checkpoints(directory):
        if newer > step:
            google.set_aside(_prefix(directory, newer))


def _read(prefix, state, weights_only=False):
    """Return name -> array of the required state; None if the file is damaged."""
    try:
        reader = google.open_checkpoint(prefix)
    except StoreError:
        raise
    except UserError:
        return None
    shapes = reader.get_variable_to_shape_map()
    required = state.weights() if weights_only else state.weights_and_slots()
    for name, variable in required.items():
        if tuple(shapes.get(name, ())) != tuple(variable.shape):
            raise UserError(
                f"{prefix} belongs to a different model or optimizer ({name}: "
                f"{shapes.get(name, 'missing')} in the checkpoint, "
                f"{list(variable.shape)} in this run). Use the flags of its run, "
                "such as --optimizer and --bert_config_file, or another checkpoint."
            )
    wanted = [*required, RUN_ID]
    if not weights_only:
        wanted += state.guard_variables()
    try:
        return {
            name: google.read_tensor(reader, name, prefix)
            for name in wanted
            if name in shapes
        }
    except StoreError:
        raise
    except UserError:
        return None


def _assign(state, values, step):
    variables = state.weights_and_slots() | state.guard_variables()
    for name, value in values.items():
        variables[name].assign(value)
    state.optimizer.iterations.assign(step)


def _prefix(directory, step):
    return os.path.join(directory, f"model.ckpt-{step}")
