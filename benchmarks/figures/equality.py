"""Largest differences from the original and from other libraries."""

from benchmarks.figures import numbers, style

LIBRARIES = {
    "original": style.ORIGINAL,
    "KerasHub": style.KERAS_HUB,
    "PyTorch": style.PYTORCH,
}
# Where "identical" stands on the logarithmic axis.
IDENTICAL = 1e-11
FLOAT32_EPSILON = 1.2e-7
SHOWN = (
    "token ids",
    "training instances",
    "outputs, log-probabilities, losses",
    "losses of 6 steps",
    "weights after 6 steps",
    "weights, two replicas",
    "BertBackbone outputs",
    "MiniLM outputs",
    "AntiBERTy hidden states",
    "AntiBERTy probabilities",
    "AntiBERTy float32 .tflite",
    "AntiBERTy served SavedModel",
    "MRPC weights after 50 steps",
    "weights, converted and back",
)


def draw():
    """Return the figure."""
    by_name = {
        row["short"]: row for row in numbers.experiment("equality").rows("differences")
    }
    rows = [by_name[name] for name in SHOWN]
    figure, axes = style.new_figure(4.1, mosaic=[["differences"]])
    own = axes["differences"]
    style.bare(own, x_grid=True)
    own.set(xscale="log")
    ticks = [1e-9, 1e-7, 1e-5, 1e-3]
    labels = ["1e-9", "1e-7", "1e-5", "1e-3"]
    own.set_xticks([IDENTICAL, *ticks], ["identical", *labels])
    own.minorticks_off()
    own.set_xlim(3e-12, 1.5e-3)
    own.axvline(FLOAT32_EPSILON, color=style.SOFT, linewidth=1, linestyle=":")
    own.text(
        *(FLOAT32_EPSILON, -0.75, "float32 rounding of 1.0"),
        ha="center",
        va="bottom",
        size=8,
        color=style.SOFT,
    )
    style.name_rows(own, [row["short"] for row in rows])
    for y, row in enumerate(rows):
        _draw_difference(own, y, row)
    own.set_xlabel("largest difference")
    style.name_libraries(figure, list(LIBRARIES.values()), "Compared with")
    return figure


def _draw_difference(axes, y, row):
    color = style.COLORS[LIBRARIES[row["with"]]]
    value = row["difference"] or IDENTICAL
    marker = "o" if row["difference"] else "D"
    axes.plot(value, y, marker, color=color, markersize=6)
    if not row["difference"]:
        return
    text = f"< {value:.0e}" if row["is_bound"] else f"{value:.1e}"
    style.label(axes, text.replace("e-0", "e-"), (value, y), color, size=8)
