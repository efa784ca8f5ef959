"""External worker pools of Beam: a probe before the job, and monitoring during it.

Beam waits without limit for a worker that does not start, and its job server
also waits for a lost worker. Therefore a small job first checks that workers
start and import this package, and a job is repeated after the loss of a pool.
"""

import functools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging

from official_bert.engines import worker_errors
from official_bert.errors import UserError

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

SECONDS_TO_CONNECT = 2
SECONDS_TO_START = 30
SECONDS_BETWEEN_LOOKS = 1


class PoolLostError(Exception):
    """A pool was reachable at the start of a job, but is not reachable now."""


def addresses_of(options: "PipelineOptions | None") -> list[str]:
    """Return the `host:port` of each external worker pool; [] for other workers.

    Several pools share one gRPC address, such as
    `ipv4:10.0.0.1:50000,10.0.0.2:50000`.
    """
    from apache_beam.options.pipeline_options import PortableOptions

    if options is None:
        return []
    portable = options.view_as(PortableOptions)
    if (portable.environment_type or "").upper() != "EXTERNAL":
        return []
    address = portable.environment_config or portable.lookup_environment_option(
        "external_service_address", ""
    )
    return [one for one in address.removeprefix("ipv4:").split(",") if one]


def is_reachable(address: str) -> bool:
    """Return whether a `host:port` accepts connections from this machine."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError):
        return False
    return True


def check_job_server(options: "PipelineOptions") -> None:
    """Raise `UserError` unless the job server in the options responds."""
    from apache_beam.options.pipeline_options import PortableOptions

    address = options.view_as(PortableOptions).job_endpoint
    if address and address != "embed" and not is_reachable(address):
        raise UserError(
            f"--beam_options: no job server responds at --job_endpoint={address}. "
            "Start it, or correct the address."
        )


def check_workers(options: "PipelineOptions", addresses: Sequence[str]) -> None:
    """Run a small job; raise `UserError` unless a worker starts and has this package.

    Args:
      options: Beam's options, with external worker pools.
      addresses: of the pools, for messages.
    """
    import apache_beam as beam

    def look(_):
        # A nested function is pickled as code, not as a name in this package.
        import official_bert.engines.steps
        import official_bert.engines.word_sums  # noqa: F401

    pipeline = beam.Pipeline(options=options)
    _ = pipeline | "Probe" >> beam.Create([None]) | "Look" >> beam.Map(look)
    pools = ", ".join(addresses)
    try:
        _finish(pipeline, [], SECONDS_TO_START)
    except TimeoutError as error:
        raise UserError(
            f"--beam_options: no worker of the pool at {pools} started within "
            f"{SECONDS_TO_START} seconds. Check that the pool runs, that the "
            "job server can reach it, and that its Python has apache-beam. See "
            "the pool's log."
        ) from error
    except Exception as error:
        if "failed to connect" in str(error):
            raise UserError(
                "--beam_options: the job server cannot connect to the worker "
                f"pool at {pools}. Start the pool, or correct "
                "--environment_config."
            ) from error
        missing = worker_errors.missing_package(str(error))
        if not missing:
            raise
        raise UserError(
            f"--beam_options: the Python of the worker pool at {pools} lacks "
            f"the package {missing}. Install this project's wheel and its "
            "dependencies there."
        ) from error


def run(
    make_pipeline: "Callable[[], beam.Pipeline]",
    options: "PipelineOptions",
    addresses: Sequence[str],
) -> Any:
    """Run a pipeline on external pools; repeat it after the loss of a pool.

    Args:
      options: Beam's options.
      addresses: of the pools, not empty.
      make_pipeline: function that returns the `beam.Pipeline`, called for each
        attempt.

    Returns:
      Beam's state of the pipeline.

    Raises:
      UserError: no worker starts, a worker lacks a package, or all pools are
        lost.
    """
    check_job_server(options)
    check_workers(options, addresses)
    # Pools inside a cluster may not be reachable from this machine.
    watched = [address for address in addresses if is_reachable(address)]
    while True:
        try:
            return _finish(make_pipeline(), watched, None)
        except PoolLostError as error:
            lost = str(error)
            watched.remove(lost)
            if not watched:
                raise UserError(
                    "--beam_options: all worker pools are lost; the last one "
                    f"was {lost}. Start pools, then repeat the command."
                ) from error
            logging.warning(
                "The worker pool at %s is lost; the job starts again.", lost
            )


def _finish(pipeline, watched, seconds):
    """Run a pipeline; return its state.

    Raises:
      PoolLostError: its text is the address of the pool.
      TimeoutError: the pipeline takes longer than `seconds`.
    """
    result = pipeline.run()
    outcome: list[Callable[[], Any]] = []
    waiting = threading.Thread(target=_wait, args=(result, outcome), daemon=True)
    waiting.start()
    end = time.monotonic() + seconds if seconds else None
    while not outcome:
        waiting.join(SECONDS_BETWEEN_LOOKS)
        lost = next((one for one in watched if not is_reachable(one)), None)
        is_late = end is not None and time.monotonic() > end
        if (lost or is_late) and not outcome:
            result.cancel()
            raise PoolLostError(lost) if lost else TimeoutError
    try:
        return outcome[0]()
    except Exception as error:
        lost = next((one for one in watched if not is_reachable(one)), None)
        if lost:
            raise PoolLostError(lost) from error
        raise


def _wait(result, outcome):
    """Wait for a pipeline; add a function that returns its state or raises."""
    try:
        state = result.wait_until_finish()
    except Exception as error:
        outcome.append(functools.partial(_raise, error))
    else:
        outcome.append(lambda: state)


def _raise(error):
    raise error
