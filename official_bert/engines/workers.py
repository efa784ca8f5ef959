"""Work in several processes, which end with this one, whatever ends it."""

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from multiprocessing import connection
from typing import NamedTuple

from official_bert.errors import UserError

# New interpreters: a copy of this process would hold its memory and its locks.
_CONTEXT = multiprocessing.get_context("spawn")
_NO_TASK = object()


class _Worker(NamedTuple):
    process: multiprocessing.Process
    pipe: connection.Connection


def run_tasks(make_work, arguments, tasks, num_workers):
    """Do tasks, each by one of several workers.

    Args:
      make_work: function that is called once in each worker and returns the
        function, task -> result, that does the work there. It must be fit for
        pickle, as must tasks and results.
      arguments: tuple, of `make_work`.
      tasks: iterable; read as workers become free.
      num_workers: how many processes; with 1 the work is done in this one.

    Yields:
      the results, as they are done.

    Raises:
      UserError: what the work raised; or a worker was killed.
      RuntimeError: the work raised something else; it has the traceback.
    """
    if num_workers > 1:
        yield from _run_in_processes(make_work, arguments, tasks, num_workers)
        return
    work = make_work(*arguments)
    for task in tasks:
        yield work(task)


def _run_in_processes(make_work, arguments, tasks, num_workers):
    workers, idle, busy = [], [], {}
    try:
        tasks = iter(tasks)
        task = next(tasks, _NO_TASK)
        while busy or task is not _NO_TASK:
            while task is not _NO_TASK and len(busy) < num_workers:
                if not idle:
                    idle.append(_start(make_work, arguments))
                    workers.append(idle[0])
                worker = idle.pop()
                _send(worker, task, num_workers)
                busy[worker.pipe] = worker
                # Read while the workers work.
                task = next(tasks, _NO_TASK)
            for pipe in connection.wait(list(busy)):
                worker = busy.pop(pipe)
                result = _receive(worker, num_workers)
                idle.append(worker)
                yield result
    finally:
        _stop(workers)


def _start(make_work, arguments):
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(
        target=_serve, args=(theirs, make_work, arguments), daemon=True
    )
    with _without_interrupts():
        process.start()
    theirs.close()
    return _Worker(process, ours)


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


def _stop(workers):
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join()
        worker.pipe.close()


def _send(worker, task, num_workers):
    try:
        worker.pipe.send(task)
    except OSError as error:
        raise _killed(worker, num_workers) from error


def _receive(worker, num_workers):
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, OSError) as error:
        raise _killed(worker, num_workers) from error
    if kind is UserError:
        raise UserError(value)
    if kind is RuntimeError:
        raise RuntimeError(f"A worker process failed:\n{value}")
    return value


def _killed(worker, num_workers):
    worker.process.join()
    code = worker.process.exitcode
    how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    return UserError(
        f"A worker process {how}, as happens when the memory is full: run the same "
        f"command again, perhaps with fewer --num_workers than {num_workers}; what "
        "was finished is kept."
    )


def _serve(pipe, make_work, arguments):
    """Do tasks until there are no more; this is what a worker runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            try:
                work = work or make_work(*arguments)
                answer = None, work(task)
            except UserError as error:
                answer = UserError, str(error)
            except Exception:
                answer = RuntimeError, traceback.format_exc()
            pipe.send(answer)


def _end_with_parent():
    """End this process when its parent does, be it in the midst of a task."""
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
