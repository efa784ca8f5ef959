"""Query TF Serving by gRPC, which is faster than REST where outputs are large.

Needs `tensorflow-serving-api`, which defines the messages.
"""

from official_bert.errors import UserError

# Enough for 256 sequences of 512 vectors of 768 float32.
MAX_MESSAGE_BYTES = 1 << 30


def make_predict(address, name, version=None, signature=None, timeout_s=60.0):
    """Return a function of rows, as `rest_client.make_predict` does.

    Args:
      address: "host:port" of the gRPC side, for example "127.0.0.1:8500".
      name: of the model.
      version: number, or None for the newest.
      signature: name, or None for the default.
      timeout_s: seconds to wait for an answer.

    Raises:
      UserError: tensorflow-serving-api is not installed, the server cannot be
        reached, or it has no such model or signature.
    """
    try:
        import grpc
        from tensorflow_serving.apis import model_pb2, prediction_service_pb2_grpc
    except ModuleNotFoundError as error:
        raise UserError(
            f"--grpc needs tensorflow-serving-api ({error.name} is missing): "
            "pip install tensorflow-serving-api."
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
            raise UserError(_message_of(error, address, timeout_s)) from error

    specs = _input_specs(call, service, spec)
    return lambda rows: _predict(call, service, spec, specs, rows)


def _message_of(error, address, timeout_s):
    """Return the sentence for an error of gRPC."""
    code, details = error.code().name, error.details()
    if code == "UNAVAILABLE":
        return f"Cannot reach {address} ({code}: {details}); is the server running?"
    if code == "DEADLINE_EXCEEDED":
        return (
            f"{address} did not answer within {timeout_s:g} s; raise --timeout_s or "
            "send fewer rows at a time."
        )
    return f"{address} answered {code}: {details}"


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
        raise UserError(f"Model {spec.name} has no signature {name}; it has {names}.")
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
