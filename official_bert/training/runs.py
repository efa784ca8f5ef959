"""A training run: its settings, its state, and how it begins or resumes.

All training commands share this code.
"""

import contextlib
import dataclasses
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert import files, object_store
from official_bert.checkpoints import initialize, names
from official_bert.checkpoints.hub.local_model import name_in_cache
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.kernels import choose
from official_bert.modeling.kernels.interface import Kernels
from official_bert.training import environment, run_manifest, saving, strategies
from official_bert.training.guard import Guard
from official_bert.training.loop import LoopSettings
from official_bert.training.precision import computing_in
from official_bert.training.recipes.optimization import (
    OptimizationSettings,
    make_optimizer,
)
from official_bert.training.step import StepSettings

SECONDS_TO_SEE_FILES = 30
_OF_A_TRACEBACK = re.compile(
    r"Graph execution error|Detected at |  File |<stack traces|\d+ root error"
)


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """The flags of every training command, with the same names, in groups."""

    output_dir: str
    init_checkpoint: str | None
    continue_from: str | None
    optimization: OptimizationSettings
    step: StepSettings
    loop: LoopSettings
    precision: str
    recompute: bool
    deterministic: bool
    allow_changed_settings: bool

    @property
    def last_step(self) -> int:
        """The step after which the run ends."""
        return self.loop.stop_at_step or self.optimization.num_train_steps


@contextlib.contextmanager
def device_errors(
    strategy: tf.distribute.Strategy, settings: RunSettings
) -> Iterator[None]:
    """Turn errors of the devices into a `UserError`."""
    try:
        yield
    except tf.errors.OpError as error:
        of_store = object_store.error_of(error)
        if of_store:
            raise of_store from error
        if isinstance(error, tf.errors.ResourceExhaustedError):
            raise UserError(
                "Out of memory with "
                f"--train_batch_size={settings.loop.train_batch_size} and "
                f"--micro_batch_size={settings.step.micro_batch_size}. Use a smaller "
                "--micro_batch_size (the result stays the same), or --recompute."
            ) from error
        lost_worker = (
            tf.errors.UnavailableError,
            tf.errors.AbortedError,
            tf.errors.InternalError,
            tf.errors.CancelledError,
            tf.errors.DeadlineExceededError,
        )
        if strategies.is_multi_worker(strategy) and isinstance(error, lost_worker):
            steps = names.numbered_checkpoints(settings.output_dir)
            # An internal error may also come from this worker's own device.
            is_internal = isinstance(error, tf.errors.InternalError)
            raise UserError(
                f"Worker {strategies.worker_number(strategy)} "
                f"{'failed, or ' if is_internal else ''}lost another worker. Start all "
                "workers again with the same commands. The run resumes from step "
                f"{steps[-1] if steps else 0}.{_quoted(error)}"
            ) from error
        raise


def _quoted(error):
    """Return the first sentence of a TensorFlow error after its traceback, or ""."""
    lines = [
        line
        for line in error.message.splitlines()
        if line.strip() and not _OF_A_TRACEBACK.match(line)
    ]
    # After a colon, the next line belongs to the sentence.
    sentence = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    sentence = sentence.replace("Collective ops is aborted by: ", "")
    return f" TensorFlow says: {sentence}" if sentence else ""


def make_state(
    strategy: tf.distribute.Strategy,
    make_model: Callable[[], keras.Model],
    settings: RunSettings,
) -> saving.State:
    """Return a run's `saving.State` before its first step.

    Args:
      strategy: a `tf.distribute` strategy.
      make_model: function: () -> Keras model with Google's names.
      settings: `RunSettings`.
    """
    keras.utils.set_random_seed(settings.step.seed)
    with strategy.scope(), computing_in(settings.precision):
        model = make_model()
        optimizer = make_optimizer(settings.optimization)
        optimizer.build(model.trainable_variables)
        guard = Guard(scaled=settings.precision == "float16")
    return saving.State(model, optimizer, guard)


def can_skip_padding(strategy: tf.distribute.Strategy, settings: RunSettings) -> bool:
    """Return whether shapes may depend on the data; XLA cannot compile such a step."""
    return not is_one_program(strategy, settings)


def is_one_program(strategy: tf.distribute.Strategy, settings: RunSettings) -> bool:
    """Return whether XLA compiles the forward and backward passes as a whole."""
    return settings.step.xla or strategies.is_tpu(strategy)


def choose_kernels(
    strategy: tf.distribute.Strategy,
    config: BertConfig,
    dataset: Any,
    skip_padding: bool,
    settings: RunSettings,
) -> Kernels:
    """Return the `Kernels` of a run's training steps.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      dataset: training data, see `loop.train`.
      skip_padding: whether only attention computes padding.
      settings: `RunSettings`.
    """
    num_sequences = (
        settings.optimization.num_train_steps * settings.loop.train_batch_size
    )
    return choose.for_training(
        config,
        settings.precision,
        num_sequences * dataset.tokens_per_row,
        skip_padding,
        is_one_program(strategy, settings),
    )


def fingerprint(
    config: BertConfig, data: Mapping[str, Any], settings: RunSettings
) -> dict[str, Any]:
    """Return the values that must stay the same to continue a run, as a dict.

    Args:
      config: `BertConfig`.
      data: dict that distinguishes the training data from other data.
      settings: `RunSettings`.
    """
    return {
        "bert_config": config.to_dict(),
        "train_batch_size": settings.loop.train_batch_size,
        **settings.optimization.to_dict(),
        "per_replica_update": settings.step.per_replica_update,
        "seed": settings.step.seed,
        "init_checkpoint": _short_name(settings.init_checkpoint),
        "continue_from": _short_name(settings.continue_from),
        **data,
    }


def _short_name(path):
    """Return a checkpoint's name without its location.

    That is the directory's name, or folder/file for a single file, because every
    release has a `bert_model.ckpt`. In a cache it is the model's name, because the
    directory's name is a revision.
    """
    if not path:
        return path
    if name := name_in_cache(path):
        return name
    folder, name = os.path.split(files.absolute(path))
    is_file = re.search(r"\.(ckpt(-\d+)?|index|safetensors|h5|bin)$", name)
    return f"{os.path.basename(folder)}/{name}" if is_file else name


def resume_or_begin(
    strategy: tf.distribute.Strategy,
    state: saving.State,
    fingerprint: dict[str, Any],
    settings: RunSettings,
) -> int:
    """Begin a run, or restore its newest state, equally on all workers.

    Args:
      strategy: a `tf.distribute` strategy.
      state: `saving.State`, new.
      fingerprint: dict of values that must not change when the run continues.
      settings: `RunSettings`.

    Returns:
      the run's id, an int.

    Raises:
      UserError: the directory belongs to another run or model, a checkpoint does not
        fit, or workers were started with different flags or directories.
    """
    check_workers_agree(strategy, fingerprint, settings)
    directory, is_chief, run_id = settings.output_dir, strategies.is_chief(strategy), 0
    if is_chief:
        run_id = run_manifest.open_run(
            directory, fingerprint, settings.allow_changed_settings
        )
    run_id = strategies.from_chief(strategy, run_id)
    if not is_chief:
        _wait_for_run(strategy, directory, run_id)
    step = _restore(strategy, state, run_id, settings)
    if is_chief:
        _say_that_a_model_is_older(settings, step)
        described = environment.describe(
            strategy,
            precision=settings.precision,
            xla=settings.step.xla,
            recompute=settings.recompute,
            deterministic=settings.deterministic,
            micro_batch_size=settings.step.micro_batch_size,
        )
        run_manifest.note_start(directory, step, fingerprint, described)
    return run_id


def _say_that_a_model_is_older(settings, step):
    """Report that the directory contains a model from before this training."""
    model = os.path.join(settings.output_dir, f"{names.MODEL_PREFIX}.index")
    if step < settings.last_step and files.exists(model):
        print(
            f"{settings.output_dir} contains the final model of an earlier, shorter "
            "training. It is replaced when this run ends.",
            flush=True,
        )


def _wait_for_run(strategy, directory, run_id):
    """Raise `UserError` on a worker that does not see the chief's files.

    A shared directory may show new files a little later, so wait for them.
    """
    for _ in range(SECONDS_TO_SEE_FILES):
        if run_manifest.run_id_of(directory) == run_id:
            return
        time.sleep(1)
    raise UserError(
        f"--output_dir: worker {strategies.worker_number(strategy)} does not see "
        f"the files that the first worker writes to {directory}. Use a directory "
        "on storage that all workers share."
    )


def check_workers_agree(
    strategy: tf.distribute.Strategy, data: Mapping[str, Any], settings: RunSettings
) -> None:
    """Raise `UserError` on a worker whose flags or data differ from the chief's.

    Args:
      strategy: a `tf.distribute` strategy.
      data: dict that distinguishes the training data from other data.
      settings: `RunSettings`.
    """
    flags = dataclasses.asdict(settings)
    # Directories may be mounted elsewhere and do not change the computation.
    for name in ("output_dir", "vocab_file"):
        flags.pop(name, None)
    checkpoints = ("init_checkpoint", "continue_from")
    for name in checkpoints:
        flags[name] = os.path.basename(os.path.normpath(flags[name] or ""))
    flags["data"] = {name: data[name] for name in data if name not in checkpoints}
    mine = zlib.crc32(json.dumps(flags, sort_keys=True).encode())
    if strategies.from_chief(strategy, mine) != mine:
        raise UserError(
            f"Worker {strategies.worker_number(strategy)} was started with other flags "
            "or records than the first worker. Start all workers with the same command."
        )


def _restore(strategy, state, run_id, settings):
    """Restore or begin the run; return its current step."""
    directory, step = settings.output_dir, 0
    if strategies.is_chief(strategy):
        step = saving.restore_state(directory, state, run_id)
        saving.set_aside_newer(directory, step)
    step = strategies.from_chief(strategy, step)
    if step:
        if not strategies.is_chief(strategy):
            saving.restore_state(directory, state, run_id, step)
        done = "is done" if step >= settings.last_step else "resumes"
        print(f"The run in {directory} {done} at step {step}.", flush=True)
    elif settings.continue_from:
        step = _continue_other(state, settings)
    elif settings.init_checkpoint:
        print(
            initialize.load_weights(state.model, settings.init_checkpoint), flush=True
        )
    return step


def _continue_other(state, settings):
    """Start from another run's end: its weights, moments and step."""
    path = settings.continue_from
    if files.is_directory(path):
        step = saving.restore_state(path, state, flag="--continue_from")
    else:
        step = saving.restore_prefix(path, state)
    if not step:
        raise UserError(
            f"--continue_from: {path} holds no checkpoint of a training run "
            "(model.ckpt-N). Give the output directory of a run."
        )
    if step >= settings.last_step:
        raise UserError(
            f"--continue_from: {path} is at step {step}, but this run ends at step "
            f"{settings.last_step} (--num_train_steps and --stop_at_step include the "
            "steps of the other run). Use a larger number."
        )
    print(
        f"Continuing from step {step} of {path}, with its weights and moments.",
        flush=True,
    )
    return step


def restore_to_evaluate(state: saving.State, settings: RunSettings) -> None:
    """Restore the newest checkpoint of a run, or load `--init_checkpoint`.

    Raises:
      UserError: neither exists, or it does not fit.
    """
    if saving.restore_state(settings.output_dir, state, weights_only=True):
        return
    if not settings.init_checkpoint:
        raise UserError(
            f"--output_dir: {settings.output_dir} holds no checkpoint to evaluate "
            "(model.ckpt-N). Train first, or give --model."
        )
    print(initialize.load_weights(state.model, settings.init_checkpoint), flush=True)
