"""External worker pools: missing or lost ones are noticed within seconds."""

import threading

import pytest

pytest.importorskip(
    "apache_beam", reason="Apache Beam is not installed: pip install apache-beam"
)

from engines import cluster_runs

from official_bert.engines.beam import pools
from official_bert.engines.beam import runs as beam_runs
from official_bert.errors import UserError

EXTERNAL = "--runner=PortableRunner --environment_type=EXTERNAL"


class Pipeline:
    """A pipeline that ends in a given state, or never."""

    def __init__(self, end=None):
        self.end, self.canceled = end, threading.Event()

    def run(self):
        return self

    def wait_until_finish(self):
        if self.end is None:
            self.canceled.wait()
            return "CANCELLED"
        return self.end()

    def cancel(self):
        self.canceled.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pools, "SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(pools, "SECONDS_TO_START", 0.05)


@pytest.fixture
def reachable(monkeypatch):
    """Return the list of reachable addresses, which tests change."""
    addresses = ["a:1", "b:2"]
    monkeypatch.setattr(pools, "is_reachable", lambda address: address in addresses)
    monkeypatch.setattr(pools, "check_workers", lambda options, addresses: None)
    return addresses


@pytest.mark.parametrize(
    "options, addresses",
    [
        ("--environment_config=h:1", ["h:1"]),
        ("--environment_config=ipv4:h:1,g:2", ["h:1", "g:2"]),
        ("--environment_option=external_service_address=h:1", ["h:1"]),
    ],
)
def test_addresses(options, addresses):
    made = beam_runs.make_options(f"{EXTERNAL} {options}")
    assert pools.addresses_of(made) == addresses
    docker = beam_runs.make_options("--environment_type=DOCKER")
    assert pools.addresses_of(docker) == pools.addresses_of(None) == []


def test_a_pool_that_starts_no_worker(monkeypatch):
    pipeline = Pipeline()
    monkeypatch.setattr(pools.worker_errors, "missing_package", lambda text: None)
    monkeypatch.setattr("apache_beam.Pipeline", lambda options: Stepless(pipeline))
    with pytest.raises(UserError, match="no worker of the pool at h:1 started"):
        pools.check_workers(None, ["h:1"])
    assert pipeline.canceled.is_set()


class Stepless:
    """Replaces a pipeline, without its steps."""

    def __init__(self, pipeline):
        self.run = pipeline.run

    def __or__(self, step):
        return self


@pytest.mark.parametrize(
    "text, sentence",
    [
        (
            "x\nModuleNotFoundError: No module named 'official_bert.engines'",
            "at h:1, g:2 lacks the package official_bert",
        ),
        ("failed to connect to all addresses", "cannot connect to the .* at h:1, g:2"),
    ],
)
def test_a_probe_that_fails(monkeypatch, text, sentence):
    def fail():
        raise RuntimeError(text)

    pipeline = Stepless(Pipeline(fail))
    monkeypatch.setattr("apache_beam.Pipeline", lambda options: pipeline)
    with pytest.raises(UserError, match=sentence):
        pools.check_workers(None, ["h:1", "g:2"])


def test_a_job_runs_again_after_the_loss_of_a_pool(reachable):
    made = []

    def make():
        made.append(Pipeline(None if not made else lambda: "DONE"))
        if len(made) == 1:
            reachable.remove("a:1")
        return made[-1]

    options = beam_runs.make_options(EXTERNAL)
    assert pools.run(make, options, ["a:1", "b:2"]) == "DONE"
    assert [one.canceled.is_set() for one in made] == [True, False]


def test_an_error_at_the_loss_of_a_pool_is_the_loss(reachable):
    def fail():
        reachable.clear()
        raise RuntimeError("Channel closed prematurely.")

    options = beam_runs.make_options(EXTERNAL)
    with pytest.raises(
        UserError, match="all worker pools are lost; the last one was b:2"
    ):
        pools.run(lambda: Pipeline(fail), options, ["b:2"])


def test_other_errors_stay_what_they_are(reachable):
    def fail():
        raise KeyError(3)

    options = beam_runs.make_options(EXTERNAL)
    with pytest.raises(KeyError):
        pools.run(lambda: Pipeline(fail), options, ["a:1"])


def test_a_job_server_that_is_not_there():
    address = f"127.0.0.1:{cluster_runs.free_port()}"
    options = beam_runs.make_options(f"{EXTERNAL} --job_endpoint={address}")
    with pytest.raises(UserError, match=f"no job server responds at .*{address}"):
        pools.check_job_server(options)
