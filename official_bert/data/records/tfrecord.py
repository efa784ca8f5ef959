"""Write TFRecord files without TensorFlow, so worker processes need not load it.

A record is its length (8 bytes) with a checksum (4), then the data with a
checksum (4). The checksum is the CRC-32C, rotated and with a constant added, so
that data that contains checksums still gets meaningful checksums.
"""

import gzip
import itertools
import os
import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from official_bert.errors import UserError

# A record's frame: length and checksum before it, checksum after it.
LENGTH = struct.Struct("<Q")
CHECKSUM = struct.Struct("<I")
HEADER_BYTES = LENGTH.size + CHECKSUM.size
FRAME_BYTES = HEADER_BYTES + CHECKSUM.size

_MASK_DELTA = 0xA282EAD8

# Records per gzip member. A file with many members is read like any other, and
# can also be read from each member (`records.index`).
RECORDS_PER_MEMBER = 256
_GZIP_LEVEL = 6


def is_packed(path: str) -> bool:
    """Return whether a record file is gzip-compressed, according to its name."""
    return path.endswith(".gz")


def write_records(
    records: Iterable[bytes], path: str | os.PathLike[str], name: str
) -> int:
    """Write records to a TFRecord file; return its size in bytes.

    Args:
      records: iterable of bytes.
      path: the file.
      name: the final name; the ending `.gz` means compressed.

    Raises:
      UserError: the file cannot be written.
    """
    try:
        with open(path, "wb") as file:
            return sum(map(file.write, framed_records(records, is_packed(name))))
    except OSError as error:
        raise UserError(
            f"Cannot write {name} ({error.strerror}). Check whether the disk is "
            "full. No partial file was kept."
        ) from error


def framed_records(records: Iterable[bytes], packed: bool) -> Iterator[bytes]:
    """Yield the bytes of a TFRecord file; equal records give equal bytes.

    Args:
      records: iterable of bytes.
      packed: whether the file is gzip-compressed.
    """
    framed = map(_frame, records)
    if not packed:
        yield from framed
    while group := list(itertools.islice(framed, RECORDS_PER_MEMBER)):
        yield gzip.compress(b"".join(group), _GZIP_LEVEL, mtime=0)


def _frame(record):
    """Return a record with its length and checksums."""
    length = LENGTH.pack(len(record))
    return b"".join((length, _checksum(length), record, _checksum(record)))


def _checksum(data):
    """Return the masked CRC-32C of data, as bytes."""
    crc = google_crc32c.value(data)
    rotated = crc >> 15 | crc << 17
    return CHECKSUM.pack((rotated + _MASK_DELTA) % 2**32)
