"""The training loop: steps, logs, checkpoints, evaluations, and when to stop."""

import contextlib
import dataclasses
import itertools
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import names
from official_bert.errors import UserError
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.interface import Kernels
from official_bert.training import saving, strategies
from official_bert.training.logs.run_log import Meter, RunLog, read_metrics
from official_bert.training.step import (
    STOP,
    Objective,
    make_replica_step,
    make_train_step,
)
from official_bert.training.stopping import StopRequest
from official_bert.training.throughput import feed, model_flops
from official_bert.training.throughput.peaks import peak_flops
from official_bert.training.throughput.train_loop import make_train_loop


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """The length of a run and its intervals: flags, with the same names.

    Attributes:
      train_batch_size: sequences per training step, on all replicas together.
      save_checkpoints_steps: training steps between two checkpoints.
      keep_checkpoint_max: number of newest checkpoints to keep, plus the best.
      iterations_per_loop: training steps between two log lines.
      max_skipped_updates: this number of consecutive steps without a finite gradient
        ends the run.
      early_stopping_patience: this number of consecutive evaluations without a better
        score ends the run; None for never.
      stop_at_step: the run ends after this step; None for the last step.
    """

    train_batch_size: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    iterations_per_loop: int
    max_skipped_updates: int
    early_stopping_patience: int | None = None
    stop_at_step: int | None = None


def train(
    strategy: tf.distribute.Strategy,
    state: saving.State,
    objective: Objective,
    dataset: Any,
    settings: Any,
    run_id: int,
    evaluate: Callable[[Callable[[], bool]], dict[str, float] | None] | None,
    kernels: Kernels,
    best_by: str = "loss",
    feeding: feed.Feeding | None = None,
    request: StopRequest | None = None,
) -> bool:
    """Make the remaining training steps, starting at the state's step.

    SIGTERM and Ctrl-C save the state before the run stops.

    Args:
      strategy: a `tf.distribute` strategy.
      state: `saving.State`, prepared by `runs.resume_or_begin`.
      objective: `step.Objective`.
      dataset: has `training_batches(batch_size, seed, first_batch, rows)`,
        `batch_records(batch_size, seed, batch)` and `tokens_per_row`, like `RecordSet`;
        batch k is a pure function of these and k.
      settings: `runs.RunSettings`.
      run_id: from `runs.resume_or_begin`.
      evaluate: from `evaluation.make_evaluate`, called at each checkpoint; None
        for no evaluations.
      kernels: `Kernels` of the training steps.
      best_by: name of the held-out measure that selects the best checkpoint; see
        `saving.note_evaluation`.
      feeding: `Feeding`; by default from `feed.choose_feeding`. It does not change
        results.
      request: an entered `StopRequest` that several calls share, so that a signal in
        the last step of one call stops the next; by default an own one.

    Returns:
      whether the training is complete: the last step is done, or early stopping ended
      it. False after SIGTERM.

    Raises:
      UserError: the gradient was not finite in too many consecutive steps.
      KeyboardInterrupt: Ctrl-C; the state was saved.
    """
    chief, last = strategies.is_chief(strategy), settings.last_step
    if feeding is None:
        iterations = settings.loop.iterations_per_loop
        feeding = feed.choose_feeding(strategy, iterations)
    with (
        StopRequest()
        if request is None
        else contextlib.nullcontext(request) as request,
        RunLog(settings.output_dir, last, state.step, chief, objective.describe) as log,
    ):
        training = _Training(
            strategy, state, settings, run_id, evaluate, best_by, request, log, feeding
        )
        is_whole = training.make_up_for_a_kill()
        if is_whole and state.step < last and not training.has_ended_early():
            is_whole = training.make_updates(objective, dataset, kernels)
        if not is_whole:
            log.say(
                f"Stopped at step {state.step} and saved. To resume, repeat the "
                "command."
            )
            if request.signal == signal.SIGINT:
                raise KeyboardInterrupt
        return is_whole


@dataclasses.dataclass(frozen=True)
class _Training:
    """A training run in progress; for the attributes see `train`."""

    strategy: tf.distribute.Strategy
    state: saving.State
    settings: Any
    run_id: int
    evaluate: Callable[[Callable[[], bool]], dict[str, float] | None] | None
    best_by: str
    request: StopRequest
    log: RunLog
    feeding: feed.Feeding = feed.Feeding()

    @property
    def directory(self):
        """The directory of checkpoints and logs."""
        return self.settings.output_dir

    def make_updates(self, objective, dataset, kernels):
        """Make the remaining training steps; return whether all were made."""
        calls = self._calls(dataset, self.state.step, kernels.pack is not None)
        ahead = feed.one_ahead if self.feeding.ahead else contextlib.nullcontext
        with ahead(calls) as calls:
            train = self._make_function(objective, kernels)
            return self._make_each(train, calls, dataset)

    def _make_each(self, train, calls, dataset):
        """Make the training steps of all calls; return whether all were made."""
        state, loop = self.state, self.settings.loop
        step, last = state.step, self.settings.last_step
        meter, stop = Meter(self._peak_flops()), False
        for arguments, count, flops in calls:
            report = train(*self._with_wish(*arguments))
            wishes = report.pop(STOP, None)
            meter.add(report, flops)
            step += count
            self.log.step(count)
            stop = bool(self.request) if wishes is None else float(wishes) > 0
            saves = self._is_to_save(step)
            # Log before saving too, so that a row never covers two parts of a run.
            if step % loop.iterations_per_loop == 0 or saves or stop:
                row = meter.means(loop.train_batch_size)
                self.log.training(step, row)
                self._check_finite(step, row, dataset)
            pause = time.monotonic()
            if (saves or stop) and strategies.is_chief(self.strategy):
                # A resumed run does not write the rows before its checkpoint again.
                self.log.sync()
                keep = loop.keep_checkpoint_max
                saving.save_state(self.directory, state, self.run_id, keep)
            # An interrupted evaluation runs when the run resumes from here.
            if saves and not self._evaluate(step):
                return False
            if stop and step < last:
                return False
            if saves and step < last and self.has_ended_early():
                return True
            meter.leave_out(time.monotonic() - pause)
        return True

    def _make_function(self, objective, kernels):
        """Return the function of a call: one training step or several."""
        parts = (
            self.strategy,
            self.state.model,
            self.state.optimizer,
            self.state.guard,
            objective,
            self.settings.step,
            kernels,
        )
        if self.feeding.steps_per_call == 1:
            return make_train_step(*parts)
        return make_train_loop(self.strategy, make_replica_step(*parts))

    def _peak_flops(self):
        """Return the devices' peak rate in the process that writes the log."""
        if not strategies.is_chief(self.strategy):
            return None
        return peak_flops(self.strategy, self.settings.precision)

    def has_ended_early(self):
        """Return, equally on all workers, whether early stopping applies; report it.

        The evaluations are read from the log, so that a resumed run decides like an
        uninterrupted one.
        """
        patience, name = self.settings.loop.early_stopping_patience, self.best_by
        if patience is None:
            return False
        since_best = 0
        if strategies.is_chief(self.strategy):
            rows = read_metrics(self.directory)
            values = [row[f"eval_{name}"] for row in rows if f"eval_{name}" in row]
            since_best = saving.evaluations_since_best(values, name)
        if strategies.from_chief(self.strategy, since_best) < patience:
            return False
        self.log.say(
            f"Stopped early at step {self.state.step}: the last {patience} evaluations "
            "did not improve on the best."
        )
        return True

    def make_up_for_a_kill(self):
        """Do the work that a kill left undone after a checkpoint; return success."""
        step, owed = self.state.step, False
        is_saved = step in names.numbered_checkpoints(self.directory)
        if is_saved and strategies.is_chief(self.strategy):
            name, rows = f"eval_{self.best_by}", read_metrics(self.directory)
            values = [row[name] for row in rows if row["step"] == step and name in row]
            if values:
                saving.note_evaluation(self.directory, step, values[0], self.best_by)
            saving.forget_old(self.directory, self.settings.loop.keep_checkpoint_max)
            owed = self._is_to_save(step) and not values
        owed = bool(strategies.from_chief(self.strategy, int(owed)))
        return not owed or self._evaluate(step)

    def _calls(self, dataset, step, skips_padding):
        """Yield each call's arguments, number of training steps, and model FLOPs.

        The arguments are batches, split over the replicas.
        """
        size, seed = self.settings.loop.train_batch_size, self.settings.step.seed
        start, stop = rows = strategies.local_rows(self.strategy, size)
        most, copies = self.feeding.steps_per_call, self.feeding.ahead
        batches = iter(dataset.training_batches(size, seed, step, rows))
        count_flops = self._make_counter(skips_padding)
        while step < self.settings.last_step:
            count = min(most, self._steps_to_pause(step))
            chosen = list(itertools.islice(batches, count))
            flops = sum(map(count_flops, chosen))
            batch = chosen[0] if most == 1 else feed.stack(chosen, most)
            shares = strategies.distribute(
                self.strategy, batch, size, start, int(most > 1), copies
            )
            arguments = (shares,) if most == 1 else (shares, tf.constant(count))
            # Estimate the FLOPs of all workers from this worker's rows.
            yield arguments, count, flops * size / (stop - start)
            step += count

    def _make_counter(self, skips_padding):
        """Return the function: batch -> model FLOPs of its rows, 0 if unknown."""
        model = self.state.model
        if not isinstance(model, EncoderModel):
            return lambda batch: 0
        heads = model_flops.heads_of(model)
        # Only the encoder's training pass skips padding.
        skips = skips_padding and heads.trains_encoder

        def count(batch):
            size = model_flops.size_of(batch, skips)
            return model_flops.step_flops(model.config, size, heads)

        return count

    def _steps_to_pause(self, step):
        """Return the steps until the next log line, checkpoint, or end of the run."""
        loop, last = self.settings.loop, self.settings.last_step
        every = loop.iterations_per_loop, loop.save_checkpoints_steps
        return min(last - step, *(steps - step % steps for steps in every))

    def _with_wish(self, shares, *others):
        """Add to a batch whether this worker got a stop request.

        Workers must stop at the same step, so each reports it to all in every step.
        """
        if not strategies.is_multi_worker(self.strategy):
            return shares, *others
        wish = {STOP: tf.constant(float(bool(self.request)))}
        size = self.settings.loop.train_batch_size
        return shares | strategies.distribute(self.strategy, wish, size), *others

    def _is_to_save(self, step):
        is_last = step == self.settings.last_step
        return is_last or step % self.settings.loop.save_checkpoints_steps == 0

    def _evaluate(self, step):
        """Evaluate and log; return whether the evaluation is complete."""
        if self.evaluate is None:
            return True
        # Several workers evaluate together, so none of them may stop alone.
        together = strategies.is_multi_worker(self.strategy)
        row = self.evaluate(lambda: bool(self.request) and not together)
        if row is not None:
            self.log.evaluation(step, row)
            if strategies.is_chief(self.strategy):
                measure = row[self.best_by]
                saving.note_evaluation(self.directory, step, measure, self.best_by)
        return row is not None

    def _check_finite(self, step, row, dataset):
        """Raise `UserError` if too many of the last steps were skipped."""
        count = int(row["skipped_in_row"])
        if count < self.settings.loop.max_skipped_updates:
            return
        first = step - count
        raise UserError(
            f"The gradient was not finite in {count} consecutive steps, from step "
            f"{first} on. The weights have not changed since that step. "
            f"{self._keep_batch(first, dataset)} "
            "Check these records, lower --learning_rate, or use --precision=float32 "
            "if you use another precision."
        )

    def _keep_batch(self, batch, dataset):
        """Write a batch's records to a file; return a sentence that lists them."""
        if not strategies.is_chief(self.strategy):
            return "The first worker reports the records of that step."
        size, seed = self.settings.loop.train_batch_size, self.settings.step.seed
        records = dataset.batch_records(size, seed, batch)
        path = os.path.join(self.directory, f"not_finite_batch-{batch}.tfrecord")
        numbers: dict[str, list[int]] = {}
        with (
            files.atomic_path(path) as temporary,
            tf.io.TFRecordWriter(temporary) as output,
        ):
            for file, number, serialized in records:
                output.write(serialized)
                numbers.setdefault(file, []).append(number)
        held = "; ".join(
            f"{', '.join(map(str, sorted(own)))} of {file}"
            for file, own in numbers.items()
        )
        return f"{path} contains the batch of that step: records {held}."
