"""Text files that a run writes anew, unless a person has changed them."""

import hashlib
import os

from official_bert import files

# Of the first line, with a hash of all that follows it.
_MARK = "By official_bert; each run writes it anew, unless a word was changed: {}"


def write_unless_changed(path, text, comment):
    """Write a text below a line that tells whether it was changed since.

    Args:
      path: the file; what is there without such a line is somebody's own.
      text: str.
      comment: how the file's format marks a comment, with `{}` for its words.

    Returns:
      whether it was written.
    """
    if os.path.lexists(path) and not _is_untouched(path, comment):
        return False
    files.write_text(path, f"{_first_line(text, comment)}\n{text}")
    return True


def _first_line(text, comment):
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return comment.format(_MARK.format(digest))


def _is_untouched(path, comment):
    """Tell whether a file is as `write_unless_changed` left it."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            first, _, text = file.read().partition("\n")
    except (OSError, UnicodeDecodeError):
        return False
    return first == _first_line(text, comment)
