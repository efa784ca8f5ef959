"""Record files that grow piece by piece, and get their names when complete.

A piece is finished when its facts are written. Its records are then appended,
in order, to `00000.partial`, and deleted. A record file gets its name after its
last piece. At any moment, also after a kill, the files therefore show the
remaining work: a piece without facts must be made, a piece with facts and
records must be appended, and a piece with only facts is already in the record
file.
"""

import errno
import os
import shutil
from collections.abc import Sequence

from official_bert import files
from official_bert.data.records import tfrecord
from official_bert.engines.record_pieces import Piece, PieceFacts

_COPIED_AT_ONCE = 1 << 20


class Shard:
    """One record file, which resumes from the state of an earlier run.

    Args:
      path: its final name.
      folder: folder of its pieces.
      number: number of the shard, from 0.
      pieces: list of its `Piece`s.

    Attributes:
      path: its final name.
      pieces: list of its `Piece`s.
      facts: list of short `PieceFacts`, or None, for each piece.
    """

    def __init__(self, path: str, folder: str, number: int, pieces: list[Piece]):
        self.path = path
        self._partial = os.path.join(folder, f"{number:05d}.partial")
        self.pieces = pieces
        self.facts = [
            PieceFacts.read(piece.facts_path).in_short()
            if os.path.exists(piece.facts_path)
            else None
            for piece in pieces
        ]
        self._appended = 0
        while self._appended < len(pieces) and self._is_in(self._appended):
            self._appended += 1
        if not self._settle():
            self._appended = 0
        # Forget finished pieces whose records are lost; the last first, see
        # `_is_in`.
        for number in reversed(range(self._appended, len(pieces))):
            if self._is_in(number):
                os.remove(pieces[number].facts_path)
                self.facts[number] = None
        self._grow()

    def missing(self) -> list[Piece]:
        """Return the pieces that must be made."""
        return [
            p for p, facts in zip(self.pieces, self.facts, strict=True) if not facts
        ]

    def add(self, facts: PieceFacts) -> None:
        """Add the short facts of a piece that has just been finished."""
        self.facts[facts.number - self.pieces[0].number] = facts
        self._grow()

    def _grow(self):
        """Append all available pieces; after the last one, the file gets its name."""
        while self._appended < len(self.pieces) and self.facts[self._appended]:
            piece = self.pieces[self._appended]
            if not self._appended:
                os.replace(piece.path, self._partial)
            else:
                with (
                    open(piece.path, "rb") as source,
                    open(self._partial, "ab") as target,
                ):
                    shutil.copyfileobj(source, target, _COPIED_AT_ONCE)
                    target.flush()
                    os.fsync(target.fileno())
                os.remove(piece.path)
            self._appended += 1
            if self._appended == len(self.pieces):
                self._finish()

    def _is_in(self, number):
        piece = self.pieces[number]
        return self.facts[number] is not None and not os.path.exists(piece.path)

    def _settle(self):
        """Truncate partly appended data; return whether the rest is complete."""
        size = sum(facts.num_bytes for facts in self.facts[: self._appended] if facts)
        is_whole = self._appended == len(self.pieces)
        if is_whole and not os.path.exists(self._partial):
            return files.is_file(self.path) and files.size(self.path) == size
        if not os.path.exists(self._partial):
            return not self._appended
        if os.path.getsize(self._partial) < size:
            return False
        os.truncate(self._partial, size)
        if is_whole:
            self._finish()
        return True

    def _finish(self):
        if files.is_remote(self.path):
            files.copy(self._partial, self.path)
            os.remove(self._partial)
            return
        try:
            os.replace(self._partial, self.path)
            files.sync_directory(os.path.dirname(self.path))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # The output is on another disk than the pieces.
            files.copy(self._partial, self.path)
            os.remove(self._partial)


def make_shards(
    output_files: Sequence[str], folder: str, pieces_per_shard: int, num_pairs: int
) -> list[Shard]:
    """Return the `Shard`s of record files for a corpus.

    Args:
      output_files: list of paths.
      folder: folder of their pieces, possibly from an earlier run.
      pieces_per_shard: number of pieces per shard.
      num_pairs: number of (pass, document) pairs.
    """
    total = len(output_files) * pieces_per_shard
    shards = []
    for number, path in enumerate(output_files):
        packed = ".gz" if tfrecord.is_packed(path) else ""
        pieces = [
            Piece(
                piece,
                num_pairs * piece // total,
                num_pairs * (piece + 1) // total,
                os.path.join(folder, f"{piece:06d}.records{packed}"),
                os.path.join(folder, f"{piece:06d}.json"),
            )
            for piece in range(
                number * pieces_per_shard, (number + 1) * pieces_per_shard
            )
        ]
        shards.append(Shard(path, folder, number, pieces))
    return shards
