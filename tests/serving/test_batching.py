"""Requests that are computed together: equal results, limits, errors, metrics."""

import concurrent.futures
import threading
import time

import numpy as np
import pytest
from serving.running import predict, running
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from official_bert.errors import UserError
from official_bert.export.saved_model import server_files
from official_bert.serving import batching
from official_bert.serving.batching import Batcher
from official_bert.serving.batching_parameters import (
    BatchingParameters,
    parse_parameters,
)
from official_bert.serving.json_tensors import RequestError

WIDE = BatchingParameters(max_batch_size=1000, num_batch_threads=1)


class Model:
    """Doubles its inputs; the first call waits for `go`, so that others queue."""

    def __init__(self):
        self.go, self.started = threading.Event(), threading.Event()
        self.sizes = []

    def __call__(self, arrays):
        self.started.set()
        assert self.go.wait(30)
        self.sizes.append(len(arrays["x"]))
        if (arrays["x"] < 0).any():
            raise RequestError("negative")
        return {"y": 2 * arrays["x"]}


@pytest.fixture
def start():
    batchers, models = [], []

    def started(parameters):
        """Return (model, batcher) whose only thread computes a first request."""
        batchers.append(Batcher(parameters))
        models.append(Model())
        batchers[-1].submit(models[-1], "m", rows(0))
        assert models[-1].started.wait(30)
        return models[-1], batchers[-1]

    yield started
    for model, batcher in zip(models, batchers, strict=True):
        model.go.set()
        batcher.close()


def rows(*values):
    return {"x": np.array(values, np.float32)}


def result(future):
    return future.result(30)["y"].tolist()


def test_waiting_requests_are_one_batch(start):
    model, batcher = start(WIDE)
    futures = [batcher.submit(model, "m", rows(*range(n))) for n in (1, 3, 2)]
    model.go.set()
    assert [result(one) for one in futures] == [[0], [0, 2, 4], [0, 2]]
    assert model.sizes == [1, 6]


def test_a_failing_request_fails_alone(start):
    model, batcher = start(WIDE)
    futures = [batcher.submit(model, "m", rows(n)) for n in (1, -1, 3)]
    model.go.set()
    assert result(futures[0]) == [2] and result(futures[2]) == [6]
    with pytest.raises(RequestError, match="negative"):
        futures[1].result(30)


def test_only_similar_requests_are_joined(start):
    model, batcher = start(WIDE)
    same = [batcher.submit(model, "m", rows(n)) for n in (1, 2)]
    other = batcher.submit(model, "other", rows(3))
    wide = batcher.submit(model, "m", {"x": np.ones([1, 2], np.float32)})
    model.go.set()
    assert [result(one) for one in (*same, other, wide)] == [[2], [4], [6], [[2, 2]]]
    assert sorted(model.sizes) == [1, 1, 1, 2]


def test_texts_of_similar_length_share_a_key():
    def key(*texts):
        return batching.group_key({"text": np.array(texts, object)})

    assert key(b"a") == key(b"b" * 127, b"")
    assert key(b"a" * 400) == key(b"a" * 430) != key(b"a" * 500)
    assert key(b"a") != key(b"a" * 300)


def test_no_batch_exceeds_the_limit(start):
    model, batcher = start(BatchingParameters(max_batch_size=4, num_batch_threads=1))
    futures = [batcher.submit(model, "m", rows(1, 2, 3)) for _ in range(3)]
    futures.append(batcher.submit(model, "m", rows(*range(9))))
    model.go.set()
    assert [len(result(one)) for one in futures] == [3, 3, 3, 9]
    assert model.sizes == [1, 3, 3, 3, 9]


def test_allowed_sizes_are_filled(start):
    sizes = (2, 8)
    model, batcher = start(
        BatchingParameters(8, num_batch_threads=1, allowed_batch_sizes=sizes)
    )
    futures = [batcher.submit(model, "m", rows(n)) for n in (1, 2, 3)]
    model.go.set()
    assert [result(one) for one in futures] == [[2], [4], [6]]
    assert model.sizes == [1, 8]


def test_a_full_queue_refuses(start):
    model, batcher = start(BatchingParameters(2, 0, 2, 1))
    waiting = [batcher.submit(model, "m", rows(n)) for n in range(4)]
    with pytest.raises(RequestError, match="full: 4 of 4 rows") as caught:
        batcher.submit(model, "m", rows(5))
    assert caught.value.status == 503
    model.go.set()
    assert [result(one) for one in waiting] == [[0], [2], [4], [6]]


def test_a_canceled_request_is_not_computed(start):
    model, batcher = start(WIDE)
    canceled, kept = (batcher.submit(model, "m", rows(n)) for n in (1, 2))
    assert canceled.cancel()
    model.go.set()
    assert result(kept) == [4]
    assert model.sizes == [1, 1]


def test_waiting_requests_are_answered_at_the_end(start):
    model, batcher = start(WIDE)
    future = batcher.submit(model, "m", rows(4))
    batcher.close()
    model.go.set()
    assert result(future) == [8]


def test_the_wait_for_more_rows_is_bounded():
    model = Model()
    model.go.set()
    batcher = Batcher(BatchingParameters(3, 200_000, num_batch_threads=1))
    try:
        began = time.monotonic()
        assert result(batcher.submit(model, "m", rows(1))) == [2]
        assert 0.2 <= time.monotonic() - began < 10
        # A complete batch does not wait.
        began = time.monotonic()
        futures = [batcher.submit(model, "m", rows(n)) for n in range(3)]
        assert [result(one) for one in futures] == [[0], [2], [4]]
        assert time.monotonic() - began < 0.2
        assert model.sizes == [1, 3]
    finally:
        batcher.close()


def signature(inputs, outputs):
    def info(shape):
        dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in shape]
        return meta_graph_pb2.TensorInfo(
            tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims)
        )

    return meta_graph_pb2.SignatureDef(
        inputs={str(n): info(one) for n, one in enumerate(inputs)},
        outputs={str(n): info(one) for n, one in enumerate(outputs)},
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ([[-1]], [[-1], [-1, 3]], True),
        ([[-1, -1]], [[-1, 3]], True),
        ([[-1]], [[-1, -1]], False),  # As wide as the longest row of the request.
        ([[-1]], [[]], False),
        ([[4]], [[-1]], False),
        ([[]], [[-1]], False),
    ],
)
def test_which_signatures_are_joined(inputs, outputs, expected):
    assert batching.is_joinable(signature(inputs, outputs)) == expected


FILE = """# TensorFlow Serving's form
max_batch_size { value: 32 }
batch_timeout_micros { value: 0 }
max_enqueued_batches { value : 10 }  # a comment
num_batch_threads { value: 3 }
allowed_batch_sizes: 8
allowed_batch_sizes: 32
pad_variable_length_inputs: false
thread_pool_name { value: "pool" }
"""


def test_the_file_of_parameters():
    expected = BatchingParameters(32, 0, 10, 3, (8, 32))
    assert parse_parameters(FILE, "--f=x") == expected
    assert parse_parameters("", "--f=x") == BatchingParameters()
    short = "max_batch_size{value:8},allowed_batch_sizes:[4, 8]"
    sizes = BatchingParameters(8, allowed_batch_sizes=(4, 8))
    assert parse_parameters(short, "--f=x") == sizes


def test_the_file_of_an_export():
    expected = BatchingParameters(256, 1000, 1000, 2)
    assert parse_parameters(server_files.BATCHING, "--f=x") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_batch { value: 3 }", "cannot read 'max_batch'"),
        ("max_batch_size { value: x }", "cannot read 'max_batch_size'"),
        ("max_batch_size { value: 0 }", "at least 1"),
        ("max_batch_size: [1]", "max_batch_size must be a number"),
        ("max_batch_size { value: 8 } allowed_batch_sizes: 4", "end with max_batch"),
        ("pad_variable_length_inputs: true", "cannot read 'pad_variable_length"),
        ("\x00", "cannot read"),
    ],
)
def test_an_invalid_file_of_parameters(text, message):
    with pytest.raises(UserError, match=f"^--f=x: .*{message}"):
        parse_parameters(text, "--f=x")


@pytest.fixture(scope="module")
def batched(versions):
    parameters = BatchingParameters(64, 50_000)
    with running(versions, batching_parameters=parameters) as url:
        yield url


def ask_at_once(url, requests):
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as clients:
        return list(clients.map(lambda one: predict(url, one), requests))


def test_each_client_gets_its_rows(batched):
    texts = [[f"text {n}"] * (n % 3 + 1) for n in range(24)]
    answers = ask_at_once(batched, [{"instances": one} for one in texts])
    for own, (status, answer) in zip(texts, answers, strict=True):
        assert status == 200
        assert [row["echo"] for row in answer["predictions"]] == own


@pytest.mark.parametrize("name", ["joined", "total", "uneven"])
def test_signatures_that_mix_rows_are_computed_alone(batched, name):
    values = ["a"] if name == "joined" else [1.0]
    one = {"signature_name": name, "inputs": values}
    answers = ask_at_once(batched, [one] * 4)
    assert answers == [predict(batched, one)] * 4


def test_pairs_of_different_lengths_stay_apart(batched):
    """Joined, one request's missing texts would be taken from the other."""
    one = {"signature_name": "pairs", "inputs": {"text": ["a"], "text_b": ["b", "c"]}}
    two = {"signature_name": "pairs", "inputs": {"text": ["d", "e"], "text_b": ["f"]}}
    answers = ask_at_once(batched, [one, two])
    assert answers == [predict(batched, one), predict(batched, two)]


def test_an_invalid_row_fails_its_request_only(batched):
    requests = [{"signature_name": "picky", "instances": [n]} for n in (1.0, -1.0, 2.0)]
    (good, first), (bad, error), (fine, last) = ask_at_once(batched, requests)
    assert (good, bad, fine) == (200, 400, 200)
    assert first == {"predictions": [1.0]} and last == {"predictions": [2.0]}
    assert "too small" in error["error"]
