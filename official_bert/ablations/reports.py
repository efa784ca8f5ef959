"""Format ablation results: a table in Markdown, and Figure 5 as an image."""

import importlib.util
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.ablations.tables import LEFT_TO_RIGHT, TASKS, Table
from official_bert.files import atomic_path


def spread(scores: Sequence[float]) -> str:
    """Return "mean ± standard deviation" of scores from 0 to 1, in percent.

    It is the sample standard deviation, left out for a single score.
    """
    mean = f"{100 * statistics.fmean(scores):.1f}"
    if len(scores) < 2:
        return mean
    return f"{mean} ± {100 * statistics.stdev(scores):.1f}"


def lines_of(table: Table, results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table as lines of Markdown, with the paper's numbers next to ours.

    Args:
      table: `tables.Table`.
      results: result of `steps.run_table`.
    """
    tasks = list(results[0]["scores"])
    head = [table.title.split(":")[0], "held-out perplexity"]
    head += ["steps"] * table.over_steps
    head += [TASKS[task].title for task in tasks]
    count = len(table.paper_columns)
    empty = [""] * (len(head) - 1)
    lines = [table.title, ""]
    lines.append(_line([*head, *(f"paper: {name}" for name in table.paper_columns)]))
    lines.append(_line(["---"] * (len(head) + count)))
    for result in results:
        row, scores = result["row"], result["scores"]
        mark = "*" if row.model == LEFT_TO_RIGHT.flags else ""
        perplexity = f"{math.exp(result['loss']):.2f}{mark}"
        # Figures have no numbers in the paper, and our own sizes have no row there.
        paper = (row.paper or [""] * count)[:count]
        # With `over_steps`, each checkpoint has a line.
        steps = list(scores[tasks[0]]) if tasks else [None]
        for step in steps:
            cells = [row.label, perplexity]
            if table.over_steps:
                # The loss is only that of the last step.
                cells = [row.label, perplexity if step == steps[-1] else "", step]
            cells += [spread(scores[task][step]) for task in tasks]
            lines.append(_line([*cells, *paper]))
    for label, numbers in table.paper_rows:
        lines.append(_line([label, *empty, *numbers]))
    if any(result["row"].model == LEFT_TO_RIGHT.flags for result in results):
        lines += [
            "",
            "*: perplexity of every token given the tokens before it. It is not "
            "comparable with the perplexity of masked tokens.",
        ]
    return lines


def _line(cells):
    return f"| {' | '.join(map(str, cells))} |"


def draw(table: Table, results: Sequence[Mapping[str, Any]], path: str) -> str | None:
    """Draw scores over pre-training steps, with standard deviations, as a PNG.

    Args:
      table: `tables.Table` with `over_steps`.
      results: result of `steps.run_table`.
      path: path of the image.

    Returns:
      The path, or None if matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return None
    from matplotlib.figure import Figure

    tasks = list(results[0]["scores"])
    figure = Figure(figsize=(5.5 * len(tasks), 4.2), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False)
    for task, own in zip(tasks, axes[0], strict=True):
        for result in results:
            steps, scores = zip(*result["scores"][task].items(), strict=True)
            means = [100 * statistics.fmean(seeds) for seeds in scores]
            margins = [
                100 * statistics.stdev(seeds) if len(seeds) > 1 else 0.0
                for seeds in scores
            ]
            label = result["row"].label
            own.errorbar(steps, means, margins, marker="o", capsize=3, label=label)
        own.set(xlabel="pre-training steps", ylabel=TASKS[task].title)
    # One legend for all, outside the axes: inside, error bars could hide it.
    figure.legend(
        *own.get_legend_handles_labels(), loc="outside lower center", ncols=len(results)
    )
    figure.suptitle(table.title)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return path
