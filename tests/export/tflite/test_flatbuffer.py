"""The metadata and packed files of a `.tflite`, and its content."""

import ast
import re
import shutil
import stat
import subprocess
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import number_types
from flatbuffers.table import Table
from places import ROOT
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils
from tflite_sizes import constant_bytes

from official_bert.errors import UserError
from official_bert.export.tflite import flatbuffer
from official_bert.fine_tuning import tflite_model

LENGTHS = (4, 8)
WIDTH, PIECES = 64, 500
# Bytes per number in the two large matrices.
SIZES = {"float32": 4, "float16": 2, "int8": 1}
FILES = {
    "vocab.txt": "[PAD]\n[UNK]\nüber\n".encode(),
    "labels.txt": b"no\nyes\n",
    "task.json": b'{"task": "cola"}\n',
}
DESCRIPTION = flatbuffer.Description(
    name="bert: cola",
    text="Is it a sentence? Ja, größer.",
    version="7",
    tensors={"input_ids": "ids of pieces", "probabilities": "of the labels"},
    vocabulary="vocab.txt",
    labels="labels.txt",
    labeled=("probabilities",),
    others={"task.json": "the task"},
)


class Tiny(tf.Module):
    """An embedding and two layers, with one signature per length."""

    def __init__(self):
        super().__init__()
        draw = tf.random.Generator.from_seed(1)
        self.table = tf.Variable(draw.normal([PIECES, WIDTH]))
        self.kernel = tf.Variable(draw.normal([WIDTH, WIDTH]) / 8)
        self.output = tf.Variable(draw.normal([WIDTH, 2]))

    def answer(self, length):
        spec = tf.TensorSpec([1, length], tf.int32, "input_ids")

        @tf.function(input_signature=[spec], autograph=False)
        def answer(input_ids):
            vectors = tf.tensordot(tf.gather(self.table, input_ids), self.kernel, 1)
            hidden = tf.reduce_mean(tf.nn.gelu(vectors, approximate=True), 1)
            probabilities = tf.nn.softmax(hidden @ self.output)
            return {"hidden": hidden, "probabilities": probabilities}

        return answer


def ids(length):
    return np.arange(3, 3 + length, dtype=np.int32)[None] * 7


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("tiny"))
    model = Tiny()
    signatures = {f"length_{length}": model.answer(length) for length in LENGTHS}
    tf.saved_model.save(model, folder, signatures=signatures)
    return folder


def converted(folder, kind):
    keys = [f"length_{length}" for length in LENGTHS]
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=keys)
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


@pytest.fixture(scope="session")
def model(saved):
    return converted(saved, "float32")


@pytest.fixture
def path(model, tmp_path):
    """Return a file of the model with metadata and files."""
    path = tmp_path / "model.tflite"
    path.write_bytes(described(model))
    flatbuffer.append_files(path, FILES)
    return path


def function_as_tflite(function, *specs, select=False):
    traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced], tf.Module())
    if select:
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS,
            tf.lite.OpsSet.SELECT_TF_OPS,
        ]
    return converter.convert()


def answers(**model):
    interpreter = tf.lite.Interpreter(**model)
    return [
        interpreter.get_signature_runner(f"length_{length}")(input_ids=ids(length))[
            "probabilities"
        ]
        for length in LENGTHS
    ]


# An independent reader of the metadata, with slots and kinds of its schema.


def text(table, slot):
    field = table.Offset(4 + 2 * slot)
    return table.String(table.Pos + field).decode() if field else None


def number(table, slot):
    field = table.Offset(4 + 2 * slot)
    return table.Get(number_types.Uint8Flags, table.Pos + field) if field else 0


def tables(table, slot):
    field = table.Offset(4 + 2 * slot)
    if not field:
        return []
    start, size = table.Vector(field), table.VectorLen(field)
    places = [table.Indirect(start + 4 * i) for i in range(size)]
    return [Table(table.Bytes, place) for place in places]


def file_of(table):
    return text(table, 0), number(table, 2)


def metadata_names(model):
    model = schema.Model.GetRootAs(model)
    return [model.Metadata(i).Name() for i in range(model.MetadataLength())]


def metadata(model):
    root = schema.Model.GetRootAs(model)
    buffer = metadata_names(model).index(b"TFLITE_METADATA")
    buffer = root.Buffers(root.Metadata(buffer).Buffer())
    content = buffer.DataAsNumpy().tobytes()
    assert content[4:8] == b"M001"
    return Table(content, int.from_bytes(content[:4], "little"))


def described(model, description=DESCRIPTION):
    return flatbuffer.with_metadata(flatbuffer.read(model), description)


def operators(model):
    return [
        flatbuffer_utils.opcode_to_name(model, number)
        for number in range(len(model.operatorCodes))
    ]


def test_no_custom_operators(model):
    assert {"GATHER", "SOFTMAX"} < set(operators(flatbuffer.read(model)))
    assert flatbuffer.custom_operators(flatbuffer.read(model)) == []


def test_flex_operators_are_custom_ones():
    spec = tf.TensorSpec([3, 3], tf.float32)
    model = function_as_tflite(
        lambda x: tf.linalg.cholesky(x) + tf.nn.softmax(x), spec, select=True
    )
    model = flatbuffer.read(model)
    assert flatbuffer.custom_operators(model) == ["FlexCholesky"]
    assert set(operators(model)) >= {"CUSTOM", "SOFTMAX"}


def test_dynamic_shapes(model):
    assert flatbuffer.dynamic_shapes(flatbuffer.read(model)) == []
    dynamic = function_as_tflite(tf.nn.softmax, tf.TensorSpec([None, 3], tf.float32))
    found = flatbuffer.dynamic_shapes(flatbuffer.read(dynamic))
    assert len(found) == 2 and all("[-1, 3]" in each for each in found)


@pytest.mark.parametrize("kind", SIZES)
def test_signatures_share_their_weights(saved, kind):
    total, repeated = constant_bytes(converted(saved, kind))
    weights = (PIECES + WIDTH) * WIDTH * SIZES[kind]
    assert weights <= total < 1.2 * weights + 2000
    assert repeated < 0.05 * total


def test_repeated_constants_are_seen(model):
    total, _ = constant_bytes(model)
    twice = flatbuffer_utils.read_model_from_bytearray(bytearray(model))
    size = PIECES * WIDTH * 4
    twice.buffers += [
        b for b in twice.buffers if b.data is not None and len(b.data) == size
    ]
    twice = flatbuffer_utils.convert_object_to_bytearray(twice)
    assert constant_bytes(twice) == (total + size, size)


def test_metadata_of_the_model(model):
    found = metadata(described(model))
    assert [text(found, slot) for slot in range(3)] == [
        DESCRIPTION.name,
        DESCRIPTION.text,
        DESCRIPTION.version,
    ]
    assert [file_of(each) for each in tables(found, 6)] == [("task.json", 0)]
    assert text(tables(found, 6)[0], 1) == "the task"
    assert text(found, 7) == "1.1.0"


def test_metadata_of_the_signatures(model):
    subgraphs = tables(metadata(described(model)), 3)
    assert sorted(text(each, 0) for each in subgraphs) == ["length_4", "length_8"]
    for subgraph in subgraphs:
        (taken,) = tables(subgraph, 2)
        assert (text(taken, 0), text(taken, 1)) == ("input_ids", "ids of pieces")
        given = {text(each, 0): each for each in tables(subgraph, 3)}
        assert sorted(given) == ["hidden", "probabilities"]
        assert text(given["hidden"], 1) is None
        assert text(given["probabilities"], 1) == "of the labels"
        labels = {name: tables(each, 6) for name, each in given.items()}
        assert [file_of(each) for each in labels["probabilities"]] == [
            ("labels.txt", 2)
        ]
        assert labels["hidden"] == tables(taken, 6) == []
        (unit,) = tables(subgraph, 5)
        assert number(unit, 0) == 4
        options = Table(unit.Bytes, unit.Indirect(unit.Pos + unit.Offset(6)))
        assert [file_of(each) for each in tables(options, 0)] == [("vocab.txt", 5)]


def test_metadata_has_the_order_of_the_tensors(model):
    content = described(model)
    found = tables(metadata(content), 3)
    root = schema.Model.GetRootAs(content)
    for i in range(root.SignatureDefsLength()):
        signature = root.SignatureDefs(i)
        outputs = [signature.Outputs(j) for j in range(signature.OutputsLength())]
        names = {each.TensorIndex(): each.Name().decode() for each in outputs}
        place = signature.SubgraphIndex()
        order = [names[number] for number in root.Subgraphs(place).OutputsAsNumpy()]
        assert [text(each, 0) for each in tables(found[place], 3)] == order
        assert text(found[place], 0) == signature.SignatureKey().decode()
    assert len(found) == len(LENGTHS)


def test_metadata_without_files(model):
    plain = flatbuffer.Description("bert", "", "1", {})
    found = metadata(described(model, plain))
    assert (text(found, 0), text(found, 7)) == ("bert", "1.0.0")
    for subgraph in tables(found, 3):
        assert tables(subgraph, 5) == []
        assert not any(tables(each, 6) for each in tables(subgraph, 3))


def test_metadata_leaves_the_model_as_it_was(model):
    content = described(model)
    np.testing.assert_array_equal(
        answers(model_content=content), answers(model_content=model)
    )
    assert operators(flatbuffer.read(content)) == operators(flatbuffer.read(model))
    kept = [name for name in metadata_names(content) if name != b"TFLITE_METADATA"]
    assert kept == metadata_names(model) and kept


def test_all_constants_stay_as_they_are(model):
    old = flatbuffer_utils.convert_bytearray_to_object(model)
    new = flatbuffer_utils.convert_bytearray_to_object(described(model))
    assert (new.version, new.description) == (old.version, old.description)
    assert len(new.buffers) == len(old.buffers) + 1
    for before, after in zip(old.buffers, new.buffers, strict=False):
        np.testing.assert_array_equal(before.data, after.data)


def test_new_metadata_goes_in_place_of_old(model):
    content = described(
        described(model), flatbuffer.Description("another", "", "1", {})
    )
    assert metadata_names(content).count(b"TFLITE_METADATA") == 1
    assert text(metadata(content), 0) == "another"
    np.testing.assert_array_equal(
        answers(model_content=content), answers(model_content=model)
    )


def test_files_come_back_and_the_model_answers_the_same(model, path):
    found = tflite_model.read_files(path)
    assert found == FILES and list(found) == list(FILES)
    np.testing.assert_array_equal(
        answers(model_path=str(path)), answers(model_content=model)
    )


def test_files_are_as_phones_read_them(path):
    with zipfile.ZipFile(path) as packed:
        assert packed.testzip() is None
        for entry in packed.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            assert stat.S_IMODE(entry.external_attr >> 16) == 0o644
    # Android's reader supports no trailing comment and no split archive.
    assert path.read_bytes()[-22:-14] == b"PK\5\6\0\0\0\0"
    if shutil.which("unzip"):
        listed = subprocess.run(["unzip", "-Z1", path], capture_output=True, text=True)
        assert (listed.stdout.split(), listed.stderr) == (list(FILES), "")


def test_the_same_files_give_the_same_bytes(model, path, tmp_path):
    again = tmp_path / "again.tflite"
    again.write_bytes(described(model))
    flatbuffer.append_files(again, FILES)
    assert again.read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as packed:
        assert {entry.date_time[:3] for entry in packed.infolist()} == {(1980, 1, 1)}


def test_files_are_packed_once(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="already contains packed files"):
        flatbuffer.append_files(path, {"more.txt": b""})
    assert path.read_bytes() == before


def refusal(path):
    with pytest.raises(UserError) as caught:
        tflite_model.read_files(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_what_is_no_model_is_refused(tmp_path):
    other = tmp_path / "model.tflite"
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("vocab.txt", "[PAD]")
    assert "is not a TFLite model" in refusal(other)
    other.write_bytes(b"")
    assert "is not a TFLite model" in refusal(other)
    assert "No such file" in refusal(tmp_path / "none.tflite")
    assert "Cannot read" in refusal(tmp_path)


def test_a_model_without_its_files_is_refused(model, path, tmp_path):
    plain = tmp_path / "plain.tflite"
    plain.write_bytes(model)
    assert "contains no files" in refusal(plain)
    plain.write_bytes(path.read_bytes()[:-5])
    assert "contains no files" in refusal(plain)


def test_a_damaged_file_is_refused(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(b"no\nyes\n", b"no\nyet\n"))
    assert "Bad CRC-32" in refusal(path)


def test_one_module_uses_the_converter():
    """A replacement of `tf.lite` changes one file, and the fallback interpreter."""
    pattern = re.compile(r"\btf\.lite\b|\btensorflow\.lite\b")
    package = ROOT / "official_bert"
    users = {
        str(path.relative_to(package)): pattern.findall(code)
        for path in package.rglob("*.py")
        if pattern.search(code := _without_comments(path))
    }
    assert set(users) == {"export/tflite/converter.py", "fine_tuning/tflite_model.py"}
    assert users["fine_tuning/tflite_model.py"] == ["tf.lite"]


def _without_comments(path):
    """Return the code of a module without docstrings and comments."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)
