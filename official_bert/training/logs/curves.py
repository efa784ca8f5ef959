"""A figure of a run: losses and accuracies by training step."""

import importlib.util
import os

from official_bert.files import atomic_path
from official_bert.training.logs.run_log import read_metrics

CURVES_FILE = "training_curves.png"


def draw(
    directory: str | os.PathLike[str], unigram_entropy: float | None = None
) -> str | None:
    """Draw `training_curves.png` from a run's `metrics.jsonl`.

    It shows the run from its first step. Evaluations have dots.

    Args:
      directory: the run's output directory.
      unigram_entropy: loss of the unigram baseline in nats, drawn as a dotted line.

    Returns:
      the figure's path, or None if matplotlib is not installed or the run has no
      rows.
    """
    rows = read_metrics(directory)
    if importlib.util.find_spec("matplotlib") is None or not rows:
        return None
    # Avoid pyplot: its import is slower, and it changes a notebook's backend.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="tight")
    left, right = figure.subplots(1, 2)
    for task, colour in (("masked_lm", "tab:blue"), ("next_sentence", "tab:orange")):
        title = task.replace("_", " ")
        for axes, kind in ((left, "loss"), (right, "accuracy")):
            name = f"{task}_{kind}"
            if not any(name in row for row in rows):
                continue
            axes.plot(*_series(rows, name), color=colour, label=f"{title}, training")
            held_out = _series(rows, "eval_" + name)
            axes.plot(*held_out, "o--", color=colour, label=f"{title}, held-out")
    if unigram_entropy:
        left.axhline(unigram_entropy, color="grey", ls=":", label="unigram entropy")
    left.set(xlabel="step", ylabel="loss (nats)", ylim=(0, None))
    right.set(xlabel="step", ylabel="accuracy", ylim=(0, 1))
    left.legend(fontsize=8)
    path = os.path.join(directory, CURVES_FILE)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return path


def _series(rows, name):
    points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
    return [step for step, _ in points], [value for _, value in points]
