"""Held-out loss over the steps of pre-training."""

from benchmarks.figures import numbers, style

STEPS, LOSS = "training steps", "held-out masked-LM loss"
NEXT, TRAINED = "next-sentence accuracy, %", "training next-sentence accuracy, %"
# Records -> label, from few passes over the same pairs to many.
MASKING = {
    "dynamic, 5 passes": "dynamic, 5 sets of pairs",
    "static, 5 duplicates": "static, 5 sets of pairs",
    "dynamic, 1 pass": "dynamic, 1 set of pairs",
    "static, 1 duplicate": "static, 1 set of pairs",
}


def draw():
    """Return the figure."""
    figure, axes = style.new_figure(
        5.0,
        mosaic=[["loss", "next"], ["masking", "masking"]],
        gridspec_kw={"height_ratios": [5, 3]},
    )
    _draw_loss(axes["loss"])
    _draw_next_sentence(axes["next"])
    _draw_masking(axes["masking"])
    for name in ("loss", "next"):
        style.bare(axes[name], y_grid=True)
        axes[name].set(xlabel="training steps", xlim=(400, 3900))
        ticks = range(500, 3001, 500)
        axes[name].set_xticks(ticks, [f"{tick:,}" for tick in ticks], size=8)
    return figure


def _draw_loss(axes):
    color = style.COLORS[style.OURS]
    axes.set_title("Wikipedia: held-out loss, nats")
    wikipedia = numbers.experiment("wikipedia")
    for size, line in (("tiny", "--"), ("mini", "-")):
        unigram, *rows = wikipedia.rows(size)
        steps, losses = zip(*((row[STEPS], row[LOSS]) for row in rows), strict=True)
        axes.plot(steps, losses, f"o{line}", color=color)
        point = steps[-1], losses[-1]
        style.label(axes, f"{size} {losses[-1]:.2f}", point, color)
    level = unigram[LOSS]
    axes.axhline(level, color=style.SOFT, linewidth=1)
    place = 3900, level
    style.label(axes, "unigram baseline", place, style.SOFT, shift=(0, -8), ha="right")
    axes.set_ylim(6.7, 7.22)


def _draw_next_sentence(axes):
    color = style.COLORS[style.OURS]
    axes.set_title("mini: next-sentence accuracy, %")
    unigram, *rows = numbers.experiment("wikipedia").rows("mini")
    steps = [row[STEPS] for row in rows]
    for column, text, line in ((TRAINED, "training", "--"), (NEXT, "held out", "-")):
        values = [row[column] for row in rows]
        axes.plot(steps, values, f"o{line}", color=color)
        style.label(axes, f"{text}\n{values[-1]:.1f}", (steps[-1], values[-1]), color)
    axes.axhline(unigram[NEXT], color=style.SOFT, linewidth=1)
    place = 3900, unigram[NEXT]
    text = 'always "random"'
    style.label(axes, text, place, style.SOFT, shift=(0, -8), ha="right")
    axes.set_ylim(48, 90)


def _draw_masking(axes):
    color = style.COLORS[style.OURS]
    axes.set_title(
        "Dynamic and static masking: held-out loss after 1,000 more steps, nats"
    )
    rows = numbers.experiment("masking").rows("from common weights")
    losses = {row["records"]: row["held-out loss at 1,000 steps"] for row in rows}
    style.bare(axes, x_grid=True)
    style.name_rows(axes, [""] * len(MASKING))
    for y, (name, label) in enumerate(MASKING.items()):
        filling = color if name.startswith("dynamic") else style.PAPER
        axes.plot(
            losses[name], y, "o", color=color, markerfacecolor=filling, markersize=7
        )
        text = f"{losses[name]:.2f}  {label}"
        style.label(axes, text, (losses[name], y), color, shift=(8, 0))
    axes.set_xlim(4.32, 4.82)
