"""Speed and memory of record creation, compared with the original's."""

from benchmarks.figures import numbers, style

RECORDS, TEXT, RATE = "mode", "text, MB", "MB/s"
MEMORY = "peak memory of all processes, MB"
PASSES = 5


def draw():
    """Return the figure."""
    rows = [
        row
        for row in numbers.experiment("records").rows("records")
        if row["passes"] == PASSES
    ]
    original = numbers.experiment("instances").rows("instances")[-1]["value"]
    figure, axes = style.new_figure(2.9, mosaic=[["rate", "memory"]])
    names = [f"{row[RECORDS]}, {row[TEXT]} MB".replace("`", "") for row in rows]
    rate, memory = axes["rate"], axes["memory"]
    _draw_bars(
        rate, ["original", *names], [original, *(row[RATE] for row in rows)], "{:.2f}"
    )
    _draw_bars(
        memory, ["original", *names], [None, *(row[MEMORY] for row in rows)], "{:.0f}"
    )
    rate.set_title("Text per second, MB")
    memory.set_title("Peak memory, MB")
    memory.set_yticklabels([])
    style.name_libraries(figure, (style.OURS, style.ORIGINAL))
    return figure


def _draw_bars(axes, names, values, form):
    style.name_rows(axes, names)
    most = max(value for value in values if value)
    for y, value in enumerate(values):
        library = style.OURS if y else style.ORIGINAL
        color = style.COLORS[library]
        if value is None:
            axes.text(0, y, "not measured", va="center", size=8, color=style.SOFT)
            continue
        axes.barh(y, value, height=0.66, color=color)
        style.label(axes, form.format(value), (value, y), color, shift=(4, 0))
    axes.set_xlim(0, 1.15 * most)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
