"""A file for MediaPipe has the form that MediaPipe requires, and Python's numbers."""

import os
import zipfile

import numpy as np
import pytest
import tiny_exports
from device_exports import directory_of, horse_directory, horse_set

from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export.tflite import flatbuffer, mediapipe
from official_bert.export.tflite.model import open_device_model
from official_bert.fine_tuning.outputs import compile_model
from official_bert.fine_tuning.tflite_model import interpreter
from official_bert.tasks.predictor import Predictor

# From the enum TensorType.
FLOAT32 = 0
# Kind -> the output that MediaPipe reads.
OUTPUTS = {"label": "probabilities", "vectors": "embedding", "masks": "pooled_output"}


@pytest.fixture(scope="module", params=OUTPUTS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory):
    target = tmp_path_factory.mktemp("mediapipe") / "export"
    model = open_device_model(directory_of(kind), ())
    mediapipe.write(target, model, "float32")
    return target


def test_one_subgraph_with_mediapipe_s_names_and_one_output(kind, folder):
    model = flatbuffer.read((folder / "model.tflite").read_bytes())
    (subgraph,), (signature,) = model.subgraphs, model.signatureDefs
    inputs = {one.name.decode(): one.tensorIndex for one in signature.inputs}
    assert set(inputs) == {"ids", "mask", "segment_ids"}
    assert set(inputs.values()) == set(subgraph.inputs)
    (output,) = signature.outputs
    assert output.name.decode() == OUTPUTS[kind]
    assert list(subgraph.outputs) == [output.tensorIndex]
    assert flatbuffer.dynamic_shapes(model) == []
    for index in subgraph.inputs:
        assert list(subgraph.tensors[index].shape) == [1, max(_lengths(kind))]


def _lengths(kind):
    return open_device_model(directory_of(kind), ()).lengths


def test_only_the_new_metadata_is_there(folder):
    model = flatbuffer.read((folder / "model.tflite").read_bytes())
    (entry,) = (one for one in model.metadata if one.name == b"TFLITE_METADATA")
    content = bytes(model.buffers[entry.buffer].data)
    for name in (b"ids", b"mask", b"segment_ids", b"vocab.txt"):
        assert name in content
    assert b"input_ids" not in content and b"task.json" not in content


def test_numbers_are_python_s(kind, folder):
    model = open_device_model(directory_of(kind), ())
    score, length = compile_model(model.compute), model.lengths[0]
    path = folder / "model.tflite"
    runner = interpreter(path, 1).get_signature_runner("serving_default")
    draw = np.random.default_rng(1)
    for size in (3, length):
        row = np.zeros([3, 1, length], np.int32)
        row[0, 0, :size] = draw.integers(5, 120, size)
        row[1, 0, :size] = 1
        row[2, 0, size // 2 : size] = 1
        names = ("ids", "mask", "segment_ids")
        found = runner(**dict(zip(names, row, strict=True)))
        wanted = score(dict(zip(INPUTS, row, strict=True)))[OUTPUTS[kind]]
        np.testing.assert_allclose(found[OUTPUTS[kind]], wanted, atol=1e-4, rtol=0)


def test_the_folder_and_the_packed_files(kind, folder):
    packed = {"vocab.txt", "tokenizer_config.json"}
    packed |= {"labels.txt"} if kind == "label" else set()
    assert set(os.listdir(folder)) == packed | {"model.tflite", "README.md"}
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        assert set(archive.namelist()) == packed
        for name in packed:
            assert archive.read(name) == (folder / name).read_bytes()


def test_the_readme_names_the_class_and_the_length(kind, folder):
    text = (folder / "README.md").read_text()
    name = mediapipe.CLASSES[OUTPUTS[kind]]
    assert f"text.{name}.create_from_model_path" in text
    assert f"cut after {max(_lengths(kind))} tokens" in text


def test_predict_refuses_the_file(kind, folder):
    with pytest.raises(UserError, match="model.tflite has no signature length_"):
        Predictor(folder)


@pytest.mark.parametrize(
    "kind, message",
    [
        ("label of pairs", "MediaPipe lowercases"),
        ("labels of pairs", "no text task for pairs"),
        ("number", "no text task"),
        ("squad 1.1", "no text task .* end_logits, start_logits"),
        ("tags", "MediaPipe lowercases"),
        ("choice", "no text task"),
    ],
)
def test_other_tasks_are_refused_before_the_conversion(
    tmp_path, monkeypatch, kind, message
):
    monkeypatch.setattr(mediapipe.writer, "write", None)
    model = open_device_model(directory_of(kind), ())
    if kind == "labels of pairs":
        monkeypatch.setattr(mediapipe, "takes_pairs", lambda task: True)
    with pytest.raises(UserError, match=message):
        mediapipe.write(tmp_path / "new", model, "float32")
    assert os.listdir(tmp_path) == []


def test_an_encoder_without_a_pooler_is_refused(tmp_path):
    directory = tiny_exports.write_without_pooler(tmp_path / "model")
    model = open_device_model(directory, ())
    with pytest.raises(UserError, match="outputs sequence_output. .* with a pooler"):
        mediapipe.write(tmp_path / "new", model, "float32")


def test_other_numbers_are_refused(tmp_path, monkeypatch):
    """The last check compares the new file with the converted one."""
    write_file = mediapipe.write_file

    def write_other(path, content, *settings):
        model = flatbuffer.read(content)
        for tensor in model.subgraphs[0].tensors:
            buffer = model.buffers[tensor.buffer]
            is_float = tensor.type == FLOAT32 and buffer.data is not None
            # The bias of the labels.
            if is_float and list(tensor.shape) == [len(tiny_exports.LABELS)]:
                buffer.data = np.arange(3, dtype=np.float32).view(np.uint8)
        description = flatbuffer.Description("", "", "", {})
        write_file(path, flatbuffer.with_metadata(model, description), *settings)

    monkeypatch.setattr(mediapipe, "write_file", write_other)
    model = open_device_model(directory_of("label"), ())
    with pytest.raises(UserError, match="other numbers"):
        mediapipe.write(tmp_path / "new", model, "float32")
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_dev_set_is_scored(tmp_path):
    model = open_device_model(horse_directory(), ())
    report = mediapipe.write(
        tmp_path / "new", model, "int8", None, horse_set(200, 2), 1.0
    )
    assert report.before == 100.0 and report.after >= 99.0
    assert report.size == os.path.getsize(tmp_path / "new" / "model.tflite")
    assert report.scores() in (tmp_path / "new" / "README.md").read_text()
