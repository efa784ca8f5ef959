"""A refused run leaves its output directory as it was before."""

import os

import pytest
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.training.run_directory import opened_directory

STRATEGY = tf.distribute.get_strategy()


def begin(directory):
    """Write the files that a run writes before it has saved anything."""
    (directory / "training.json").write_text("of this run")
    (directory / "metrics.jsonl").write_text("of this run")
    (directory / "events").mkdir(exist_ok=True)
    (directory / "events" / str(len(list((directory / "events").iterdir())))).touch()


def contents(directory):
    return {
        str(path.relative_to(directory)): path.is_file() and path.read_text()
        for path in directory.rglob("*")
    }


def refused(directory, then=lambda: None, error=UserError):
    with pytest.raises(error), opened_directory(STRATEGY, str(directory)):
        begin(directory)
        then()
        raise error("a bad record")


@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_left(tmp_path, exists):
    if exists:
        (tmp_path / "a" / "out").mkdir(parents=True)
    refused(tmp_path / "a" / "out")
    assert set(contents(tmp_path)) == ({"a", "a/out"} if exists else set())


def test_files_of_an_earlier_run_stay(tmp_path):
    begin(tmp_path)
    (tmp_path / "training.json").write_text("of an earlier run")
    (tmp_path / "model.ckpt-3.index").write_text("weights")
    (tmp_path / "model.ckpt-3.data-00000-of-00001").write_text("weights")
    before = contents(tmp_path)
    refused(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["model.ckpt-3.index", "not_finite_batch-3.tfrecord", "run/result.json"]
)
def test_a_run_that_has_saved_something_is_kept(tmp_path, name):
    def save():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    refused(tmp_path, save)
    assert {"training.json", "metrics.jsonl", "events/0", name} <= set(
        contents(tmp_path)
    )


def test_what_somebody_else_has_put_there_stays(tmp_path):
    out = tmp_path / "out"
    refused(out, lambda: (out / "notes.txt").touch())
    assert set(contents(out)) == {"notes.txt"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_other_errors_leave_all_as_it_is(tmp_path, error):
    refused(tmp_path, error=error)
    assert set(contents(tmp_path)) - {".lock"} == {
        "training.json",
        "metrics.jsonl",
        "events",
        "events/0",
    }


def test_a_directory_of_another_process_is_not_touched(tmp_path):
    with opened_directory(STRATEGY, str(tmp_path)):
        begin(tmp_path)
        before = contents(tmp_path)
        with (
            pytest.raises(UserError, match="another process"),
            opened_directory(STRATEGY, str(tmp_path)),
        ):
            pass
        assert contents(tmp_path) == before
    assert os.path.exists(tmp_path / "training.json")
