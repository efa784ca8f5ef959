"""Prometheus metrics of a server."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families
from serving.running import ask, predict, running

from official_bert.serving.batching_parameters import BatchingParameters

URL = "/monitoring/prometheus/metrics"


def read(url):
    with urllib.request.urlopen(url + URL, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    # The parser of the library adds _total to the names of counters.
    assert '\n:tensorflow:serving:request_count{model_name="answers"' in text
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


def test_requests_are_counted_by_status(versions):
    with running(versions, batching_parameters=BatchingParameters()) as url:
        for text in ("a", "b"):
            assert predict(url, {"instances": [text, text]})[0] == 200
        assert predict(url, {"instances": []})[0] == 400
        assert ask(url, path="/v1/models/answers")[0] == 200
        found = read(url)
    model = ("model_name", "answers")
    prefix = ":tensorflow:serving:"
    count = prefix + "request_count_total"
    assert found[count, (model, ("status", "OK"))] == 2
    assert found[count, (model, ("status", "INVALID_ARGUMENT"))] == 1
    labels = (("API", "Predict"), ("entrypoint", "REST"), model)
    assert found[prefix + "request_latency_count", labels] == 3
    assert 0 < found[prefix + "request_latency_sum", labels] < 60e6
    labels = (("API", "Predict"), model, ("runtime", "TF2"))
    assert found[prefix + "runtime_latency_count", labels] == 2
    rows = prefix + "batching_session:processed_batch_size_sum"
    assert found[rows, (model,)] == 4
    assert any(name == "process_resident_memory_bytes" for name, _ in found)


def test_another_method_is_refused(versions):
    with running(versions) as url:
        assert ask(url, "POST", URL, b"{}")[0] == 404
