"""Work in several processes, which always end with this one.

`concurrent.futures` manages the processes. This module adds:

* A worker ends when its parent does. After `kill -9` it would wait forever.
* A failed run terminates its workers. They would finish their tasks first.
* The message about a killed worker names the signal.
"""

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, context
from typing import Any, TypeVar

from official_bert.errors import UserError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
# In a worker process, returns its function, task -> result.
_make_work: Callable[[], Callable[[Any], Any]]


def run_tasks(
    make_work: Callable[..., Callable[[_Task], _Result]],
    arguments: tuple[Any, ...],
    tasks: Iterable[_Task],
    num_workers: int,
) -> Iterator[_Result]:
    """Run tasks on several workers; yield the results as they finish.

    Args:
      make_work: function, called once in each worker, that returns the function
        task -> result. It, tasks and results must be picklable.
      arguments: tuple, arguments of `make_work`.
      tasks: iterable; read as workers become free, one task ahead.
      num_workers: number of processes; 1 runs the tasks in this process.

    Raises:
      UserError: raised by a task, or a worker was killed.
      RuntimeError: a task raised another exception, which is its cause.
    """
    if num_workers > 1:
        yield from _run_in_processes(make_work, arguments, tasks, num_workers)
        return
    work = make_work(*arguments)
    for task in tasks:
        yield work(task)


class _Context(context.SpawnContext):
    """Start new interpreters, and keep a list of them.

    A copy of this process (fork) would keep its memory and its locks.
    """

    def __init__(self):
        super().__init__()
        self.processes: list[context.SpawnProcess] = []

    def Process(self, *args, **kwargs):  # type: ignore[override] # It is a class there.
        self.processes.append(context.SpawnProcess(*args, **kwargs))
        return self.processes[-1]


def _run_in_processes(make_work, arguments, tasks, num_workers):
    spawning = _Context()
    executor = concurrent.futures.ProcessPoolExecutor(
        num_workers, spawning, _start_worker, (make_work, arguments)
    )
    unfinished = set()
    try:
        for task in tasks:
            with _without_interrupts():
                unfinished.add(executor.submit(_do, task))
            # One more than the workers, so that no worker waits for its next
            # task.
            if len(unfinished) > num_workers:
                yield from _take_results(unfinished)
        while unfinished:
            yield from _take_results(unfinished)
    except BrokenProcessPool as error:
        _stop(executor, spawning.processes)
        # The executor terminated the other workers because of it.
        codes = {
            status for process in spawning.processes if (status := process.exitcode)
        }
        code = next(iter(codes - {-signal.SIGTERM}), -signal.SIGTERM)
        how = f"ended with status {code}"
        if code < 0:
            how = f"was killed by signal {-code}"
        raise UserError(
            f"A worker process {how}, which often means that the memory was "
            "full. Repeat the command, with fewer --num_workers than "
            f"{num_workers} if it fails again. Finished parts are kept."
        ) from error
    finally:
        _stop(executor, spawning.processes)


def _take_results(unfinished):
    """Wait for a future; yield finished results and remove them from the set."""
    done, _ = concurrent.futures.wait(unfinished, return_when="FIRST_COMPLETED")
    unfinished -= done
    for future in done:
        error = future.exception()
        if error and not isinstance(error, (UserError, BrokenProcessPool)):
            raise RuntimeError(f"A worker process failed: {error!r}") from error
        yield future.result()


@contextlib.contextmanager
def _without_interrupts():
    """Let new processes ignore Ctrl-C, which a terminal sends to all of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(executor, processes):
    for process in processes:
        if process.is_alive():
            process.terminate()
    executor.shutdown(cancel_futures=True)


def _start_worker(make_work, arguments):
    """Prepare a worker process; exceptions are raised with its first task."""
    global _make_work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _make_work = functools.cache(lambda: make_work(*arguments))


def _do(task):
    return _make_work()(task)


def _end_with_parent():
    """End this process when its parent ends, even during a task."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
