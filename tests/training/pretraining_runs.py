"""Runs of `run_pretraining.py` on the small records, each in a separate process."""

import json
import pathlib
import time

import numpy as np
import processes
import record_files
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.training.logs.run_log import RATES

SCRIPT = pathlib.Path(__file__).parents[2] / "run_scripts" / "run_pretraining.py"
# Number of steps: of a run, between checkpoints, and between log lines.
STEPS, EVERY, LOG = 80, 20, 5
RUN_ID = "training/run_id"


def write_inputs(folder):
    """Write records and a config with dropout; return the flags of every run."""
    (folder / "records").mkdir()
    (folder / "config.json").write_text(MINI_CONFIG.to_json_string())
    return {
        "bert_config_file": folder / "config.json",
        "input_file": record_files.write_mini(folder / "records"),
        "do_train": True,
        "train_batch_size": 16,
        "eval_batch_size": 16,
        "learning_rate": 5e-3,
        "num_train_steps": STEPS,
        "num_warmup_steps": 10,
        "save_checkpoints_steps": EVERY,
        "iterations_per_loop": LOG,
    }


def arguments(flags):
    return [f"--{name}={value}" for name, value in flags.items()]


def start(flags, **environment):
    """Start the command on the CPU, because GPUs sum in any order."""
    environment = {"CUDA_VISIBLE_DEVICES": "-1", **environment}
    return processes.start(SCRIPT, *arguments(flags), **environment)


def wait_for(process, beginning):
    """Read the output of a process up to a line that begins with this text."""
    read = []
    for line in process.stdout:
        read.append(line)
        if line.startswith(beginning):
            return
    raise AssertionError(f"No line begins with {beginning!r}: {''.join(read)[-3000:]}")


def end(process, status=0):
    """Return the remaining output of a process, which must end with this status."""
    process.wait(processes.TIMEOUT)
    output = process.stdout.read()
    assert process.returncode == status, output[-3000:]
    assert "Traceback" not in output, output[-3000:]
    return output


def run(flags, status=0, **environment):
    """Run the command to its end and return its output."""
    with processes.running(start(flags, **environment)) as (process,):
        return end(process, status)


def stop(flags, number, moment):
    """Run the command and send it a signal; return its status and remaining output.

    Args:
      flags: dict of flags.
      number: number of the signal.
      moment: function of the process that returns at the right moment.
    """
    with processes.running(start(flags)) as (process,):
        moment(process)
        process.send_signal(number)
        process.wait(processes.TIMEOUT)
        return process.returncode, process.stdout.read()


def wait_for_file(process, path):
    """Wait until a process has written a file."""
    give_up = time.monotonic() + processes.TIMEOUT
    while not path.exists():
        assert process.poll() is None and time.monotonic() < give_up, path
        time.sleep(0.005)


def error_of(output):
    """Return the message with which a refused command ends."""
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and output.splitlines()[-1] == lines[0], output
    return lines[0]


def tensors(prefix):
    """Return a checkpoint's name -> array, without the run's id."""
    reader = tf.train.load_checkpoint(str(prefix))
    names = set(reader.get_variable_to_shape_map()) - {RUN_ID}
    return {name: reader.get_tensor(name) for name in names}


def assert_equal(ours, theirs):
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def assert_same_end(directory, whole, step=STEPS):
    """Check that two runs have bit-identical weights, moments and step."""
    ours, theirs = (tensors(run / f"model.ckpt-{step}") for run in (directory, whole))
    assert ours["global_step"] == step
    assert {name.rpartition("/")[2] for name in theirs} >= {"adam_m", "adam_v"}
    assert_equal(ours, theirs)


def rows(directory, kind="loss"):
    """Return step -> row of `metrics.jsonl`, with "loss" or "eval_loss"; each once."""
    found = {}
    for line in (directory / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line, parse_constant=_refuse)
        for name in RATES:
            row.pop(name, None)
        if kind in row:
            assert row["step"] not in found, row
            found[row["step"]] = row
    return found


def assert_same_rows(directory, whole, stop=None):
    """Check that all rows are those of the whole run, except rows split by a stop."""
    found, expected = rows(directory), rows(whole)
    assert set(found) == {*range(LOG, STEPS + 1, LOG)} | ({stop} - {None})
    for step, row in expected.items():
        if stop is None or not step - LOG < stop < step:
            assert found[step] == row


def _refuse(word):
    raise AssertionError(f"metrics.jsonl contains {word}, which is not JSON.")


def contents(directory):
    """Return path -> bytes of all files except the lock."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if path.name != ".lock"}
