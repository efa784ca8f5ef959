import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from official_bert.engines import workers
from official_bert.errors import UserError


def make_work(folder):
    """Return the work function of these tests; its result names the worker."""

    def work(task):
        if task == "sleep":
            with open(os.path.join(folder, str(os.getpid())), "w"):
                time.sleep(600)
        if task == "meet":
            (folder / str(os.getpid())).touch()
            _wait_until(lambda: len(os.listdir(folder)) == 2)
            return None, os.getpid()
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "mistake":
            raise UserError("Your mistake.")
        if task == "defect":
            raise KeyError("our defect")
        return task * task, os.getpid()

    return work


def test_one_worker_is_this_process():
    done = list(workers.run_tasks(make_work, ("",), iter([3, 4]), 1))
    assert done == [(9, os.getpid()), (16, os.getpid())]


def test_several_workers_do_each_task_once(tmp_path):
    tasks = ["meet", "meet", *range(20)]
    done = list(workers.run_tasks(make_work, (tmp_path,), iter(tasks), 2))
    squares = [square for square, _ in done if square is not None]
    assert sorted(squares) == [n * n for n in range(20)]
    processes = {process for _, process in done}
    assert len(processes) == 2 and os.getpid() not in processes
    assert not any(map(_is_alive, processes))


def test_tasks_are_read_as_workers_become_free(tmp_path):
    tasks = iter(range(100))
    results = workers.run_tasks(make_work, (tmp_path,), tasks, 2)
    next(results)
    assert next(tasks) <= 4
    results.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("task", "kind", "message"),
    [
        ("mistake", UserError, "^Your mistake.$"),
        ("defect", RuntimeError, "our defect"),
        ("die", UserError, "was killed by signal 9, which often means that the memory"),
    ],
)
def test_what_ends_a_worker_ends_the_work(task, kind, message):
    with pytest.raises(kind, match=message):
        list(workers.run_tasks(make_work, ("",), iter([task, 2, 3]), 2))


def test_worker_processes_end_with_a_parent_that_is_killed(tmp_path):
    program = (
        "import sys, official_bert.engines.workers as workers\n"
        "import test_worker_processes as own\n"
        "if __name__ == '__main__':\n"
        "    tasks = iter(['sleep', 'sleep'])\n"
        "    arguments = (sys.argv[1],)\n"
        "    list(workers.run_tasks(own.make_work, arguments, tasks, 2))\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    folder = tmp_path / "workers"
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, script, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    _wait_until(lambda: len(os.listdir(folder)) == 2)
    parent.kill()
    parent.wait()
    _wait_until(lambda: not any(map(_is_alive, map(int, os.listdir(folder)))))


def _wait_until(holds):
    limit = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


def _is_alive(process):
    """Return whether a process runs; one that waits to be reaped does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
