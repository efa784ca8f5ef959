"""TFRecord files without TensorFlow, which worker processes need not load.

A record is its length (8 bytes) with a checksum (4), then the data with a
checksum (4): the CRC-32C, rotated and with a constant added, so that a
checksum of data that holds checksums is none by accident.
"""

import functools
import gzip
import itertools
import struct

import numpy as np

from official_bert.errors import UserError

# How a record is framed: its length with a checksum, data, a checksum.
LENGTH = struct.Struct("<Q")
CHECKSUM_BYTES = 4
HEADER_BYTES = LENGTH.size + CHECKSUM_BYTES
FRAME_BYTES = HEADER_BYTES + CHECKSUM_BYTES

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = np.uint32(0xA282EAD8)
_ONES = np.uint32(0xFFFFFFFF)
_PREFIX = (0x641F6454).to_bytes(4, "little")
# Records whose checksums are computed together: their bytes fit into a cache.
_TOGETHER = 1024

# Records of one gzip member. A file of many members is read like any other,
# and can be entered at each of them (`record_index`).
RECORDS_PER_MEMBER = 256
_GZIP_LEVEL = 6


def is_packed(path):
    """Whether a record file is gzip-compressed, which its name says."""
    return path.endswith(".gz")


def write_records(records, path, name):
    """Write records to a TFRecord file.

    Args:
      records: iterable of bytes.
      path: the file.
      name: what it will be called; with `.gz` at its end it is compressed.

    Returns:
      int, bytes of the file.

    Raises:
      UserError: it cannot be written.
    """
    try:
        with open(path, "wb") as file:
            return sum(map(file.write, framed_records(records, is_packed(name))))
    except OSError as error:
        raise UserError(
            f"Cannot write {name} ({error.strerror}): is the disk full? (nothing "
            "half-written was left behind)"
        ) from error


def framed_records(records, packed):
    """Yield the bytes of a TFRecord file.

    Args:
      records: iterable of bytes.
      packed: whether the file is gzip-compressed.

    Returns:
      iterator of bytes. The same records give the same ones.
    """
    return _packed(_framed(records)) if packed else _framed(records)


def _framed(records):
    """Yield each record with its length and checksums."""
    records = iter(records)
    while group := list(itertools.islice(records, _TOGETHER)):
        lengths = [LENGTH.pack(len(record)) for record in group]
        columns = zip(
            lengths, _checksums(lengths), group, _checksums(group), strict=True
        )
        yield from map(b"".join, columns)


def _packed(framed):
    """Yield a gzip member for each `RECORDS_PER_MEMBER` framed records."""
    while group := list(itertools.islice(framed, RECORDS_PER_MEMBER)):
        yield gzip.compress(b"".join(group), _GZIP_LEVEL, mtime=0)


def _checksums(messages):
    """Return the masked checksums of a list of bytes, as bytes."""
    crc = crc32c(messages)
    masked = (crc >> np.uint32(15) | crc << np.uint32(17)) + _MASK_DELTA
    return [number.tobytes() for number in masked.astype("<u4")]


def crc32c(messages):
    """Return the CRC-32C of each of some messages, computed side by side.

    Args:
      messages: non-empty list of bytes.

    Returns:
      uint32 [messages].
    """
    # Zeros in front change nothing while the register is zero. It should begin
    # as ones, which is what the prefix makes of zero.
    width = -(-max(map(len, messages)) // 4) * 4 + len(_PREFIX)
    padded = [(_PREFIX + message).rjust(width, b"\0") for message in messages]
    words = np.frombuffer(b"".join(padded), "<u4").reshape(len(messages), -1)
    low, high = _tables()
    crc = np.zeros(len(messages), np.uint32)
    for word in np.ascontiguousarray(words.T):
        crc ^= word
        crc = low[crc & np.uint32(0xFFFF)] ^ high[crc >> np.uint32(16)]
    return crc ^ _ONES


@functools.cache
def _tables():
    """Return what 16 bits in the register's low and high half become in 4 bytes."""
    numbers = np.arange(1 << 16, dtype=np.uint32)
    return _shifted(numbers), _shifted(numbers << np.uint32(16))


def _shifted(registers):
    """Push 32 zero bits through registers, a uint32 array."""
    for _ in range(32):
        odd = registers & np.uint32(1)
        registers = registers >> np.uint32(1) ^ odd * np.uint32(_POLYNOMIAL)
    return registers
