"""TF Serving's REST API, request by request; also against TF Serving itself."""

import base64
import json
import math

import numpy as np
import pytest
import tensorflow as tf
from serving.running import ask, predict

from official_bert.serving import json_tensors
from official_bert.serving.json_tensors import RequestError

MODEL = "/v1/models/answers"
TEXTS = ["good", "", "naïve 老师 \U0001f40e", 'a"b\\c\n', "NUL \0 within"]
TOKENS = {
    "input_ids": [[101, 7, 102], [101, 102, 0]],
    "input_mask": [[1, 1, 1], [1, 1, 0]],
    "segment_ids": [[0, 0, 1], [0, 0, 0]],
}
SUMS = [101 + 7 + 1102, 203]


def by_rows(columns):
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def b64(value):
    return {"b64": base64.b64encode(value).decode()}


def expected_rows(texts):
    scores = {"good": 1.0, "bad": -1.0}
    return [
        {
            "score": scores.get(text, 0.0),
            "echo": text,
            "raw_bytes": b64(text.encode()),
            "version": 1,
        }
        for text in texts
    ]


def ok(answer, key):
    status, value = answer
    assert status == 200, value
    assert list(value) == [key]
    return value[key]


def test_rows_of_objects(url):
    request = {"instances": [{"text": text} for text in TEXTS]}
    assert ok(predict(url, request), "predictions") == expected_rows(TEXTS)


def test_rows_of_values_for_the_only_input(url):
    answer = predict(url, {"instances": TEXTS})
    assert ok(answer, "predictions") == expected_rows(TEXTS)


def test_columns(url):
    outputs = ok(predict(url, {"inputs": {"text": TEXTS}}), "outputs")
    assert by_rows(outputs) == expected_rows(TEXTS)
    assert ok(predict(url, {"inputs": TEXTS}), "outputs") == outputs


def test_a_single_output_has_no_name(url):
    request = {"signature_name": "lengths", "instances": ["abc", ""]}
    assert ok(predict(url, request), "predictions") == [3, 0]
    request = {"signature_name": "lengths", "inputs": ["abc", ""]}
    assert ok(predict(url, request), "outputs") == [3, 0]


def test_the_version_may_be_named_and_letters_are_of_either_case(url):
    request = {"instances": ["good"]}
    for path in (f"{MODEL}/versions/1:predict", "/V1/Models/answers:Predict"):
        assert ok(predict(url, request, path), "predictions") == expected_rows(["good"])
    # An empty name means the default.
    assert ok(predict(url, {"signature_name": "", **request}), "predictions")


def test_matrices_of_numbers(url):
    request = {"signature_name": "tokens", "inputs": TOKENS}
    outputs = ok(predict(url, request), "outputs")
    assert outputs["sum"] == SUMS
    first, second = outputs["vectors"]
    # The digits of the float32 nearest to 110.2, which is not a float32.
    assert first == [[10.1], [0.7], [110.200005]]
    assert second == [[10.1], [10.2], [0.0]]
    request = {"signature_name": "tokens", "instances": by_rows(TOKENS)}
    rows = ok(predict(url, request), "predictions")
    assert rows == by_rows(outputs)


def test_every_type(url):
    row = {
        "whether": True,
        "byte": -128,
        "whole": -(2**63),
        "natural": 2**64 - 1,
        "single": 0.2,
        "double": 0.1 + 0.2,
    }
    request = {"signature_name": "echo", "instances": [row]}
    (answer,) = ok(predict(url, request), "predictions")
    assert answer == {f"out_{name}": value for name, value in row.items()}
    assert answer["out_whether"] is True


def test_no_number_is_written_as_in_tf_serving(url):
    request = {"signature_name": "logs", "instances": [0.0, -1.0, 1.0]}
    infinite, nan, zero = ok(predict(url, request), "predictions")
    assert (infinite, zero) == (-math.inf, 0.0) and math.isnan(nan)
    request = b'{"signature_name": "logs", "instances": [Infinity, NaN]}'
    infinite, nan = ok(predict(url, request), "predictions")
    assert infinite == math.inf and math.isnan(nan)


def test_bytes(url):
    raw = bytes(range(256)) + b"\0"
    for value in (b64(raw), {"b64": b64(raw)["b64"].rstrip("=")}):
        for row in (value, {"text": value}):
            (answer,) = ok(predict(url, {"instances": [row]}), "predictions")
            assert answer["raw_bytes"] == b64(raw)
    (answer,) = ok(predict(url, {"inputs": [b64(b"good")]}), "outputs")["score"]
    assert answer == 1.0


def test_bytes_that_are_not_utf8_reach_the_model(own_url):
    (answer,) = ok(predict(own_url, b'{"instances": ["a\xff"]}'), "predictions")
    assert answer["raw_bytes"] == b64(b"a\xff")
    assert answer["echo"] == "a\ufffd"


def test_escapes_and_a_byte_order_mark(url):
    body = b'\xef\xbb\xbf{"instances": ["\\ud83d\\udc0e \\u8001"]}'
    (answer,) = ok(predict(url, body), "predictions")
    assert answer["echo"] == "\U0001f40e 老"


def test_a_long_text(url):
    text = "horses 老 " * 100_000
    assert 1_000_000 < len(text.encode()) < 1_200_000
    (answer,) = ok(predict(url, {"instances": [text]}), "predictions")
    assert answer["echo"] == text


def test_an_output_without_rows_has_columns_only(url):
    request = {"signature_name": "total", "inputs": [1.0, 2.5]}
    assert ok(predict(url, request), "outputs") == 3.5
    request = {"signature_name": "joined", "inputs": ["a", "b\0"]}
    assert ok(predict(url, request), "outputs") == "ab\0"
    request = {"signature_name": "uneven", "inputs": [1.0]}
    assert ok(predict(url, request), "outputs") == {"a": [1.0], "b": [1.0, 1.0]}


def test_status(url):
    one = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in (MODEL, f"{MODEL}/versions/1"):
        assert ask(url, path=path) == (200, {"model_version_status": [one]})


def test_metadata(url):
    status, answer = ask(url, path=f"{MODEL}/metadata")
    assert status == 200
    assert answer["model_spec"]["name"] == "answers"
    assert answer["model_spec"]["version"] == "1"
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    text = signatures["serving_default"]["inputs"]["text"]
    assert text["dtype"] == "DT_STRING"
    assert text["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }
    assert signatures["tokens"]["outputs"]["sum"]["dtype"] == "DT_INT32"
    assert signatures["echo"]["method_name"] == "tensorflow/serving/predict"
    assert ask(url, path=f"{MODEL}/versions/1/metadata") == (200, answer)


def tokens(**changes):
    return {"signature_name": "tokens", "inputs": {**TOKENS, **changes}}


def echo(**changes):
    row = {
        "whether": True,
        "byte": 1,
        "whole": 1,
        "natural": 1,
        "single": 1,
        "double": 1,
    }
    return {"signature_name": "echo", "instances": [{**row, **changes}]}


LISTS = b"[" * 100_000 + b"]" * 100_000
# Name -> (request, status, words of the message).
BAD_REQUESTS = {
    "nothing": (b"", 400, "The document is empty"),
    "not JSON": (b"good", 400, "JSON Parse error"),
    "cut": (b'{"instances": ["go', 400, "JSON Parse error"),
    "more behind": (b'{"instances": ["a"]} x', 400, "JSON Parse error"),
    "half a character": (b'{"instances": ["\\ud83d"]}', 400, "surrogate"),
    "its other half": (b'{"instances": ["\\udc80"]}', 400, "surrogate"),
    "a list": ([], 400, "Is not object"),
    "null": (None, 400, "Is not object"),
    "no rows key": ({}, 400, "Missing 'inputs' or 'instances' key"),
    "both keys": ({"instances": ["a"], "inputs": ["a"]}, 400, "only one of"),
    "rows in no list": ({"instances": "a"}, 400, "to be an list/array"),
    "rows in an object": ({"instances": {"text": "a"}}, 400, "list/array"),
    "no rows": ({"instances": []}, 400, "No values in 'instances' array"),
    "number for text": ({"instances": [5]}, 400, "not of expected type: string"),
    "null for text": ({"instances": [None]}, 400, "Type: Null"),
    "list for text": ({"instances": [["a"]]}, 400, None),
    "long list for text": ({"instances": [{"text": ["a", "b"]}]}, 400, None),
    "unknown key": ({"instances": [{"txt": "a"}]}, 400, "named input: txt"),
    "one key more": ({"instances": [{"text": "a", "b": 1}]}, 400, "named input: b"),
    "no key": ({"instances": [{}]}, 400, "keys"),
    "unknown column": ({"inputs": {"txt": ["a"]}}, 400, "Missing named input: text"),
    "value after object": ({"instances": [{"text": "a"}, "b"]}, 400, "at item 1"),
    "object after value": ({"instances": ["a", {"text": "b"}]}, 400, "at item 1"),
    "value for two inputs": (
        {"signature_name": "pairs", "instances": ["a"]},
        400,
        "instances is a plain list",
    ),
    "column for two inputs": (
        {"signature_name": "pairs", "inputs": ["a"]},
        400,
        "inputs is a plain value/list",
    ),
    "half a pair": (
        {"signature_name": "pairs", "instances": [{"text": "a"}]},
        400,
        "text,text_b",
    ),
    "pairs of two sizes": (
        {"signature_name": "pairs", "inputs": {"text": ["a", "b"] * 3, "text_b": "b"}},
        None,
        None,
    ),
    "signature": (
        {"signature_name": "classify", "instances": ["a"]},
        400,
        'Serving signature name: "classify" not found in signature def',
    ),
    "signature is a number": (
        {"signature_name": 5, "instances": ["a"]},
        400,
        "'signature_name' key must be a string value",
    ),
    "signature without inputs": (
        {"signature_name": "__saved_model_init_op", "instances": ["a"]},
        400,
        "Failed to get input map",
    ),
    "base64": ({"instances": [{"b64": "a"}]}, 400, "Unable to base64 decode"),
    "base64 of other letters": ({"instances": [{"b64": "%%%%"}]}, 400, "base64"),
    "base64 is a number": ({"instances": [{"text": {"b64": 5}}]}, 400, "base64"),
    "object for text": ({"instances": [{"text": {"a": "b"}}]}, 400, "base64"),
    "ragged rows": (
        {
            "signature_name": "tokens",
            "instances": [
                {"input_ids": [1], "input_mask": [1], "segment_ids": [0]},
                {"input_ids": [1, 2], "input_mask": [1, 1], "segment_ids": [0, 0]},
            ],
        },
        400,
        "Expecting tensor size: 1 but got: 2",
    ),
    "ragged columns": (tokens(input_ids=[[1, 2, 3], [1]]), 400, "unexpected size: 1"),
    "level of a value": (tokens(input_ids=[[1, 2, 3], 5]), 400, "incorrect level"),
    "level of a list": (tokens(input_ids=[[1, 2, [3]]]), 400, "unexpected level"),
    "fraction": (tokens(input_ids=[[1.5]]), 400, "not of expected type: int32"),
    "text for number": (tokens(input_ids=[["a"]]), 400, "not of expected type: int32"),
    "too large": (tokens(input_ids=[[2**31]]), 400, "not of expected type: int32"),
    "huge": (tokens(input_ids=[[10**400]]), 400, None),
    "too small": (echo(natural=-1), 400, "not of expected type: uint64"),
    "true for number": (echo(whole=True), 400, "Type: True"),
    "number for true": (echo(whether=1), 400, "not of expected type: bool"),
    "text for a fraction": (echo(single="1"), 400, "not of expected type: float"),
    "digits lost": (echo(single=2**24), 400, "without loss of precision"),
    "beyond float": (echo(single=1e39), 400, "without loss of precision"),
    "beyond double": (echo(double=2**53), 400, "without loss of precision"),
    "object for number": (echo(whole={"b64": "aGk="}), 400, "Type: Object"),
    "type without JSON": ({"signature_name": "half", "instances": [1]}, 501, "half"),
    "wrong for the graph": (
        {"signature_name": "picky", "instances": [-1]},
        400,
        "too small",
    ),
    "no rows come out": (
        {"signature_name": "total", "instances": [1]},
        400,
        "has no shape information",
    ),
    "other rows come out": (
        {"signature_name": "uneven", "instances": [1]},
        400,
        "inconsistent batch size",
    ),
}


def assert_error(answer, status, words):
    got, value = answer
    assert got == status if status else got in (400, 500), value
    assert list(value) == ["error"] and isinstance(value["error"], str)
    assert (words or "") in value["error"], value
    assert len(value["error"]) < 10_000


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_request(url, name):
    request, status, words = BAD_REQUESTS[name]
    assert_error(predict(url, request), status, words)


# Requests that would crash TF Serving, or whose messages are our own.
OWN_BAD_REQUESTS = {
    "deep lists": (b'{"instances": ' + LISTS + b"}", 400, None),
    "deep enough": (b'{"instances": [' + b"[" * 500 + b"]" * 500 + b"]}", 400, None),
    "digits": (b'{"instances": [' + b"9" * 10_000 + b"]}", 400, "JSON Parse error"),
    "byte range": (echo(byte=128), 400, "not of expected type: int8"),
    "rank": (tokens(input_ids=[1, 2]), 400, "has shape [2]"),
    "scalar": ({"inputs": {"text": "a"}}, 400, "has shape []"),
    "long value": ({"instances": [{"text": {"x": "y" * 1_000_000}}]}, 400, "base64"),
    "odd key": (b'{"instances": [{"\xff": 1}]}', 400, "named input"),
    "odd signature": (b'{"signature_name": "\xff", "instances": [1]}', 400, "name"),
}


@pytest.mark.parametrize("name", OWN_BAD_REQUESTS)
def test_bad_request_to_our_own_server(own_url, name):
    request, status, words = OWN_BAD_REQUESTS[name]
    assert_error(predict(own_url, request), status, words)


def test_what_the_graph_says_comes_without_what_python_says(own_url):
    status, value = predict(own_url, BAD_REQUESTS["wrong for the graph"][0])
    assert status == 400
    assert value["error"].startswith("assertion failed: [too small")


def test_lists_as_deep_as_python_can_read(own_url):
    for depth in range(940, 1000):
        lists = b"[" * depth + b"]" * depth
        answer = predict(own_url, b'{"instances": 5, "more": ' + lists + b"}")
        assert_error(answer, 400, None)


GOOD = json.dumps({"instances": ["good"]}).encode()
# (method, path) -> (status, words).
BAD_PATHS = {
    ("POST", "/v1/models/other:predict"): (404, "not found for request: Latest(other)"),
    ("POST", f"{MODEL}/versions/7:predict"): (404, "Specific(answers, 7)"),
    ("POST", f"{MODEL}/labels/stable:predict"): (400, "version label: stable"),
    ("POST", f"{MODEL}/versions/{2**63}:predict"): (400, "Failed to convert version"),
    ("POST", f"{MODEL}/versions/{'9' * 5000}:predict"): (400, "Failed to convert"),
    ("POST", f"{MODEL}/versions/one:predict"): (400, "Malformed request: POST"),
    ("POST", f"{MODEL}:explain"): (400, "Malformed request: POST"),
    ("POST", MODEL): (400, "Malformed request: POST"),
    ("GET", f"{MODEL}:predict"): (400, "Malformed request: GET"),
    ("GET", f"{MODEL}/weights"): (400, "Malformed request: GET"),
    ("GET", "/v1/models/other"): (404, "Could not find any versions of model other"),
    ("GET", f"{MODEL}/versions/7"): (404, "Could not find version 7 of model answers"),
    ("GET", "/v1/models/other/metadata"): (404, "Latest(other)"),
    ("GET", f"{MODEL}/versions/7/metadata"): (404, "Specific(answers, 7)"),
    ("GET", "/v1/models"): (400, "Missing model name"),
    ("PUT", f"{MODEL}:predict"): (400, "Malformed request: PUT"),
    ("DELETE", MODEL): (400, "Malformed request: DELETE"),
}


@pytest.mark.parametrize("where", BAD_PATHS, ids=lambda where: " ".join(where)[:60])
def test_bad_path(url, where):
    assert_error(ask(url, *where, GOOD), *BAD_PATHS[where])


def test_a_path_that_is_none(own_url):
    assert_error(ask(own_url, "OPTIONS", "*"), 404, None)


@pytest.mark.parametrize("path", ["/none", "/v2/models/answers", "/favicon.ico", "/v1"])
def test_other_paths_are_not_found(own_url, path):
    assert_error(ask(own_url, "GET", path), 404, "Not found")


@pytest.mark.parametrize("method", ["classify", "regress"])
def test_only_predict_is_there(own_url, method):
    assert_error(ask(own_url, "POST", f"{MODEL}:{method}", GOOD), 501, method)


def test_what_is_written_is_json_as_python_writes_it():
    """Rows are written one by one, so that other threads can run."""
    for value in (
        {"predictions": [{"a": [1.5, None], "é": "\u2028"}, [], {}]},
        {"outputs": {"x": [[1], [2]], "y": []}},
        {},
        [],
        [math.inf, "a"],
        "text",
        {"error": 'a "quoted" text'},
    ):
        text = json_tensors.dump(value).decode()
        assert text == json.dumps(value, ensure_ascii=False)


def test_shortest_digits_in_any_number_of_dimensions():
    array = np.array([0.1, 0.2, 1 / 3, 1e-7, 16777216], np.float32)
    digits = [0.1, 0.2, 0.33333334, 1e-7, 16777216.0]
    for shape in ((5,), (1, 5), (5, 1), (1, 1, 5)):
        lists = json_tensors.to_columns({"x": array.reshape(shape)})
        assert lists == np.array(digits).reshape(shape).tolist()
    empty = np.zeros([2, 0], np.float32)
    assert json_tensors.to_columns({"x": empty}) == [[], []]


def test_half_a_character_is_no_text():
    with pytest.raises(RequestError, match="surrogate"):
        specs = {"text": tf.TensorSpec([None], tf.string)}
        json_tensors.read_rows(["\ud800"], specs)
