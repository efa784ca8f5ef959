"""Define the exception for user errors, and format lists in its messages."""

from collections.abc import Iterable


class UserError(ValueError):
    """An error that the user can fix; its message is all that the user sees.

    The message states the problem, its location (file, row, flag) and the remedy.
    Commands print it and exit with status 1. Any other exception is a bug of this
    package and keeps its traceback.
    """


class StoreError(UserError):
    """An object store refuses a request or does not respond.

    The state of the object is unknown: do not treat it as damaged.
    """


def list_some(items: Iterable[str], most: int = 5, separator: str = ", ") -> str:
    """Return the first items and the number of others, for messages."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return separator.join(items[:most]) + more
