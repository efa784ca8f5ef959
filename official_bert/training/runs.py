"""A training run in its output directory: opened, continued, trained.

What every training command shares, whatever it minimises.
"""

import contextlib
import dataclasses
import json
import os
import re
import time
import zlib

import keras
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import google, initialize, names
from official_bert.errors import UserError
from official_bert.modeling.kernels import choose
from official_bert.training import (
    environment,
    loop,
    run_manifest,
    saving,
    strategies,
)
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam, BertLamb
from official_bert.training.precision import computing_in
from official_bert.training.schedule import WarmupLinearDecay
from official_bert.training.step import StepSettings

SECONDS_TO_SEE_FILES = 30


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """The flags that every training command has, under the same names."""

    output_dir: str
    init_checkpoint: str | None
    continue_from: str | None
    train_batch_size: int
    micro_batch_size: int
    optimizer: str
    bias_correction: bool
    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int
    stop_at_step: int | None
    save_checkpoints_steps: int
    early_stopping_patience: int | None
    keep_checkpoint_max: int
    iterations_per_loop: int
    max_skipped_updates: int
    precision: str
    xla: bool
    recompute: bool
    deterministic: bool
    per_replica_update: bool
    allow_changed_settings: bool
    seed: int

    @property
    def last_step(self):
        """The update after which the run ends."""
        return self.stop_at_step or self.num_train_steps


@contextlib.contextmanager
def opened_directory(strategy, directory):
    """Keep other processes out of a run's directory, rid of half-written files."""
    if not strategies.is_chief(strategy):
        yield
        return
    with files.locked_directory(directory):
        files.remove_leftovers(directory)
        google.remove_halves(directory)
        yield


@contextlib.contextmanager
def device_errors(strategy, settings):
    """Turn what goes wrong with the devices into a `UserError`."""
    try:
        yield
    except tf.errors.OpError as error:
        sentence = _device_error(error, strategy, settings)
        if sentence:
            raise UserError(sentence) from error
        raise


def _device_error(error, strategy, settings):
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return (
            f"Out of memory with --train_batch_size={settings.train_batch_size} and "
            f"--micro_batch_size={settings.micro_batch_size}; give a smaller "
            "--micro_batch_size (the update stays the same), or --recompute."
        )
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.InternalError)
    if strategies.is_multi_worker(strategy) and isinstance(
        error, (*lost, tf.errors.CancelledError, tf.errors.DeadlineExceededError)
    ):
        steps = names.numbered_checkpoints(settings.output_dir)
        # An internal error may also be one of this worker's own device.
        what = "failed, or " if isinstance(error, tf.errors.InternalError) else ""
        reason = error.message.strip().partition("\n")[0]
        return (
            f"Worker {strategies.worker_number(strategy)} {what}has lost another "
            "worker; start all workers again with the same commands, and the run goes "
            f"on from step {steps[-1] if steps else 0}. TensorFlow says: {reason}"
        )
    return None


def make_state(strategy, make_model, settings):
    """Return a run's `saving.State` before its first update.

    Args:
      strategy: a `tf.distribute` strategy.
      make_model: function: () -> Keras model with Google's names.
      settings: `RunSettings`.
    """
    keras.utils.set_random_seed(settings.seed)
    with strategy.scope(), computing_in(settings.precision):
        model = make_model()
        optimizer = _optimizer(settings)
        optimizer.build(model.trainable_variables)
        guard = Guard(scaled=settings.precision == "float16")
    return saving.State(model, optimizer, guard)


def can_skip_padding(strategy, settings):
    """Whether shapes may depend on the data: XLA cannot compile such a step."""
    return not (settings.xla or strategies.is_tpu(strategy))


def choose_kernels(config, dataset, skip_padding, settings):
    """Return the `Kernels` of a run's training steps.

    Args:
      config: `BertConfig`.
      dataset: to train on, see `train`.
      skip_padding: whether only attention computes padding.
      settings: `RunSettings`.
    """
    rows = settings.num_train_steps * settings.train_batch_size
    num_tokens = rows * dataset.tokens_per_row
    return choose.for_training(
        config, settings.precision, num_tokens, skip_padding, settings.xla
    )


def _optimizer(settings):
    schedule = WarmupLinearDecay(
        settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
    )
    if settings.optimizer == "lamb":
        return BertLamb(schedule)
    return BertAdam(schedule, bias_correction=settings.bias_correction)


def fixed_settings(config, data, settings):
    """Return what must stay the same for a run to be continued, as a dict.

    Args:
      config: `BertConfig`.
      data: dict that tells the training data from other data.
      settings: `RunSettings`.
    """
    return {
        "bert_config": config.to_dict(),
        "train_batch_size": settings.train_batch_size,
        "optimizer": settings.optimizer,
        "bias_correction": settings.bias_correction,
        "per_replica_update": settings.per_replica_update,
        "learning_rate": settings.learning_rate,
        "num_train_steps": settings.num_train_steps,
        "num_warmup_steps": settings.num_warmup_steps,
        "seed": settings.seed,
        "init_checkpoint": _short_name(settings.init_checkpoint),
        "continue_from": _short_name(settings.continue_from),
        **data,
    }


def _short_name(path):
    """Return the name of a checkpoint, wherever it lies; of files with their folder's.

    Every release has a `bert_model.ckpt`.
    """
    if not path:
        return path
    folder, name = os.path.split(os.path.abspath(path))
    is_file = re.search(r"\.(ckpt(-\d+)?|index|safetensors|h5|bin)$", name)
    return f"{os.path.basename(folder)}/{name}" if is_file else name


def start(strategy, state, fixed, settings):
    """Bring a run's state to where the run stands, on all workers alike.

    Args:
      strategy: a `tf.distribute` strategy.
      state: `saving.State`, new.
      fixed: dict of what must not change when the run is continued.
      settings: `RunSettings`.

    Returns:
      the run's id, an int.

    Raises:
      UserError: the directory holds another run or model, a checkpoint does not
        fit, or workers were started with different flags or directories.
    """
    run_id = _open(strategy, fixed, settings)
    step = _restore(strategy, state, run_id, settings)
    if strategies.is_chief(strategy):
        _tell_of_older_model(settings, step)
        found = environment.describe(
            strategy,
            precision=settings.precision,
            xla=settings.xla,
            recompute=settings.recompute,
            deterministic=settings.deterministic,
            micro_batch_size=settings.micro_batch_size,
        )
        run_manifest.note_start(settings.output_dir, step, fixed, found)
    return run_id


def _tell_of_older_model(settings, step):
    """Say that a directory's model is not that of the run that goes on in it."""
    model = os.path.join(settings.output_dir, f"{names.MODEL_PREFIX}.index")
    if step < settings.last_step and os.path.exists(model):
        print(
            f"{settings.output_dir} holds the model of an earlier end; it is replaced "
            "when this run ends.",
            flush=True,
        )


def _open(strategy, fixed, settings):
    """Check the run's settings, on the chief; return its id, on all workers."""
    check_workers_agree(strategy, fixed, settings)
    run_id = 0
    if strategies.is_chief(strategy):
        run_id = run_manifest.open_run(
            settings.output_dir, fixed, settings.allow_changed_settings
        )
    run_id = strategies.from_chief(strategy, run_id)
    if not strategies.is_chief(strategy):
        _wait_for_run(strategy, settings.output_dir, run_id)
    return run_id


def _wait_for_run(strategy, directory, run_id):
    """Raise `UserError` on a worker that does not see what the chief writes.

    A network's folder may show it a little later.
    """
    for _ in range(SECONDS_TO_SEE_FILES):
        if run_manifest.run_id_of(directory) == run_id:
            return
        time.sleep(1)
    raise UserError(
        f"--output_dir: worker {strategies.worker_number(strategy)} does not see what "
        f"the first worker writes into {directory}; give a folder on storage that all "
        "workers share."
    )


def check_workers_agree(strategy, data, settings):
    """Raise `UserError` on a worker whose flags or data are not those of the chief.

    Args:
      strategy: a `tf.distribute` strategy.
      data: dict that tells its data from others.
      settings: `RunSettings`.
    """
    flags = dataclasses.asdict(settings)
    # Folders may be mounted elsewhere, and are not part of what is computed.
    for name in ("output_dir", "vocab_file"):
        flags.pop(name, None)
    checkpoints = ("init_checkpoint", "continue_from")
    for name in checkpoints:
        flags[name] = os.path.basename(os.path.normpath(flags[name] or ""))
    flags["fixed"] = {name: data[name] for name in data if name not in checkpoints}
    mine = zlib.crc32(json.dumps(flags, sort_keys=True).encode())
    if strategies.from_chief(strategy, mine) != mine:
        raise UserError(
            f"Worker {strategies.worker_number(strategy)} was started with other flags "
            "or other records than the first worker; start all with the same command."
        )


def _restore(strategy, state, run_id, settings):
    """Restore or begin the run; return the step it stands at."""
    directory, step = settings.output_dir, 0
    if strategies.is_chief(strategy):
        step = saving.restore_state(directory, state, run_id)
        saving.set_aside_newer(directory, step)
    step = strategies.from_chief(strategy, step)
    if step:
        if not strategies.is_chief(strategy):
            saving.restore_state(directory, state, run_id, step)
        done = "is done" if step >= settings.last_step else "goes on"
        print(f"The run in {directory} {done} at step {step}.", flush=True)
    elif settings.continue_from:
        step = _continue_other(state, settings)
    elif settings.init_checkpoint:
        _load_weights(state, settings)
    return step


def _continue_other(state, settings):
    """Start where another run ended: weights, moments and step."""
    place = settings.continue_from
    if os.path.isdir(place):
        step = saving.restore_state(place, state, flag="--continue_from")
    else:
        step = saving.restore_prefix(place, state)
    if not step:
        raise UserError(
            f"--continue_from: {settings.continue_from} holds no checkpoint of a "
            "training run (model.ckpt-N); give its output directory."
        )
    if step >= settings.last_step:
        raise UserError(
            f"--continue_from: {settings.continue_from} stands at step {step}, and "
            f"this run ends at step {settings.last_step}, counted from the first of "
            "all (--num_train_steps, --stop_at_step); give a larger number."
        )
    print(
        f"Going on from step {step} of {settings.continue_from}, with its weights "
        "and moments.",
        flush=True,
    )
    return step


def _load_weights(state, settings):
    print(initialize.load_weights(state.model, settings.init_checkpoint), flush=True)


def restore_to_evaluate(state, settings):
    """Restore the newest checkpoint of a run, or load `--init_checkpoint`.

    Raises:
      UserError: there is neither, or it does not fit.
    """
    if saving.restore_state(settings.output_dir, state, weights_only=True):
        return
    if not settings.init_checkpoint:
        raise UserError(
            f"--output_dir: {settings.output_dir} holds no checkpoint to evaluate "
            "(model.ckpt-N); train first, or give --init_checkpoint."
        )
    _load_weights(state, settings)


def train(
    strategy,
    state,
    objective,
    dataset,
    run_id,
    evaluate,
    settings,
    kernels,
    best_by="loss",
):
    """Make the updates that are left; return whether the training is complete.

    Args:
      strategy: a `tf.distribute` strategy.
      state: `saving.State`, as `start` left it.
      objective: `step.Objective`.
      dataset: has `training_batches(batch_size, seed, first_batch, rows)`,
        `batch_records(batch_size, seed, batch)` and `tokens_per_row`, as `RecordSet`.
      run_id: as `start` gave it.
      evaluate: as `loop.train` takes it.
      settings: `RunSettings`.
      kernels: as `choose_kernels` returned them.
      best_by: which measure of `evaluate` tells the best checkpoint.

    Raises:
      UserError: the gradient was not finite too often.
      KeyboardInterrupt: Ctrl-C; the state was saved.
    """
    size, seed = settings.train_batch_size, settings.seed

    def starting(first, rows):
        return dataset.training_batches(size, seed, first, rows)

    def blame(batch):
        if not strategies.is_chief(strategy):
            return "The first worker tells which records they were of."
        records = dataset.batch_records(size, seed, batch)
        return _save_batch(settings.output_dir, batch, records)

    return loop.train(
        strategy,
        state,
        objective,
        loop.Batches(starting, blame),
        loop.LoopSettings(
            last_step=settings.last_step,
            save_checkpoints_steps=settings.save_checkpoints_steps,
            keep_checkpoint_max=settings.keep_checkpoint_max,
            log_steps=settings.iterations_per_loop,
            max_skipped_updates=settings.max_skipped_updates,
            batch_size=size,
            run_id=run_id,
            step=StepSettings(
                seed=seed,
                micro_batch_size=settings.micro_batch_size,
                xla=settings.xla,
                kernels=kernels,
                per_replica=settings.per_replica_update,
            ),
            best_by=best_by,
            patience=settings.early_stopping_patience,
        ),
        settings.output_dir,
        evaluate,
    )


def _save_batch(directory, batch, records):
    """Write a batch's records to a file; return a sentence that tells of it."""
    path = os.path.join(directory, f"not_finite_batch-{batch}.tfrecord")
    with files.atomic_path(path) as temporary, tf.io.TFRecordWriter(temporary) as out:
        for _, _, serialized in records:
            out.write(serialized)
    numbers = {}
    for file, number, _ in records:
        numbers.setdefault(file, []).append(number)
    held = "; ".join(
        f"{', '.join(map(str, sorted(found)))} of {file}"
        for file, found in numbers.items()
    )
    return f"That batch is in {path}; it held the records {held}."
