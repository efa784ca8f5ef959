"""Several runs of one fine-tuning, which differ in seed, batch, rate or epochs.

Small tasks depend on the seed so much (Sec. 4.1) that one run says little. Each
run has a folder of its own in the output directory, and the best model of all ends
in that directory itself. A sweep that was killed goes on where it stood.
"""

import contextlib
import dataclasses
import gc
import glob
import itertools
import os
import statistics

import keras

from official_bert import files
from official_bert.checkpoints import any_format, google, names
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.training import run_manifest, runs, saving, strategies
from official_bert.training.run_directory import opened_directory

RESULT_FILE, SUMMARY_FILE = "result.json", "runs.json"
# What runs of one sweep differ in.
_VARIED = {
    "train_batch_size",
    "learning_rate",
    "num_train_steps",
    "num_warmup_steps",
    "seed",
}


@dataclasses.dataclass(frozen=True)
class Grid:
    """What the runs differ in: each is made with every combination.

    Attributes:
      seeds: tuple of int.
      train_batch_sizes: tuple of int.
      learning_rates: tuple of float.
      num_train_epochs: tuple of float.
    """

    seeds: tuple[int, ...]
    train_batch_sizes: tuple[int, ...]
    learning_rates: tuple[float, ...]
    num_train_epochs: tuple[float, ...]

    def cells(self):
        """Return the (batch size, learning rate, epochs) of the grid."""
        return list(
            itertools.product(
                self.train_batch_sizes, self.learning_rates, self.num_train_epochs
            )
        )


def run_grid(strategy, work, metrics, grid, settings_of):
    """Fine-tune once for each combination; leave the best model.

    Args:
      strategy: a `tf.distribute` strategy.
      work: `FineTuning`, whose evaluations tell the best.
      metrics: names of scores for the summary, `work.best_by` the first.
      grid: `Grid`.
      settings_of: function: (batch size, learning rate, epochs, seed) ->
        `FineTuningSettings`, all with the same `output_dir`.

    Returns:
      whether all runs came to their end; not after SIGTERM.

    Raises:
      UserError: see `fine_tuning.fine_tune`; or the directory holds something
        else.
    """
    trials = [
        (cell, seed, settings_of(*cell, seed))
        for cell in grid.cells()
        for seed in grid.seeds
    ]
    directory = trials[0][2].output_dir
    chief = strategies.is_chief(strategy)
    rows = []
    with opened_directory(strategy, directory):
        if chief:
            _claim(directory)
        for number, (cell, seed, settings) in enumerate(trials, 1):
            name = _name_of(cell, seed)
            if chief:
                print(f"Run {number} of {len(trials)}: {name}", flush=True)
            own = dataclasses.replace(
                settings, output_dir=os.path.join(directory, name)
            )
            with runs.device_errors(strategy, own):
                row = _run(strategy, work, own, _columns(cell, seed))
            if row is None:
                return False
            rows.append(row)
            if chief:
                files.write_json(os.path.join(directory, SUMMARY_FILE), rows)
        if chief:
            lines = summary(rows, metrics, work.trouble)
            best = _row_of_model(directory, work.best_by)
            told = _tell_best(best, work.best_by)
            print(*lines, told, sep="\n", flush=True)
            _copy_manifest(directory, best)
    return True


def _claim(directory):
    """Make the directory that of a sweep; `UserError` if it holds a model."""
    summary_file = os.path.join(directory, SUMMARY_FILE)
    if os.path.exists(summary_file):
        return
    manifest = os.path.join(directory, run_manifest.MANIFEST_FILE)
    if os.path.exists(manifest) or any_format.holds_model(directory):
        raise UserError(
            f"--output_dir: {directory} holds another run or a model; choose another "
            "directory."
        )
    files.write_json(summary_file, [])


def _run(strategy, work, settings, columns):
    """Return a run's row, from its folder if it is done; None if it was stopped.

    Args:
      strategy: a `tf.distribute` strategy.
      work: `FineTuning`.
      settings: `FineTuningSettings`, of a folder within the sweep's.
      columns: dict, what the run differs in.
    """
    directory, chief = settings.output_dir, strategies.is_chief(strategy)
    fixed = fine_tuning.fixed_settings(work, settings) | {
        "precision": settings.precision,
        "early_stopping_patience": settings.early_stopping_patience,
    }
    _check_other_results(os.path.dirname(directory), fixed)
    row = _known_row(directory, fixed)
    if row:
        if chief:
            print(f"It is done: {work.objective.describe(row)}", flush=True)
    else:
        scores = fine_tuning.fine_tune(strategy, work, settings)
        if scores is None:
            return None
        row = columns | scores
        if chief:
            sweep_directory = os.path.dirname(directory)
            is_best = _is_best(row, _results(sweep_directory), work.best_by)
            if is_best:
                _move_model(directory, sweep_directory)
            result = {"settings": fixed, "row": row, "was_best": is_best}
            files.write_json(os.path.join(directory, RESULT_FILE), result)
    if chief:
        if work.trouble(row):
            print(work.trouble(row), flush=True)
        # Also where a kill came between the result and this.
        _remove_weights(directory)
    strategies.end_together(strategy)
    # The model and what was compiled for it hold each other.
    keras.backend.clear_session()
    gc.collect()
    return row


def _known_row(directory, fixed):
    """Return the row of a run that is done, or None."""
    path = os.path.join(directory, RESULT_FILE)
    if not os.path.exists(path):
        return None
    known = _read_result(path)
    if known["settings"] != fixed:
        raise UserError(
            f"--output_dir: {directory} holds the result of a run with other settings "
            "or data; choose another directory."
        )
    return known["row"]


def _check_other_results(directory, fixed):
    """Raise `UserError` unless all results are of runs that can be compared.

    Args:
      directory: the sweep's.
      fixed: what `_run` writes of a run's settings.
    """
    for result in _results(directory):
        known = result["settings"]
        varied = _VARIED
        # It follows from the number of updates, unless its share is another.
        if known.get("num_train_steps") == fixed["num_train_steps"]:
            varied = _VARIED - {"num_warmup_steps"}
        other = [
            name
            for name in sorted({*known, *fixed} - varied)
            if known.get(name) != fixed.get(name)
        ]
        if other:
            raise UserError(
                f"--output_dir: {directory} holds results of runs with other settings "
                f"or data ({', '.join(other)}); choose another directory."
            )


def _results(directory):
    """Return the results of all runs that are done, earlier commands' too."""
    paths = glob.glob(os.path.join(glob.escape(directory), "*", RESULT_FILE))
    return list(map(_read_result, paths))


def _read_result(path):
    result = files.read_json(path, "the result of a run")
    if result.keys() != {"settings", "row", "was_best"}:
        raise UserError(f"{path} is damaged; remove its folder, and it is run again.")
    return result


def _is_best(row, results, name):
    """Tell whether a row is better than those of all results."""
    return all(saving.is_better(row[name], r["row"][name], name) for r in results)


def _row_of_model(directory, name):
    """Return the row of the run whose model is left in a sweep's directory."""
    rows = [result["row"] for result in _results(directory) if result["was_best"]]
    # Each was better than the one before it, so that none is as good as the last.
    return next(
        row
        for row in rows
        if not any(saving.is_better(other[name], row[name], name) for other in rows)
    )


def _move_model(source, target):
    # Else the old weights would stand beside the new task for a moment.
    google.delete_checkpoint(os.path.join(target, names.MODEL_PREFIX))
    for name in fine_tuning.MODEL_FILES:
        os.replace(os.path.join(source, name), os.path.join(target, name))


def _copy_manifest(directory, row):
    """Put the `training.json` of the model's run beside the model."""
    cell = (row["train_batch_size"], row["learning_rate"], row["num_train_epochs"])
    source = os.path.join(directory, _name_of(cell, row["seed"]))
    files.copy(
        os.path.join(source, run_manifest.MANIFEST_FILE),
        os.path.join(directory, run_manifest.MANIFEST_FILE),
    )


def _remove_weights(directory):
    """Delete the checkpoints of a run that is done; its log and result stay."""
    for step in names.numbered_checkpoints(directory):
        google.delete_checkpoint(os.path.join(directory, f"model.ckpt-{step}"))
    # Of one that was being deleted when a kill came.
    google.remove_halves(directory)
    for name in fine_tuning.MODEL_FILES[-2:]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(directory, name))


def summary(rows, metrics, trouble):
    """Return what runs came to, lines for people.

    Args:
      rows: list of dict: what the runs differ in, and their scores.
      metrics: names of scores, the one that tells the best first.
      trouble: see `FineTuning`.

    Returns:
      list of str: a line for each combination with mean, deviation (of a
      sample) and best over the seeds.
    """
    names = ("train_batch_size", "learning_rate", "num_train_epochs")
    lines, cells = [], {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in names), []).append(row)
    for (batch, rate, epochs), found in cells.items():
        scores = "  ".join(
            f"{name} {_spread([row[name] for row in found])}" for name in metrics
        )
        lines.append(
            f"batch {batch}, rate {rate:g}, {epochs:g} epochs, {len(found)} seeds: "
            f"{scores}"
        )
        failed = sum(trouble(row) is not None for row in found)
        if failed:
            lines[-1] += f"  ({failed} learned nothing)"
    return lines


def _tell_best(row, name):
    return (
        f"Best {name} {row[name]:.4f}: batch {row['train_batch_size']}, rate "
        f"{row['learning_rate']:g}, {row['num_train_epochs']:g} epochs, seed "
        f"{row['seed']}."
    )


def _spread(values):
    """Return "mean ± deviation (best x)" of scores."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.4f} ± {deviation:.4f} (best {max(values):.4f})"


def _name_of(cell, seed):
    batch, rate, epochs = cell
    return f"batch-{batch}_rate-{rate:g}_epochs-{epochs:g}_seed-{seed}"


def _columns(cell, seed):
    names = ("train_batch_size", "learning_rate", "num_train_epochs", "seed")
    return dict(zip(names, (*cell, seed), strict=True))
