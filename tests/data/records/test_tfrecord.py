import gzip
import os
import random

import pytest

from official_bert.data.records import tfrecord
from official_bert.errors import UserError


def _records(number):
    rng = random.Random(number)
    lengths = [*range(10), *(rng.randint(0, 3000) for _ in range(number))]
    return [rng.randbytes(length) for length in lengths]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_tensorflow_reads_the_records(tmp_path, name):
    import tensorflow as tf

    records = _records(1500)
    path = str(tmp_path / name)
    size = tfrecord.write_records(records, path, name)
    assert os.path.getsize(path) == size
    kind = "GZIP" if name.endswith(".gz") else ""
    assert list(tf.data.TFRecordDataset(path, kind).as_numpy_iterator()) == records
    tfrecord.write_records(iter(records), path + "2", name)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"{name}2").read_bytes()


def test_a_plain_file_has_the_bytes_of_tensorflow(tmp_path):
    import tensorflow as tf

    records = _records(20)
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in records:
            writer.write(record)
    tfrecord.write_records(records, tmp_path / "ours", "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_a_compressed_file_has_a_member_for_every_256_records():
    framed = list(tfrecord.framed_records([b"x" * 9] * 600, packed=True))
    assert [len(gzip.decompress(member)) // 25 for member in framed] == [256, 256, 88]


def test_an_empty_file_has_no_records(tmp_path):
    assert tfrecord.write_records([], tmp_path / "a", "a") == 0


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="Cannot write out .*disk is full"):
        tfrecord.write_records([b"x"], tmp_path / "none" / "a", "out")
