"""The training loop, and the evaluation that goes with it."""

import dataclasses
import signal
import time
from collections.abc import Callable

import tensorflow as tf

from official_bert.checkpoints import names
from official_bert.errors import UserError
from official_bert.training import saving, strategies
from official_bert.training.logs import Meter, RunLog, read_metrics
from official_bert.training.reports import WEIGHT, weighted_means
from official_bert.training.step import (
    STOP,
    StepSettings,
    make_eval_step,
    make_train_step,
)
from official_bert.training.stopping import StopRequest


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """How long a run is and when it does what.

    Attributes:
      last_step: the number of the last update.
      save_checkpoints_steps: updates between two checkpoints.
      keep_checkpoint_max: how many of the newest are kept, beside the best.
      log_steps: updates between two log lines.
      max_skipped_updates: so many in a row that were not finite end the run.
      batch_size: sequences per update, on all replicas together.
      run_id: of the run in the output directory.
      step: `StepSettings`.
      best_by: which held-out measure tells the best checkpoint; see
        `saving.note_evaluation`.
      patience: so many evaluations in a row without a better one end the run;
        None for never.
    """

    last_step: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    log_steps: int
    max_skipped_updates: int
    batch_size: int
    run_id: int
    step: StepSettings
    best_by: str = "loss"
    patience: int | None = None


@dataclasses.dataclass(frozen=True)
class Batches:
    """Where batches come from; batch k is a pure function of k.

    Attributes:
      starting: (k, rows) -> `tf.data.Dataset` of batches from batch k on, of
        which only the `rows` (start, stop) are delivered.
      blame: k -> sentence that says what batch k held, and where it was saved.
    """

    starting: Callable
    blame: Callable


def train(strategy, state, objective, batches, settings, directory, evaluate):
    """Train from the state's step to `last_step`.

    SIGTERM and Ctrl-C save the state first.

    Args:
      strategy: a `tf.distribute` strategy.
      state: `saving.State`, made in its scope; restored, if there was a run.
      objective: `step.Objective`.
      batches: `Batches`.
      settings: `LoopSettings`.
      directory: where checkpoints and logs go.
      evaluate: function: (callable that tells whether to break off) -> row of
        held-out metrics, or None if it broke off. Called at each checkpoint.
        None for no evaluations.

    Returns:
      whether the training is complete: the last step is made, or patience is at
      its end. It is not after SIGTERM.

    Raises:
      UserError: the gradient was not finite too often.
      KeyboardInterrupt: Ctrl-C; the state was saved.
    """
    chief, last = strategies.is_chief(strategy), settings.last_step
    with (
        StopRequest() as request,
        RunLog(directory, last, state.step, chief, objective.describe) as log,
    ):
        run = _Run(strategy, state, settings, directory, evaluate, request, log)
        is_whole = run.make_up_for_a_kill()
        if is_whole and state.step < last and not run.has_ended_early():
            is_whole = run.make_updates(objective, batches)
        if not is_whole:
            run.say_stopped()
        return is_whole


@dataclasses.dataclass(frozen=True)
class _Run:
    """A run that is under way; see `train` for the attributes."""

    strategy: tf.distribute.Strategy
    state: saving.State
    settings: LoopSettings
    directory: str
    evaluate: Callable | None
    request: StopRequest
    log: RunLog

    def make_updates(self, objective, batches):
        """Make all updates that are left, or those until a stop is asked for.

        Returns:
          whether they came to their end, and the last evaluation with them.
        """
        state, settings = self.state, self.settings
        train_step = make_train_step(
            self.strategy,
            state.model,
            state.optimizer,
            state.guard,
            objective,
            settings.step,
        )
        step, last = state.step, settings.last_step
        shares = self._shares(batches, step)
        meter, stop = Meter(), False
        while step < last:
            report = train_step(next(shares))
            wishes = report.pop(STOP, None)
            meter.add(report)
            step += 1
            self.log.step()
            stop = bool(self.request) if wishes is None else float(wishes) > 0
            saves = self._is_to_save(step)
            # Also before the state is saved: no row spans two lives of a run.
            if step % settings.log_steps == 0 or saves or stop:
                row = meter.means(settings.batch_size)
                self.log.training(step, row)
                _check_finite(step, row, settings.max_skipped_updates, batches)
            pause = time.monotonic()
            if saves or stop:
                self._save()
            # One that broke off is made up when the run goes on from here.
            if saves and not self._evaluate(step):
                return False
            if stop and step < last:
                return False
            if saves and step < last and self.has_ended_early():
                return True
            meter.leave_out(time.monotonic() - pause)
        return True

    def has_ended_early(self):
        """Like `is_out_of_patience`; says so."""
        if not self.is_out_of_patience():
            return False
        self.log.say(
            f"Ended at step {self.state.step}: {self.settings.patience} evaluations "
            "in a row were no better than the best before."
        )
        return True

    def is_out_of_patience(self):
        """Tell, on all workers alike, whether the evaluations ask for an end.

        They are taken from the log, so that a run that goes on decides as it
        would have without a pause.
        """
        patience, name = self.settings.patience, self.settings.best_by
        if patience is None:
            return False
        since_best = 0
        if strategies.is_chief(self.strategy):
            rows = read_metrics(self.directory)
            values = [row.get(f"eval_{name}") for row in rows if f"eval_{name}" in row]
            since_best = saving.evaluations_since_best(values, name)
        return strategies.from_chief(self.strategy, since_best) >= patience

    def make_up_for_a_kill(self):
        """Do what follows a checkpoint, where a kill has left it undone.

        Returns:
          whether that came to its end.
        """
        step, owed = self.state.step, False
        if self._has_saved(step) and strategies.is_chief(self.strategy):
            values = self._evaluated(step)
            if values:
                self._note(step, values[0])
            saving.forget_old(self.directory, self.settings.keep_checkpoint_max)
            owed = self._is_to_save(step) and not values
        owed = strategies.from_chief(self.strategy, int(owed))
        return not owed or self._evaluate(step)

    def _has_saved(self, step):
        return step in names.numbered_checkpoints(self.directory)

    def _evaluated(self, step):
        """Return the measure of a step in the log that tells the best: 1 or 0."""
        name = f"eval_{self.settings.best_by}"
        return [
            row[name]
            for row in read_metrics(self.directory)
            if row["step"] == step and name in row
        ]

    def _note(self, step, value):
        saving.note_evaluation(self.directory, step, value, self.settings.best_by)

    def _shares(self, batches, step):
        """Yield each step's batch, shared out to the replicas.

        Workers have to stop at the same step, so with its batch each tells
        all whether it was asked to.
        """
        size = self.settings.batch_size
        start, stop = strategies.local_rows(self.strategy, size)
        for batch in batches.starting(step, (start, stop)):
            if strategies.is_multi_worker(self.strategy):
                batch[STOP] = tf.constant(float(bool(self.request)))
            yield strategies.distribute(self.strategy, batch, size, start)

    def _is_to_save(self, step):
        settings = self.settings
        is_last = step == settings.last_step
        return is_last or step % settings.save_checkpoints_steps == 0

    def _save(self):
        if strategies.is_chief(self.strategy):
            settings = self.settings
            # Rows before the checkpoint are not made again from it.
            self.log.sync()
            saving.save_state(
                self.directory,
                self.state,
                settings.run_id,
                settings.keep_checkpoint_max,
            )

    def _evaluate(self, step):
        """Evaluate and log; return whether it came to its end."""
        if self.evaluate is None:
            return True
        # Several workers evaluate together and could not break off alone.
        together = strategies.is_multi_worker(self.strategy)
        row = self.evaluate(lambda: bool(self.request) and not together)
        if row is not None:
            self.log.evaluation(step, row)
            if strategies.is_chief(self.strategy):
                self._note(step, row[self.settings.best_by])
        return row is not None

    def say_stopped(self):
        """Tell where the run stands; after Ctrl-C raise `KeyboardInterrupt`."""
        self.log.say(
            f"Stopped at step {self.state.step} and saved; the same command goes on "
            "from here."
        )
        if self.request.signal == signal.SIGINT:
            raise KeyboardInterrupt


def _check_finite(step, row, limit, batches):
    """Raise `UserError` if the last `limit` updates were all skipped."""
    count = int(row["skipped_in_row"])
    if count >= limit:
        first = step - count
        raise UserError(
            f"The gradient was not finite in {count} updates in a row, from step "
            f"{first} on; the weights are those before it. {batches.blame(first)} "
            "Look at these records, lower --learning_rate, or use "
            "--precision=float32 if it was not."
        )


def make_evaluate(strategy, model, objective, batches):
    """Return a function that evaluates a model on a finite data set.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model.
      objective: `step.Objective`.
      batches: `tf.data.Dataset` of whole batches.

    Returns:
      function: (callable that tells whether to break off) -> dict: the
      weighted mean of each term over all batches, and `loss`, the mean over
      batches of the batch's total loss, as the original reports it; None if
      it broke off.
    """
    eval_step = make_eval_step(strategy, model, objective)

    def evaluate(break_off=lambda: False):
        reports = []
        for batch in batches:
            if break_off():
                return None
            report = eval_step(strategies.distribute(strategy, batch))
            reports.append({name: float(value) for name, value in report.items()})
        losses = [_total_loss(objective, report) for report in reports]
        return {"loss": sum(losses) / len(losses), **weighted_means(reports)}

    return evaluate


def _total_loss(objective, report):
    return sum(
        report[name] / (report[name + WEIGHT] + added)
        for name, added in objective.losses.items()
    )
