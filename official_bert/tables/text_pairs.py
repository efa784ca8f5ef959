"""Parse lines that contain one text or a pair of texts."""

# Separates the two texts of a line.
SEPARATOR = " ||| "


def split_line(line: str) -> str | tuple[str, str]:
    """Return the text of a line, or the pair if it is "text a ||| text b"."""
    text_a, separator, text_b = line.rpartition(SEPARATOR)
    return (text_a, text_b) if separator else line
