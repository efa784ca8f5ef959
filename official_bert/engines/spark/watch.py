"""A thread that notices when a standalone cluster has lost all its workers.

Spark itself waits for workers without limit.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

# A worker starts within this time, also as a replacement.
SECONDS_WITHOUT_WORKERS = 60
SECONDS_BETWEEN_LOOKS = 1


class Watcher:
    """Monitors the workers in a thread.

    Attributes:
      reason: a sentence after it has canceled all jobs, else None.
    """

    def __init__(self, context: "SparkContext"):
        self.reason: str | None = None
        self._context = context
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()

    def run(self) -> None:
        """Monitor the workers until `stop`; cancel all jobs if there are none."""
        from py4j.protocol import Py4JError

        alone, had_workers = 0, False
        # Spark may stop during a check at the end.
        with contextlib.suppress(Py4JError, OSError):
            while not self._stopped.wait(SECONDS_BETWEEN_LOOKS):
                # This process is one of them.
                scala = self._context._jsc.sc()
                num_workers = len(scala.statusTracker().getExecutorInfos()) - 1
                had_workers = had_workers or num_workers > 0
                alone = 0 if num_workers else alone + SECONDS_BETWEEN_LOOKS
                if alone >= SECONDS_WITHOUT_WORKERS:
                    self.reason = _reason(had_workers)
                    self._context.cancelAllJobs()
                    return


def _reason(had_workers):
    if had_workers:
        return (
            "All Spark workers are lost, and none returned within "
            f"{SECONDS_WITHOUT_WORKERS} seconds. Start workers, then repeat the "
            "command."
        )
    return (
        f"No Spark worker accepted the job within {SECONDS_WITHOUT_WORKERS} "
        "seconds. Start workers, stop other applications, or request less "
        "memory with --spark_conf=spark.executor.memory=1g."
    )


@contextlib.contextmanager
def watched(context: "SparkContext", master: str) -> Iterator[Watcher]:
    """Monitor the workers of a standalone master; yield the `Watcher`."""
    watcher = Watcher(context)
    if master.startswith("spark://"):
        threading.Thread(target=watcher.run, daemon=True).start()
    try:
        yield watcher
    finally:
        watcher.stop()
