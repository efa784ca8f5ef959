"""The C program of `make runtimes` notices every difference.

It runs with the libraries of the installed TensorFlow.
"""

import dataclasses
import shutil

import c_program
import numpy as np
import pytest
import runtimes

from official_bert.errors import UserError
from official_bert.export.saved_model.signatures import EXAMPLES, SERVING, TOKENS

KIND = "label of pairs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed"),
    pytest.mark.skipif(
        not c_program.installed_package(), reason="TensorFlow has no C library here"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "run"
    return c_program.build(c_program.installed_package(), path)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """Return (the folder of the version, its cases)."""
    return runtimes.write_export(KIND, tmp_path_factory.mktemp("exports"))


def test_outputs_are_python_s_in_each_environment(program, export):
    path, cases = export
    assert [one.signature for one in cases] == [SERVING, TOKENS, EXAMPLES]
    english = {}, runtimes.ENGLISH
    turkish = {"LC_ALL": runtimes.LOCALE}, runtimes.TURKISH
    for environment in (english, turkish):
        assert runtimes.compare(program, path, cases, *environment) < 1e-5


def test_a_wrong_locale_is_noticed(program, export):
    with pytest.raises(UserError, match="wrong locale"):
        runtimes.compare(program, *export, {}, runtimes.TURKISH)


def other(wanted):
    """Return outputs that differ from others in one element of each array."""
    changed = {name: value.copy() for name, value in wanted.items()}
    for value in changed.values():
        if value.dtype == object:
            value.reshape(-1)[-1] = b"other"
        else:
            value.reshape(-1)[-1] += 1e-3
    return changed


@pytest.mark.parametrize("name", ["label", "probabilities"])
def test_one_other_value_is_noticed(program, export, name):
    path, cases = export
    case = next(one for one in cases if one.signature == SERVING)
    wanted = case.wanted | {name: other(case.wanted)[name]}
    changed = [dataclasses.replace(case, wanted=wanted)]
    with pytest.raises(UserError, match=f"another {name} than Python"):
        runtimes.compare(program, path, changed, {}, runtimes.ENGLISH)


def test_another_shape_is_noticed(program, export):
    path, (case, *_) = export
    wanted = {name: value[:-1] for name, value in case.wanted.items()}
    changed = [dataclasses.replace(case, wanted=wanted)]
    with pytest.raises(UserError, match="has the shape"):
        runtimes.compare(program, path, changed, {}, runtimes.ENGLISH)


def test_ids_of_a_wrong_shape_fail(program, export):
    """The graph refuses them; the program ends with the reason."""
    path, cases = export
    case = next(one for one in cases if one.signature == TOKENS)
    inputs = case.inputs | {"input_mask": np.ones([1, 3], int).tolist()}
    changed = [dataclasses.replace(case, inputs=inputs)]
    with pytest.raises(UserError, match="Cannot run the export.*shape of input_ids"):
        runtimes.compare(program, path, changed, {}, runtimes.ENGLISH)


def test_an_export_without_variables_fails(program, tmp_path, export):
    path, cases = export
    (tmp_path / "1").mkdir()
    shutil.copy(f"{path}/saved_model.pb", tmp_path / "1")
    with pytest.raises(UserError, match="Cannot run the export"):
        runtimes.compare(program, tmp_path / "1", cases, {}, runtimes.ENGLISH)


def test_only_a_wheel_s_libraries_and_headers_are_unpacked(tmp_path):
    names = ["tensorflow/libtensorflow_cc.so.2", "tensorflow/python/a.py"]
    names += ["tensorflow/include/tensorflow/c/c_api.h", "tensorflow/include/x/b.h"]
    with runtimes.zipfile.ZipFile(tmp_path / "a.whl", "w") as packed:
        for name in names:
            packed.writestr(name, "x")
    runtimes._unpack(tmp_path / "a.whl", tmp_path / "unpacked")
    files = (one for one in (tmp_path / "unpacked").rglob("*") if one.is_file())
    found = {str(one.relative_to(tmp_path / "unpacked")) for one in files}
    assert found == {names[0], names[2]}
