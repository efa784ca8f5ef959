"""Metrics of a server for Prometheus, with the names of TensorFlow Serving.

Times are in microseconds. The names are those of `servables/tensorflow/util.cc`, with a
colon for each slash, as TensorFlow Serving's exporter writes them.
"""

import prometheus_client
from prometheus_client.exposition import CONTENT_TYPE_LATEST

PATH = "/monitoring/prometheus/metrics"
CONTENT_TYPE = CONTENT_TYPE_LATEST
_PREFIX = ":tensorflow:serving:"
# The bounds of TensorFlow Serving: 10 microseconds times powers of 1.8.
_TIMES = [round(10 * 1.8**power, 3) for power in range(33)]
_ROWS = [2**power for power in range(11)]
# HTTP status -> the name that TensorFlow Serving gives it. Others are "UNKNOWN".
_NAMES = {
    200: "OK",
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Metrics:
    """Counts and times of one model's requests."""

    def __init__(self, model_name: str):
        """Create the metrics; each has the label `model_name`."""
        prometheus_client.disable_created_metrics()
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        self._name = model_name
        self._requests = prometheus_client.Counter(
            _PREFIX + "request_count",
            "Number of requests, by model and status.",
            ["model_name", "status"],
            registry=self._registry,
        )
        self._latency = prometheus_client.Histogram(
            _PREFIX + "request_latency",
            "Microseconds from a request to its response.",
            ["model_name", "API", "entrypoint"],
            registry=self._registry,
            buckets=_TIMES,
        )
        self._runtime = prometheus_client.Histogram(
            _PREFIX + "runtime_latency",
            "Microseconds of TensorFlow, for each batch.",
            ["model_name", "API", "runtime"],
            registry=self._registry,
            buckets=_TIMES,
        )
        self._rows = prometheus_client.Histogram(
            _PREFIX + "batching_session:processed_batch_size",
            "Rows of each computed batch.",
            ["model_name"],
            registry=self._registry,
            buckets=_ROWS,
        )

    def count_request(self, status: int, seconds: float) -> None:
        """Count a request of `predict`, with its HTTP status and its time."""
        name = _NAMES.get(status, "UNKNOWN")
        self._requests.labels(self._name, name).inc()
        self._latency.labels(self._name, "Predict", "REST").observe(seconds * 1e6)

    def count_batch(self, rows: int, seconds: float) -> None:
        """Count a computed batch."""
        self._rows.labels(self._name).observe(rows)
        self._runtime.labels(self._name, "Predict", "TF2").observe(seconds * 1e6)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        text = prometheus_client.generate_latest(self._registry)
        # The library adds _total to each counter; TensorFlow Serving does not.
        return text.replace(b"request_count_total", b"request_count")
