"""Finding, loading and switching versions, without a server."""

import gc
import os
import shutil
import weakref

import numpy as np
import pytest
from serving import saved_models

from official_bert.errors import UserError
from official_bert.serving import model_versions, saved_model
from official_bert.serving.json_tensors import RequestError


@pytest.fixture
def folder(model_folder, tmp_path):
    """Return a folder with version 1 that a test may change."""
    shutil.copytree(model_folder, tmp_path / "m")
    return tmp_path / "m"


def add(folder, version):
    """Add a version, which is a copy of 1."""
    shutil.copytree(folder / "1", folder / "coming")
    (folder / "coming").rename(folder / str(version))


def opened(folder):
    return model_versions.open_model("m", str(folder))


def states(versions):
    return {number: each.state for number, each in versions.statuses.items()}


def score(model):
    texts = np.array([b"good", b"?"], object)
    return saved_model.run(model, "serving_default", {"text": texts})["score"].tolist()


def test_the_newest_number_counts(folder):
    add(folder, 10)
    add(folder, 9)
    for name in ("11.tmp", "x12", "-13", "١٤"):
        shutil.copytree(folder / "1", folder / name)
    (folder / "15").mkdir()
    (folder / "16").write_text("no folder")
    versions = opened(folder)
    assert versions.current.version == 10
    assert states(versions) == {10: "AVAILABLE"}
    assert versions.get("m") is versions.get("m", 10) is versions.current
    for name, version in (("m", 9), ("n", None), ("n", 10)):
        with pytest.raises(RequestError, match="Servable not found") as refused:
            versions.get(name, version)
        assert refused.value.status == 404


def test_a_new_version_takes_over(folder):
    versions = opened(folder)
    first = versions.current
    versions.refresh()
    assert versions.current is first
    add(folder, 2)
    versions.refresh()
    assert versions.current.version == 2
    assert states(versions) == {1: "END", 2: "AVAILABLE"}
    # Holders of the old model can still use it.
    assert score(first) == score(versions.current) == [1.0, 0.0]


@pytest.mark.slow
def test_the_old_version_leaves_with_its_last_request(folder):
    versions = opened(folder)
    request_holds = versions.current
    gone = weakref.ref(request_holds.root)
    add(folder, 2)
    versions.refresh()
    gc.collect()
    assert gone() is not None
    del request_holds
    gc.collect()
    assert gone() is None


def test_another_export_under_the_same_number(folder):
    """This happens if the folder is cleared and exported to again."""
    versions = opened(folder)
    first = versions.current
    shutil.rmtree(folder / "1")
    saved_models.write(str(folder), 1)
    versions.refresh()
    second = versions.current
    assert second is not first and second.version == 1
    assert states(versions) == {1: "AVAILABLE"}
    # A damaged new version does not replace the served one.
    graph = folder / "1" / "saved_model.pb"
    graph.write_bytes(b"no graph")
    versions.refresh()
    assert versions.current is second
    assert states(versions) == {1: "AVAILABLE"} and versions.statuses[1].error


def test_a_damaged_version_changes_nothing(folder, monkeypatch):
    versions = opened(folder)
    shutil.copytree(folder / "1", folder / "2")
    shutil.rmtree(folder / "2" / "variables")
    versions.refresh()
    assert versions.current.version == 1
    assert states(versions) == {1: "AVAILABLE", 2: "END"}
    assert versions.statuses[2].error
    # It is read again only after its files have changed.
    real, calls = saved_model.load, []

    def load(path, version):
        calls.append(version)
        return real(path, version)

    monkeypatch.setattr(saved_model, "load", load)
    versions.refresh()
    assert not calls
    shutil.copytree(folder / "1" / "variables", folder / "2" / "variables")
    versions.refresh()
    assert calls == [2]
    assert versions.current.version == 2
    assert states(versions) == {1: "END", 2: "AVAILABLE"}


def test_a_version_of_which_a_file_was_half_there(folder):
    """A version that is being copied is retried when its size changes."""
    versions = opened(folder)
    add(folder, 2)
    graph = folder / "2" / "saved_model.pb"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:100])
    versions.refresh()
    assert versions.current.version == 1
    graph.write_bytes(whole)
    versions.refresh()
    assert versions.current.version == 2


def test_a_damaged_version_at_the_start(folder, caplog):
    (folder / "2").mkdir()
    (folder / "2" / "saved_model.pb").write_bytes(b"no graph")
    assert opened(folder).current.version == 1
    assert caplog.text.count("Version 2 could not be loaded") == 1


def test_a_version_that_is_taken_away(folder):
    add(folder, 2)
    versions = opened(folder)
    shutil.rmtree(folder / "2")
    versions.refresh()
    assert versions.current.version == 1
    assert states(versions) == {1: "AVAILABLE", 2: "END"}
    # The last version stays in memory and is still served.
    shutil.rmtree(folder)
    versions.refresh()
    assert versions.current.version == 1
    assert score(versions.current) == [1.0, 0.0]


def refused(folder):
    with pytest.raises(UserError) as error:
        opened(folder)
    message = str(error.value)
    assert message.startswith("--model") and message.endswith(".")
    assert "\n" not in message
    return message


def test_nothing_to_serve(folder, tmp_path):
    assert "not a directory" in refused(tmp_path / "gone")
    (tmp_path / "file").touch()
    assert "not a directory" in refused(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert os.path.join("empty", "1", "saved_model.pb") in refused(tmp_path / "empty")
    assert f"for example {folder}." in refused(folder / "1")
    (folder / "1" / "saved_model.pb").write_bytes(b"\xff" * 100)
    assert "version 1" in refused(folder)


def test_a_graph_for_another_purpose(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "1" / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    model.meta_graphs[0].meta_info_def.tags[:] = ["train"]
    path.write_bytes(model.SerializeToString())
    assert "serve" in refused(folder)


def test_the_shape_of_an_input_may_be_unknown(tmp_path):
    import tensorflow as tf

    path = str(tmp_path / "1")
    double = tf.function(lambda x: {"y": 2 * x}, [tf.TensorSpec(None, tf.float32)])
    concrete = double.get_concrete_function()
    tf.saved_model.save(tf.Module(), path, {"serving_default": concrete})
    model = saved_model.load(path, 1)
    specs = saved_model.input_specs(model.signatures["serving_default"])
    assert specs["x"].shape.rank is None
    outputs = saved_model.run(
        model, "serving_default", {"x": np.ones([1, 2, 3], np.float32)}
    )
    assert outputs["y"].shape == (1, 2, 3)


def test_strings_of_no_and_of_no_bytes(versions):
    for texts in ([], [b""], [b"\0", b"a\0"]):
        array = np.array(texts, object)
        outputs = saved_model.run(versions.current, "serving_default", {"text": array})
        assert outputs["echo"].tolist() == texts
    assert versions.name == saved_models.NAME
