"""Numbers as cells of a table in Markdown."""

from benchmarks.figures.fine_tuning import spread

# Columns with smaller numbers have exponents.
SMALLEST = 1e-3


def line(cells):
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def spread_text(scores, digits=1):
    """Return "mean ± sample standard deviation" of scores; empty without scores."""
    if not scores:
        return ""
    mean, deviation = spread(scores)
    deviation_text = f" ± {deviation:.{digits}f}" if len(scores) > 1 else ""
    return f"{mean:.{digits}f}{deviation_text}"


def column_texts(table):
    """Return the texts of a table's cells, a list for each column.

    Args:
      table: dict with `columns`, `rows`, and `formats`, a dict of column -> format.
    """
    formats = table.get("formats", {})
    columns = zip(*table["rows"], strict=True)
    return [
        _texts(values, formats.get(name))
        for name, values in zip(table["columns"], columns, strict=True)
    ]


def _texts(values, form):
    numbers = [one for value in values for one in _floats(value)]
    if form is None and any(0 < abs(number) < SMALLEST for number in numbers):
        return [_short(value) for value in values]
    decimals = max((len(repr(one).partition(".")[2]) for one in numbers), default=0)
    return [_text(value, form or f",.{decimals}f") for value in values]


def _floats(value):
    """Return the floats in a cell: one, mean and deviation, or none."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, float)]


def _short(value):
    if not isinstance(value, float):
        return _text(value, "")
    text = f"{value:g}" if abs(value) >= 1 else f"{value:.1e}"
    return text.replace("e-0", "e-")


def _text(value, form):
    if value is None:
        return ""
    if isinstance(value, list):
        return " ± ".join(f"{one:{form}}" for one in value)
    if isinstance(value, float):
        return f"{value:{form}}"
    return f"{value:,}" if isinstance(value, int) else value
