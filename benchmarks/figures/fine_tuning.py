"""Scores of fine-tuning compared with PyTorch, seed by seed."""

import statistics

from matplotlib.ticker import MaxNLocator

from benchmarks.figures import numbers, style

BIAS_CORRECTION = "ours with --bias_correction"
# (task, score) -> title of the panel.
SCORES = {
    ("mrpc", "f1"): "MRPC, F1",
    ("rte", "accuracy"): "RTE, accuracy",
    ("cola", "matthews_correlation"): "CoLA, Matthews",
    ("sts-b", "pearson"): "STS-B, Pearson",
    ("sst-2", "accuracy"): "SST-2, accuracy",
    ("conll", "f1"): "CoNLL-2003, F1",
}
# Program in the file -> (library, label, whether it is drawn filled).
PROGRAMS = {
    BIAS_CORRECTION: (style.OURS, "with bias\ncorrection", True),
    "PyTorch": (style.PYTORCH, "PyTorch", True),
    "ours": (style.OURS, "default\n(original)", False),
}


def scores_of(runs, who, task, score):
    """Return the scores in percent, one for each seed."""
    found = [run for run in runs if (run["who"], run["task"]) == (who, task)]
    return [100 * run[score] for run in found if run.get(score) is not None]


def spread(scores):
    """Return (mean, sample standard deviation or 0 of a single score)."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return statistics.fmean(scores), deviation


def draw():
    """Return the figure."""
    runs = numbers.read(numbers.FINE_TUNING)
    figure, axes = style.new_figure(4.2, mosaic=[["0", "1", "2"], ["3", "4", "5"]])
    for number, ((task, score), title) in enumerate(SCORES.items()):
        own = axes[str(number)]
        own.set_title(title)
        style.bare(own, y_grid=True)
        _draw_task(own, runs, task, score)
    style.name_libraries(figure, (style.OURS, style.PYTORCH))
    return figure


def _draw_task(axes, runs, task, score):
    labels = []
    for x, (who, (library, label, is_filled)) in enumerate(PROGRAMS.items()):
        labels.append(label)
        scores = scores_of(runs, who, task, score)
        if not scores:
            axes.text(
                *(x, 0.5, "not run"),
                transform=axes.get_xaxis_transform(),
                ha="center",
                size=8,
                color=style.SOFT,
            )
            continue
        mean, deviation = spread(scores)
        color = style.COLORS[library]
        seeds = [x - 0.22] * len(scores)
        axes.plot(seeds, scores, "o", color=color, alpha=0.35, markersize=3.5)
        axes.errorbar(
            *(x, mean, deviation),
            fmt="o",
            color=color,
            markerfacecolor=color if is_filled else style.PAPER,
            markersize=7,
            capsize=4,
        )
        style.label(axes, f"{mean:.1f}", (x, mean), color, shift=(7, 0), size=8)
    axes.set_xlim(-0.6, 2.75)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.margins(y=0.12)
    axes.set_xticks(range(len(labels)), labels, size=8)
