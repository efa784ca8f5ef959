"""Where the records of TFRecord files begin, so that any of them is near.

A TFRecord is its length (8 bytes) with a checksum (4), then the data with a
checksum (4); walking from length to length finds every record without
reading it. We remember the position of each `CHUNK`-th one.
"""

import dataclasses
import mmap
import os

import numpy as np
from absl import logging

from official_bert import files
from official_bert.data.records import packed as packed_records
from official_bert.data.records.tfrecord import FRAME_BYTES, LENGTH, is_packed
from official_bert.errors import UserError

# Records that are read one after the other. A window of chunks is shuffled in
# memory (`input_pipeline`), so that disks are read in long runs.
CHUNK = 256

# Bytes that may be unpacked and left out to come to a chunk, without a warning.
SLOW = 4 << 20


@dataclasses.dataclass(frozen=True)
class RecordIndex:
    """All chunks of a list of files, in file order.

    Attributes:
      files: the paths.
      file_of: int64 [chunks], index of each chunk's file.
      offset: int64 [chunks], its first byte.
      first: int64 [chunks], number of its first record within the file.
      count: int64 [chunks], its records: `CHUNK`, or fewer at a file's end.
      skip: int64 [chunks], of a compressed file, where `offset` is that of a
        gzip member: unpacked bytes from there to the first record; None where
        no file is compressed.
    """

    files: tuple[str, ...]
    file_of: np.ndarray
    offset: np.ndarray
    first: np.ndarray
    count: np.ndarray
    skip: np.ndarray | None = None

    @property
    def num_records(self):
        """Records in all files together."""
        return int(self.count.sum())


def index_files(paths):
    """Index TFRecord files, checking that each is whole.

    Args:
      paths: names of TFRecord files, compressed if they end in `.gz`.

    Returns:
      `RecordIndex`.

    Raises:
      UserError: a file is truncated or no TFRecord file (naming the record),
        or no file holds any record.
    """
    rows = []
    for number, path in enumerate(paths):
        if is_packed(path):
            chunks = packed_records.find_chunks(path, CHUNK)
            rows += [(number, offset, *rest, skip) for offset, skip, *rest in chunks]
            _warn_if_slow(path, chunks)
            continue
        offsets, total = _chunk_offsets(path)
        for chunk, offset in enumerate(offsets):
            first = chunk * CHUNK
            rows.append((number, offset, first, min(CHUNK, total - first), 0))
    if not rows:
        raise UserError(
            f"{files.named(paths)}: no records in there; create them with "
            "create_pretraining_data.py."
        )
    *columns, skip = np.array(rows, np.int64).T
    is_plain = not any(map(is_packed, paths))
    return RecordIndex(tuple(paths), *columns, None if is_plain else skip)


def read_chunk(index, chunk):
    """Return the records of a chunk of an index with compressed files.

    Args:
      index: `RecordIndex`.
      chunk: its number there.

    Returns:
      object [count], bytes.
    """
    path = index.files[index.file_of[chunk]]
    place = [int(column[chunk]) for column in (index.offset, index.skip, index.count)]
    return np.array(packed_records.read_chunk(path, *place), object)


def _warn_if_slow(path, chunks):
    """Say so if a file can only be read from its beginning."""
    if max((skip for _, skip, *_ in chunks), default=0) > SLOW:
        logging.warning(
            "%s is one piece of gzip, of which all is unpacked to read any record: "
            "unpack it (gunzip) to train faster.",
            path,
        )


def _chunk_offsets(path):
    """Return ([offset of every CHUNK-th record], number of records)."""
    size = os.path.getsize(path)
    if not size:
        return [], 0
    offsets, position, records = [], 0, 0
    with open(path, "rb") as source, _mapped(source) as data:
        while position < size:
            if records % CHUNK == 0:
                offsets.append(position)
            if position + FRAME_BYTES > size:
                raise _broken(path, records)
            position += FRAME_BYTES + LENGTH.unpack_from(data, position)[0]
            records += 1
    if position != size:
        raise _broken(path, records - 1)
    return offsets, records


def _mapped(source):
    return mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)


def _broken(path, record):
    return UserError(
        f"{path} is truncated, or no TFRecord file (create_pretraining_data.py makes "
        f"those of text): record {record} reaches beyond its end; make the file again."
    )
