"""Vectors in a `.npy`: in chunks, resumed after a kill, with bounded memory."""

import json

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.pretrained.vector_files import write_vectors

SOURCE = {"sha256": "abc"}
TEXTS = [f"text {number}" for number in range(23)]


class Model:
    """Makes a vector from the length of a text and its index in the chunk."""

    def __init__(self, stop_after=None, scale=1.0):
        self.calls, self.stop_after, self.scale = [], stop_after, scale

    def __call__(self, texts):
        if self.stop_after is not None and len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        self.calls.append(len(texts))
        rows = [[len(text), index, 0.5] for index, text in enumerate(texts)]
        return self.scale * np.array(rows, np.float64)


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.npy"
    assert write_vectors(path, iter(TEXTS), Model(), SOURCE, chunk=5) == 0
    return path


def test_all_vectors_in_chunks(whole):
    found = np.load(whole)
    assert found.shape == (23, 3) and found.dtype == np.float32
    assert found[:, 1].tolist() == [number % 5 for number in range(23)]
    assert [path.name for path in whole.parent.iterdir()] == ["whole.npy"]
    np.testing.assert_array_equal(np.load(whole, mmap_mode="r")[7], found[7])


def interrupted(path, stop_after=2, **source):
    with pytest.raises(KeyboardInterrupt):
        write_vectors(path, iter(TEXTS), Model(stop_after), SOURCE, chunk=5)
    assert not path.exists()


def test_a_killed_run_continues(whole, tmp_path):
    path = tmp_path / "killed.npy"
    interrupted(path)
    with open(f"{path}.partial", "ab") as partial:
        partial.write(b"half a row")
    model = Model()
    assert write_vectors(path, iter(TEXTS), model, SOURCE, chunk=5) == 10
    # The first call is the probe of the model.
    assert model.calls == [1, 5, 5, 3]
    assert path.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("killed.npy.*"))


def test_it_may_be_killed_at_once(whole, tmp_path):
    path = tmp_path / "killed.npy"
    interrupted(path, stop_after=0)
    assert write_vectors(path, iter(TEXTS), Model(), SOURCE, chunk=5) == 0
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("model", "source"), [(Model(scale=2.0), SOURCE), (Model(), {"sha256": "other"})]
)
def test_another_model_or_other_texts_do_not_continue(tmp_path, model, source):
    path = tmp_path / "killed.npy"
    interrupted(path)
    before = (tmp_path / "killed.npy.partial").read_bytes()
    with pytest.raises(
        UserError, match="killed.npy.partial belongs to an unfinished run"
    ):
        write_vectors(path, iter(TEXTS), model, source, chunk=5)
    assert (tmp_path / "killed.npy.partial").read_bytes() == before


def test_a_stream_begins_again(whole, tmp_path):
    path = tmp_path / "killed.npy"
    interrupted(path)
    assert write_vectors(path, iter(TEXTS), Model(), None, chunk=5) == 0
    assert path.read_bytes() == whole.read_bytes()


def test_texts_that_cannot_be_read_leave_nothing(tmp_path):
    def broken():
        yield from TEXTS[:12]
        raise UserError("Line 13 is damaged.")

    with pytest.raises(UserError, match="Line 13"):
        write_vectors(tmp_path / "a.npy", broken(), Model(), SOURCE, chunk=5)
    assert not list(tmp_path.iterdir())


def test_no_texts(tmp_path):
    write_vectors(tmp_path / "none.npy", [], Model(), None)
    assert np.load(tmp_path / "none.npy").shape == (0, 3)


def test_the_note_says_what_the_rows_are_of(tmp_path):
    path = tmp_path / "killed.npy"
    interrupted(path)
    note = json.loads((tmp_path / "killed.npy.partial.json").read_text())
    assert note["source"] == SOURCE and note["chunk"] == 5 and note["width"] == 3
