"""Asking TF Serving by gRPC, which is quicker than REST where answers are long.

Needs `tensorflow-serving-api`, which knows the messages.
"""

import functools

from official_bert.errors import UserError

# Room for 256 sequences of 512 vectors of 768 float32.
MAX_MESSAGE_BYTES = 1 << 30


def asker(address, name, version=None, signature=None, timeout_s=60.0):
    """Return a function that answers rows, as that of `rest_client.asker` does.

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
    options = [
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ]
    service = prediction_service_pb2_grpc.PredictionServiceStub(
        grpc.insecure_channel(address, options=options)
    )
    call = functools.partial(_call, address, timeout_s)
    return functools.partial(
        _predict, call, service, spec, _inputs(call, service, spec)
    )


def _call(address, timeout_s, method, request):
    """Call a method of the service; its errors become sentences."""
    import grpc

    try:
        return method(request, timeout=timeout_s)
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        if code == grpc.StatusCode.UNAVAILABLE:
            message = (
                f"Cannot reach {address} (UNAVAILABLE: {details}); is the server "
                "running there?"
            )
        elif code == grpc.StatusCode.DEADLINE_EXCEEDED:
            message = (
                f"{address} did not answer within {timeout_s:g} s; raise --timeout_s "
                "or ask for fewer rows at a time."
            )
        else:
            message = f"{address} answered {code.name}: {details}"
        raise UserError(message) from error


def _inputs(call, service, spec):
    """Return the inputs of the signature: name -> `InputSpec`."""
    from tensorflow_serving.apis import get_model_metadata_pb2

    from official_bert.serving import saved_model

    request = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec=spec, metadata_field=["signature_def"]
    )
    answer = call(service.GetModelMetadata, request)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    answer.metadata["signature_def"].Unpack(signatures)
    name = spec.signature_name or saved_model.DEFAULT_SIGNATURE
    if name not in signatures.signature_def:
        known = ", ".join(
            each for each in sorted(signatures.signature_def) if each[:2] != "__"
        )
        raise UserError(f"Model {spec.name} has no signature {name}; it has {known}.")
    return saved_model.input_specs(signatures.signature_def[name])


def _predict(call, service, spec, inputs, rows):
    """Return the predictions for rows."""
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    from official_bert.serving import rest_requests, rest_responses
    from official_bert.serving.request_error import RequestError

    request = predict_pb2.PredictRequest(model_spec=spec)
    try:
        for name, array in rest_requests.read_rows(rows, inputs).items():
            dtype = tf.as_dtype(inputs[name].dtype)
            request.inputs[name].CopyFrom(tf.make_tensor_proto(array, dtype))
        outputs = call(service.Predict, request).outputs
        return rest_responses.as_rows(
            {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}
        )
    except RequestError as error:
        raise UserError(str(error)) from error
