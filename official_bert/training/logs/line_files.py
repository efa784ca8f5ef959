"""Growing files of lines: appended on a disk, rewritten in an object store."""

import os
import time
from collections.abc import Iterable

from official_bert import files

# Minimum seconds between two rewrites of a remote file. Saving the run rewrites it too.
_REWRITTEN_AFTER = 30.0


class _LocalLines:
    """A local file; each line is written at once."""

    def __init__(self, path, lines):
        self._path = path
        files.write_text(path, "".join(f"{line}\n" for line in lines))

    def add(self, line: str) -> None:
        """Append a line."""
        with open(self._path, "a", encoding="utf-8") as output:
            output.write(f"{line}\n")

    def sync(self) -> None:
        """Write the lines so far to disk, so that they survive a power failure."""
        if os.path.exists(self._path):
            with open(self._path, "a") as output:
                os.fsync(output.fileno())


class _RemoteLines:
    """An object, which is replaced because it cannot be appended to."""

    def __init__(self, path, lines):
        self._path, self._lines = path, list(lines)
        self._write()

    def add(self, line: str) -> None:
        """Add a line; a later `add` or `sync` writes it."""
        self._lines.append(line)
        self._is_written = False
        if time.monotonic() - self._last > _REWRITTEN_AFTER:
            self._write()

    def sync(self) -> None:
        """Write all lines."""
        if not self._is_written:
            self._write()

    def _write(self):
        files.write_text(self._path, "".join(f"{line}\n" for line in self._lines))
        self._last, self._is_written = time.monotonic(), True


def open_lines(
    path: str | os.PathLike[str], lines: Iterable[str]
) -> _LocalLines | _RemoteLines:
    """Return a file with these lines, to which more can be added."""
    return (_RemoteLines if files.is_remote(path) else _LocalLines)(path, lines)
