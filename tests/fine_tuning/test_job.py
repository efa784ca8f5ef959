"""A model counts as written only if it is complete."""

import json

import pytest

from official_bert.errors import UserError
from official_bert.fine_tuning import job, task_file
from official_bert.tasks.embedding.predictor import EncoderPredictor


@pytest.fixture
def folder(tmp_path):
    """Return a directory with all model files of step 7, empty except for the task."""
    for name in job.MODEL_FILES:
        (tmp_path / name).touch()
    (tmp_path / job.MODEL_FILES[0]).write_text(json.dumps({"global_step": 7}))
    return tmp_path


def test_the_whole_model_of_a_step(folder):
    assert job._holds(str(folder), 7)


def test_that_of_another_step_is_not_it(folder):
    assert not job._holds(str(folder), 8)


@pytest.mark.parametrize("name", job.MODEL_FILES)
def test_a_part_of_it_is_not_it(folder, name):
    (folder / name).unlink()
    assert not job._holds(str(folder), 7)


def test_a_damaged_task_is_not_it(folder):
    (folder / job.MODEL_FILES[0]).write_text('{"global_step": 7')
    assert not job._holds(str(folder), 7)


def test_a_folder_without_a_tflite_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="is not a .tflite file or a folder with one"):
        EncoderPredictor(str(tmp_path))


def test_tuples_of_a_task_are_lists_as_in_the_file():
    """A resumed run then sees no difference from the file."""

    class Task:
        TASK = "toy"

        def to_dict(self):
            return {"labels": ("a", "b")}

    assert task_file.task_content(Task()) == {"task": "toy", "labels": ["a", "b"]}
