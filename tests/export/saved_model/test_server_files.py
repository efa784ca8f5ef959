"""The server's extra files: model names in them, and warm-up requests."""

import functools
import os
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
import tiny_exports
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tiny_exports import open_kind

from official_bert.export import samples
from official_bert.export.saved_model import server_files
from official_bert.export.saved_model.signatures import SERVING


def test_tags_are_labels(tmp_path):
    server_files.write_assets(str(tmp_path), open_kind("tags")[1])
    labels = (tmp_path / "assets" / "labels.txt").read_text().splitlines()
    assert tuple(labels) == tiny_exports.TAGS


@pytest.mark.parametrize("name", ["123", "no", "1e5", "null"])
def test_a_name_stays_a_name_in_the_compose_file(tmp_path, name):
    export = open_kind("label")[1]
    server_files.write_server_files(str(tmp_path), export, name, {"label": "bad"})
    compose = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())
    assert list(compose["services"]) == [name]


def test_warmup_is_left_out_without_its_package(tmp_path, monkeypatch):
    for name in ("tensorflow_serving", "tensorflow_serving.apis"):
        monkeypatch.setitem(sys.modules, name, None)
    export = open_kind("label")[1]
    assert server_files.write_warmup(str(tmp_path), export, "model") is False
    assert os.listdir(tmp_path) == []


# The used part of TF Serving's messages, with its names and field numbers.
MESSAGES = {
    "ModelSpec": [("name", 1, "string"), ("signature_name", 3, "string")],
    "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "map")],
    "PredictLog": [("request", 1, "PredictRequest")],
    "PredictionLog": [("predict_log", 6, "PredictLog")],
}
PACKAGE = "warmup_of_tests"


@functools.cache
def own_messages():
    """Return classes of `MESSAGES`."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3"
    )
    file.dependency.append("tensorflow/core/framework/tensor.proto")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            add_field(message, *field)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = {
        name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
        )
        for name in MESSAGES
    }
    return types.SimpleNamespace(**found)


def add_field(message, name, number, kind):
    """Add a field to a description: a str, a message, or a map to tensors."""
    of = descriptor_pb2.FieldDescriptorProto
    if kind == "string":
        message.field.add(name=name, number=number, label=1, type=of.TYPE_STRING)
        return
    one = message.field.add(name=name, number=number, label=1, type=of.TYPE_MESSAGE)
    one.type_name = f".{PACKAGE}.{kind}"
    if kind == "map":
        one.label, one.type_name = 3, f".{PACKAGE}.{message.name}.InputsEntry"
        entry = message.nested_type.add(name="InputsEntry")
        entry.options.map_entry = True
        add_field(entry, "key", 1, "string")
        add_field(entry, "value", 2, "tensor")
    elif kind == "tensor":
        one.type_name = ".tensorflow.TensorProto"


@pytest.fixture
def serving_api(monkeypatch):
    """Provide TF Serving's messages, or byte-compatible ones if it is not installed."""
    try:
        from tensorflow_serving.apis import prediction_log_pb2  # noqa: F401
    except ImportError:
        apis = types.ModuleType("tensorflow_serving.apis")
        apis.predict_pb2 = apis.prediction_log_pb2 = own_messages()
        package = types.ModuleType("tensorflow_serving")
        monkeypatch.setitem(sys.modules, package.__name__, package)
        monkeypatch.setitem(sys.modules, apis.__name__, apis)
    return own_messages()


@pytest.mark.parametrize("kind", ["label", "choice"])
def test_warmup(tmp_path, serving_api, kind):
    export = open_kind(kind)[1]
    assert server_files.write_warmup(str(tmp_path), export, "né") is True
    path = tmp_path / "assets.extra" / "tf_serving_warmup_requests"
    specs = export.signatures[SERVING].specs
    rows = samples.rows_of(SERVING, specs, export.lengths)
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert len(records) == len(rows)
    for record, row in zip(records, rows, strict=True):
        request = serving_api.PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == "né"
        assert request.model_spec.signature_name == SERVING
        inputs = {n: tf.make_ndarray(v).tolist() for n, v in request.inputs.items()}
        assert set(inputs) == set(specs)
        for name, value in row.items():
            texts = [value] if isinstance(value, str) else value
            assert np.ravel(inputs[name]).tolist() == [text.encode() for text in texts]
            assert np.array(inputs[name]).shape[0] == 1
