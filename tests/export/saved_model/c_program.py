"""Build and run `runtimes.c`, which runs an export without Python."""

import dataclasses
import os
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
from tensorflow.core.protobuf import saved_model_pb2

from official_bert.errors import UserError

SOURCE = pathlib.Path(__file__).with_name("runtimes.c")
LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
# TF_DataType -> type of the elements.
TYPES = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    7: object,
    9: np.int64,
    10: np.bool_,
}


@dataclasses.dataclass(frozen=True)
class Run:
    """Output of the program.

    Attributes:
      version: of TensorFlow.
      lower_title: "TITLE" in lower case, in the locale that TensorFlow uses.
      answers: for each request a dict of output name -> array.
    """

    version: str
    lower_title: str
    answers: list[dict[str, np.ndarray]]


def build(package, program):
    """Compile the program for the TensorFlow of a folder `tensorflow`.

    Returns:
      The path of the program.
    """
    libraries = [package / name for name in LIBRARIES]
    subprocess.run(
        ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
        + ["-isystem", package / "include", SOURCE, "-o", program, *libraries]
        + [f"-Wl,-rpath,{package.resolve()}"],
        check=True,
    )
    return program


def run(program, export, cases, environment):
    """Run the program with this environment only.

    Args:
      program: path of a program of `build`.
      export: the folder of a version.
      cases: list of `verify.Case`.
      environment: dict of all variables of the process.

    Returns:
      `Run`.

    Raises:
      UserError: the program failed.
    """
    names = tensor_names(export)
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = (pathlib.Path(folder, n) for n in ("in", "out"))
        questions.write_bytes(_encoded(cases, names))
        done = subprocess.run(
            [program, export, questions, answers],
            env=environment,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            message = done.stderr.decode(errors="replace")[-600:]
            raise UserError(f"Status {done.returncode}: {message}")
        version, lower_title = done.stdout.decode().split()
        reader = _Reader(answers.read_bytes())
    outputs = [{name: reader.value() for name in one.wanted} for one in cases]
    if not reader.is_at_end:
        raise UserError("The program wrote more than the requested outputs.")
    return Run(version, lower_title, outputs)


def tensor_names(export):
    """Return the tensors of all signatures, as a server finds them.

    Returns:
      dict of signature -> (inputs, outputs): dicts of name -> `TensorInfo`.
    """
    content = pathlib.Path(export, "saved_model.pb").read_bytes()
    (graph,) = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    return {
        name: (dict(one.inputs), dict(one.outputs))
        for name, one in graph.signature_def.items()
    }


def _encoded(cases, names):
    """Return the requests in the form that `runtimes.c` describes."""
    parts = [_number(len(cases))]
    for case in cases:
        inputs, outputs = names[case.signature]
        parts.append(_number(len(case.inputs)))
        for name, values in case.inputs.items():
            parts += [_text(inputs[name].name.encode())]
            parts += [_value(inputs[name].dtype, values)]
        parts.append(_number(len(case.wanted)))
        parts += [_text(outputs[name].name.encode()) for name in case.wanted]
    return b"".join(parts)


def _number(value):
    return struct.pack("=q", value)


def _text(content):
    return _number(len(content)) + content


def _value(dtype, values):
    array = np.array(values, TYPES[dtype])
    header = b"".join(map(_number, (dtype, array.ndim, *array.shape)))
    if array.dtype != object:
        return header + _text(array.tobytes())
    texts = (x if isinstance(x, bytes) else x.encode() for x in array.reshape(-1))
    return header + b"".join(map(_text, texts))


class _Reader:
    """Reads the answers."""

    def __init__(self, content):
        self._content, self._next = content, 0

    @property
    def is_at_end(self):
        return self._next == len(self._content)

    def _number(self):
        (number,) = struct.unpack_from("=q", self._content, self._next)
        self._next += 8
        return number

    def _text(self):
        size = self._number()
        start, self._next = self._next, self._next + size
        return self._content[start : self._next]

    def value(self):
        """Return the next tensor as an array; texts are bytes."""
        dtype, rank = TYPES[self._number()], self._number()
        shape = [self._number() for _ in range(rank)]
        if dtype is not object:
            return np.frombuffer(self._text(), dtype).reshape(shape)
        array = np.empty(int(np.prod(shape)), object)
        array[:] = [self._text() for _ in array]
        return array.reshape(shape)


def installed_package():
    """Return the `tensorflow` folder of this Python; None without the libraries."""
    import tensorflow as tf

    package = pathlib.Path(os.path.dirname(tf.__file__))
    if all((package / name).is_file() for name in LIBRARIES):
        return package
    return None
