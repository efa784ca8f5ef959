"""Latency and throughput of the endpoint."""

from benchmarks.figures import numbers, style

LINES = {1: "-", 8: "--", 32: ":"}


def draw():
    """Return the figure."""
    rows = numbers.experiment("serving").rows("latency")
    figure, axes = style.new_figure(3.0, mosaic=[["latency", "throughput"]])
    axes["latency"].set_title("Latency, ms: median, band to 99 %")
    axes["throughput"].set_title("Texts per second")
    for count, line in LINES.items():
        points = [row for row in rows if row["texts per request"] == count]
        words = [row["words per text"] for row in points]
        _draw_latency(axes["latency"], words, points, count, line)
        rates = [row["texts per second"] for row in points]
        _draw_line(axes["throughput"], words, rates, count, line)
    ticks = {
        "latency": (10, 30, 100, 300, 1000),
        "throughput": (30, 100, 300, 1000),
    }
    axes["throughput"].set_ylim(22, 1300)
    for name, own in axes.items():
        own.set(xscale="log", yscale="log", xlabel="words per text")
        own.set_xticks([12, 56, 240], ["12", "56", "240"])
        own.set_yticks(ticks[name], [f"{tick:,}" for tick in ticks[name]])
        own.minorticks_off()
        own.set_xlim(10, 900 if name == "latency" else 300)
        style.bare(own, y_grid=True)
    return figure


def _draw_latency(axes, words, points, count, line):
    middle, last = ([row[f"{name}, ms"] for row in points] for name in ("p50", "p99"))
    axes.fill_between(
        words, middle, last, color=style.COLORS[style.OURS], alpha=0.18, linewidth=0
    )
    _draw_line(axes, words, middle, count, line)


def _draw_line(axes, x, y, count, line):
    color = style.COLORS[style.OURS]
    axes.plot(x, y, f"o{line}", color=color)
    text = f"{count} text{'s' * (count > 1)} per request"
    if y[0] < y[-1]:
        text = text.replace(" per", "\nper")
        style.label(axes, text, (x[-1], y[-1]), color, shift=(7, 0), size=8)
    else:
        # Two lines meet at the right end, so one label is below its line.
        if count == 8:
            place, settings = (x[1], y[1]), {"shift": (-6, -9), "ha": "right"}
        else:
            place, settings = (x[0], y[0]), {"shift": (4, 9)}
        style.label(axes, text, place, color, size=8, **settings)
