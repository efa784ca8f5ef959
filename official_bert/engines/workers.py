"""Work in several processes, which end with this one, whatever ends it.

`concurrent.futures` manages the processes. What its pools do not offer stands here:
a worker ends when its parent does (after `kill -9` it would wait for ever), a run
that fails terminates its workers (they would finish their tasks first), and the
message about a worker that was killed names the signal.
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
# In a worker process, what returns its function, task -> result.
_make_work: Callable[[], Callable[[Any], Any]]


def run_tasks(
    make_work: Callable[..., Callable[[_Task], _Result]],
    arguments: tuple[Any, ...],
    tasks: Iterable[_Task],
    num_workers: int,
) -> Iterator[_Result]:
    """Do tasks, each by one of several workers; yield the results as they are done.

    Args:
      make_work: function that is called once in each worker and returns the
        function, task -> result, that does the work there. It must be fit for
        pickle, as must tasks and results.
      arguments: tuple, of `make_work`.
      tasks: iterable; read as workers become free, one task ahead.
      num_workers: how many processes; with 1 the work is done in this one.

    Raises:
      UserError: what the work raised; or a worker was killed.
      RuntimeError: the work raised something else, which is its cause.
    """
    if num_workers > 1:
        yield from _run_in_processes(make_work, arguments, tasks, num_workers)
        return
    work = make_work(*arguments)
    for task in tasks:
        yield work(task)


class _Context(context.SpawnContext):
    """Start new interpreters, and remember them.

    A copy of this process (fork) would hold its memory and its locks.
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
            # One more than there are workers, so that none waits for its next task.
            if len(unfinished) > num_workers:
                yield from _take_results(unfinished)
        while unfinished:
            yield from _take_results(unfinished)
    except BrokenProcessPool as error:
        _stop(executor, spawning.processes)
        # The others were terminated for it.
        codes = {
            status for process in spawning.processes if (status := process.exitcode)
        }
        code = next(iter(codes - {-signal.SIGTERM}), -signal.SIGTERM)
        how = f"ended with status {code}"
        if code < 0:
            how = f"was killed by signal {-code}"
        raise UserError(
            f"A worker process {how}, as happens when the memory is full: run the same "
            f"command again, perhaps with fewer --num_workers than {num_workers}; what "
            "was finished is kept."
        ) from error
    finally:
        _stop(executor, spawning.processes)


def _take_results(unfinished):
    """Wait for a future at least; yield what is done, and remove it from the set."""
    done, _ = concurrent.futures.wait(unfinished, return_when="FIRST_COMPLETED")
    unfinished -= done
    for future in done:
        error = future.exception()
        if error and not isinstance(error, (UserError, BrokenProcessPool)):
            raise RuntimeError(f"A worker process failed: {error!r}") from error
        yield future.result()


@contextlib.contextmanager
def _without_interrupts():
    """Let new processes ignore Ctrl-C, which all of a terminal's receive."""
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
    """Prepare a worker process; what it raises is raised with its first task."""
    global _make_work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _make_work = functools.cache(lambda: make_work(*arguments))


def _do(task):
    return _make_work()(task)


def _end_with_parent():
    """End this process when its parent does, be it in the midst of a task."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
