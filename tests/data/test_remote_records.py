"""Record files in an object store give the same index and batches."""

import dataclasses
import secrets

import numpy as np
import pytest
import record_files
from record_files import MINI_CONFIG

from official_bert import files
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Return (local folder, remote folder) with equal records, more than one chunk."""
    local = tmp_path_factory.mktemp("records")
    for number in range(2):
        record_files.write(
            local / f"{number}.tfrecord", record_files.short(300, seed=number)
        )
    remote = f"ram://records-{secrets.token_hex(4)}"
    for path in local.iterdir():
        files.copy(path, f"{remote}/{path.name}")
    return local, remote


def test_the_index_is_the_same(both):
    local, remote = (
        open_record_set(f"{each}/*.tfrecord", MINI_CONFIG) for each in both
    )
    for field in dataclasses.fields(local.index):
        if field.name != "files":
            np.testing.assert_array_equal(
                getattr(local.index, field.name), getattr(remote.index, field.name)
            )
    assert len(local.index.count) == 4


@pytest.mark.parametrize("first", [0, 31])
def test_batches_are_the_same(both, first):
    batches = [
        open_record_set(f"{each}/*.tfrecord", MINI_CONFIG)
        .training_batches(16, 7, first)
        .take(8)
        for each in both
    ]
    for local, remote in zip(*batches, strict=True):
        assert local.keys() == remote.keys()
        for name, value in local.items():
            np.testing.assert_array_equal(value, remote[name])


def test_a_file_that_was_cut_is_noticed(both):
    with files.opened(f"{both[1]}/0.tfrecord") as source:
        data = source.read()
    path = f"{both[1]}/cut/0.tfrecord"
    with files.atomic_path(path) as temporary, open(temporary, "wb") as output:
        output.write(data[:-5])
    with pytest.raises(UserError, match="record 299 extends beyond the end"):
        open_record_set(path, MINI_CONFIG)
