"""Checks that a cluster lost nothing between its workers.

Runners have been seen to lose data without an error. So bytes of text, documents,
instances, pieces and words are counted where they are sent and where they arrive.
"""

from collections.abc import Callable, Collection

from official_bert.corpus import text_blocks
from official_bert.errors import UserError


def check_complete(num_arrived: int, num_sent: int, what: str) -> None:
    """Raise `UserError` unless all of what was sent has arrived."""
    if num_arrived != num_sent:
        raise UserError(
            f"{num_arrived} of {num_sent} {what} have arrived: the cluster has lost "
            "data between its workers. Run the command again, with another runner if "
            "it happens again."
        )


def check_text_complete(
    num_bytes: int, paths: Collection[str], size_of: Callable[[str], int]
) -> None:
    """Raise `UserError` unless this number of bytes is the text of some files.

    Args:
      num_bytes: of text that arrived.
      paths: the files; a compressed one does not say how much text it holds.
      size_of: function, path -> bytes.
    """
    total = text_blocks.total_bytes(paths, size_of)
    if total is not None:
        check_complete(num_bytes, total, "bytes of text")
