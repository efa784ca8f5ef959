import gzip
import random

import pytest

from official_bert.data.records import index as record_index
from official_bert.data.records import tfrecord
from official_bert.errors import UserError


def _records(number, longest=900):
    rng = random.Random(number)
    return [rng.randbytes(rng.randint(0, longest)) for _ in range(number)]


def _write(path, records):
    tfrecord.write_records(records, path, path.name)
    return str(path)


def _all(index):
    return [
        record
        for chunk in range(len(index.count))
        for record in record_index.read_chunk(index, chunk)
    ]


def test_our_files_are_entered_at_each_chunk(tmp_path):
    records = _records(600)
    path = _write(tmp_path / "a.tfrecord.gz", records)
    index = record_index.index_files([path])
    assert index.count.tolist() == [256, 256, 88]
    assert index.first.tolist() == [0, 256, 512]
    assert index.skip.tolist() == [0, 0, 0]
    assert list(record_index.read_chunk(index, 1)) == records[256:512]
    assert _all(index) == records


@pytest.mark.parametrize("read_at_once", [7, 100, 1 << 20])
@pytest.mark.parametrize("member", [50, 1000, 1 << 20])
def test_members_may_end_anywhere(tmp_path, monkeypatch, member, read_at_once):
    records = _records(40, 99) + [b""] * 3
    framed = b"".join(tfrecord.framed_records(records, packed=False))
    monkeypatch.setattr(record_index, "_READ_AT_ONCE", read_at_once)
    monkeypatch.setattr(record_index, "CHUNK", 10)
    path = tmp_path / "a.gz"
    members = [framed[i : i + member] for i in range(0, len(framed), member)]
    path.write_bytes(b"".join(map(gzip.compress, members)))
    index = record_index.index_files([str(path)])
    assert index.num_records == 43 and _all(index) == records


def test_compressed_and_other_files_go_together(tmp_path):
    records = _records(700)
    paths = [
        _write(tmp_path / "a.tfrecord", records[:300]),
        _write(tmp_path / "b.tfrecord.gz", records[300:]),
        _write(tmp_path / "c.tfrecord.gz", []),
    ]
    index = record_index.index_files(paths)
    assert index.file_of.tolist() == [0, 0, 1, 1]
    assert _all(index) == records


def test_one_large_member_is_said_to_be_slow(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(record_index, "SLOW", 50_000)
    records = _records(300)
    framed = b"".join(tfrecord.framed_records(records, packed=False))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(framed))
    assert _all(record_index.index_files([str(path)])) == records
    assert "a.gz is a single gzip member" in caplog.text


@pytest.mark.parametrize("kept", [5, 30, -1, -9])
def test_a_file_that_was_cut_off_is_an_error(tmp_path, kept):
    path = tmp_path / "a.tfrecord.gz"
    _write(path, _records(50))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match="a.tfrecord.gz is truncated, or not a gzip"):
        record_index.index_files([str(path)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain", "or not a gzip file"),
        (
            gzip.compress(b"This is a text, not records.\n" * 50, mtime=0),
            "not a TFRecord file",
        ),
        (
            gzip.compress(b"\5\0\0\0\0\0\0\0abcd", mtime=0),
            "record 0 extends beyond the end",
        ),
    ],
)
def test_other_files_are_an_error(tmp_path, content, message):
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        record_index.index_files([str(path)])


def test_a_wrong_checksum_is_noticed(tmp_path):
    framed = bytearray(b"".join(tfrecord.framed_records([b"abc"] * 9, False)))
    framed[13] ^= 1
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(framed)))
    index = record_index.index_files([str(path)])
    with pytest.raises(UserError, match="a.gz is damaged.* wrong checksum"):
        record_index.read_chunk(index, 0)
