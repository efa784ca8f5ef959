"""Colors, fonts and axes that all figures share: one color per library."""

import matplotlib
from matplotlib.figure import Figure

OURS, KERAS_HUB, PYTORCH = "official_bert", "KerasHub", "PyTorch"
ONNX, TOKENIZERS, ORIGINAL = "ONNX Runtime", "tokenizers (Rust)", "original BERT"
# Distinct for readers with color blindness, and in gray.
COLORS = {
    OURS: "#1764ab",
    KERAS_HUB: "#d1495b",
    PYTORCH: "#e58a00",
    ONNX: "#8a4fb0",
    TOKENIZERS: "#2a9d8f",
    ORIGINAL: "#4d4d4d",
}
INK, SOFT, GRID, PAPER = "#222222", "#6b6b6b", "#e3e3e3", "#ffffff"
NEUTRALS = (INK, SOFT, GRID, PAPER)
# Inches: 700 pixels of the page.
WIDTH = 7.3

_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 8.5,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "ytick.labelcolor": INK,
    "xtick.labelcolor": INK,
    "text.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    # The same bytes for the same numbers.
    "svg.hashsalt": "official_bert",
}


def styled():
    """Return a context in which figures are made and saved."""
    return matplotlib.rc_context(_SETTINGS)


def new_figure(height, **layout):
    """Return (figure, dict of name -> axes).

    Args:
      height: in inches.
      **layout: of `Figure.subplot_mosaic`.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplot_mosaic(**layout)


def bare(axes, *, x_grid=False, y_grid=False):
    """Remove spines and ticks that carry no information; draw grids on request."""
    if x_grid:
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    if y_grid:
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=3 if x_grid else 0)


def name_rows(axes, names):
    """Label the rows 0, 1, … of a horizontal chart, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def label(axes, text, point, color, *, shift=(6, 0), **settings):
    """Write a text next to a point of the data.

    Args:
      axes: of the point.
      text: what to write.
      point: (x, y) of the data.
      color: of the text.
      shift: distance from the point, in points.
      **settings: of `Axes.annotate`.
    """
    settings = {"va": "center", "size": 8.5} | settings
    axes.annotate(
        *(text, point),
        xytext=shift,
        textcoords="offset points",
        color=color,
        **settings,
    )


def name_libraries(figure, names, note=""):
    """Write the libraries in their colors above a figure, below an optional note."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=COLORS[name], label=name)
        for name in names
    ]
    legend = figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=len(names),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.4,
        title=note or None,
        title_fontproperties={"size": 8.5},
        alignment="left",
    )
    legend.get_title().set_color(SOFT)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(color=COLORS[name], weight="bold")
