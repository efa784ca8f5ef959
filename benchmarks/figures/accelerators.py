"""Compiled training steps compared with KerasHub, from `docs/accelerators.json`."""

from benchmarks.figures import numbers, style
from benchmarks.plans import cases

QUANTITIES = {
    "flops": "operations",
    "main_memory_bytes": "memory traffic",
    "temp_gb": "temporaries",
    "step_seconds": "roofline time",
}


def draw():
    """Return the figure: ours divided by KerasHub's, for each step on one chip."""
    pairs = _pairs(numbers.read(numbers.ACCELERATORS))
    figure, axes = style.new_figure(2.3, mosaic=[list(pairs)])
    for name, (ours, theirs) in pairs.items():
        own = axes[name]
        own.set_title(name)
        style.bare(own, x_grid=True)
        style.name_rows(own, list(QUANTITIES.values()))
        if own is not next(iter(axes.values())):
            own.set_yticklabels([])
        own.axvline(1, color=style.COLORS[style.KERAS_HUB], linewidth=2.5)
        own.set_xlim(0.78, 1.09)
        own.set_xticks([0.8, 0.9, 1], ["0.8", "0.9", "1"])
        for y, quantity in enumerate(QUANTITIES):
            ratio = ours[quantity] / theirs[quantity]
            color = style.COLORS[style.OURS]
            own.plot(ratio, y, "o", color=color, markersize=7)
            side = 1 if ratio > 1 else -1
            style.label(
                *(own, f"{ratio:.2f}", (ratio, y), color),
                shift=(7 * side, 0),
                ha="left" if ratio > 1 else "right",
            )
    style.name_libraries(
        figure,
        (style.OURS, style.KERAS_HUB),
        "Relative to KerasHub on JAX, one chip of v5e, bfloat16; below 1 is less",
    )
    return figure


def _pairs(results):
    """Return step -> (ours, KerasHub's) of the steps that both have."""
    pairs = {}
    for case in cases.all_cases():
        if case.section == cases.ONE_CHIP and case.name in results:
            name = f"{case.model}, {case.phase.replace('x', '×')}"
            pairs.setdefault(name, {})[case.is_peer] = results[case.name]
    return {
        name: (pair[False], pair[True]) for name, pair in pairs.items() if len(pair) > 1
    }
