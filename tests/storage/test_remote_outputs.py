"""What tasks read from and write into an object store; `ram://` stands for it."""

import io
import secrets
import zipfile

import numpy as np
import pytest
import stand_ins

from official_bert import files, object_store
from official_bert.pretrained import vector_files
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue import submission
from official_bert.tasks.glue.tasks import find_task


@pytest.fixture
def folder():
    """An empty folder of its own."""
    return f"ram://test-{secrets.token_hex(4)}/data"


def test_vectors_of_texts(folder, tmp_path):
    def vectors_of(texts):
        return np.array([[len(text), 1] for text in texts], np.float32)

    texts = ["a", "bb", "ccc"]
    for path in (tmp_path / "v.npy", f"{folder}/v.npy"):
        vector_files.write_vectors(path, texts, vectors_of, {"from": "x"}, chunk=2)
    assert object_store.list_directory(folder) == ["v.npy"]
    assert object_store.read(f"{folder}/v.npy") == (tmp_path / "v.npy").read_bytes()


def test_glue_data(folder, tmp_path):
    stand_ins.glue(tmp_path)
    for path in (tmp_path / "glue_data").rglob("*.tsv"):
        files.copy(path, f"{folder}/{path.relative_to(tmp_path)}")
    task = find_task("mrpc")
    for split in ("train", "dev", "test"):
        found = glue_files.read_examples(task, f"{folder}/glue_data/", split)
        local = tmp_path / "glue_data"
        assert found == glue_files.read_examples(task, str(local), split)
        assert found


def test_the_archive_for_glues_server(folder):
    for name in submission.missing_submissions(folder):
        object_store.write(f"{folder}/{name}", b"index\tprediction\n")
    data = object_store.read(submission.zip_submission(folder))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None and len(archive.namelist()) > 8
        assert archive.read(archive.namelist()[0]) == b"index\tprediction\n"
