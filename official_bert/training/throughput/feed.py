"""Copying batches to the devices."""

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TypeVar

import tensorflow as tf

from official_bert.training import strategies

T = TypeVar("T")

# A call ends only after all its steps. A machine that is about to disappear gives a
# process about 30 seconds after SIGTERM.
MOST_STEPS_PER_CALL = 100


@dataclasses.dataclass(frozen=True)
class Feeding:
    """The way in which batches reach the devices.

    Attributes:
      ahead: whether a thread copies the next batch to the devices during a step.
      steps_per_call: maximum number of training steps per call.
    """

    ahead: bool = False
    steps_per_call: int = 1


def choose_feeding(
    strategy: tf.distribute.Strategy, iterations_per_loop: int
) -> Feeding:
    """Return the `Feeding` of a run.

    A CPU reads batches from the memory that they are already in. A thread that copies
    them would only take time from the step.

    Args:
      strategy: a `tf.distribute` strategy.
      iterations_per_loop: training steps between two log lines.
    """
    if strategies.is_tpu(strategy):
        return Feeding(True, min(iterations_per_loop, MOST_STEPS_PER_CALL))
    return Feeding(ahead=bool(tf.config.list_logical_devices("GPU")))


@contextlib.contextmanager
def one_ahead(elements: Iterator[T]) -> Iterator[Iterator[T]]:
    """Yield an iterator over the same elements that fetches one ahead in a thread.

    An exception of the thread is raised when its element is requested. When the block
    ends, the thread finishes the element that it is fetching and ends too.
    """
    end = object()

    with concurrent.futures.ThreadPoolExecutor(1, "next batch") as thread:

        def fetched():
            coming = thread.submit(next, elements, end)
            while (element := coming.result()) is not end:
                coming = thread.submit(next, elements, end)
                yield element

        yield fetched()


def stack(batches: Sequence[dict[str, tf.Tensor]], size: int) -> dict[str, tf.Tensor]:
    """Stack batches [rows, …] into one dict [size, rows, …], on the host.

    The last batch is repeated, so that calls with fewer batches have the same shapes.
    """
    filled = [*batches, *[batches[-1]] * (size - len(batches))]
    with tf.device("/device:CPU:0"):
        return {name: tf.stack([batch[name] for batch in filled]) for name in filled[0]}
