"""A `:predict` request, from its JSON to the JSON of its response."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from official_bert.serving import batching, json_tensors, saved_model
from official_bert.serving.json_tensors import RequestError


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRequest:
    """A request whose inputs were read.

    Attributes:
      model: `SavedModel` that answers it.
      signature: name of the signature.
      arrays: dict of input name -> array.
      in_rows: whether the response has rows, not columns.
    """

    model: saved_model.SavedModel
    signature: str
    arrays: dict[str, np.ndarray]
    in_rows: bool

    @property
    def is_joinable(self) -> bool:
        """Return whether its rows may be computed with those of other requests."""
        rows = {array.shape[:1] for array in self.arrays.values()}
        definition = self.model.signatures[self.signature]
        return len(rows) == 1 and batching.is_joinable(definition)


def prepare(model: saved_model.SavedModel, body: bytes) -> PreparedRequest:
    """Return the request in the body of a `:predict` request.

    Raises:
      RequestError: the request is invalid.
    """
    request = json_tensors.parse_request(body)
    name = request.get("signature_name") or saved_model.DEFAULT_SIGNATURE
    if name not in model.signatures:
        raise RequestError(
            f'Serving signature name: "{name}" not found in signature def'
        )
    specs = saved_model.input_specs(model.signatures[name])
    if not specs:
        raise RequestError(f"Failed to get input map for signature: {name}")
    arrays = json_tensors.read_inputs(request, specs)
    return PreparedRequest(model, name, arrays, "instances" in request)


def run(
    request: PreparedRequest, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs of a request's signature for its or other inputs.

    Raises:
      RequestError: the graph rejected the values.
    """
    return saved_model.run(request.model, request.signature, arrays)


def num_rows(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the first axis of the inputs; 1 for a single value."""
    shape = next(iter(arrays.values())).shape
    return shape[0] if shape else 1


def respond(request: PreparedRequest, outputs: dict[str, np.ndarray]) -> bytes:
    """Return the body of the response."""
    if request.in_rows:
        return json_tensors.dump({"predictions": json_tensors.to_rows(outputs)})
    return json_tensors.dump({"outputs": json_tensors.to_columns(outputs)})
