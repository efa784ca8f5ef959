"""A name is resolved as a path first, then as a model of one of the sources."""

import pytest

from official_bert.checkpoints import any_format
from official_bert.checkpoints.hub.find import find_model
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert_base_en", "a/b"])
def test_a_path_comes_first(name, tmp_path, monkeypatch, server, cache):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir(parents=True)
    assert find_model(name) == LocalModel(name, name)
    assert find_model(tmp_path / name).path == str(tmp_path / name)
    assert server.requests == []


def test_a_prefix_is_a_path(tmp_path, server, cache):
    (tmp_path / "model-x.index").touch()
    assert find_model(tmp_path / "model-x").path == str(tmp_path / "model-x")


@pytest.mark.parametrize(
    "name",
    [
        "/gone/bert-base-uncased",
        "./bert-base-uncased",
        "../gone",
        "~/bert-base-uncased",
        "gone",
        "a/b/c",
        "there/gone",
        "bert-base.ckpt",
        "bert-base.zip",
        "model.ckpt-100",
        "bert-base/pytorch_model.bin",
        "with space/b",
    ],
)
def test_a_missing_path_is_left_to_the_reader(
    name, tmp_path, monkeypatch, server, cache
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert find_model(name) == LocalModel(name, name)
    with (
        pytest.raises(UserError, match="No checkpoint at"),
        any_format.opened(name),
    ):
        pass
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("hf://a/b/c", "Use hf://owner/name"),
        ("https://example.com/model", "is not a link to a .zip, .tar.gz, .tgz file"),
        ("bert_base_en@v2", "only Hugging Face models have revisions"),
        ("kaggle://keras/bert", "is not a valid model handle"),
        ("nowhere://bucket/model", "cannot read nowhere://"),
        ("bert_base_e", "Did you mean bert_base_en or bert_base_zh"),
    ],
)
def test_a_name_that_is_refused(name, part, server, cache):
    with pytest.raises(UserError) as caught:
        find_model(name)
    assert part in str(caught.value)


def test_tensorflow_is_not_needed_for_hugging_face(server, cache, monkeypatch):
    """Names of Hugging Face models and paths do not import TensorFlow.

    The import is observed here, because a subprocess would take seconds.
    """
    import builtins

    imported, real = [], builtins.__import__

    def watched(name, *args, **options):
        imported.append(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", watched)
    find_model("bert-base-uncased")
    find_model(".")
    assert not any(name.split(".")[0] in ("tensorflow", "keras") for name in imported)
