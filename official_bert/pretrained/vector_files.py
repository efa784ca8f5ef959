"""Write the vectors of many texts to a `.npy`, in chunks that a later run can continue.

Until the file is complete, `NAME.partial` holds the rows of whole chunks, and
`NAME.partial.json` records their texts and model.
"""

import itertools
import json
import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from official_bert import files
from official_bert.errors import UserError

# Texts whose vectors are computed together. Chunks do not depend on each other, so a
# resumed run writes the same bytes.
CHUNK = 8192
# Length of a version 1.0 header, with room for any number of rows.
_HEADER_BYTES = 128
_PROBE = "The train left on time, and we had the carriage to ourselves."


def write_vectors(
    path: str | os.PathLike[str],
    texts: Iterable[Any],
    vectors_of: Callable[[list[Any]], np.ndarray],
    source: dict[str, Any] | None,
    chunk: int = CHUNK,
) -> int:
    """Write the vector of each text, float32 [N, D]; continue an earlier run.

    Only one chunk is in memory. The file gets its name when it is complete. The rows of
    an earlier run are kept if `source` and the model are the same.

    Args:
      path: path of the file.
      texts: iterable of texts; those of an earlier run are skipped.
      vectors_of: function: list of texts -> float32 [texts, D].
      source: origin of the texts, as a JSON value. None for texts that cannot be read
        again; the rows of an earlier run are then dropped.
      chunk: number of texts per chunk.

    Returns:
      The number of rows kept from an earlier run.

    Raises:
      UserError: an earlier run had other texts or another model; or the texts cannot be
        read, and the unfinished file is removed.
    """
    path = os.fspath(path)
    if files.is_remote(path):
        # Objects cannot be extended: the file grows on this machine.
        with files.atomic_path(path) as local:
            return write_vectors(local, texts, vectors_of, source, chunk)
    partial, note = f"{path}.partial", f"{path}.partial.json"
    probe = np.asarray(vectors_of([_PROBE]), "<f4")
    width = probe.shape[1]
    made_of = {"source": source, "chunk": chunk, "width": width}
    made_of["model_crc32"] = zlib.crc32(probe.tobytes())
    done = _rows_done(partial, note, made_of)
    if not done:
        files.write_json(note, made_of)
    try:
        _write_rows(partial, texts, vectors_of, done, width, chunk)
    except UserError:
        # Texts that cannot be read leave nothing to continue.
        os.remove(partial)
        os.remove(note)
        raise
    os.replace(partial, path)
    os.remove(note)
    return done


def _write_rows(partial, texts, vectors_of, done, width, chunk):
    count = done
    with open(partial, "r+b" if done else "wb") as out:
        # Rows of an incomplete chunk are computed again.
        out.truncate(_HEADER_BYTES + 4 * width * done)
        out.seek(_HEADER_BYTES + 4 * width * done)
        rest = itertools.islice(iter(texts), done, None)
        while some := list(itertools.islice(rest, chunk)):
            out.write(np.asarray(vectors_of(some), "<f4").tobytes())
            out.flush()
            os.fsync(out.fileno())
            count += len(some)
        out.seek(0)
        _write_header(out, count, width)
        out.flush()
        os.fsync(out.fileno())


def _rows_done(partial, note, made_of):
    """Return the number of rows in whole chunks of an earlier run."""
    if not (os.path.exists(partial) and os.path.exists(note)):
        return 0
    if made_of["source"] is None:
        return 0
    earlier = files.read_json(note, "the note of an unfinished file of vectors")
    if earlier != json.loads(json.dumps(made_of)):
        raise UserError(
            f"{partial} belongs to an unfinished run with other texts, other flags "
            "or another model. Repeat that run, or remove the file to start again."
        )
    size = max(0, os.path.getsize(partial) - _HEADER_BYTES)
    row = 4 * made_of["width"]
    return size // row // made_of["chunk"] * made_of["chunk"]


def _write_header(out, rows, width):
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(out, header)
    assert out.tell() == _HEADER_BYTES
