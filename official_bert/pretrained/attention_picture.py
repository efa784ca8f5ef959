"""Draw attention maps: all layers and heads small, or one layer's heads large."""

import contextlib
import importlib.util
import math
import os
import warnings
from typing import TYPE_CHECKING

from official_bert import files
from official_bert.errors import UserError

if TYPE_CHECKING:
    from official_bert.pretrained.attention import AttentionMaps

ENDINGS = (".png", ".svg", ".pdf")
# Inches: a panel among all, and of few; a token's cell in a large panel, and the
# minimum and maximum size of a large panel.
SMALL, FEW, CELL, LEAST, MOST = 0.72, 1.5, 0.21, 2.2, 9.0
# Most heads spread their attention thinly, so color follows the square root.
GAMMA, TICKS = 0.5, (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)
COLOURS, INK, QUIET = "BuPu", "#222222", "#8a8a8a"
# Tried in this order for characters that the first one lacks.
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans", "Arial")


def check_output(path: str) -> None:
    """Raise `UserError` unless a figure can be drawn and written to that path."""
    if not path.endswith(ENDINGS):
        raise UserError(
            f"--output={path} must end with {', '.join(ENDINGS[:-1])} or "
            f"{ENDINGS[-1]}, which selects the file format."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "Drawing a figure needs matplotlib, which is not installed. Run pip "
            "install 'official-bert[plots]', or give --numbers without --output."
        )


@contextlib.contextmanager
def _fonts():
    """Draw with all of `FONTS` that this machine has."""
    import matplotlib
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    names = [name for name in FONTS if name in installed]
    with matplotlib.rc_context({"font.family": names}):
        yield


@_fonts()
def draw_all(path: str, maps: "AttentionMaps") -> bool:
    """Draw a small panel for each head; each layer is a row of panels.

    Args:
      path: file to write, with one of `ENDINGS`.
      maps: `attention.AttentionMaps`.

    Returns:
      Whether each character of the text could be drawn.
    """
    layers, heads = maps.probs.shape[:2]
    side = min(FEW, max(SMALL, 6.0 / heads))
    figure, grid = _panels(layers, heads, side, gap=0.09)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            _draw(axes, maps, layer, head)
            axes.set(xticks=[], yticks=[])
            if layer == 0:
                axes.set_title(head, fontsize=7, color=QUIET, pad=3)
        row[0].set_ylabel(
            layer, fontsize=7, color=QUIET, rotation=0, va="center", labelpad=8
        )
    text = " ".join(maps.tokens)
    return _finish(figure, path, f"Rows: layers. Columns: heads.  {text}")


@_fonts()
def draw_layer(path: str, maps: "AttentionMaps", layer: int) -> bool:
    """Draw one layer's heads with token labels.

    Args:
      path: file to write, with one of `ENDINGS`.
      maps: `attention.AttentionMaps`.
      layer: its number, from 0.

    Returns:
      Whether each character of the text could be drawn.
    """
    heads, size = maps.probs.shape[1], len(maps.tokens)
    side = min(max(CELL * size, LEAST), MOST)
    points = max(3.0, min(8.0, 72 * side / size * 0.6))
    # A character's width is about 0.6 of its height.
    words = max(map(len, maps.tokens)) * points * 0.6 / 72
    columns = math.ceil(math.sqrt(heads))
    figure, grid = _panels(
        math.ceil(heads / columns), columns, side, gap=0.25 + words, head=0.2
    )
    for head, axes in enumerate(grid.flat):
        if head >= heads:
            axes.remove()
            continue
        _draw(axes, maps, layer, head)
        axes.set_title(f"head {head}", fontsize=9, color=INK, pad=4)
        for axis, turned in ((axes.xaxis, 90), (axes.yaxis, 0)):
            axis.set_ticks(
                range(size),
                maps.tokens,
                fontsize=points,
                color=INK,
                rotation=turned,
                parse_math=False,
            )
        axes.tick_params(length=0, pad=2)
    title = (
        f"Layer {layer}: each row is a token, each column a token that it attends to"
    )
    return _finish(figure, path, title)


def _panels(rows, columns, side, gap, head=0.0):
    """Return (figure, array of axes): square panels, distances in inches."""
    from matplotlib.figure import Figure

    left, top, right, bottom = gap + 0.15, 0.7 + head, 0.85, gap + 0.15
    width = left + columns * (side + gap) - gap + right
    height = top + rows * (side + gap + head) - gap - head + bottom
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(
        left / width,
        bottom / height,
        1 - right / width,
        1 - top / height,
        gap / side,
        (gap + head) / side,
    )
    return figure, figure.subplots(rows, columns, squeeze=False)


def _draw(axes, maps, layer, head):
    """Draw one head's map, with lines where the second text starts."""
    from matplotlib.colors import PowerNorm

    axes.imshow(maps.probs[layer, head], cmap=COLOURS, norm=PowerNorm(GAMMA, 0, 1))
    if 1 in maps.segment_ids:
        border = maps.segment_ids.index(1) - 0.5
        for line in (axes.axhline, axes.axvline):
            line(border, color=QUIET, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set(color="#cccccc", linewidth=0.6)


def _finish(figure, path, title):
    """Add title and color bar, write the file; see `draw_all`."""
    width, height = figure.get_size_inches()
    room = int(width * 72 / 6.5)  # Characters of 11 points.
    if len(title) > room:
        title = title[: room - 1] + "…"
    figure.text(
        0.2 / width, 1 - 0.35 / height, title, fontsize=11, color=INK, parse_math=False
    )
    tall = min(2.4, height - 1.2)
    bar = figure.add_axes(
        (
            1 - 0.65 / width,
            figure.axes[0].get_position().y1 - tall / height,
            0.1 / width,
            tall / height,
        )
    )
    figure.colorbar(figure.axes[0].images[0], cax=bar, ticks=TICKS)
    bar.set_yticklabels([f"{100 * tick:g}%" for tick in TICKS])
    bar.tick_params(labelsize=6.5, length=0, pad=2, colors=INK)
    bar.minorticks_off()
    for spine in bar.spines.values():
        spine.set_visible(False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with files.atomic_path(path) as temporary:
            kind = os.path.splitext(path)[1][1:]
            figure.savefig(temporary, format=kind, dpi=160, facecolor="white")
    return not any("Glyph" in str(warning.message) for warning in caught)
