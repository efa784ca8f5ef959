"""Several runs of one fine-tuning, which differ in seed, batch, rate or epochs.

Small tasks depend on the seed so much (Sec. 4.1) that one run says little. Each
run has a folder of its own in the output directory, and the best model of all ends
in that directory itself. A sweep that was killed goes on where it stood.
"""

import contextlib
import dataclasses
import gc
import itertools
import os
import statistics

import keras

from official_bert import files
from official_bert.checkpoints import google
from official_bert.errors import UserError
from official_bert.tasks import classifier
from official_bert.tasks.classifier_task import TASK_FILE
from official_bert.training import runs, saving, strategies

RESULT_FILE, SUMMARY_FILE = "result.json", "runs.json"
MODEL_FILES = (
    google.CONFIG_FILE,
    google.VOCAB_FILE,
    google.TOKENIZER_FILE,
    TASK_FILE,
    f"{google.MODEL_PREFIX}.data-00000-of-00001",
    f"{google.MODEL_PREFIX}.index",
)


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


def run_grid(strategy, config, task, train_features, dev_windows, grid, settings_of):
    """Fine-tune once for each combination; leave the best model.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      task: `ClassifierTask`.
      train_features: list of `Features`.
      dev_windows: list of lists of `Features`, to tell the best by.
      grid: `Grid`.
      settings_of: function: (batch size, learning rate, epochs, seed) ->
        `ClassifierSettings`, all with the same `output_dir`.

    Returns:
      whether all runs came to their end; not after SIGTERM.

    Raises:
      UserError: see `classifier.fine_tune`; or the directory holds something
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
    with files.locked_directory(directory) if chief else contextlib.nullcontext():
        if chief:
            _claim(directory)
        for number, (cell, seed, settings) in enumerate(trials, 1):
            name = _name_of(cell, seed)
            if chief:
                print(f"Run {number} of {len(trials)}: {name}", flush=True)
            own = dataclasses.replace(
                settings, output_dir=os.path.join(directory, name)
            )
            row = _run(strategy, config, task, train_features, dev_windows, own, rows)
            if row is None:
                return False
            rows.append(_columns(cell, seed) | row)
            if chief:
                files.write_json(os.path.join(directory, SUMMARY_FILE), rows)
        if chief:
            print("\n".join(summary(rows, task.metrics)), flush=True)
    return True


def _claim(directory):
    """Make the directory that of a sweep; `UserError` if it holds a model."""
    summary_file = os.path.join(directory, SUMMARY_FILE)
    if os.path.exists(summary_file):
        return
    if os.path.exists(os.path.join(directory, MODEL_FILES[-1])):
        raise UserError(
            f"--output_dir: {directory} holds a model of another run; choose another "
            "directory."
        )
    files.write_json(summary_file, [])


def _run(strategy, config, task, train_features, dev_windows, settings, rows):
    """Return a run's row, from its folder if it is done; None if it was stopped.

    `rows` are those of the runs before; all else is as in `run_grid`.
    """
    directory, chief = settings.output_dir, strategies.is_chief(strategy)
    data = classifier.identity(task, train_features)
    data["dev_set"] = classifier.identity(task, [each[0] for each in dev_windows])
    fixed = runs.fixed_settings(config, data, settings)
    row = _known_row(directory, fixed)
    if row:
        print(f"It is done: {classifier.describe(row)}", flush=True)
    else:
        if chief:
            files.make_directory(directory, "--output_dir")
        strategies.from_chief(strategy, 0)
        row = classifier.fine_tune(
            strategy, config, task, train_features, dev_windows, settings
        )
        if row is None:
            return None
        if chief:
            if _is_best(row, rows, task.metrics[0]):
                _move_model(directory, os.path.dirname(directory))
            result = {"settings": fixed, "row": row}
            files.write_json(os.path.join(directory, RESULT_FILE), result)
    if row["only_class"] is not None:
        count = len(dev_windows)
        print(classifier.one_class_warning(count, row["only_class"]), flush=True)
    if chief:
        # Also where a kill came between the result and this.
        _remove_weights(directory)
    strategies.from_chief(strategy, 0)
    # The model and what was compiled for it hold each other.
    keras.backend.clear_session()
    gc.collect()
    return row


def _known_row(directory, fixed):
    """Return the row of a run that is done, or None."""
    path = os.path.join(directory, RESULT_FILE)
    if not os.path.exists(path):
        return None
    known = files.read_json(path, "the result of a run")
    if known.get("settings") != fixed:
        raise UserError(
            f"--output_dir: {directory} holds the result of a run with other settings "
            "or data; choose another directory."
        )
    return known["row"]


def _is_best(row, rows, name):
    """Tell whether a row is better than all rows before."""
    return all(saving.is_better(row[name], other[name], name) for other in rows)


def _move_model(source, target):
    for name in MODEL_FILES:
        os.replace(os.path.join(source, name), os.path.join(target, name))


def _remove_weights(directory):
    """Delete the checkpoints of a run that is done; its log and result stay."""
    for step in google.numbered_checkpoints(directory):
        google.delete_checkpoint(os.path.join(directory, f"model.ckpt-{step}"))
    for name in MODEL_FILES[-2:]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(directory, name))


def summary(rows, metrics):
    """Return what runs came to, lines for people.

    Args:
      rows: list of dict: what the runs differ in, and their scores.
      metrics: names of scores, the one that tells the best first.

    Returns:
      list of str: a line for each combination with mean, deviation (of a
      sample) and best over the seeds, and one for the best run.
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
        failed = sum(row["only_class"] is not None for row in found)
        if failed:
            lines[-1] += f"  ({failed} predict one class only)"
    main = metrics[0]
    # The first of equally good ones, as the model that is left.
    best = max(rows, key=lambda row: row[main])
    lines.append(
        f"Best {main} {best[main]:.4f}: batch {best['train_batch_size']}, rate "
        f"{best['learning_rate']:g}, {best['num_train_epochs']:g} epochs, seed "
        f"{best['seed']}."
    )
    return lines


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
