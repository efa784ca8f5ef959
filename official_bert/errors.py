"""The one exception for mistakes a user can mend, and lists in its messages."""

from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in what the user gave: its message is the whole answer.

    The message is one sentence that says what is wrong, where (file, row,
    flag) and what to do. Run scripts print it and exit with status 1;
    anything else that escapes is a defect of ours and keeps its traceback.
    """


class StoreError(UserError):
    """An object store refuses a request or does not answer.

    Whether the object is whole is unknown: do not treat it as damaged.
    """


def list_some(items: Iterable[str], most: int = 5, separator: str = ", ") -> str:
    """Return the first of some texts and how many more there are, for messages."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return separator.join(items[:most]) + more
