"""The positions of records, and invalid files."""

import gzip
import struct

import pytest
import tensorflow as tf

from official_bert.data.records import index as record_index
from official_bert.data.records.index import index_files
from official_bert.errors import UserError


def write(path, sizes):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in sizes:
            writer.write(b"x" * size)
    return str(path)


def test_every_chunk_of_every_file(tmp_path, monkeypatch):
    monkeypatch.setattr(record_index, "CHUNK", 3)
    paths = [
        write(tmp_path / "a", [0, 1, 2, 3, 4, 5, 6]),
        write(tmp_path / "b", []),
        write(tmp_path / "c", [5, 5, 5]),
    ]
    index = index_files(paths)
    assert index.files == tuple(paths)
    assert index.file_of.tolist() == [0, 0, 0, 2]
    assert index.first.tolist() == [0, 3, 6, 0]
    assert index.count.tolist() == [3, 3, 1, 3]
    assert index.offset.tolist() == [0, 3 * 16 + 3, 6 * 16 + 15, 0]
    assert index.num_records == 10


@pytest.mark.parametrize("records", [255, 256, 257])
def test_chunks_are_of_256(tmp_path, records):
    index = index_files([write(tmp_path / "a", [7] * records)])
    assert index.num_records == records
    assert max(index.count) == min(records, 256)
    assert len(index.count) == 1 + (records > 256)


@pytest.mark.parametrize("kept", [-1, -5, -16, -20, -30, 1, 8, 15])
def test_truncated_wherever(tmp_path, kept):
    whole = write(tmp_path / "whole", [10, 10, 20])
    data = (tmp_path / "whole").read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(data[:kept])
    record = 0 if kept > 0 else 2
    with pytest.raises(UserError, match=rf"{path} is truncated.* record {record} "):
        index_files([whole, str(path)])


@pytest.mark.parametrize(
    "content",
    [
        b"This is a text, not records.\n" * 50,
        gzip.compress(b"x" * 10000, mtime=0),
        b"\xff" * 100,
        b"\x00" * 13,
        struct.pack("<Q", 2**64 - 1) + b"1234" * 20,
    ],
)
def test_other_files(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a TFRecord file: record 0 extends"):
        index_files([str(path)])


def test_no_records_at_all(tmp_path):
    paths = [write(tmp_path / name, []) for name in "ab"]
    with pytest.raises(UserError, match=f"{paths[0]}, {paths[1]}: no records"):
        index_files(paths)
