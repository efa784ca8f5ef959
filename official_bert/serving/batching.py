"""Join the rows of waiting requests into batches, as TensorFlow Serving does.

A batch starts when a thread is free. With `batch_timeout_micros`, an incomplete batch
waits that long for more rows. Only requests of the same model and signature, with equal
shapes and texts of similar length, are joined, so that a short text is not padded to a
long one.

Joining requires that a row of outputs depends on the same row of inputs only, and that
its size does not depend on other rows. `is_joinable` checks what the signature shows.
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future

import numpy as np
from tensorflow.core.protobuf import meta_graph_pb2

from official_bert.serving.batching_parameters import BatchingParameters
from official_bert.serving.json_tensors import RequestError

Arrays = Mapping[str, np.ndarray]
Outputs = dict[str, np.ndarray]


def is_joinable(signature: meta_graph_pb2.SignatureDef) -> bool:
    """Return whether rows of several requests can be computed as one batch.

    All inputs and outputs need a first axis of any size, and the other axes of the
    outputs a fixed size. Otherwise, as with entities and token vectors, the shape of a
    response would depend on other requests.
    """
    inputs = [one.tensor_shape for one in signature.inputs.values()]
    outputs = [one.tensor_shape for one in signature.outputs.values()]
    for shape in (*inputs, *outputs):
        if shape.unknown_rank or not shape.dim or shape.dim[0].size != -1:
            return False
    return bool(inputs) and all(
        axis.size >= 0 for shape in outputs for axis in shape.dim[1:]
    )


def group_key(arrays: Arrays) -> Hashable:
    """Return what two requests must share to be joined: shapes, and length of texts.

    The longest texts of two requests with the same key differ by a factor of at most
    1.19, or have fewer than 128 bytes.
    """
    return tuple(
        (name, array.shape[1:], _length_class(array))
        for name, array in sorted(arrays.items())
    )


def _length_class(array):
    if array.dtype != object or not array.size:
        return None
    longest = max(len(text) for text in array.ravel())
    # The bits of this power grow at each factor of the fourth root of two.
    return max((longest**4).bit_length(), 28)


@dataclasses.dataclass(eq=False)
class _Waiting:
    """A request that waits."""

    compute: Callable[[Arrays], Outputs]
    arrays: Arrays
    rows: int
    arrival: float
    future: Future[Outputs]


class Batcher:
    """A queue of requests, and threads that compute them in batches."""

    def __init__(self, parameters: BatchingParameters):
        """Start the threads."""
        self._parameters = parameters
        # Requests in order of arrival. The first group is computed next.
        self._groups: dict[Hashable, collections.deque[_Waiting]] = {}
        self._rows = 0
        self._changed = threading.Condition()
        self._is_closed = False
        for number in range(parameters.num_batch_threads):
            threading.Thread(target=self._work, name=f"batch-{number}").start()

    def submit(
        self,
        compute: Callable[[Arrays], Outputs],
        identity: Hashable,
        arrays: Arrays,
    ) -> Future[Outputs]:
        """Queue a request.

        Args:
          compute: function of a dict of input name -> array [rows, ...] that returns a
            dict of output name -> array [rows, ...]. It is called in another thread.
          identity: says what `compute` computes. Only requests with equal identities
            are joined.
          arrays: the inputs.

        Returns:
          `Future` of this request's outputs.

        Raises:
          RequestError: the queue is full (503).
        """
        rows = len(next(iter(arrays.values())))
        limits = self._parameters
        most = limits.max_enqueued_batches * limits.max_batch_size
        waiting = _Waiting(compute, arrays, rows, time.monotonic(), Future())
        key = (identity, group_key(arrays))
        with self._changed:
            if self._rows and self._rows + rows > most:
                raise RequestError(
                    "The batch scheduling queue to which this task was submitted is "
                    f"full: {self._rows} of {most} rows. Send the request again later.",
                    503,
                )
            self._rows += rows
            self._groups.setdefault(key, collections.deque()).append(waiting)
            self._changed.notify()
        return waiting.future

    def close(self) -> None:
        """Let the threads end when they have computed the requests that wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _work(self):
        while (batch := self._next_batch()) is not None:
            # A canceled request is not computed.
            batch = [one for one in batch if one.future.set_running_or_notify_cancel()]
            if batch:
                self._answer(batch)
            del batch  # It must not stay in memory while the thread waits.

    def _next_batch(self):
        """Wait for a batch and return it; None after `close`."""
        with self._changed:
            while True:
                wait = None
                for key, group in self._groups.items():
                    wait = self._time_to_wait(group)
                    if wait <= 0:
                        return self._take(key, group)
                if self._is_closed:
                    return None
                # The first group has the shortest wait, except for complete batches.
                self._changed.wait(wait)

    def _time_to_wait(self, group):
        """Return the seconds that a group's first batch may still wait for rows."""
        if self._is_closed:
            return 0
        if sum(one.rows for one in group) >= self._parameters.max_batch_size:
            return 0
        longest = self._parameters.batch_timeout_micros / 1e6
        return group[0].arrival + longest - time.monotonic()

    def _take(self, key, group):
        """Remove and return the first batch of a group; its other requests go last."""
        batch = [group.popleft()]
        rows = batch[0].rows
        while group and rows + group[0].rows <= self._parameters.max_batch_size:
            batch.append(group.popleft())
            rows += batch[-1].rows
        self._rows -= rows
        del self._groups[key]
        if group:
            self._groups[key] = group
        return batch

    def _answer(self, batch):
        """Compute a batch; if that fails, compute its requests one by one."""
        if len(batch) > 1:
            try:
                results = self._joined(batch)
            except Exception:  # One invalid request must not fail the others.
                results = None
            if results:
                for one, outputs in zip(batch, results, strict=True):
                    one.future.set_result(outputs)
                return
        for one in batch:
            try:
                one.future.set_result(one.compute(one.arrays))
            except BaseException as error:
                one.future.set_exception(error)

    def _joined(self, batch):
        """Return the outputs of each request; None if they do not have its rows."""
        rows = sum(one.rows for one in batch)
        sizes = self._parameters.allowed_batch_sizes
        filled = next((size for size in sizes if size >= rows), rows)
        arrays = {}
        for name in batch[0].arrays:
            parts = [one.arrays[name] for one in batch]
            parts += [parts[-1][-1:]] * (filled - rows)
            arrays[name] = np.concatenate(parts)
        outputs = batch[0].compute(arrays)
        if any(value.shape[:1] != (filled,) for value in outputs.values()):
            return None
        ends = np.cumsum([one.rows for one in batch])
        return [
            {name: value[end - one.rows : end] for name, value in outputs.items()}
            for one, end in zip(batch, ends, strict=True)
        ]
