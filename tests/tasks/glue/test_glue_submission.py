"""Prediction files are correct, byte for byte."""

import pathlib
import zipfile

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tasks.glue.submission import (
    missing_submissions,
    write_submission,
    write_test_results,
    zip_submission,
)
from official_bert.tasks.glue.tasks import TASKS


def submitted(folder, name, predictions):
    path = write_submission(str(folder), TASKS[name], predictions)
    return pathlib.Path(path).name, pathlib.Path(path).read_bytes()


def write_all(folder):
    for task in TASKS.values():
        if task.submission:
            write_submission(str(folder), task, np.array([0, 1]))


def test_classes_go_by_their_names(tmp_path):
    assert submitted(tmp_path, "mnli", np.array([2, 0, 1])) == (
        "MNLI-m.tsv",
        b"index\tprediction\n0\tneutral\n1\tcontradiction\n2\tentailment\n",
    )
    assert submitted(tmp_path, "rte", [1, 0]) == (
        "RTE.tsv",
        b"index\tprediction\n0\tnot_entailment\n1\tentailment\n",
    )
    assert submitted(tmp_path, "cola", np.array([1, 0])) == (
        "CoLA.tsv",
        b"index\tprediction\n0\t1\n1\t0\n",
    )


def test_scores_stay_in_range(tmp_path):
    scores = np.array([5.2, -0.25, 3.14159, 2.0], np.float32)
    assert submitted(tmp_path, "sts-b", scores) == (
        "STS-B.tsv",
        b"index\tprediction\n0\t5.000\n1\t0.000\n2\t3.142\n3\t2.000\n",
    )
    with pytest.raises(ValueError, match="sts-b is nan"):
        submitted(tmp_path, "sts-b", [1.0, np.nan])


def test_all_11_files_are_zipped(tmp_path):
    write_all(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    path = zip_submission(str(tmp_path))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(set(names)) == len(names) == 11
        assert set(names) == {path.name for path in tmp_path.glob("*.tsv")}
        for name in names:
            assert archive.read(name) == (tmp_path / name).read_bytes()


def test_nothing_is_zipped_while_a_file_is_missing(tmp_path):
    write_all(tmp_path)
    assert missing_submissions(str(tmp_path)) == []
    for name in ("AX.tsv", "WNLI.tsv"):
        (tmp_path / name).unlink()
    assert missing_submissions(str(tmp_path)) == ["AX.tsv", "WNLI.tsv"]
    with pytest.raises(UserError, match="lacks AX.tsv, WNLI.tsv. The server"):
        zip_submission(str(tmp_path))
    assert not list(tmp_path.glob("*.zip*"))


def test_test_results_are_a_row_of_probabilities_each(tmp_path):
    path = tmp_path / "test_results.tsv"
    # The shortest decimals that are these float32 numbers, as the original's str() has.
    write_test_results(str(path), np.array([[0.1, 0.9], [1e-8, 1]], np.float32))
    assert path.read_bytes() == b"0.1\t0.9\n1e-08\t1.0\n"
    write_test_results(str(path), np.array([[1 / 3, 1 / 3, 1 / 3]]))
    assert path.read_bytes() == b"0.33333334\t0.33333334\t0.33333334\n"


def test_test_results_of_scores_and_of_nothing(tmp_path):
    path = tmp_path / "test_results.tsv"
    for scores in ([2.5, 3.0], [[2.5], [3.0]]):
        write_test_results(str(path), scores)
        assert path.read_bytes() == b"2.5\n3.0\n"
    for nothing in (np.zeros((0, 2)), []):
        write_test_results(str(path), nothing)
        assert path.read_bytes() == b""
