"""Query a served model by REST, or by gRPC, which is faster for large outputs.

The server is serve.py or TF Serving. gRPC works only with TF Serving, and needs
`tensorflow-serving-api`, which defines its messages.
"""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from official_bert.errors import UserError

# Enough for 256 sequences of 512 vectors of 768 float32.
MAX_MESSAGE_BYTES = 1 << 30


def predict_by_rest(
    url: str,
    name: str,
    version: int | None = None,
    signature: str | None = None,
    timeout_s: float = 60.0,
) -> Callable[[list[dict[str, Any]]], list[Any]]:
    """Return a function that takes rows and returns one prediction per row.

    Rows are dicts of input name -> JSON value. The function raises `UserError` if it
    cannot reach the server or the server rejects the rows.

    Args:
      url: URL of the server, for example "http://127.0.0.1:8501".
      name: name of the model.
      version: version number, or None for the newest.
      signature: name of the signature, or None for the default.
      timeout_s: seconds to wait for a response.
    """
    url = f"{url.rstrip('/')}/v1/models/{urllib.parse.quote(name, safe='')}"
    if version is not None:
        url += f"/versions/{version}"
    fields = {"signature_name": signature} if signature else {}

    def predict(rows):
        body = json.dumps({**fields, "instances": rows}).encode("ascii")
        answer = _post(f"{url}:predict", body, timeout_s)
        predictions = answer.get("predictions") if isinstance(answer, dict) else None
        if not isinstance(predictions, list) or len(predictions) != len(rows):
            raise UserError(
                f"{url} did not return one prediction per row. Check that TF Serving "
                "or serve.py runs there."
            )
        return predictions

    return predict


def _post(url, body, timeout_s):
    """Post JSON and return the JSON response."""
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
        is_local = host in ("localhost", "::1") or host.startswith("127.")
        # A proxy cannot reach this machine's own addresses.
        proxies = [urllib.request.ProxyHandler({})] if is_local else []
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, body, headers)
        opener = urllib.request.build_opener(*proxies)
        with opener.open(request, timeout=timeout_s) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        message = f"{url} returned status {error.code}: {_message_of(error)}"
        raise UserError(message) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise _too_slow(url, timeout_s) from error
        raise _unreachable(url, reason) from error
    except ValueError as error:
        raise UserError(
            f"{url} is not a URL, or its response is not JSON ({error}). Give a URL "
            "such as http://127.0.0.1:8501."
        ) from error


def _message_of(error):
    """Return the error in the body of an `HTTPError`, or the start of the body."""
    try:
        body = error.read()
    except (OSError, http.client.HTTPException) as cut_off:
        body = getattr(cut_off, "partial", b"")
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:300] or "no reason given"


def _unreachable(server, reason):
    return UserError(
        f"Cannot reach {server} ({reason}). Check that the server is running there."
    )


def _too_slow(server, timeout_s):
    return UserError(
        f"{server} did not respond within {timeout_s:g} s. Raise --timeout_s or send "
        "fewer rows at once."
    )


def predict_by_grpc(
    address: str,
    name: str,
    version: int | None = None,
    signature: str | None = None,
    timeout_s: float = 60.0,
) -> Callable[[list[dict[str, Any]]], list[Any]]:
    """Return a function like that of `predict_by_rest`.

    Args:
      address: "host:port" of the gRPC API, for example "127.0.0.1:8500".
      name: see `predict_by_rest`.
      version: see `predict_by_rest`.
      signature: see `predict_by_rest`.
      timeout_s: see `predict_by_rest`.

    Raises:
      UserError: tensorflow-serving-api is not installed, the server cannot be reached,
        or it has no such model or signature.
    """
    try:
        import grpc
        from tensorflow_serving.apis import model_pb2, prediction_service_pb2_grpc
    except ModuleNotFoundError as error:
        raise UserError(
            f"--grpc needs tensorflow-serving-api ({error.name} is missing). Run: "
            "pip install 'official-bert[serving-api]'"
        ) from error
    spec = model_pb2.ModelSpec(name=name, signature_name=signature or "")
    if version is not None:
        spec.version.value = version
    limits = ("grpc.max_send_message_length", "grpc.max_receive_message_length")
    options = [(limit, MAX_MESSAGE_BYTES) for limit in limits]
    service = prediction_service_pb2_grpc.PredictionServiceStub(
        grpc.insecure_channel(address, options=options)
    )

    def call(method, request):
        try:
            return method(request, timeout=timeout_s)
        except grpc.RpcError as error:
            code, details = error.code().name, error.details()
            if code == "UNAVAILABLE":
                raise _unreachable(address, f"{code}: {details}") from error
            if code == "DEADLINE_EXCEEDED":
                raise _too_slow(address, timeout_s) from error
            raise UserError(f"{address} returned {code}: {details}") from error

    specs = _input_specs(call, service, spec)
    return lambda rows: _predict(call, service, spec, specs, rows)


def _input_specs(call, service, spec):
    """Return the inputs of the signature: name -> `tf.TensorSpec`."""
    from tensorflow_serving.apis import get_model_metadata_pb2

    from official_bert.serving import saved_model

    request = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec=spec, metadata_field=["signature_def"]
    )
    answer = call(service.GetModelMetadata, request)
    message = get_model_metadata_pb2.SignatureDefMap()
    answer.metadata["signature_def"].Unpack(message)
    signatures = message.signature_def
    name = spec.signature_name or saved_model.DEFAULT_SIGNATURE
    if name not in signatures:
        names = ", ".join(key for key in sorted(signatures) if key[:2] != "__")
        raise UserError(f"Model {spec.name} has no signature {name}. It has {names}.")
    return saved_model.input_specs(signatures[name])


def _predict(call, service, spec, specs, rows):
    """Return the predictions for rows."""
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    from official_bert.serving import json_tensors

    request = predict_pb2.PredictRequest(model_spec=spec)
    try:
        for name, array in json_tensors.read_rows(rows, specs).items():
            tensor = tf.make_tensor_proto(array, specs[name].dtype)
            request.inputs[name].CopyFrom(tensor)
        outputs = call(service.Predict, request).outputs
        return json_tensors.to_rows(
            {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}
        )
    except json_tensors.RequestError as error:
        raise UserError(str(error)) from error
