"""Files of sentence-transformers: reading, writing, and unsupported ones."""

import json

import pytest

from official_bert.checkpoints.huggingface import sentence_files
from official_bert.checkpoints.huggingface.sentence_files import SentenceSettings
from official_bert.errors import UserError


@pytest.fixture
def directory(tmp_path):
    sentence_files.write(tmp_path, SentenceSettings(64, "mean", True), 16)
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 48}')
    return tmp_path


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("normalize", [True, False])
def test_there_and_back(tmp_path, pooling, normalize):
    settings = SentenceSettings(32, pooling, normalize)
    assert not sentence_files.has_files(tmp_path)
    sentence_files.write(tmp_path, settings, 16)
    assert sentence_files.has_files(tmp_path)
    assert sentence_files.read(tmp_path) == settings
    assert (tmp_path / "2_Normalize").is_dir() == normalize


def test_without_a_length_it_is_the_model_s(directory):
    (directory / "sentence_bert_config.json").unlink()
    assert sentence_files.read(directory).max_seq_length == 48


def change(path, **values):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **values}))


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        (
            [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "d")],
            "Dense. Only",
        ),
        ([("Transformer", "")], "lists the modules Transformer. Only"),
        (
            [("Transformer", "0_Transformer"), ("Pooling", "1_Pooling")],
            "the weights are in the folder 0_Transformer",
        ),
        ([], "lists the modules . Only"),
    ],
)
def test_other_modules(directory, modules, words):
    listed = [{"type": f"x.{kind}", "path": path} for kind, path in modules]
    (directory / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(UserError, match=words):
        sentence_files.read(directory)


@pytest.mark.parametrize("content", ["{", "3", '[{"path": ""}]'])
def test_damaged_modules(directory, content):
    (directory / "modules.json").write_text(content)
    with pytest.raises(UserError, match="modules.json is damaged"):
        sentence_files.read(directory)


@pytest.mark.parametrize(
    "modes",
    [
        {"pooling_mode_cls_token": True},
        {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True},
        {"pooling_mode_mean_tokens": False},
    ],
)
def test_other_poolings(directory, modes):
    change(directory / "1_Pooling" / "config.json", **modes)
    with pytest.raises(UserError, match="Only one of"):
        sentence_files.read(directory)


@pytest.mark.parametrize("length", [2, "64", 3.5])
def test_impossible_lengths(directory, length):
    change(directory / "sentence_bert_config.json", max_seq_length=length)
    with pytest.raises(UserError, match="max_seq_length is"):
        sentence_files.read(directory)


def test_a_pooling_that_they_do_not_know(tmp_path):
    with pytest.raises(UserError, match="no pooling 'pooler'"):
        sentence_files.write(tmp_path, SentenceSettings(32, "pooler", True), 16)
    assert not list(tmp_path.iterdir())
