"""Load a SavedModel and run its signatures.

It uses only `tf.saved_model.load`, so the server sees the same model as TF Serving.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from official_bert.serving.json_tensors import RequestError
from official_bert.tf_text import OPS, import_tf_text

FILE = "saved_model.pb"
# Begins the names of other operations of TensorFlow Text.
PREFIX = "TFText>"
DEFAULT_SIGNATURE = "serving_default"
# TensorFlow error -> HTTP status, as in TF Serving. Other errors are 500.
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
    """A loaded SavedModel. Keep a reference while it runs, or its memory is freed.

    Attributes:
      version: number of its folder.
      root: result of `tf.saved_model.load`.
      signatures: dict of name -> TensorFlow's `SignatureDef`.
    """

    version: int
    root: Any
    signatures: dict[str, meta_graph_pb2.SignatureDef]


def load(folder: str | os.PathLike[str], version: int) -> SavedModel:
    """Load a SavedModel; TensorFlow's exceptions give the reason of a failure.

    Raises:
      UserError: it needs TensorFlow Text, which is not installed.
    """
    with open(os.path.join(folder, FILE), "rb") as source:
        graphs = saved_model_pb2.SavedModel.FromString(source.read()).meta_graphs
    serving = [graph for graph in graphs if set(graph.meta_info_def.tags) == {"serve"}]
    if not serving:
        raise ValueError("none of its graphs has the tag 'serve'")
    if needs_tf_text(serving[0]):
        import_tf_text("This model")
    root = tf.saved_model.load(folder)
    return SavedModel(version, root, dict(serving[0].signature_def))


def needs_tf_text(graph: meta_graph_pb2.MetaGraphDef) -> bool:
    """Return whether a graph has operations of TensorFlow Text."""
    # The graph's own list of operations omits those in functions.
    graph_def = graph.graph_def
    functions = [function.node_def for function in graph_def.library.function]
    names = {node.op for nodes in (graph_def.node, *functions) for node in nodes}
    return bool(names & {*OPS}) or any(name.startswith(PREFIX) for name in names)


def input_specs(signature_def: meta_graph_pb2.SignatureDef) -> dict[str, tf.TensorSpec]:
    """Return the inputs of a signature: dict of name -> `tf.TensorSpec`."""
    return {
        name: tf.TensorSpec(info.tensor_shape, info.dtype)
        for name, info in signature_def.inputs.items()
    }


def run(
    model: SavedModel, signature: str, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Run a signature of a `SavedModel`. Several threads may call this.

    Args:
      model: `SavedModel`.
      signature: name of the signature.
      arrays: dict of input name -> array with the types of `input_specs`.

    Returns:
      dict of output name -> array.

    Raises:
      RequestError: the graph rejected the values.
    """
    function = model.root.signatures[signature]
    specs = function.structured_input_signature[1]
    try:
        outputs = function(
            **{name: tf.constant(arrays[name], specs[name].dtype) for name in arrays}
        )
        values = {name: tensor.numpy() for name, tensor in outputs.items()}
    except tf.errors.OpError as error:
        # Before this text, TensorFlow prints Python's stack, which does not help
        # clients.
        message = error.message.rpartition("<stack traces unavailable>")[2].strip()
        status = _STATUS.get(type(error), 500)
        raise RequestError(message[:MESSAGE_LENGTH], status) from error
    return {
        # A single string is bytes; as an array of S it would lose NULs at its end.
        name: np.array(value, object) if isinstance(value, bytes) else np.array(value)
        for name, value in values.items()
    }
