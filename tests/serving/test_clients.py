"""The clients: gRPC with a service of TF Serving's messages, and errors of both."""

import concurrent.futures
import http.client
import socket
import sys
import types

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.serving import clients, saved_model
from official_bert.serving.json_tensors import RequestError


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    with pytest.raises(UserError, match=r"pip install 'official-bert\[serving-api\]'"):
        clients.predict_by_grpc("127.0.0.1:1", "answers")


@pytest.fixture(scope="module")
def address(versions):
    """Return the address of a service that responds like TF Serving."""
    pytest.importorskip("tensorflow_serving")
    import grpc
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            _service(versions), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def _service(versions):
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    def model_of(request, context):
        spec = request.model_spec
        version = spec.version.value if spec.HasField("version") else None
        try:
            return versions.get(spec.name, version)
        except RequestError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error))

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def GetModelMetadata(self, request, context):  # noqa: N802
            signatures = get_model_metadata_pb2.SignatureDefMap()
            model = model_of(request, context)
            for name, signature in model.signatures.items():
                signatures.signature_def[name].CopyFrom(signature)
            answer = get_model_metadata_pb2.GetModelMetadataResponse()
            answer.metadata["signature_def"].Pack(signatures)
            return answer

        def Predict(self, request, context):  # noqa: N802
            arrays = {k: tf.make_ndarray(v) for k, v in request.inputs.items()}
            signature = request.model_spec.signature_name or "serving_default"
            try:
                model = model_of(request, context)
                outputs = saved_model.run(model, signature, arrays)
            except RequestError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            answer = predict_pb2.PredictResponse()
            for name, array in outputs.items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(array))
            return answer

    return Service()


def test_the_same_answers_as_by_rest(address, own_url):
    rows = [{"text": "good"}, {"text": "老师 \U0001f40e"}, {"text": ""}]
    for version in (None, 1):
        by_grpc = clients.predict_by_grpc(address, "answers", version)
        assert by_grpc(rows) == clients.predict_by_rest(own_url, "answers", version)(
            rows
        )
    tokens = [{"input_ids": [7, 8], "input_mask": [1, 1], "segment_ids": [0, 1]}]
    by_grpc = clients.predict_by_grpc(address, "answers", signature="tokens")
    by_rest = clients.predict_by_rest(own_url, "answers", signature="tokens")
    assert by_grpc(tokens) == by_rest(tokens)
    assert by_grpc(tokens)[0]["sum"] == np.int32(7 + 1008)


def test_errors_are_sentences(address):
    with pytest.raises(UserError, match="no signature nope. It has .*serving_default"):
        clients.predict_by_grpc(address, "answers", signature="nope")
    with pytest.raises(UserError, match="NOT_FOUND: .*Specific"):
        clients.predict_by_grpc(address, "answers", 7)
    with pytest.raises(UserError, match="named input: txt"):
        clients.predict_by_grpc(address, "answers")([{"txt": "a"}])
    with pytest.raises(
        UserError, match="INVALID_ARGUMENT: assertion failed: .too small"
    ):
        clients.predict_by_grpc(address, "answers", signature="picky")([{"x": -1}])
    with pytest.raises(UserError, match="Cannot reach 127.0.0.1:1 .UNAVAILABLE: .*"):
        clients.predict_by_grpc("127.0.0.1:1", "answers")


def test_an_answer_that_comes_too_late():
    pytest.importorskip("tensorflow_serving")
    # It accepts connections and never responds.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UserError) as caught:
            clients.predict_by_grpc(address, "answers", timeout_s=0.3)
    assert str(caught.value) == (
        f"{address} did not respond within 0.3 s. Raise --timeout_s or send fewer "
        "rows at once."
    )


def test_outputs_without_rows():
    """A model may have outputs that cannot be split into rows."""
    pytest.importorskip("tensorflow_serving")
    import tensorflow as tf
    from tensorflow_serving.apis import model_pb2, predict_pb2

    answer = predict_pb2.PredictResponse()
    answer.outputs["loss"].CopyFrom(tf.make_tensor_proto(0.5))
    service = types.SimpleNamespace(Predict=None)
    specs = {"text": tf.TensorSpec([None], tf.string)}
    with pytest.raises(UserError, match="loss has no shape information"):
        clients._predict(
            lambda *ignored: answer, service, model_pb2.ModelSpec(), specs, ["a"]
        )


@pytest.mark.parametrize("partial", [b"", b"what came"])
def test_the_body_of_an_error_may_break_off(partial):
    class CutOff:
        def read(self):
            raise http.client.IncompleteRead(partial)

    message = partial.decode() or "no reason given"
    assert clients._message_of(CutOff()) == message
