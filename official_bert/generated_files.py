"""Text files that each run generates again, unless a person has edited them."""

import hashlib
import os

from official_bert import files

# The first line, with a hash of everything below it. Files of earlier versions have
# the same words.
_MARK = "By official_bert; each run writes it anew, unless a word was changed: {}"


def write_unless_edited(path: str | os.PathLike[str], text: str, comment: str) -> bool:
    """Write a text below a line that shows later whether somebody edited it.

    Args:
      path: the file. A file without such a line belongs to a person, and stays.
      text: str.
      comment: how the file's format marks a comment, with `{}` for its words.

    Returns:
      whether it was written.
    """
    if files.exists(path) or os.path.lexists(path):
        try:
            with files.opened(path) as file:
                first, _, former_text = file.read().decode().partition("\n")
        except (OSError, UnicodeDecodeError):
            return False
        if first != _first_line(former_text, comment):
            return False
    files.write_text(path, f"{_first_line(text, comment)}\n{text}")
    return True


def _first_line(text, comment):
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return comment.format(_MARK.format(digest))
