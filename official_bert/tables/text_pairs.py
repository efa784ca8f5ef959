"""Lines of text that hold one text or a pair of them."""

# What stands between two texts in a line.
SEPARATOR = " ||| "


def split_line(line: str) -> str | tuple[str, str]:
    """Return the text of a line, or the pair of one like "text a ||| text b"."""
    text_a, separator, text_b = line.rpartition(SEPARATOR)
    return (text_a, text_b) if separator else line
