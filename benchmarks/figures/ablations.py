"""The paper's ablations in small, from `benchmarks/ablation_runs.jsonl`."""

import math

from matplotlib.ticker import MaxNLocator

from benchmarks.figures import numbers, style
from benchmarks.figures.fine_tuning import spread
from official_bert.ablations.tables import TABLES, TASKS

GROUPS = {
    "table5": "Pre-training tasks\n(Table 5)",
    "table8": "Masking mixes\n(Table 8)",
    "table6": "Layers × width\n(Table 6)",
    "whole_words": "Masked units",
}
COLUMNS = {
    "sst-2": "SST-2 accuracy",
    "sts-b": "STS-B Pearson",
    "conll": "CoNLL F1",
}
LIMITS = {
    "sst-2": (72.5, 83.8),
    "sts-b": (5, 29),
    "conll": (33, 84),
    "conll_features": (-6, 90),
}
LABELS = {
    "LTR & No NSP": "left to right, no NSP",
    "LTR & No NSP + BiLSTM": "the same + BiLSTM",
    "2 layers, 64 wide": "2 × 64",
    "2 layers, 128 wide": "2 × 128",
    "4 layers, 128 wide": "4 × 128",
    "4 layers, 256 wide": "4 × 256",
}
STEPS = (800, 1600, 2400, 3200, 4000)
# Row of Figure 5 -> (label, line style).
FIGURE5 = {
    "table5_no_nsp": ("masked", "-"),
    "table5_ltr_no_nsp": ("left to right", "--"),
}


def steps():
    """Return dict of a step's name -> its scores."""
    return {run["step"]: run["scores"] for run in numbers.read(numbers.ABLATIONS)}


def scores_of(done, row, task):
    """Return the scores of a row in percent, one for each seed; empty without runs."""
    scores = done.get(f"fine_tuned/{row}/{task}", {})
    return [100 * score for score in scores.get(TASKS[task].metric, [])]


def scores_at(done, row, task, step):
    """Return the scores of a row's checkpoint, as `scores_of` does."""
    return scores_of(done, row if step == STEPS[-1] else f"{row}_at_{step}", task)


def perplexity(done, model):
    """Return the held-out perplexity of a model."""
    return math.exp(done[f"heldout/{model}"]["masked_lm_loss"])


def draw_tables():
    """Return the figure of Tables 5, 6 and 8 and of whole words."""
    done = steps()
    mosaic = [[f"{name} {number}" for number in range(3)] for name in GROUPS]
    counts = [len(TABLES[name].rows) + 2 for name in GROUPS]
    figure, axes = style.new_figure(
        7.4, mosaic=mosaic, gridspec_kw={"height_ratios": counts}
    )
    for name, title in GROUPS.items():
        for number, task in enumerate(TABLES[name].tasks):
            own = axes[f"{name} {number}"]
            _draw_group(own, done, TABLES[name].rows, task)
            text = COLUMNS.get(task, "CoNLL F1, frozen")
            own.set_title(text, color=style.SOFT, weight="normal", size=8.5)
            if number:
                own.set_yticklabels([])
        style.label(
            *(axes[f"{name} 0"], title, (0, 1), style.INK),
            xycoords="axes fraction",
            shift=(-6, 6),
            ha="right",
            weight="bold",
            annotation_clip=False,
        )
    return figure


def _draw_group(axes, done, rows, task):
    style.bare(axes, x_grid=True)
    style.name_rows(axes, [LABELS.get(row.label, row.label) for row in rows])
    axes.set_xlim(*LIMITS[task])
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    color = style.COLORS[style.OURS]
    for y, row in enumerate(rows):
        mean, deviation = spread(scores_of(done, row.flags, task))
        axes.errorbar(mean, y, xerr=deviation, fmt="o", color=color, capsize=3)
        style.label(axes, f"{mean:.1f}", (mean + deviation, y), color, size=8)


def draw_figure5():
    """Return the figure of scores over the steps of pre-training."""
    done = steps()
    figure, axes = style.new_figure(2.7, mosaic=[list(COLUMNS)])
    for task, title in COLUMNS.items():
        own = axes[task]
        own.set_title(title)
        for row, (label, line) in FIGURE5.items():
            _draw_curve(own, done, row, task, label, line)
        style.bare(own, y_grid=True)
        own.set(xlim=(500, 4300), xlabel="pre-training steps")
        own.set_xticks([800, 2400, 4000], ["800", "2,400", "4,000"])
        own.margins(y=0.25)
    return figure


def _draw_curve(axes, done, row, task, label, line):
    color = style.COLORS[style.OURS]
    spreads = [spread(scores_at(done, row, task, step)) for step in STEPS]
    means, deviations = zip(*spreads, strict=True)
    low, high = (
        [mean + sign * own for mean, own in zip(means, deviations, strict=True)]
        for sign in (-1, 1)
    )
    axes.fill_between(STEPS, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(STEPS, means, f"o{line}", color=color)
    above = label == ("left to right" if task != "conll" else "masked")
    place = 2400, high[2] if above else low[2]
    edge = (
        {"shift": (0, 4), "va": "bottom"} if above else {"shift": (0, -4), "va": "top"}
    )
    style.label(axes, label, place, color, ha="center", **edge)
