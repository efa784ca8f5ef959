"""Run one fine-tuning several times, with other seeds, batch sizes, rates or epochs.

Results on small tasks depend strongly on the seed (Sec. 4.1), so one run says little.
Each run has its own folder in the output directory. The best of all models ends up in
the output directory itself. A sweep that was killed resumes.
"""

import contextlib
import dataclasses
import gc
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import any_format, google, names
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning.job import FineTuningJob, FineTuningSettings
from official_bert.json_records import read_record
from official_bert.training import run_manifest, runs, saving, strategies
from official_bert.training.run_directory import opened_directory

RESULT_FILE, SUMMARY_FILE = "result.json", "runs.json"
# Settings that may differ between the runs of a sweep.
_VARIED = {
    "train_batch_size",
    "learning_rate",
    "num_train_steps",
    "num_warmup_steps",
    "seed",
}


@dataclasses.dataclass(frozen=True)
class _Result:
    """The `result.json` of a finished run.

    Attributes:
      settings: dict, the run's fingerprint.
      row: dict with the varied settings of the run, and its scores.
      was_best: whether its model was better than those of all runs before it.
    """

    settings: dict
    row: dict
    was_best: bool


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of a sweep.

    Attributes:
      settings: `FineTuningSettings`, with the sweep's `output_dir`.
      num_train_epochs: float.
    """

    settings: FineTuningSettings
    num_train_epochs: float

    @property
    def columns(self) -> dict[str, float]:
        """The settings that vary between runs, a dict as in `runs.json`."""
        return {
            "train_batch_size": self.settings.loop.train_batch_size,
            "learning_rate": self.settings.optimization.learning_rate,
            "num_train_epochs": self.num_train_epochs,
            "seed": self.settings.step.seed,
        }

    @property
    def own_settings(self) -> FineTuningSettings:
        """The settings of this run, with its own folder in the sweep's directory."""
        directory = os.path.join(self.settings.output_dir, _name_of(self.columns))
        return dataclasses.replace(self.settings, output_dir=directory)


def run_trials(
    strategy: tf.distribute.Strategy, job: FineTuningJob, trials: Sequence[Trial]
) -> bool:
    """Fine-tune several times, and keep the best model.

    Args:
      strategy: a `tf.distribute` strategy.
      job: `FineTuningJob`, whose evaluations decide which model is the best.
      trials: list of `Trial`, all with the same output directory.

    Returns:
      whether all runs finished; False after SIGTERM.

    Raises:
      UserError: see `job.fine_tune`; or the directory contains something else.
    """
    directory = trials[0].settings.output_dir
    chief = strategies.is_chief(strategy)
    rows = []
    with opened_directory(strategy, directory):
        if chief:
            _claim(directory)
        for number, trial in enumerate(trials, 1):
            if chief:
                name = _name_of(trial.columns)
                print(f"Run {number} of {len(trials)}: {name}", flush=True)
            with runs.device_errors(strategy, trial.own_settings):
                row = _run(strategy, job, trial)
            if row is None:
                return False
            rows.append(row)
            if chief:
                files.write_json(os.path.join(directory, SUMMARY_FILE), rows)
        if chief:
            lines = summary(rows, job.task.metrics, job.trouble)
            best, metric = _row_of_model(directory, job.best_by), job.best_by
            lines.append(
                f"Best {metric} {best[metric]:.4f}: batch size "
                f"{best['train_batch_size']}, learning rate {best['learning_rate']:g}, "
                f"{best['num_train_epochs']:g} epochs, seed {best['seed']}."
            )
            print(*lines, sep="\n", flush=True)
            # Put the manifest of the best run next to its model.
            name = run_manifest.MANIFEST_FILE
            source = os.path.join(directory, _name_of(best), name)
            files.copy(source, os.path.join(directory, name))
    return True


def _claim(directory):
    """Make the directory that of a sweep; raise `UserError` if it has a model."""
    summary_file = os.path.join(directory, SUMMARY_FILE)
    if files.exists(summary_file):
        return
    manifest = os.path.join(directory, run_manifest.MANIFEST_FILE)
    if files.exists(manifest) or any_format.holds_model(directory):
        raise UserError(
            f"--output_dir: {directory} contains another run or a model. Choose "
            "another directory."
        )
    files.write_json(summary_file, [])


def _run(strategy, job, trial):
    """Train a run, or read its result; return its row, or None if it was stopped."""
    settings, chief = trial.own_settings, strategies.is_chief(strategy)
    directory, sweep_directory = settings.output_dir, trial.settings.output_dir
    fixed = fine_tuning.fingerprint(job, settings) | {
        "precision": settings.precision,
        "early_stopping_patience": settings.loop.early_stopping_patience,
    }
    results = _results(sweep_directory)
    _check_results(sweep_directory, results.values(), fixed)
    done = results.get(os.path.basename(directory))
    if done and done.settings != fixed:
        raise UserError(
            f"--output_dir: {directory} contains the result of a run with other "
            "settings or data. Choose another directory."
        )
    if done:
        row = done.row
        if chief:
            print(f"Already finished: {job.objective.describe(row)}", flush=True)
    else:
        scores = fine_tuning.fine_tune(strategy, job, settings)
        if scores is None:
            return None
        row, name = trial.columns | scores, job.best_by
        if chief:
            is_best = all(
                saving.is_better(row[name], other.row[name], name)
                for other in results.values()
            )
            if is_best:
                _move_model(directory, sweep_directory)
            result = _Result(fixed, row, is_best)
            files.write_json(os.path.join(directory, RESULT_FILE), vars(result))
    if chief:
        if job.trouble(row):
            print(job.trouble(row), flush=True)
        # Repeated if a kill came after the result and before this.
        _remove_weights(directory)
    strategies.end_together(strategy)
    # The model and its compiled functions refer to each other.
    keras.backend.clear_session()
    gc.collect()
    return row


def _check_results(directory, results, fixed):
    """Raise `UserError` unless all results come from runs with these settings."""
    for result in results:
        known = result.settings
        varied = _VARIED
        # The warm-up follows from the number of steps, unless its proportion differs.
        if known.get("num_train_steps") == fixed["num_train_steps"]:
            varied = _VARIED - {"num_warmup_steps"}
        other = [
            name
            for name in sorted({*known, *fixed} - varied)
            if known.get(name) != fixed.get(name)
        ]
        if other:
            raise UserError(
                f"--output_dir: {directory} contains results of runs with other "
                f"settings or data ({', '.join(other)}). Choose another directory."
            )


def _results(directory):
    """Return folder -> `_Result` of all finished runs, including earlier commands."""
    results = {}
    for path in files.find_in(directory, os.path.join("*", RESULT_FILE)):
        remedy = "remove its folder, and the run is repeated"
        result = read_record(_Result, path, "the result of a run", remedy)
        results[os.path.basename(os.path.dirname(path))] = result
    return results


def _row_of_model(directory, name):
    """Return the row of the run whose model the sweep's directory contains."""
    rows = [result.row for result in _results(directory).values() if result.was_best]
    # Each best run was better than all before it, so the last one is the best.
    return next(
        row
        for row in rows
        if not any(saving.is_better(other[name], row[name], name) for other in rows)
    )


def _move_model(source, target):
    # Otherwise the old weights would briefly be next to the new task.
    google.delete_checkpoint(os.path.join(target, names.MODEL_PREFIX))
    for name in fine_tuning.MODEL_FILES:
        files.rename(os.path.join(source, name), os.path.join(target, name))


def _remove_weights(directory):
    """Delete the checkpoints of a finished run; keep its log and result."""
    for step in names.numbered_checkpoints(directory):
        google.delete_checkpoint(os.path.join(directory, f"model.ckpt-{step}"))
    # Remaining files of a checkpoint whose deletion was interrupted by a kill.
    google.remove_halves(directory)
    for name in fine_tuning.MODEL_FILES[-2:]:
        with contextlib.suppress(FileNotFoundError):
            files.remove(os.path.join(directory, name))


def summary(
    rows: Iterable[Mapping[str, Any]],
    metrics: Sequence[str],
    trouble: Callable[[Mapping[str, Any]], str | None],
) -> list[str]:
    """Return the scores of the runs as lines of text.

    Args:
      rows: list of dict: the varied settings of each run, and its scores.
      metrics: names of scores; the first one selects the best run.
      trouble: see `FineTuningJob`.

    Returns:
      list of str: one line per combination, with mean, standard deviation (of a
      sample) and best score over the seeds.
    """
    names = ("train_batch_size", "learning_rate", "num_train_epochs")
    lines: list[str] = []
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in names), []).append(row)
    for (batch, rate, epochs), same in cells.items():
        parts = [f"{name} {_spread([row[name] for row in same])}" for name in metrics]
        failed = sum(trouble(row) is not None for row in same)
        if failed:
            parts.append(f"({failed} learned nothing)")
        lines.append(
            f"batch size {batch}, learning rate {rate:g}, {epochs:g} epochs, "
            f"{len(same)} seeds: " + "  ".join(parts)
        )
    return lines


def _spread(values):
    """Return "mean ± standard deviation (best x)" of scores."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.4f} ± {deviation:.4f} (best {max(values):.4f})"


def _name_of(row):
    """Return the name of a run's folder, made of its varied settings."""
    return (
        f"batch-{row['train_batch_size']}_rate-{row['learning_rate']:g}_"
        f"epochs-{row['num_train_epochs']:g}_seed-{row['seed']}"
    )
