"""PyTorch's files are read exactly, and never executed."""

import collections
import io
import os
import pickle
import random
import zipfile

import ml_dtypes
import numpy as np
import pytest
from huggingface_files import (
    KINDS,
    Call,
    Global,
    Storage,
    in_torch_file,
    pickled,
    tensor,
    whole,
    write_older_torch,
    write_torch,
)

from official_bert.checkpoints import torch_file
from official_bert.errors import UserError

LAYOUTS = {"zip": write_torch, "older": write_older_torch}
FIXTURES = "golden/checkpoint_fixtures/"


@pytest.fixture(params=LAYOUTS)
def write(request, tmp_path):
    """Return a function that writes a value in one layout and returns the path."""

    def write(value, **options):
        path = str(tmp_path / "pytorch_model.bin")
        LAYOUTS[request.param](path, value, **options)
        return path

    return write


def read(path):
    return {name: found.read() for name, found in torch_file.open_tensors(path).items()}


@pytest.mark.parametrize("dtype", KINDS)
def test_types(write, dtype):
    array = np.arange(12).reshape(3, 4)
    array = array.astype(getattr(ml_dtypes, dtype, None) or dtype)
    found = torch_file.open_tensors(write({"a": whole(array), "b": whole(array[:1])}))
    assert list(found) == ["a", "b"]
    assert found["a"].shape == (3, 4) and found["a"].dtype == array.dtype
    np.testing.assert_array_equal(found["a"].read(), array)
    np.testing.assert_array_equal(found["b"].read(), array[:1])
    assert found["a"].read().dtype == array.dtype


def test_views_of_one_storage(write):
    numbers = np.arange(24, dtype=np.float32)
    storage = Storage(numbers)
    found = read(
        write(
            {
                "all": tensor(storage, 0, (24,), (1,)),
                "matrix": tensor(storage, 0, (4, 6), (6, 1)),
                "transposed": tensor(storage, 0, (6, 4), (1, 6)),
                "middle": tensor(storage, 7, (2, 3), (6, 1)),
                "every fifth": tensor(storage, 0, (5,), (5,)),
                "repeated": tensor(storage, 3, (2, 3), (0, 1)),
                "scalar": tensor(storage, 23, (), ()),
                "empty": tensor(storage, 24, (0, 3), (3, 1)),
            }
        )
    )
    matrix = numbers.reshape(4, 6)
    np.testing.assert_array_equal(found["all"], numbers)
    np.testing.assert_array_equal(found["matrix"], matrix)
    np.testing.assert_array_equal(found["transposed"], matrix.T)
    np.testing.assert_array_equal(found["middle"], matrix[1:3, 1:4])
    np.testing.assert_array_equal(found["every fifth"], numbers[::5])
    np.testing.assert_array_equal(found["repeated"], [numbers[3:6]] * 2)
    np.testing.assert_array_equal(found["scalar"], 23)
    assert found["empty"].shape == (0, 3)


def test_other_spellings(write):
    """The first tensor function, a parameter and an attribute dict are read."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    oldest = Call(
        Global("torch._utils", "_rebuild_tensor"), Storage(array), 0, (2, 3), (3, 1)
    )
    parameter = Call(
        Global("torch._utils", "_rebuild_parameter"), whole(array), True, {}
    )
    value = collections.OrderedDict(oldest=oldest, parameter=parameter)
    value._metadata = collections.OrderedDict(version=1)
    for found in read(write(value)).values():
        np.testing.assert_array_equal(found, array)


def test_storage_that_is_a_part_of_another(tmp_path):
    storage = Storage(np.arange(9, dtype=np.float32), view=("part", 4, 5))
    path = str(tmp_path / "pytorch_model.bin")
    write_older_torch(path, {"a": tensor(storage, 1, (2,), (2,))})
    np.testing.assert_array_equal(read(path)["a"], [5, 7])


@pytest.mark.parametrize(
    "module, name, arguments",
    [
        ("os", "system", ("touch {}",)),
        ("posix", "system", ("touch {}",)),
        ("builtins", "eval", ("open({!r}, 'w')",)),
        ("__builtin__", "eval", ("open({!r}, 'w')",)),
        ("builtins", "getattr", ("", "format")),
        ("subprocess", "Popen", (["touch", "{}"],)),
        ("numpy.core.multiarray", "_reconstruct", (Global("numpy", "ndarray"), (0,))),
        ("numpy._core.multiarray", "scalar", ()),
        ("torch.storage", "_load_from_bytes", (b"",)),
        ("torch._utils", "_rebuild_device_tensor_from_numpy", ()),
        ("torch._utils", "__builtins__", ()),
        ("torch", "load", ("{}",)),
        ("collections", "OrderedDict.fromkeys", ()),
        ("official_bert.files", "write_text", ("{}", "")),
        ("transformers.models.bert.modeling_bert", "BertModel", ()),
    ],
)
def test_calls_are_refused(write, tmp_path, module, name, arguments):
    proof = str(tmp_path / "proof")
    arguments = [
        value.format(proof) if isinstance(value, str) else value for value in arguments
    ]
    bad = Call(Global(module, name), *arguments)
    good = whole(np.zeros(3, np.float32))
    for value in (bad, {"a": good, "b": bad}, {"a": bad}, [{"a": {"b": bad}}]):
        path = write(value)
        with pytest.raises(UserError) as caught:
            torch_file.open_tensors(path)
        assert str(caught.value).startswith(
            f"{path} contains {module}.{name}, which is"
        )
    assert not os.path.exists(proof)


def test_a_class_by_name_is_refused(write):
    with pytest.raises(
        UserError, match=r"contains builtins\.object, which is not a tensor"
    ):
        torch_file.open_tensors(write({"a": Global("builtins", "object")}))


@pytest.mark.parametrize(
    "program",
    [
        b"(S'touch proof'\nios\nsystem\n.",  # INST
        b"\x80\x02(cos\nsystem\nS'touch proof'\no.",  # OBJ
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0btouch proof\x85R.",
        b"\x80\x02cos\nsystem\n)\x81.",  # NEWOBJ
    ],
)
def test_other_ways_to_name_a_function(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("a.bin", "w") as archive:
        archive.writestr("archive/data.pkl", program)
    with open("b.bin", "wb") as file:
        file.write(program)
    for path in ("a.bin", "b.bin"):
        with pytest.raises(
            UserError, match=r"contains os\.system, which is not a tensor"
        ):
            torch_file.open_tensors(path)
    assert not os.path.exists("proof")


def test_nothing_that_stays_can_be_changed(tmp_path):
    """A pickle cannot change objects that persist after reading."""
    path = str(tmp_path / "a.bin")
    state = b"(N}X\x04\x00\x00\x00markI1\nstb"  # BUILD with (None, {"mark": 1})
    for name in (b"torch._utils\n_rebuild_tensor_v2", b"collections\nOrderedDict"):
        program = b"\x80\x02}X\x01\x00\x00\x00ac" + name + b"\n" + state + b"s."
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", program)
        with pytest.raises(UserError):
            torch_file.open_tensors(path)
        found = torch_file._Unpickler(path, io.BytesIO()).find_class(
            *name.decode().split("\n")
        )
        assert not hasattr(found, "mark")


@pytest.mark.parametrize(
    "value, message",
    [
        ([1, 2], "contains no named tensors"),
        ("text", "contains no named tensors"),
        ({"epoch": 3}, "contains 'epoch', which is not a tensor"),
        ({"state_dict": {}}, "contains 'state_dict', which is not a tensor"),
        ({3: whole(np.zeros(2, np.float32))}, "contains '3', which is not a tensor"),
    ],
)
def test_something_else_than_tensors(write, value, message):
    with pytest.raises(UserError, match=message):
        torch_file.open_tensors(write(value))


@pytest.mark.parametrize(
    "offset, shape, strides",
    [
        (0, (13,), (1,)),
        (1, (12,), (1,)),
        (0, (2, 2), (9, 3)),
        (12, (), ()),
        (0, (2,), (-1,)),
        (-1, (2,), (1,)),
        (0, (2,), ()),
        (0, (2.0,), (1,)),
        (0, ("2",), (1,)),
        (2**70, (2,), (1,)),
    ],
)
def test_numbers_outside_the_storage(write, offset, shape, strides):
    storage = Storage(np.arange(12, dtype=np.float32))
    with pytest.raises(UserError, match="a lies outside its storage"):
        torch_file.open_tensors(write({"a": tensor(storage, offset, shape, strides)}))


def test_every_truncation(write):
    """Every truncation is reported when the file is opened."""
    tensors = {"a": np.ones((5, 4), np.float32), "b": np.ones(7, np.float16)}
    path = write(in_torch_file(tensors))
    with open(path, "rb") as file:
        data = file.read()
    for kept in range(len(data)):
        with open(path, "wb") as file:
            file.write(data[:kept])
        with pytest.raises(UserError, match=r"pytorch_model\.bin is not a readable"):
            torch_file.open_tensors(path)


def test_random_damage(write):
    """Random damage gives a sentence or numbers, never a traceback."""
    tensors = {"a": np.ones((5, 4), np.float32), "b": np.ones(7, np.float32)}
    path = write(in_torch_file(tensors))
    with open(path, "rb") as file:
        data = file.read()
    generator = random.Random(0)
    refused = 0
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(data))] = generator.randrange(256)
        with open(path, "wb") as file:
            file.write(damaged)
        try:
            read(path)
        except UserError:
            refused += 1
    assert refused > 100


def test_flipped_number_in_an_archive(tmp_path):
    path = str(tmp_path / "pytorch_model.bin")
    write_torch(path, in_torch_file({"a": np.full(9, 7.5, np.float32)}))
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(data.index(np.full(9, 7.5, np.float32).tobytes()) + 6)
        file.write(b"\x00")
    with pytest.raises(UserError, match="not a readable PyTorch file.*CRC"):
        read(path)


def test_big_endian(tmp_path):
    path, value = str(tmp_path / "a.bin"), in_torch_file({"a": np.ones(3, np.float32)})
    write_torch(path, value, byteorder="big")
    with pytest.raises(UserError, match="big-endian machine. Save it again as"):
        torch_file.open_tensors(path)
    write_older_torch(path, value, little_endian=False)
    with pytest.raises(UserError, match="big-endian machine. Save it again as"):
        torch_file.open_tensors(path)


def test_a_storage_that_is_missing_or_short(tmp_path):
    path = str(tmp_path / "a.bin")
    value = in_torch_file({"a": np.ones(3, np.float32)})
    data, _ = pickled(value)
    for numbers in (None, b"1234567"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", data)
            if numbers:
                archive.writestr("archive/data/0", numbers)
        with pytest.raises(UserError, match="not a readable PyTorch file"):
            torch_file.open_tensors(path)


@pytest.mark.parametrize("content", [b"", b"a text\n" * 9, pickle.dumps({"a": 1})])
def test_no_file_of_pytorch(tmp_path, content):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.bin is not a readable PyTorch file"):
        torch_file.open_tensors(str(path))


def test_another_zip_file(tmp_path):
    path = str(tmp_path / "a.bin")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bert_config.json", "{}")
    with pytest.raises(UserError, match="zip file without data.pkl"):
        torch_file.open_tensors(path)


@pytest.mark.comparison
@pytest.mark.parametrize(
    "name, count, words",
    [
        ("hf-allenai-kb-fixture", 47, (18, 12)),
        ("hf-camphr-fixtures/bert-test", 39, (1000, 2)),
        ("hf-camphr-fixtures/ner_bert", 24, (402, 16)),
        ("hf-camphr-fixtures/bert-base-japanese-test", 55, (32006, 16)),
    ],
)
def test_real_files(shared, name, count, words):
    found = torch_file.open_tensors(shared / FIXTURES / name / "pytorch_model.bin")
    assert len(found) == count
    table = next(v for n, v in found.items() if n.endswith("word_embeddings.weight"))
    assert table.shape == words
    # BERT's initialization: a standard deviation of 0.02.
    assert 0.017 < table.read().std() < 0.021
