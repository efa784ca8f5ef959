"""Ablations as people read them: a table in Markdown, and Figure 5 as a picture."""

import importlib.util
import math
import statistics

from official_bert.ablations.tables import LEFT_TO_RIGHT, TASKS
from official_bert.files import atomic_path


def spread(scores):
    """Return "mean ± deviation" of scores from 0 to 1, in per cent.

    The deviation is that of a sample; of one score it is left out.
    """
    mean = f"{100 * statistics.fmean(scores):.1f}"
    if len(scores) < 2:
        return mean
    return f"{mean} ± {100 * statistics.stdev(scores):.1f}"


def lines_of(table, found):
    """Return a table as lines of Markdown, the paper's numbers beside ours.

    Args:
      table: `tables.Table`.
      found: what `running.run_table` returned.
    """
    tasks = list(found[0]["scores"])
    head = [table.title.split(":")[0], "held-out perplexity"]
    if table.over_steps:
        head.append("steps")
    head += [TASKS[task].title for task in tasks]
    head += [f"paper: {name}" for name in table.paper_columns]
    rows = [cells for each in found for cells in _rows_of(table, each, tasks)]
    empty = [""] * (len(head) - len(table.paper_columns) - 1)
    rows += [[label, *empty, *map(str, numbers)] for label, numbers in table.paper_rows]
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, rows)]
    notes = []
    if any(_is_left_to_right(each["row"]) for each in found):
        notes = [
            "",
            "*: of every token from those before it, which does not compare with that "
            "of masked words.",
        ]
    return [table.title, "", *lines, *notes]


def _rows_of(table, each, tasks):
    """Yield the cells of a row; with `over_steps`, of one for each checkpoint."""
    row = each["row"]
    places = list(each["scores"][tasks[0]]) if tasks else [None]
    for place in places:
        cells = [row.label, _perplexity(each)]
        if table.over_steps:
            # Of the last step, the only one whose loss is taken.
            cells[1] = cells[1] if place == places[-1] else ""
            cells.append(str(place))
        cells += [spread(each["scores"][task][place]) for task in tasks]
        # A figure has none of the numbers, and a size of our own no row.
        count = len(table.paper_columns)
        yield cells + [str(number) for number in row.paper or [""] * count][:count]


def _perplexity(each):
    mark = "*" if _is_left_to_right(each["row"]) else ""
    return f"{math.exp(each['loss']):.2f}{mark}"


def _is_left_to_right(row):
    return row.model == LEFT_TO_RIGHT.flags


def _line(cells):
    return f"| {' | '.join(cells)} |"


def draw(table, found, path):
    """Draw scores over the steps of pre-training, with deviations, as a PNG.

    Args:
      table: `tables.Table` with `over_steps`.
      found: what `running.run_table` returned.
      path: of the picture.

    Returns:
      the path; None where matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return None
    from matplotlib.figure import Figure

    tasks = list(found[0]["scores"])
    figure = Figure(figsize=(5.5 * len(tasks), 4.2), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False)
    for task, own in zip(tasks, axes[0], strict=True):
        for each in found:
            places = each["scores"][task]
            means = [100 * statistics.fmean(scores) for scores in places.values()]
            margins = [
                100 * statistics.stdev(scores) if len(scores) > 1 else 0.0
                for scores in places.values()
            ]
            label = each["row"].label
            own.errorbar(
                list(places), means, margins, marker="o", capsize=3, label=label
            )
        own.set(xlabel="pre-training steps", ylabel=TASKS[task].title)
    # One for all, and outside: there is no place that the bars leave free for sure.
    figure.legend(
        *own.get_legend_handles_labels(), loc="outside lower center", ncols=len(found)
    )
    figure.suptitle(table.title)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return path
