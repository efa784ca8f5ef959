"""Held-out loss over the steps of pre-training."""

from benchmarks.figures import numbers, style

STEPS, LOSS = "training steps", "held-out masked-LM loss"
# Records -> (label, line style).
MASKING = {
    "static, 1 duplicate": ("static, repeated 5.5 ×", ":"),
    "dynamic, 1 pass": ("dynamic, repeated 5.4 ×", "-"),
    "static, 5 duplicates": ("static, 5 duplicates", "--"),
    "dynamic, 5 passes": ("dynamic, 5 passes", "-"),
}


def draw():
    """Return the figure."""
    figure, axes = style.new_figure(
        3.0, mosaic=[["wikipedia", "masking"]], gridspec_kw={"width_ratios": [1, 1]}
    )
    _draw_wikipedia(axes["wikipedia"])
    _draw_masking(axes["masking"])
    for own in axes.values():
        style.bare(own, y_grid=True)
        own.set_xlabel("training steps")
    return figure


def _draw_wikipedia(axes):
    color = style.COLORS[style.OURS]
    axes.set_title("3 MB of Wikipedia: held-out loss, nats")
    wikipedia = numbers.experiment("wikipedia")
    for size, line in (("tiny", "--"), ("mini", "-")):
        unigram, *rows = wikipedia.rows(size)
        steps, losses = zip(*((row[STEPS], row[LOSS]) for row in rows), strict=True)
        axes.plot(steps, losses, f"o{line}", color=color)
        axes.annotate(
            f"{size} {losses[-1]:.2f}",
            (steps[-1], losses[-1]),
            xytext=(6, -1 if size == "mini" else 3),
            textcoords="offset points",
            va="center",
            size=8.5,
            color=color,
        )
    level = unigram[LOSS]
    axes.axhline(level, color=style.SOFT, linewidth=1)
    axes.text(
        *(3600, level - 0.012, "unigram baseline"),
        ha="right",
        va="top",
        size=8.5,
        color=style.SOFT,
    )
    axes.set(xlim=(400, 3700), ylim=(6.7, 7.22))
    axes.set_xticks(range(500, 3001, 500), [f"{n:,}" for n in range(500, 3001, 500)])


def _draw_masking(axes):
    color = style.COLORS[style.OURS]
    axes.set_title("Masking: held-out loss, nats")
    rows = {row["records"]: row for row in numbers.experiment("masking").rows("from common weights")}
    points = [500, 1000]
    for name, (label, line) in MASKING.items():
        row = rows[name]
        losses = [row["held-out loss at 500 steps"], row["held-out loss at 1,000 steps"]]
        axes.plot(points, losses, f"o{line}", color=color)
        axes.annotate(
            f"{label} {losses[-1]:.2f}",
            (points[-1], losses[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            size=8.5,
            color=color,
        )
    axes.set(xlim=(450, 1750))
    axes.set_xticks(points, ["500", "1,000"])
