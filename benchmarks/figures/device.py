"""Time, size and memory on a device, compared with ONNX Runtime."""

from benchmarks.figures import numbers, style

FORMATS = ("float32", "int8")
LIBRARIES = (style.OURS, style.ONNX)


def draw():
    """Return the figure."""
    experiment = numbers.experiment("on_device")
    figure, axes = style.new_figure(
        4.6,
        mosaic=[["float32", "int8"], ["size", "memory"]],
        gridspec_kw={"height_ratios": [3, 2]},
    )
    for name in FORMATS:
        rows = [row for row in experiment.rows("latency") if row["format"] == name]
        _draw_latency(axes[name], name, rows)
    memory = experiment.rows("memory")
    one = [row for row in memory if row["file"] != "five lengths"]
    _draw_bars(axes["size"], "File, MB", one, "size, MB")
    _draw_bars(
        *(axes["memory"], "Peak memory for 128 tokens, MB", one),
        "peak resident memory for a row of 128, MB",
    )
    style.name_libraries(figure, LIBRARIES)
    return figure


def _draw_latency(axes, name, rows):
    axes.set_title(f"{name}: ms per text")
    lengths = [row["length"] for row in rows]
    for library in LIBRARIES:
        times = [row[f"{library}, ms"] for row in rows]
        color = style.COLORS[library]
        axes.plot(lengths, times, "o-", color=color)
        style.label(axes, f"{times[-1]:.1f}", (lengths[-1], times[-1]), color)
    axes.set(xlim=(0, 430), ylim=(0, None), xlabel="tokens")
    # The label of 32 would touch that of 64.
    axes.set_xticks(lengths, ["", *map(str, lengths[1:])])
    style.bare(axes, y_grid=True)


def _draw_bars(axes, title, rows, column):
    axes.set_title(title)
    style.name_rows(axes, FORMATS)
    most = max(row[column] for row in rows)
    for row in rows:
        y = FORMATS.index(row["format"])
        number = LIBRARIES.index(row["program"])
        y += 0.36 * (number - 0.5)
        color = style.COLORS[row["program"]]
        axes.barh(y, row[column], height=0.32, color=color)
        style.label(axes, f"{row[column]:.0f}", (row[column], y), color, shift=(4, 0))
    axes.set_xlim(0, 1.12 * most)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
