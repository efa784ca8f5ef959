"""Check that a cluster lost no data between its workers.

Runners sometimes lose data without an error. Bytes of text, documents,
instances, pieces and words are therefore counted by sender and receiver.
"""

from collections.abc import Callable, Collection

from official_bert.corpus import text_blocks
from official_bert.errors import UserError


def check_complete(num_arrived: int, num_sent: int, what: str) -> None:
    """Raise `UserError` unless everything that was sent has arrived."""
    if num_arrived != num_sent:
        raise UserError(
            f"Only {num_arrived} of {num_sent} {what} have arrived: the cluster "
            "has lost data between its workers. Repeat the command. If this "
            "happens again, use another runner."
        )


def check_text_complete(
    num_bytes: int, paths: Collection[str], size_of: Callable[[str], int]
) -> None:
    """Raise `UserError` unless this number of bytes is the text of some files.

    Args:
      num_bytes: bytes of text that arrived.
      paths: the files; the text size of compressed files is unknown.
      size_of: function, path -> bytes.
    """
    total = text_blocks.total_bytes(paths, size_of)
    if total is not None:
        check_complete(num_bytes, total, "bytes of text")
