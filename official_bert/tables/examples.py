"""`Example`: one row of a data set, independent of its file format."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Example:
    """A text or a pair of texts, with its label if it is known.

    Attributes:
      guid: identifies the row in messages: a name such as "dev-12", or the line of
        the file in which the row starts.
      text_a: the text, or the first text of a pair.
      text_b: the second text; None or "" if there is none.
      label: the name of the label; a tuple of distinct names for multi-label tasks;
        a number for regression; None if unknown.
    """

    guid: str | int
    text_a: str
    text_b: str | None = None
    label: str | tuple[str, ...] | float | None = None
