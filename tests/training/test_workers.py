"""`run_pretraining.py` with two workers: equal to two devices, stopped, killed."""

import re
import shutil
import signal

import pretraining_runs as runs
import processes
import pytest
from pretraining_runs import LOG, STEPS

from official_bert.checkpoints import names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def flags(folder):
    return {**runs.write_inputs(folder), "do_eval": True}


def start_both(*flags):
    """Start two workers with possibly different flags; do not check their status."""
    pairs = zip(processes.cluster(), flags, strict=True)
    return processes.running(
        *[runs.start(each, TF_CONFIG=config) for config, each in pairs]
    )


def ends(workers, limit=processes.TIMEOUT):
    """Return (status, output) of each; `TimeoutExpired` if one does not end."""
    for worker in workers:
        worker.wait(limit)
    return [(worker.returncode, worker.stdout.read()) for worker in workers]


@pytest.fixture(scope="module")
def devices(folder, flags):
    """Output directory of an undisturbed process with two devices."""
    place = folder / "devices"
    two = {"strategy": "mirrored", "num_devices": 2}
    runs.run(flags | two | {"output_dir": place})
    return place


@pytest.fixture(scope="module")
def stopped(folder, flags):
    """(status, output) of two workers, after a SIGTERM to the second one."""
    own = flags | {"output_dir": folder / "run"}
    with start_both(own, own) as workers:
        runs.wait_for(workers[0], f"step {LOG}/")
        workers[1].send_signal(signal.SIGTERM)
        return ends(workers)


def test_sigterm_to_one_stops_both_at_one_step(folder, stopped):
    sentences = set()
    for status, output in stopped:
        assert status == 0, output[-3000:]
        assert "Traceback" not in output
        sentences |= {line for line in output.splitlines() if "Stopped at" in line}
    (sentence,) = sentences
    step = names.numbered_checkpoints(folder / "run")[-1]
    assert LOG <= step < STEPS
    assert f"Stopped at step {step} and saved." in sentence


@pytest.fixture(scope="module")
def killed(folder, flags, stopped):
    """(status, output) of the same two workers, after the second one was killed."""
    own = flags | {"output_dir": folder / "run"}
    with start_both(own, own) as workers:
        runs.wait_for(workers[0], "step ")
        workers[1].kill()
        return ends(workers, limit=60)


def test_a_worker_tells_that_another_was_killed(folder, killed):
    (status, output), (other, _) = killed
    assert (status, other) == (1, -signal.SIGKILL)
    sentence = runs.error_of(output)
    step = names.numbered_checkpoints(folder / "run")[-1]
    assert "Worker 0 lost another worker. Start all workers again" in sentence
    assert f"The run resumes from step {step}." in sentence
    assert "Traceback" not in output


@pytest.fixture(scope="module")
def ended(folder, flags, killed):
    """Output directory of the same two workers, restarted and run to the end."""
    own = flags | {"output_dir": folder / "run"}
    with start_both(own, own) as workers:
        for status, output in ends(workers):
            assert status == 0, output[-3000:]
            assert "resumes at step " in output
    return folder / "run"


def test_two_workers_end_as_two_devices_that_nobody_disturbed(devices, ended):
    runs.assert_same_end(ended, devices)


def test_the_rows_of_two_workers_are_those_of_two_devices(devices, ended, stopped):
    assert runs.rows(ended, "eval_loss") == runs.rows(devices, "eval_loss")
    step = int(re.search(r"Stopped at step (\d+)", stopped[0][1]).group(1))
    runs.assert_same_rows(ended, devices, step)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["learning_rate", "eval_input_file"])
def test_workers_with_different_flags_do_not_train(flags, ended, tmp_path, name):
    before = runs.contents(ended)
    own = flags | {"output_dir": ended, "eval_input_file": flags["input_file"]}
    other = {"learning_rate": 1e-3, "eval_input_file": tmp_path / "other.tfrecord"}
    first = flags["input_file"].replace("*", "0")
    shutil.copy(first, other["eval_input_file"])
    with start_both(own, own | {name: other[name]}) as workers:
        (chief, first), (other, second) = ends(workers, limit=90)
    assert (chief, other) == (1, 1)
    assert "Worker 1 was started with other flags" in runs.error_of(second)
    assert "lost another worker" in runs.error_of(first)
    assert runs.contents(ended) == before
