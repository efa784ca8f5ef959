"""`Example`: one row of a data set, whatever file it came from."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Example:
    """A text or a pair of texts, with its label if it has one.

    Attributes:
      guid: which row it is, for messages: a name such as "dev-12", or the line
        of its file in which it starts.
      text_a: the text, or the first of two.
      text_b: the second text; None or "" where there is none.
      label: the label's name; a tuple of names, without repetitions, where
        several may hold; a number for a regression task; or None where it is
        not known.
    """

    guid: str | int
    text_a: str
    text_b: str | None = None
    label: str | tuple[str, ...] | float | None = None
