"""Pre-training: what is minimised, and the run from records to a model."""

import contextlib
import dataclasses
import functools
import json
import os
import zlib

import keras
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import google, initialize, model_directory
from official_bert.data import input_pipeline
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training import (
    curves,
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
from official_bert.training.step import Objective, StepSettings


def _weights(features):
    rows = tf.shape(features["next_sentence_labels"])[0]
    return {
        "masked_lm_loss": tf.reduce_sum(features["masked_lm_weights"]),
        "next_sentence_loss": tf.cast(rows, tf.float32),
    }


# The sum of both mean losses, without a weight between them (App. A.2). The
# original adds 1e-5 to the number of masked words, so that a batch without
# any has a loss of 0.
PRETRAINING = Objective(
    losses={"masked_lm_loss": 1e-5, "next_sentence_loss": 0.0},
    weights=_weights,
    terms=pretraining_terms,
)

# What `eval_results.txt` holds beside `global_step`, as the original's.
RESULTS = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """The flags of `run_pretraining.py`, under the same names."""

    output_dir: str
    init_checkpoint: str | None
    continue_from: str | None
    vocab_file: str | None
    do_train: bool
    do_eval: bool
    train_batch_size: int
    eval_batch_size: int
    micro_batch_size: int
    optimizer: str
    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int
    stop_at_step: int | None
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    iterations_per_loop: int
    max_eval_steps: int
    max_skipped_updates: int
    precision: str
    xla: bool
    recompute: bool
    per_replica_update: bool
    allow_changed_settings: bool
    seed: int

    @property
    def last_step(self):
        """The update after which the run ends."""
        return self.stop_at_step or self.num_train_steps


def run(strategy, config, train_set, eval_set, settings):
    """Train and evaluate as the settings say; leave a model directory.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      train_set: `RecordSet` to train on.
      eval_set: `RecordSet` to evaluate on.
      settings: `PretrainingSettings`.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, a record is bad, memory is short, or another worker is gone.
    """
    try:
        with contextlib.ExitStack() as stack:
            if settings.do_train and strategies.is_chief(strategy):
                stack.enter_context(files.locked_directory(settings.output_dir))
                files.remove_leftovers(settings.output_dir)
                google.remove_halves(settings.output_dir)
            _run(strategy, config, train_set, eval_set, settings)
    except tf.errors.OpError as error:
        sets = (train_set, eval_set)
        found = [input_pipeline.user_error(error, s.index, s.format) for s in sets]
        found.append(_device_error(error, strategy, settings))
        for sentence in filter(None, found):
            raise sentence from error
        raise


def _device_error(error, strategy, settings):
    """Return the sentence for what went wrong with the devices, or None."""
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return UserError(
            f"Out of memory with --train_batch_size={settings.train_batch_size} and "
            f"--micro_batch_size={settings.micro_batch_size}; give a smaller "
            "--micro_batch_size (the update stays the same), or --recompute."
        )
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.InternalError)
    if strategies.is_multi_worker(strategy) and isinstance(
        error, (*lost, tf.errors.CancelledError, tf.errors.DeadlineExceededError)
    ):
        steps = google.numbered_checkpoints(settings.output_dir)
        return UserError(
            f"Worker {strategies.worker_number(strategy)} has lost another worker; "
            "start all workers again with the same commands, and the run goes on "
            f"from step {steps[-1] if steps else 0}."
        )
    return None


def _run(strategy, config, train_set, eval_set, settings):
    state = _make_state(strategy, config, settings)
    unigram = functools.cache(lambda: _without_context(train_set, eval_set))
    evaluate = _make_evaluate(strategy, state.model, eval_set, unigram, settings)
    if settings.do_train:
        settled = _settled(config, train_set, settings)
        run_id = _open_run(strategy, settled, settings)
        _restore_or_start(strategy, state, run_id, settled, settings)
        if not _train(strategy, state, train_set, run_id, evaluate, settings):
            return
    elif not saving.restore_state(settings.output_dir, state):
        _start_to_evaluate(state, settings)
    row = evaluate() if settings.do_eval else None
    if strategies.is_chief(strategy):
        if settings.do_train:
            _finish(state.model, train_set, unigram, settings)
        if row:
            _write_results(settings.output_dir, state.step, row)
    # No worker leaves while the chief still writes.
    strategies.from_chief(strategy, 0)


def _make_state(strategy, config, settings):
    keras.utils.set_random_seed(settings.seed)
    with strategy.scope(), computing_in(settings.precision):
        model = PretrainingModel(config, settings.recompute)
        optimizer = _optimizer(settings)
        optimizer.build(model.trainable_variables)
        guard = Guard(scaled=settings.precision == "float16")
    return saving.State(model, optimizer, guard)


def _open_run(strategy, settled, settings):
    """Check the run's settings, on the chief; return its id, on all workers."""
    _check_workers_agree(strategy, settled, settings)
    run_id = 0
    if strategies.is_chief(strategy):
        run_id = run_manifest.open_run(
            settings.output_dir, settled, settings.allow_changed_settings
        )
    return strategies.from_chief(strategy, run_id)


def _check_workers_agree(strategy, settled, settings):
    """Raise `UserError` on a worker whose flags are not those of the chief."""
    flags = dataclasses.asdict(settings) | {"settled": settled}
    # Folders may be mounted elsewhere, and are not part of what is computed.
    for name in ("output_dir", "vocab_file", "init_checkpoint", "continue_from"):
        del flags[name]
    mine = zlib.crc32(json.dumps(flags, sort_keys=True).encode())
    if strategies.from_chief(strategy, mine) != mine:
        raise UserError(
            f"Worker {strategies.worker_number(strategy)} was started with other flags "
            "or other records than the first worker; start all with the same command."
        )


def _restore_or_start(strategy, state, run_id, settled, settings):
    """Bring the state to where the run stands, on all workers alike."""
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
        print(
            initialize.load_weights(state.model, settings.init_checkpoint), flush=True
        )
    if strategies.is_chief(strategy):
        found = environment.describe(
            strategy,
            precision=settings.precision,
            xla=settings.xla,
            recompute=settings.recompute,
            micro_batch_size=settings.micro_batch_size,
        )
        run_manifest.note_start(directory, step, settled, found)


def _continue_other(state, settings):
    """Start where another run ended: weights, moments and step."""
    step = saving.restore_state(settings.continue_from, state)
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


def _start_to_evaluate(state, settings):
    if not settings.init_checkpoint:
        raise UserError(
            f"--output_dir: {settings.output_dir} holds no checkpoint to evaluate "
            "(model.ckpt-N); train first, or give --init_checkpoint."
        )
    print(initialize.load_weights(state.model, settings.init_checkpoint), flush=True)


def _without_context(train_set, eval_set):
    """Return the loss and the accuracy that knowing no context gives.

    The loss is the unigram entropy of the training words: that of a few
    held-out ones would be too low, because rare words are missing there. The
    accuracy is of always giving the held-out data's most frequent token.
    """
    return train_set.label_statistics()[0], eval_set.label_statistics()[1]


def _make_evaluate(strategy, model, eval_set, unigram, settings):
    """Return the function that evaluates, with what no context gives beside it."""
    evaluate = loop.make_evaluate(
        strategy,
        model,
        PRETRAINING,
        eval_set.evaluation_batches(settings.eval_batch_size, settings.max_eval_steps),
    )

    def evaluate_beside_unigram(break_off=lambda: False):
        row = evaluate(break_off)
        if row is None:
            return None
        entropy, share = unigram()
        return row | {"unigram_entropy": entropy, "most_frequent_share": share}

    return evaluate_beside_unigram


def _finish(model, train_set, unigram, settings):
    """Draw the curves and write the model directory."""
    path = curves.draw(settings.output_dir, unigram()[0])
    print(f"Curves: {path}" if path else "No curves: matplotlib is missing.")
    casing = train_set.manifest.get("do_lower_case")
    model_directory.save(settings.output_dir, model, settings.vocab_file, casing)
    if not settings.vocab_file:
        print("The model directory has no vocab.txt: give --vocab_file.")


def _optimizer(settings):
    schedule = WarmupLinearDecay(
        settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
    )
    return {"adam": BertAdam, "lamb": BertLamb}[settings.optimizer](schedule)


def _train(strategy, state, train_set, run_id, evaluate, settings):
    """Make the updates that are left; return whether that was all of them."""
    size, seed = settings.train_batch_size, settings.seed

    def blame(batch):
        return _save_batch(
            settings.output_dir, batch, train_set.batch_records(size, seed, batch)
        )

    return loop.train(
        strategy,
        state,
        PRETRAINING,
        loop.Batches(
            lambda first, rows: train_set.training_batches(size, seed, first, rows),
            blame,
        ),
        loop.LoopSettings(
            last_step=settings.last_step,
            save_checkpoints_steps=settings.save_checkpoints_steps,
            keep_checkpoint_max=settings.keep_checkpoint_max,
            log_steps=settings.iterations_per_loop,
            max_skipped_updates=settings.max_skipped_updates,
            batch_size=size,
            run_id=run_id,
            step=StepSettings(
                seed,
                settings.micro_batch_size,
                settings.xla,
                settings.per_replica_update,
            ),
        ),
        settings.output_dir,
        evaluate if settings.do_eval else None,
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


def _settled(config, train_set, settings):
    """Return what must stay the same for a run to be continued."""
    return {
        "bert_config": config.to_dict(),
        "train_batch_size": settings.train_batch_size,
        "optimizer": settings.optimizer,
        "per_replica_update": settings.per_replica_update,
        "learning_rate": settings.learning_rate,
        "num_train_steps": settings.num_train_steps,
        "num_warmup_steps": settings.num_warmup_steps,
        "seed": settings.seed,
        "init_checkpoint": _base_name(settings.init_checkpoint),
        "continue_from": _base_name(settings.continue_from),
        "input_files": [os.path.basename(path) for path in train_set.index.files],
        "input_bytes": [os.path.getsize(path) for path in train_set.index.files],
        "num_records": train_set.index.num_records,
    }


def _base_name(path):
    return path and os.path.basename(os.path.normpath(path))


def _write_results(directory, step, row):
    """Write `eval_results.txt` as the original does: sorted `key = value`."""
    result = {"global_step": step, **{name: row[name] for name in RESULTS}}
    lines = [f"{name} = {result[name]}" for name in sorted(result)]
    files.write_text(
        os.path.join(directory, "eval_results.txt"), "\n".join(lines) + "\n"
    )
    print("***** Eval results *****", *lines, sep="\n  ")
    print(
        f"Without any context: masked_lm_loss {row['unigram_entropy']:.3f} (unigram "
        f"entropy), masked_lm_accuracy {row['most_frequent_share']:.4f} (always the "
        "most frequent token).",
        flush=True,
    )
