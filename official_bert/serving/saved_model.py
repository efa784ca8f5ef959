"""A SavedModel in memory: its signatures, and running them.

It is loaded by `tf.saved_model.load` alone: what a server of another language
sees is all there is.
"""

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

from official_bert.serving.request_error import RequestError
from official_bert.serving.rest_requests import InputSpec

FILE = "saved_model.pb"
DEFAULT_SIGNATURE = "serving_default"
# TensorFlow's names of types -> those in TF Serving's messages.
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
# Error of TensorFlow -> HTTP status, as in TF Serving. The rest is 500.
_STATUS = {
    tf.errors.InvalidArgumentError: 400,
    tf.errors.FailedPreconditionError: 400,
    tf.errors.OutOfRangeError: 400,
    tf.errors.NotFoundError: 404,
    tf.errors.ResourceExhaustedError: 429,
    tf.errors.UnimplementedError: 501,
    tf.errors.UnavailableError: 503,
    tf.errors.DeadlineExceededError: 504,
}
MESSAGE_LENGTH = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel:
    """A loaded SavedModel.

    Whoever runs it holds this object: with the last holder it leaves memory,
    variables and tables with it.

    Attributes:
      version: number of its folder.
      root: what `tf.saved_model.load` returned.
      inputs: signature name -> dict of input name -> `InputSpec`.
      signature_def: all signatures as JSON has them, see TF's `SignatureDef`.
    """

    version: int
    root: Any
    inputs: dict
    signature_def: dict


def load(folder, version):
    """Load a SavedModel; TensorFlow's own exceptions say why it cannot."""
    signatures = _read_signatures(os.path.join(folder, FILE))
    return SavedModel(
        version=version,
        root=tf.saved_model.load(folder),
        inputs={name: input_specs(each) for name, each in signatures.items()},
        signature_def={
            name: json_format.MessageToDict(
                each,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, each in signatures.items()
        },
    )


def _read_signatures(path):
    model = saved_model_pb2.SavedModel()
    with open(path, "rb") as source:
        model.ParseFromString(source.read())
    serving = [
        each for each in model.meta_graphs if set(each.meta_info_def.tags) == {"serve"}
    ]
    if not serving:
        raise ValueError("no graph in it is tagged 'serve'")
    return dict(serving[0].signature_def)


def input_specs(signature):
    """Return the inputs of a `SignatureDef`: dict of name -> `InputSpec`."""
    return {name: _input_spec(info) for name, info in signature.inputs.items()}


def _input_spec(info):
    shape = info.tensor_shape
    return InputSpec(
        dtype=_type_name(info.dtype),
        shape=None if shape.unknown_rank else tuple(dim.size for dim in shape.dim),
    )


def _type_name(dtype):
    """Return what TF Serving's messages call a type of TensorFlow's enum."""
    name = tf.dtypes.as_dtype(dtype).name
    return _TYPE_NAMES.get(name, name)


def inputs_of(model, signature):
    """Return the inputs of a signature.

    Args:
      model: `SavedModel`.
      signature: its name; None is the default.

    Raises:
      RequestError: there is no such signature, or it takes nothing.
    """
    name = signature or DEFAULT_SIGNATURE
    if name not in model.inputs:
        raise RequestError(
            f'Serving signature name: "{name}" not found in signature def'
        )
    if not model.inputs[name]:
        raise RequestError(
            f"Failed to get input map for signature: {signature or 'DEFAULT'}"
        )
    return model.inputs[name]


def run(model, signature, arrays):
    """Run a signature. Several threads may do so at a time.

    Args:
      model: `SavedModel`.
      signature: its name; None is the default.
      arrays: dict of input name -> array, of the types of `inputs_of`.

    Returns:
      dict of output name -> array.

    Raises:
      RequestError: the graph refused the values.
    """
    function = model.root.signatures[signature or DEFAULT_SIGNATURE]
    specs = function.structured_input_signature[1]
    try:
        tensors = {
            name: tf.constant(array, specs[name].dtype)
            for name, array in arrays.items()
        }
        outputs = function(**tensors)
        return {name: _as_array(tensor.numpy()) for name, tensor in outputs.items()}
    except tf.errors.OpError as error:
        # What Python's TensorFlow says first is of no use to a client.
        message = error.message.rpartition("<stack traces unavailable>")[2].strip()
        status = _STATUS.get(type(error), 500)
        raise RequestError(message[:MESSAGE_LENGTH], status) from error


def _as_array(value):
    # A single string comes as bytes, of which NumPy would drop NULs at the end.
    return np.array(value, object if isinstance(value, bytes) else None)
