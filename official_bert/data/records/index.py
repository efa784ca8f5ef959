"""Index the record positions in TFRecord files, for random access.

A TFRecord is its length (8 bytes) with a checksum (4), then the data with a
checksum (4). Walking from length to length finds every record without reading
it. The index stores the position of each `CHUNK`-th record.

Our compressed files are sequences of gzip members with 256 records each
(`tfrecord`), and can be read from each member. Files compressed by other
programs usually have one member: to reach a record, everything before it must
be unpacked.
"""

import concurrent.futures
import dataclasses
import mmap
import os
import zlib
from collections.abc import Sequence

import numpy as np
from absl import logging

from official_bert import files, given_paths
from official_bert.data.records.tfrecord import (
    CHECKSUM,
    FRAME_BYTES,
    HEADER_BYTES,
    LENGTH,
    framed_records,
    is_packed,
)
from official_bert.errors import UserError

# Records that are read consecutively. A window of chunks is shuffled in memory
# (`input_pipeline`), so disks are read in long sequential runs.
CHUNK = 256

# Bytes that may be unpacked and skipped to reach a chunk without a warning.
SLOW = 4 << 20

# Parallel requests to an object store; each takes tens of milliseconds.
REMOTE_READS = 16

# Limit for a record's length. Our records are far shorter; other files may
# contain any number here.
_LONGEST = 1 << 30
_READ_AT_ONCE = 1 << 20
_STREAMED_AT_ONCE = 8 << 20
_GZIP_FORMAT = 31


@dataclasses.dataclass(frozen=True)
class RecordIndex:
    """All chunks of a list of files, in file order.

    Attributes:
      files: the paths.
      file_of: int64 [chunks], index of each chunk's file.
      offset: int64 [chunks], offset of its first byte.
      first: int64 [chunks], number of its first record in the file.
      count: int64 [chunks], number of its records: `CHUNK`, or fewer at a
        file's end.
      skip: int64 [chunks], for compressed files, whose `offset` is that of a
        gzip member: unpacked bytes from there to the first record. None if no
        file is compressed.
      rows: int64 [chunks], batch rows that its records fill; None if each
        record fills one (`packed_rows`).
    """

    files: tuple[str, ...]
    file_of: np.ndarray
    offset: np.ndarray
    first: np.ndarray
    count: np.ndarray
    skip: np.ndarray | None = None
    rows: np.ndarray | None = None

    @property
    def num_records(self) -> int:
        """Return the number of records in all files."""
        return int(self.count.sum())

    @property
    def row_counts(self) -> np.ndarray:
        """Return the number of batch rows that each chunk fills, int64 [chunks]."""
        return self.count if self.rows is None else self.rows

    @property
    def num_rows(self) -> int:
        """Return the number of batch rows that all files fill."""
        return int(self.row_counts.sum())


def index_files(paths: Sequence[str]) -> RecordIndex:
    """Return the `RecordIndex` of TFRecord files, and check that they are complete.

    Args:
      paths: names of TFRecord files; the ending `.gz` means compressed.

    Raises:
      UserError: a file is truncated or not a TFRecord file (the message names
        the record), or no file contains a record.
    """
    rows = []
    for number, (path, chunks) in enumerate(
        zip(paths, _all_chunks(paths), strict=True)
    ):
        rows += [(number, offset, *rest, skip) for offset, skip, *rest in chunks]
        if max((skip for _, skip, *_ in chunks), default=0) > SLOW:
            logging.warning(
                "%s is a single gzip member, so reading any record unpacks "
                "everything before it. Unpack the file (gunzip) to train "
                "faster.",
                path,
            )
    if not rows:
        raise UserError(
            f"{given_paths.named(paths)}: no records found. Create them with "
            "create_pretraining_data.py."
        )
    file_of, offset, first, count, skip = np.array(rows, np.int64).T
    is_plain = not any(map(is_packed, paths))
    return RecordIndex(
        tuple(paths), file_of, offset, first, count, None if is_plain else skip
    )


def read_chunk(index: RecordIndex, chunk: int) -> np.ndarray:
    """Return the records, object [count], of a chunk, for sets with compressed files.

    Args:
      index: `RecordIndex`.
      chunk: the chunk's number in the index.
    """
    path = index.files[index.file_of[chunk]]
    assert index.skip is not None
    place = [int(column[chunk]) for column in (index.offset, index.skip, index.count)]
    return np.array(_read_records(path, *place), object)


def _all_chunks(paths):
    """Return the chunks of each file. Remote files are read in parallel."""
    with concurrent.futures.ThreadPoolExecutor(REMOTE_READS) as pool:
        remote = {p: pool.submit(_chunks_of, p) for p in paths if files.is_remote(p)}
        return [remote[p].result() if p in remote else _chunks_of(p) for p in paths]


def _chunks_of(path):
    if is_packed(path):
        return _packed_chunks(path)
    return _streamed_chunks(path) if files.is_remote(path) else _plain_chunks(path)


def _streamed_chunks(path):
    """Return the same as `_plain_chunks`, by reading the file from start to end."""
    chunks: list[list[int]] = []
    begin, records, rest = 0, 0, b""
    with files.opened(path) as source:
        while data := source.read(_STREAMED_AT_ONCE):
            rest, position = rest + data, 0
            while (end := _end_of_record(rest, position, path)) is not None:
                if records % CHUNK == 0:
                    chunks.append([begin + position, 0, records, 0])
                chunks[-1][3] += 1
                records, position = records + 1, end
            begin, rest = begin + position, rest[position:]
    if rest:
        raise _broken(path, f"record {records}", "extends beyond the end of the file")
    return chunks


def _plain_chunks(path):
    """Return the chunks of an uncompressed file, in the form of `_packed_chunks`."""
    size = os.path.getsize(path)
    if not size:
        return []
    chunks: list[list[int]] = []
    position, records = 0, 0
    with (
        open(path, "rb") as source,
        mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        while position + FRAME_BYTES <= size:
            if records % CHUNK == 0:
                chunks.append([position, 0, records, 0])
            chunks[-1][3] += 1
            position += FRAME_BYTES + LENGTH.unpack_from(data, position)[0]
            records += 1
    if position != size:
        # The last counted record, or a remainder too short for a record.
        broken = records - 1 if position > size else records
        raise UserError(
            f"{path} is truncated, or not a TFRecord file: record {broken} "
            "extends beyond the end of the file. Create it again from text "
            "with create_pretraining_data.py."
        )
    return chunks


def _packed_chunks(path):
    """Return the chunks of a compressed file, a list of lists.

    Each has the offset of a gzip member, the unpacked bytes from its beginning
    to the first record, the number of that record, and the number of records.
    """
    chunks: list[list[int]] = []
    num_records = 0
    member, inside, rest = 0, 0, b""
    is_new = True
    for start, piece in _unpacked_pieces(path):
        if start is not None and not rest:
            member, inside, is_new = start, 0, True
        data, position = rest + piece, 0
        while (end := _end_of_record(data, position, path)) is not None:
            if is_new or chunks[-1][3] == CHUNK:
                chunks.append([member, inside + position, num_records, 0])
            chunks[-1][3] += 1
            num_records += 1
            is_new, position = False, end
        inside, rest = inside + position, data[position:]
    if rest:
        raise _broken(
            path, f"record {num_records}", "extends beyond the end of the file"
        )
    return chunks


def _read_records(path, offset, skip, count):
    """Return `count` records, bytes, after `skip` unpacked bytes from an offset."""
    framed: list[bytes] = []
    data, position = b"", 0
    for _, piece in _unpacked_pieces(path, offset):
        data, position = data[position:] + piece, 0
        if skip:
            left_out = min(skip, len(data))
            data, skip = data[left_out:], skip - left_out
        while (
            not skip
            and len(framed) < count
            and (end := _end_of_record(data, position, path)) is not None
        ):
            framed.append(data[position:end])
            position = end
        if len(framed) == count:
            break
    else:
        raise _broken(path, "a record", "no longer exists")
    records = [record[HEADER_BYTES : -CHECKSUM.size] for record in framed]
    if list(framed_records(records, packed=False)) != framed:
        raise _broken(path, "a record", "has a wrong checksum")
    return records


def _end_of_record(data, position, path):
    """Return the end of the record at a position; None if it is incomplete."""
    if len(data) - position < HEADER_BYTES:
        return None
    (length,) = LENGTH.unpack_from(data, position)
    if length > _LONGEST:
        raise _broken(path, "a record", "is too long")
    end = position + FRAME_BYTES + length
    return end if end <= len(data) else None


def _unpacked_pieces(path, offset=0):
    """Yield (offset of the gzip member that begins here, or None; unpacked bytes)."""
    try:
        with files.opened(path) as source:
            source.seek(offset)
            if is_packed(path):
                yield from _unpack(source)
            else:
                while data := source.read(_READ_AT_ONCE):
                    yield None, data
    except (EOFError, zlib.error) as error:
        raise UserError(
            f"{path} is truncated, or not a gzip file ({error}). Create the file again."
        ) from error


def _unpack(source):
    start, data = source.tell(), source.read(_READ_AT_ONCE)
    while data:
        unpacker = zlib.decompressobj(_GZIP_FORMAT)
        while not unpacker.eof:
            piece = unpacker.decompress(data, _READ_AT_ONCE)
            data = unpacker.unconsumed_tail
            if piece:
                yield start, piece
                start = None
            elif not data and not unpacker.eof:
                data = source.read(_READ_AT_ONCE)
                if not data:
                    raise EOFError("unexpected end of file")
        data = unpacker.unused_data or source.read(_READ_AT_ONCE)
        start = source.tell() - len(data)


def _broken(path, record, what):
    return UserError(
        f"{path} is damaged, or not a TFRecord file: {record} {what}. "
        "Create the file again."
    )
