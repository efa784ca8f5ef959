"""Records in gzip-compressed TFRecord files, any of which is near.

Our own files are gzip members of 256 records each, one after another
(`tfrecord`), and can be entered at each member. Files that others
compressed are mostly one member: to come to a record all before it is unpacked.
"""

import zlib

from official_bert.data.records import tfrecord
from official_bert.data.records.tfrecord import (
    CHECKSUM,
    FRAME_BYTES,
    HEADER_BYTES,
    LENGTH,
    is_packed,
)
from official_bert.errors import UserError

# No record of ours comes near; a file of something else has any number there.
_LONGEST = 1 << 30
_READ_AT_ONCE = 1 << 20
_GZIP_FORMAT = 31


def find_chunks(path, most):
    """Find where the records of a file begin.

    Args:
      path: a compressed TFRecord file.
      most: most records of a chunk.

    Returns:
      list of (offset of a gzip member, bytes from its beginning to the first
      record when unpacked, number of that record, records until the next).

    Raises:
      UserError: the file is not whole, or is no compressed TFRecord file.
    """
    chunks, num_records = [], 0
    member, inside, rest = 0, 0, b""
    is_new = True
    for start, piece in _unpacked_pieces(path):
        if start is not None and not rest:
            member, inside, is_new = start, 0, True
        data, position = rest + piece, 0
        while (end := _end_of_record(data, position, path)) is not None:
            if is_new or chunks[-1][3] == most:
                chunks.append([member, inside + position, num_records, 0])
            chunks[-1][3] += 1
            num_records += 1
            is_new, position = False, end
        inside, rest = inside + position, data[position:]
    if rest:
        raise _broken(path, f"record {num_records}", "reaches beyond its end")
    return [tuple(chunk) for chunk in chunks]


def read_chunk(path, offset, skip, count):
    """Return records of a TFRecord file, compressed or not.

    Args:
      path: the file.
      offset: of a gzip member, or of the records themselves.
      skip: bytes to leave out from there, unpacked.
      count: how many records.

    Returns:
      list of bytes.

    Raises:
      UserError: the file is damaged.
    """
    records, data, position = [], b"", 0
    for _, piece in _unpacked_pieces(path, offset):
        data, position = data[position:] + piece, 0
        if skip:
            left_out = min(skip, len(data))
            data, skip = data[left_out:], skip - left_out
        while len(records) < count and not skip:
            end = _end_of_record(data, position, path)
            if end is None:
                break
            records.append(data[position:end])
            position = end
        if len(records) == count:
            break
    else:
        raise _broken(path, "a record", "is not there any more")
    return _checked(records, path)


def _checked(framed, path):
    """Return the data of framed records, if their checksums are right."""
    records = [record[HEADER_BYTES : -CHECKSUM.size] for record in framed]
    if list(tfrecord.framed_records(records, packed=False)) != framed:
        raise _broken(path, "a record", "has a wrong checksum")
    return records


def _end_of_record(data, position, path):
    """Return the end of the record at a position, None if it is not all there."""
    if len(data) - position < HEADER_BYTES:
        return None
    (length,) = LENGTH.unpack_from(data, position)
    if length > _LONGEST:
        raise _broken(path, "a record", "is too long")
    end = position + FRAME_BYTES + length
    return end if end <= len(data) else None


def _unpacked_pieces(path, offset=0):
    """Yield (offset of the gzip member that begins here or None, unpacked bytes)."""
    try:
        with open(path, "rb") as source:
            source.seek(offset)
            yield from _unpack(source) if is_packed(path) else _pieces(source)
    except (EOFError, zlib.error) as error:
        raise UserError(
            f"{path} is truncated, or no gzip file ({error}); make the file again."
        ) from error


def _pieces(source):
    while data := source.read(_READ_AT_ONCE):
        yield None, data


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
                    raise EOFError("it ends too soon")
        data = unpacker.unused_data or source.read(_READ_AT_ONCE)
        start = source.tell() - len(data)


def _broken(path, record, what):
    return UserError(
        f"{path} is damaged, or no TFRecord file: {record} {what}; make the file again."
    )
