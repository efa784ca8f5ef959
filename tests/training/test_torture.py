"""The short form of `make torture`, and a check that it detects differences."""

import os
import pathlib
import random
import shutil
import time

import numpy as np
import pytest
import torture
import warm_python
from paused_run import STAGES
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, names
from official_bert.data.records.record_set import open_record_set

STEPS = 30


@pytest.fixture(scope="module")
def warm():
    """Start children from a process that has already imported TensorFlow."""

    def start_child(command, log, environment):
        log.write_bytes(b"")
        return warm_python.start(command, env=environment, log=log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torture, "start_child", start_child)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory, warm):
    """Output directories of an undisturbed and a killed run; their records."""
    folder = tmp_path_factory.mktemp("torture")
    inputs = torture.write_inputs(folder)
    stages = ["SaveV2 done", torture.TRAINING, "data but no index"]
    kills = torture.place(stages, random.Random(1))
    undisturbed, killed = torture.run_both("one device", kills, inputs, folder)
    records = open_record_set(str(folder / "records" / "*.tfrecord"), MINI_CONFIG)
    return undisturbed, killed, records


@pytest.fixture(scope="module")
def before(runs):
    """The final state of the undisturbed run."""
    return torture.summary(runs[0], runs[2])


def test_killed_three_times_and_the_same_in_the_end(runs, before):
    undisturbed, killed, records = runs
    assert torture.differences(undisturbed, killed) == []
    assert torture.summary(killed, records) == before
    # The comparison covered a complete run with dropout.
    assert names.numbered_checkpoints(killed)[-1] == STEPS
    assert len(torture.metric_rows(killed)) == STEPS + STEPS // torture.EVERY
    assert MINI_CONFIG.hidden_dropout_prob == 0.1


def change(prefix, ending):
    """Change the last bit of the first number of a tensor with that name ending."""
    arrays = torture.read_arrays(prefix)
    name = min(name for name in arrays if name.endswith(ending))
    if arrays[name].dtype == np.float32:
        arrays[name].reshape(-1).view(np.int32)[0] ^= 1
    else:
        arrays[name] = arrays[name] + 1
    google.write_checkpoint(str(prefix), arrays)


def lose_last_row(directory):
    path = directory / "metrics.jsonl"
    path.write_text("".join(path.open().readlines()[:-1]))


def repeat_last_row(directory):
    path = directory / "metrics.jsonl"
    path.write_text(path.read_text() + path.open().readlines()[-1])


LAST = f"model.ckpt-{STEPS}"
# name -> (damage to the run, rows of the table, words of the lines).
HARM = {
    "weight": (lambda run: change(run / LAST, "/kernel"), {"weights"}, []),
    "adam_m": (lambda run: change(run / LAST, "/adam_m"), {"adam_m"}, []),
    "adam_v": (lambda run: change(run / LAST, "/adam_v"), {"adam_v"}, []),
    "step": (
        lambda run: change(run / LAST, "global_step"),
        {"global_step", "next batch"},
        [],
    ),
    "model": (
        lambda run: change(run / "bert_model.ckpt", "/kernel"),
        {"bert_model.ckpt", "other files"},
        ["different file: bert_model.ckpt.data", "different file: bert_model.ckpt.in"],
    ),
    "row lost": (lose_last_row, {"metrics.jsonl"}, ['missing row: {"step": 30, "eval']),
    "row twice": (repeat_last_row, {"metrics.jsonl"}, ["extra row: {"]),
    "leftover": (
        lambda run: (run / "model.ckpt-5.tmp.77").mkdir(),
        {"other files"},
        ["temporary file left: model.ckpt-5.tmp.77"],
    ),
    "orphan": (
        lambda run: (run / "model.ckpt-1.data-00000-of-00001").touch(),
        {"other files"},
        ["extra file: model.ckpt-1.data"],
    ),
    "no vocabulary": (
        lambda run: (run / "vocab.txt").unlink(),
        {"other files"},
        ["missing file: vocab.txt"],
    ),
}


@pytest.mark.parametrize("name", list(HARM))
def test_harm_is_noticed(runs, before, tmp_path, name):
    undisturbed, _, records = runs
    harm, rows, words = HARM[name]
    harmed = tmp_path / "harmed"
    shutil.copytree(undisturbed, harmed)
    harm(harmed)
    after = torture.summary(harmed, records)
    assert {row for row in before if before[row] != after[row]} == rows
    not_equal = [line for line in torture.table(before, after) if "NOT EQUAL" in line]
    assert len(not_equal) == len(rows)
    lines = torture.differences(undisturbed, harmed)
    assert len(lines) == len(words)
    for line, word in zip(lines, words, strict=True):
        assert line.startswith(word)


@pytest.mark.parametrize("seed", range(20))
def test_kills_are_at_every_stage_and_have_room(seed):
    kills = torture.draw_kills(random.Random(seed))
    assert kills == torture.draw_kills(random.Random(seed))
    assert kills != torture.draw_kills(random.Random(seed + 1))
    stages = [kill.stage for kill in kills]
    assert set(stages) == {*STAGES, torture.TRAINING}
    assert len(kills) >= 10 and stages.count(torture.TRAINING) >= 4
    assert tuple(stages[-3:]) == torture.AFTERWARDS
    steps = [kill.step for kill in kills]
    assert steps[-3:] == [torture.total_steps(kills)] * 3
    # A checkpoint is written between two kills.
    for number, kill in enumerate(kills[:-2]):
        assert kill.step // torture.SPACE - number in (0, 1)
        if kill.stage == torture.TRAINING:
            assert steps[number + 1] > kill.step
            assert kill.step <= number * torture.SPACE + torture.EVERY
        else:
            assert kill.step % torture.EVERY == 0
    deleting = steps[stages.index(torture.DELETING)]
    assert deleting // torture.EVERY > 6


def test_a_run_that_fails_is_told_of(tmp_path, warm):
    kill = torture.Kill(torture.TRAINING, 1, 0.0)
    with pytest.raises(RuntimeError, match="(?s)never reached .*no_such_flag"):
        torture.run_until(kill, ["--no_such_flag"], tmp_path / "log")
    with pytest.raises(RuntimeError, match="(?s)with status 2.*no_such_flag"):
        torture.run_to_end(["--no_such_flag"], tmp_path / "log")


def test_a_child_takes_its_children_with_it(tmp_path):
    """This happens if something goes wrong while it runs."""
    log = tmp_path / "log"
    code = "import subprocess; p = subprocess.Popen(['sleep', '300']); "
    code += "print(p.pid, flush=True); p.wait()"
    with pytest.raises(KeyboardInterrupt), torture.started(["-c", code], log) as child:
        while not log.read_text().endswith("\n"):
            assert child.poll() is None
        raise KeyboardInterrupt
    # Nobody waits for the child's child, so give it some time to end.
    deadline = time.monotonic() + 30
    pids = child.pid, int(log.read_text())
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


def is_running(pid):
    """Return whether a process runs; a zombie does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        # It ended meanwhile, unless this system has no such files at all.
        return not pathlib.Path("/proc/self/stat").exists()
