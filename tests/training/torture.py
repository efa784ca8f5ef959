"""Kills pre-training runs and checks that they end like an uninterrupted run.

    python tests/training/torture.py --seed=12345

A run of `run_pretraining.py` is killed (SIGKILL) many times, during training and while
it writes files. Each time the same command resumes it. Its final state is compared, bit
for bit, with that of an undisturbed run: on one device and on two replicas. The exit
status is 1 if anything differs.
"""

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    from official_bert.command_line.tensorflow_start import start_tensorflow

    start_tensorflow()

import numpy as np  # noqa: E402
import record_files  # noqa: E402
import tensorflow as tf  # noqa: E402
from paused_run import SCRIPT, STAGES  # noqa: E402
from record_files import MINI, MINI_CONFIG  # noqa: E402

from official_bert.checkpoints import names  # noqa: E402
from official_bert.data.records.record_set import open_record_set  # noqa: E402
from official_bert.training.logs.run_log import RATES, read_metrics  # noqa: E402

PAUSED = TESTS / "training" / "paused_run.py"
SETTINGS = {
    "one device": ["--num_devices=1"],
    "two replicas": ["--strategy=mirrored", "--num_devices=2"],
}
BATCH = 16
SEED = 7
# Steps between checkpoints. Each kill gets the steps of two checkpoints.
EVERY = 5
SPACE = 2 * EVERY
# Stage of a kill during training, when no file is written.
TRAINING = "training"
# A run deletes nothing before it has more checkpoints than it keeps: five and the best.
DELETING = "old one half deleted"
EARLIEST_DELETING = 6 * EVERY // SPACE
# Kills after the last step, when only the restart can complete the work. First the last
# checkpoint is complete, but nothing after it. Then its evaluation is logged, but not
# recorded as the best. Then the model is being written.
AFTERWARDS = ("data and index", "best one not noted", "final model, no index")
# Time limit of a child in seconds.
LIMIT = 300
# Files that contain times, and files that contain the run's random id.
TIMED = ("metrics.jsonl", "run.json", "events")
OF_ONE_RUN = ("model.ckpt-", "training.json")
RUN_ID = "training/run_id"


@dataclasses.dataclass(frozen=True)
class Kill:
    """The moment of a kill.

    Attributes:
      stage: a name in `STAGES`, or `TRAINING`.
      step: step of the checkpoint being written; in training, the last reported step.
      delay: in training, seconds from that report to the signal.
    """

    stage: str
    step: int
    delay: float


def draw_kills(draw, in_training=4):
    """Return kills at every stage and some in training, in random order."""
    stages = [name for name in STAGES if name not in (DELETING, *AFTERWARDS)]
    stages += [TRAINING] * in_training
    draw.shuffle(stages)
    stages.insert(draw.randint(EARLIEST_DELETING, len(stages)), DELETING)
    last = (len(stages) + 1) * SPACE
    return place(stages, draw) + [Kill(stage, last, 0.0) for stage in AFTERWARDS]


def place(stages, draw):
    """Give each stage a random step within its own `SPACE`.

    A run may continue for some steps before a kill in training; the space allows this.
    """
    kills = []
    for number, stage in enumerate(stages):
        if stage == TRAINING:
            step = number * SPACE + draw.randint(1, EVERY)
        else:
            step = number * SPACE + EVERY * draw.randint(1, 2)
        kills.append(Kill(stage, step, draw.uniform(0, 0.03)))
    return kills


def total_steps(kills):
    """Return the number of steps of a run with room for these kills."""
    return -(-kills[-1].step // SPACE) * SPACE


def write_inputs(folder, config=MINI_CONFIG):
    """Write records and a model's config; return the flags for them."""
    (folder / "records").mkdir()
    records = record_files.write_mini(folder / "records", manifest=True)
    (folder / "config.json").write_text(config.to_json_string())
    return [
        f"--bert_config_file={folder / 'config.json'}",
        f"--input_file={records}",
        f"--vocab_file={MINI / 'vocab.txt'}",
        "--do_train",
        "--do_eval",
        f"--train_batch_size={BATCH}",
        f"--eval_batch_size={BATCH}",
        "--learning_rate=5e-3",
        f"--num_warmup_steps={EVERY}",
        f"--save_checkpoints_steps={EVERY}",
        "--iterations_per_loop=1",
        f"--seed={SEED}",
    ]


def start_child(command, log, environment):
    """Return a new Python process that leads a process group."""
    with open(log, "wb") as output:
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


@contextlib.contextmanager
def started(command, log):
    """Start a child in its own process group; yield it; end the whole group.

    Args:
      command: list of str.
      log: the file for the child's output.
    """
    # On GPUs, sums have no fixed order by default, so use the CPU.
    child = start_child(command, log, {"CUDA_VISIBLE_DEVICES": "-1", **os.environ})
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def run_to_end(flags, log):
    """Run the command undisturbed; raise `RuntimeError` if it fails."""
    with started([str(SCRIPT), *flags], log) as child:
        status = child.wait(timeout=LIMIT)
    if status != 0:
        raise RuntimeError(f"The run ended with status {status}:\n{tail(log)}")


def run_until(kill, flags, log):
    """Run the command and kill it at the given moment.

    Raises:
      RuntimeError: the command ended by itself, or the moment never came.
    """
    marker = log.with_suffix(".reached")
    marker.unlink(missing_ok=True)
    training = kill.stage == TRAINING
    command = [str(PAUSED), kill.stage, str(kill.step), str(marker)]
    if training:
        command = [str(SCRIPT)]
    line = f"step {kill.step}/".encode()
    give_up = time.monotonic() + LIMIT
    with started([*command, *flags], log) as child:
        while not (marker.exists() or training and line in log.read_bytes()):
            if child.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"The run never reached {kill}:\n{tail(log)}")
            time.sleep(0.001)
        if training:
            time.sleep(kill.delay)
        os.killpg(child.pid, signal.SIGKILL)
        if child.wait() != -signal.SIGKILL:
            raise RuntimeError(f"The run ended before {kill}:\n{tail(log)}")


def tail(log):
    """Return the end of a child's output."""
    return log.read_text(errors="replace")[-3000:]


def run_and_kill(kills, flags, directory, log):
    """Kill a run at each moment in order, then let it end; print each kill."""
    for number, kill in enumerate(kills, 1):
        run_until(kill, flags, log)
        step = read_metrics(directory)[-1]["step"] if read_metrics(directory) else 0
        checkpoint = max(names.numbered_checkpoints(directory), default=0)
        print(
            f"kill {number:2}  {kill.stage:22}  at step {step:3}, "
            f"newest checkpoint {checkpoint:3}",
            flush=True,
        )
    run_to_end(flags, log)


def run_both(setting, kills, inputs, folder):
    """Run the command undisturbed, and once more with kills.

    Args:
      setting: a name in `SETTINGS`.
      kills: list of `Kill`, by step.
      inputs: from `write_inputs`.
      folder: parent of both output directories.

    Returns:
      both output directories, the undisturbed one first.
    """
    directories = folder / "undisturbed", folder / "killed"
    for directory, its_kills in zip(directories, ([], kills), strict=True):
        flags = [
            *inputs,
            *SETTINGS[setting],
            f"--num_train_steps={total_steps(kills)}",
            f"--output_dir={directory}",
        ]
        run_and_kill(its_kills, flags, directory, folder / "log")
    return directories


def digest(parts):
    """Return the hex SHA-256 of an iterable of bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()


def digest_of_arrays(arrays):
    """Return the hex SHA-256 of a dict of arrays: names, types, shapes, values."""
    parts = []
    for name in sorted(arrays):
        value = np.asarray(arrays[name])
        parts += [f"{name} {value.dtype} {value.shape}".encode(), value.tobytes()]
    return digest(parts)


def read_arrays(prefix):
    """Return a checkpoint's name -> array."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def metric_rows(directory):
    """Return the rows of `metrics.jsonl` as texts, without time-dependent fields."""
    rows = read_metrics(directory)
    for row in rows:
        for name in RATES:
            row.pop(name, None)
    return [json.dumps(row) for row in rows]


def digests_of_files(directory):
    """Return path -> hex SHA-256 of the files that every such run must leave.

    Folders, and files whose bytes differ between runs, have a text instead.
    """
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        same_bytes = path.is_file() and not name.startswith(OF_ONE_RUN)
        if not name.startswith(TIMED):
            found[name] = digest([path.read_bytes()]) if same_bytes else "present"
    return found


def state_of(directory):
    """Return the newest checkpoint as kind -> dict of name -> array."""
    last = names.numbered_checkpoints(directory)[-1]
    kinds = {"weights": {}, "adam_m": {}, "adam_v": {}, "global_step": {}}
    kinds["other state"] = {}
    for name, value in read_arrays(directory / f"model.ckpt-{last}").items():
        kind = name.rpartition("/")[2]
        if name.startswith("training/"):
            kind = "other state"
        elif kind not in kinds:
            kind = "weights"
        if name != RUN_ID:
            kinds[kind][name] = value
    return kinds


def summary(directory, records):
    """Return the final state of a run, as name -> hex SHA-256.

    Args:
      directory: its output directory.
      records: the run's `RecordSet`.
    """
    arrays = state_of(directory)
    step = int(arrays["global_step"]["global_step"])
    arrays["next batch"] = next(iter(records.training_batches(BATCH, SEED, step)))
    arrays["bert_model.ckpt"] = read_arrays(directory / "bert_model.ckpt")
    return {
        **{kind: digest_of_arrays(values) for kind, values in arrays.items()},
        "metrics.jsonl": digest(row.encode() for row in metric_rows(directory)),
        "other files": digest([json.dumps(digests_of_files(directory)).encode()]),
    }


def table(undisturbed, killed):
    """Return the `summary` of two runs as lines of text."""
    lines = [f"{'':16}  undisturbed   killed"]
    for name, value in undisturbed.items():
        equal = "equal" if killed[name] == value else "NOT EQUAL"
        lines.append(f"{name:16}  {value[:12]}  {killed[name][:12]}  {equal}")
    return lines


def differences(undisturbed, killed):
    """Return one line for each metric row and file in which two runs differ.

    Args:
      undisturbed: output directory of the undisturbed run.
      killed: output directory of the killed run.
    """
    leftovers = sorted(killed.rglob("*.tmp.*"))
    lines = [f"temporary file left: {path.relative_to(killed)}" for path in leftovers]
    rows = [collections.Counter(metric_rows(d)) for d in (undisturbed, killed)]
    lines += [f"missing row: {row:.60}…" for row in (rows[0] - rows[1]).elements()]
    lines += [f"extra row: {row:.60}…" for row in (rows[1] - rows[0]).elements()]
    left, right = (digests_of_files(d) for d in (undisturbed, killed))
    for name in sorted(left.keys() | right.keys()):
        what = "missing" if name not in right else "extra"
        if name in left and name in right:
            what = "different"
        if left.get(name) != right.get(name) and ".tmp." not in name:
            lines.append(f"{what} file: {name}")
    return lines


def torture(setting, kills):
    """Compare a killed run with an undisturbed one, and print the result.

    Returns:
      whether they are equal.
    """
    print(f"{setting}: {len(kills)} kills in {total_steps(kills)} steps", flush=True)
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = pathlib.Path(name)
        inputs = write_inputs(folder)
        directories = run_both(setting, kills, inputs, folder)
        records = open_record_set(str(folder / "records" / "*.tfrecord"), MINI_CONFIG)
        ends = [summary(directory, records) for directory in directories]
        found = differences(*directories)
    print(*table(*ends), *found, "", sep="\n", flush=True)
    return ends[0] == ends[1] and not found


def main():
    """Test every setting; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=12345, help="Seed of the kills.")
    parser.add_argument("--setting", choices=SETTINGS, help="Run only this setting.")
    given = parser.parse_args()
    # SIGTERM ends children and removes files, like Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    failed = 0
    for setting in [given.setting] if given.setting else SETTINGS:
        kills = draw_kills(random.Random(f"{given.seed} {setting}"))
        try:
            failed += not torture(setting, kills)
        except RuntimeError as error:
            print(error, flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
