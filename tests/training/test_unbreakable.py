"""`run_pretraining.py` as users run it: stopped, damaged, changed, and resumed.

Tests that must act on a running command start a separate process. All other commands
run one after the other in one process, because TensorFlow starts slowly.
"""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess

import numpy as np
import pretraining_runs as runs
import processes
import pytest
import record_files
import tensorflow as tf
from commands.script_runs import assert_refused, run_many
from pretraining_runs import EVERY, LOG, STEPS
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, names
from official_bert.data.records.record_set import open_record_set

pytestmark = pytest.mark.slow

# The step of the copies that are damaged and resumed.
HALT = STEPS - EVERY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("unbreakable")


@pytest.fixture(scope="module")
def flags(folder):
    return {**runs.write_inputs(folder), "do_eval": True}


def at_once(*functions):
    """Call functions two at a time; return their results."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda function: function(), functions))


@pytest.fixture(scope="module")
def stopped(folder, flags):
    """A complete run, and (status, output) of two stopped runs.

    SIGTERM comes during training, Ctrl-C while the first checkpoint is evaluated.
    """

    def in_evaluation(process):
        runs.wait_for_file(process, folder / f"ctrl_c/model.ckpt-{EVERY}.index")

    return at_once(
        lambda: runs.run(flags | {"output_dir": folder / "whole"}),
        lambda: runs.stop(
            flags | {"output_dir": folder / "term"},
            signal.SIGTERM,
            lambda process: runs.wait_for(process, f"step {LOG}/"),
        ),
        lambda: runs.stop(
            flags | {"output_dir": folder / "ctrl_c"}, signal.SIGINT, in_evaluation
        ),
    )


@pytest.fixture(scope="module")
def whole(folder, stopped):
    """The output directory of an undisturbed run."""
    return folder / "whole"


def step_of(output):
    """Return the step in the message of a stopped run."""
    sentence = r"Stopped at step (\d+) and saved\. To resume, repeat the command\."
    (step,) = re.findall(sentence, output)
    return int(step)


@pytest.mark.parametrize(("place", "status"), [("term", 0), ("ctrl_c", 130)])
def test_a_stopped_run_saves_and_says_so(folder, stopped, place, status):
    found, output = stopped[("whole", "term", "ctrl_c").index(place)]
    assert found == status, output
    assert "Traceback" not in output
    step = step_of(output)
    assert LOG <= step < STEPS
    assert names.numbered_checkpoints(folder / place)[-1] == step
    assert runs.tensors(folder / place / f"model.ckpt-{step}")["global_step"] == step
    assert not (folder / place / "bert_model.ckpt.index").exists()


@pytest.fixture(scope="module")
def continued(folder, flags, stopped):
    """Resume the run after SIGTERM, and meanwhile start the command once more.

    Returns both outputs. The first process is paused while the second one tries.
    """
    again = flags | {"output_dir": folder / "term"}
    with processes.running(runs.start(again)) as (process,):
        runs.wait_for(process, "The run in ")
        process.send_signal(signal.SIGSTOP)
        refused = runs.run(again, status=1)
        process.send_signal(signal.SIGCONT)
        return runs.end(process), refused


def test_after_sigterm_the_same_command_ends_as_if_undisturbed(
    folder, stopped, continued
):
    runs.assert_same_end(folder / "term", folder / "whole")
    assert MINI_CONFIG.hidden_dropout_prob == 0.1


def test_after_sigterm_rows_are_there_once(folder, stopped, continued):
    runs.assert_same_rows(folder / "term", folder / "whole", step_of(stopped[1][1]))
    evaluations = (runs.rows(folder / name, "eval_loss") for name in ("term", "whole"))
    assert next(evaluations) == next(evaluations)


def test_a_second_process_in_the_directory_is_refused(folder, continued):
    _, refused = continued
    sentence = runs.error_of(refused)
    assert "another process is using" in sentence
    assert str(folder / "term") in sentence


@pytest.fixture(scope="module")
def halted(folder, flags, whole):
    """Function: name -> a copy of the complete run, reset to step `HALT`."""

    def copy(name):
        place = folder / name
        shutil.copytree(whole, place)
        google.delete_checkpoint(str(place / f"model.ckpt-{STEPS}"))
        google.delete_checkpoint(str(place / "bert_model.ckpt"))
        # The model improves all the time, so the newest checkpoint is the best.
        loss = runs.rows(whole, "eval_loss")[HALT]["eval_loss"]
        best = {"step": HALT, "loss": loss}
        (place / "best_checkpoint.json").write_text(json.dumps(best))
        return place

    return copy


@pytest.fixture(scope="module")
def otherwise_computed(flags, halted):
    """The output of a run that resumes with other threads, XLA and micro-batches."""
    changes = {"do_eval": False, "micro_batch_size": 8, "xla": True}
    number = 2 if len(os.sched_getaffinity(0)) == 1 else 1
    return runs.run(
        flags | changes | {"output_dir": halted("environment")},
        TF_NUM_INTRAOP_THREADS=str(number),
    )


@pytest.fixture(scope="module")
def history(folder, otherwise_computed):
    """The environments of that run."""
    return json.loads((folder / "environment/training.json").read_text())["history"]


def test_another_way_to_compute_is_told(folder, otherwise_computed, history):
    words = r"Resuming, not bit-exact because .*micro_batch_size was 0 and is 8; .*xla"
    assert re.search(words, otherwise_computed)
    assert [part["from_step"] for part in history] == [0, HALT]
    assert [part["environment"]["deterministic"] for part in history] == [False] * 2
    for name, values in {"micro_batch_size": [0, 8], "xla": [False, True]}.items():
        assert [part["environment"][name] for part in history] == values
    assert names.numbered_checkpoints(folder / "environment")[-1] == STEPS


def test_another_number_of_threads_is_told(otherwise_computed, history):
    assert "intra_op_threads was " in otherwise_computed
    before, after = (part["environment"]["intra_op_threads"] for part in history)
    assert before != after


@pytest.fixture(scope="module")
def disk(folder):
    """A small disk to fill; None if this machine cannot mount one."""
    place = folder / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        yield None
        return
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def full(flags, disk, halted):
    """The output of a run on a full disk; its checkpoints before and after."""
    if disk is None:
        return None
    place = halted("disk/run")
    before = checkpoints(place)
    room = disk / "filled"
    room.write_bytes(bytes(shutil.disk_usage(disk).free - 40 * 1024))
    output = runs.run(flags | {"output_dir": place}, status=1)
    room.unlink()
    return output, before, checkpoints(place)


def checkpoints(directory):
    found = runs.contents(directory)
    return {path: found[path] for path in found if "ckpt-" in path.name}


def test_a_full_disk_is_one_sentence(full):
    if full is None:
        pytest.skip("mounting a small disk needs root")
    output, before, after = full
    sentence = runs.error_of(output)
    assert "No space left on the disk" in sentence
    assert f"model.ckpt-{STEPS}" in sentence
    assert after == before


def cut(path):
    """Truncate a file to its first half."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DATA, INDEX = "data-00000-of-00001", "index"
# name -> [(harm, step, ending), …]: the damage to a finished run.
DAMAGE = {
    "damaged": [(cut, 80, DATA), (flip, 60, DATA), (cut, 40, INDEX)],
    "all": [(cut, step, DATA) for step in range(EVERY, STEPS + 1, EVERY)],
}

# name -> (changed flags, words of the message).
CHANGED = {
    "batch": ({"train_batch_size": 8}, "train_batch_size 16, and now it is 8."),
    "rate": ({"learning_rate": 1e-3}, "learning_rate 0.005, and now it is 0.001."),
    "steps": ({"num_train_steps": 84}, "num_train_steps 80, and now it is 84."),
    "optimizer": ({"optimizer": "lamb"}, "optimizer 'adam', and now it is 'lamb'."),
    "start": (
        {"init_checkpoint": "whole"},
        "init_checkpoint None, and now it is 'whole'.",
    ),
    "fewer files": ({"input_file": "records/0.tfrecord"}, " and now it is [6615])."),
    "longer file": ({"input_file": "longer/*.tfrecord"}, "input_bytes [6615, 6300]"),
    "activation": (
        {"bert_config_file": "relu.json"},
        "bert_config: hidden_act 'gelu', and now it is 'relu'.",
    ),
}

# Flags that may change together when a run resumes with other settings.
OTHERWISE = {
    "train_batch_size": 8,
    "learning_rate": 1e-3,
    "num_train_steps": 100,
    "bert_config_file": "relu.json",
    "input_file": "longer/*.tfrecord",
    "init_checkpoint": "whole",
}

# name -> (flags, words of the message): runs that cannot begin like this.
NO_START = {
    "from nothing": (
        {"continue_from": "records"},
        "--continue_from: records holds no checkpoint of a training run",
    ),
    "from its end": (
        {"continue_from": "whole"},
        f"whole is at step {STEPS}, but this run ends at step {STEPS}",
    ),
    "from past its end": (
        {"continue_from": "whole", "stop_at_step": HALT},
        f"whole is at step {STEPS}, but this run ends at step {HALT}",
    ),
}

ALONE = {"do_eval": False}
STEP_BY_STEP = {
    "num_train_steps": 2,
    "num_warmup_steps": 1,
    "save_checkpoints_steps": 1,
    "iterations_per_loop": 1,
}
FAILING = {
    "init_checkpoint": "nan.ckpt",
    "max_skipped_updates": 3,
    "save_checkpoints_steps": 2,
    "iterations_per_loop": 1,
}
# The learning rate rises with every step, until the model diverges.
GETTING_WORSE = {
    "learning_rate": 2.0,
    "num_train_steps": 30,
    "num_warmup_steps": 30,
    "save_checkpoints_steps": 10,
    "keep_checkpoint_max": 1,
}


def write_changed_inputs(folder, whole):
    """Write the files for the flags above."""
    relu = {**MINI_CONFIG.to_dict(), "hidden_act": "relu"}
    (folder / "relu.json").write_text(json.dumps(relu))
    (folder / "longer").mkdir()
    shutil.copy(folder / "records/1.tfrecord", folder / "longer/1.tfrecord")
    records = record_files.mini_records(0)
    record_files.write(folder / "longer/0.tfrecord", [*records, records[0]])
    weights = runs.tensors(whole / "bert_model.ckpt")
    weights["bert/embeddings/LayerNorm/gamma"][3] = np.nan
    google.write_checkpoint(str(folder / "nan.ckpt"), weights)


def lose_last_evaluation(directory):
    """Delete the last evaluation, like a kill between a checkpoint and evaluation."""
    path = directory / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if f'{{"step": {HALT}, "eval_' not in line]
    assert len(kept) == len(lines) - 1
    path.write_text("".join(kept))
    loss = runs.rows(directory, "eval_loss")[HALT - EVERY]["eval_loss"]
    best = {"step": HALT - EVERY, "loss": loss}
    (directory / "best_checkpoint.json").write_text(json.dumps(best))


def harmed_runs(folder, whole, halted):
    """Return name -> flags of runs that resume from damaged files."""
    for name, harms in DAMAGE.items():
        shutil.copytree(whole, folder / name)
        for harm, step, ending in harms:
            harm(folder / name / f"model.ckpt-{step}.{ending}")
    lose_last_evaluation(halted("no evaluation"))
    flip(halted("one kept") / f"model.ckpt-{HALT}.{DATA}")
    return {
        **{name: ALONE for name in DAMAGE},
        "no evaluation": {},
        "one kept": ALONE | {"keep_checkpoint_max": 1, "stop_at_step": HALT - 10},
        "one kept, again": ALONE | {"keep_checkpoint_max": 1, "output_dir": "one kept"},
        "ctrl_c": {},
    }


def changed_runs(halted):
    """Return name -> flags of runs that resume with other settings."""
    for name in ("unchanged", "otherwise"):
        halted(name)
    allowed = ALONE | {"allow_changed_settings": True}
    lamb = allowed | {"optimizer": "lamb"}
    return {
        **{
            f"other {name}": ALONE | changes | {"output_dir": "unchanged"}
            for name, (changes, _) in CHANGED.items()
        },
        "another optimizer": lamb | {"output_dir": "unchanged"},
        "otherwise": allowed | OTHERWISE,
    }


def new_runs():
    """Return name -> flags of runs in new directories."""
    weights = ALONE | STEP_BY_STEP | {"init_checkpoint": "whole"}
    return {
        **{f"new {name}": ALONE | changes for name, (changes, _) in NO_START.items()},
        "second phase": ALONE | {"continue_from": "unchanged"},
        "weights": weights | {"stop_at_step": 1},
        "weights, again": weights | {"output_dir": "weights"},
        "not finite": FAILING,
        "worse": GETTING_WORSE,
    }


@pytest.fixture(scope="module")
def results(folder, flags, whole, halted, full):
    """Name -> status and output of all commands that run one after the other."""
    write_changed_inputs(folder, whole)
    commands = {
        **harmed_runs(folder, whole, halted),
        **changed_runs(halted),
        **new_runs(),
    }
    if full is not None:
        commands["disk/run"] = ALONE
    before = {name: runs.contents(folder / name) for name in ("unchanged", "all")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        done = run_many(
            "run_pretraining",
            {
                name: {"arguments": runs.arguments(flags | {"output_dir": name} | each)}
                for name, each in commands.items()
            },
            folder,
        )
    return done | {"before": before}


def said(results, name):
    """Return the output of a command, which must have succeeded."""
    assert results[name]["status"] == 0, results[name]["stderr"]
    return results[name]["stdout"]


def test_after_ctrl_c_the_same_command_ends_as_if_undisturbed(folder, whole, results):
    said(results, "ctrl_c")
    runs.assert_same_end(folder / "ctrl_c", whole)


def test_after_ctrl_c_the_evaluation_it_broke_off_is_made_up(folder, whole, results):
    evaluations = runs.rows(folder / "ctrl_c", "eval_loss")
    assert evaluations == runs.rows(whole, "eval_loss")


def test_after_a_full_disk_the_same_command_ends_as_if_undisturbed(
    folder, whole, full, results
):
    if full is None:
        pytest.skip("mounting a small disk needs root")
    said(results, "disk/run")
    runs.assert_same_end(folder / "disk/run", whole)
    runs.assert_same_rows(folder / "disk/run", whole)


def test_a_run_goes_on_from_the_newest_whole_checkpoint(folder, whole, results):
    output = said(results, "damaged")
    for _, step, _ in DAMAGE["damaged"]:
        words = f"damaged/model.ckpt-{step} is damaged. Resuming from model.ckpt-20."
        assert words in output
    assert "The run in damaged resumes at step 20." in output
    runs.assert_same_end(folder / "damaged", whole)
    runs.assert_same_rows(folder / "damaged", whole)


def test_where_all_are_damaged_nothing_is_touched(folder, results):
    assert_refused(
        results["all"], ["no checkpoint in all can be read", "model.ckpt-20"]
    )
    assert runs.contents(folder / "all") == results["before"]["all"]


def test_a_damaged_checkpoint_takes_the_place_of_no_good_one(folder, whole, results):
    """With `--keep_checkpoint_max=1` it is newer than the one that the run uses."""
    said(results, "one kept")
    assert f"resumes at step {HALT - 10}." in said(results, "one kept, again")
    runs.assert_same_end(folder / "one kept", whole)


def test_an_evaluation_that_a_kill_took_is_made_up(folder, whole, results):
    said(results, "no evaluation")
    place = folder / "no evaluation"
    assert runs.rows(place, "eval_loss") == runs.rows(whole, "eval_loss")
    best = [(run / "best_checkpoint.json").read_text() for run in (place, whole)]
    assert best[0] == best[1]


@pytest.mark.parametrize("name", list(CHANGED))
def test_changed_settings_are_refused(results, name):
    words = ["unchanged holds a run with", CHANGED[name][1], "--allow_changed_settings"]
    assert_refused(results[f"other {name}"], words)


def test_what_does_not_fit_is_refused_even_if_changes_are_allowed(results):
    words = ["different model or optimizer", "lamb_m", "--optimizer"]
    assert_refused(results["another optimizer"], words)


def test_a_refused_run_is_as_it_was(folder, results):
    """The run that --continue_from names also stays unchanged."""
    assert runs.contents(folder / "unchanged") == results["before"]["unchanged"]


def test_changed_settings_that_are_allowed(folder, whole, results):
    output = said(results, "otherwise")
    assert "Continuing with changed settings: " in output
    for change in (
        "train_batch_size was 16 and is 8",
        "learning_rate was 0.005 and is 0.001",
        "num_train_steps was 80 and is 100",
        "bert_config: hidden_act was 'gelu' and is 'relu'",
        "init_checkpoint was None and is 'whole'",
        "num_records was 41 and is 42",
    ):
        assert change in output
    assert f"resumes at step {HALT}." in output
    found = runs.rows(folder / "otherwise")
    assert list(found)[-1] == 100
    for step, row in runs.rows(whole).items():
        assert (found[step] == row) == (step <= HALT)
    rate = 1e-3 * (1 - (HALT + LOG - 1) / 100)
    assert found[HALT + LOG]["learning_rate"] == pytest.approx(rate)
    settings = json.loads((folder / "otherwise/training.json").read_text())["settings"]
    assert settings["learning_rate"] == 1e-3


@pytest.mark.parametrize("name", list(NO_START))
def test_runs_that_cannot_be_continued_elsewhere(results, name):
    assert_refused(results[f"new {name}"], [NO_START[name][1]])


def test_a_run_continued_in_another_directory_is_one_run(folder, whole, results):
    words = f"Continuing from step {HALT} of unchanged, with its weights and moments."
    assert words in said(results, "second phase")
    place = folder / "second phase"
    runs.assert_same_end(place, whole)
    left = {step: row for step, row in runs.rows(whole).items() if step > HALT}
    assert runs.rows(place) == left and left[HALT + LOG]["learning_rate"] > 0


def test_init_checkpoint_is_weights_only(folder, whole, results):
    """The first step has learning rate 0 and shows its moments."""
    assert "Initialized" in said(results, "weights")
    first = runs.tensors(folder / "weights/model.ckpt-1")
    assert first["global_step"] == 1
    assert runs.rows(folder / "weights")[1]["learning_rate"] == 0.0
    weights = runs.tensors(whole / "bert_model.ckpt")
    runs.assert_equal({name: first[name] for name in weights}, weights)
    # Starting from zeros, m = 0.1 g and v = 0.001 g².
    for name in weights:
        m, v = (first[f"{name}/{slot}"] for slot in ("adam_m", "adam_v"))
        np.testing.assert_allclose(v, 0.1 * np.square(m), rtol=1e-4, atol=1e-20)
    assert np.any(first["bert/embeddings/word_embeddings/adam_m"])


def test_init_checkpoint_is_read_once(folder, results):
    output = said(results, "weights, again")
    assert "resumes at step 1." in output and "Initialized" not in output
    assert list(runs.rows(folder / "weights")) == [1, 2]


def test_gradients_that_are_not_finite_end_the_run(folder, results):
    words = ["not finite in 3 consecutive steps, from step 0 on", "records/0.tfrecord"]
    assert_refused(results["not finite"], words)
    found = runs.rows(folder / "not finite")
    assert [row["skipped_in_row"] for row in found.values()] == [1.0, 2.0, 3.0]
    assert found[3]["loss"] is None and found[3]["gradient_norm"] is None
    # JSON cannot represent the model's values after that step.
    assert set(runs.rows(folder / "not finite", "eval_loss")) == {2}
    assert not (folder / "not finite/best_checkpoint.json").exists()


def test_the_batch_to_blame_is_kept(folder, results):
    error = results["not finite"]["stderr"]
    path = folder / "not finite/not_finite_batch-0.tfrecord"
    saved = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    named = []
    for numbers, file in re.findall(r"([\d, ]+) of (\S+/[01]\.tfrecord)", error):
        records = [record.numpy() for record in tf.data.TFRecordDataset(file)]
        named += [records[int(number)] for number in numbers.split(", ")]
    assert sorted(saved) == sorted(named) and len(saved) == 16
    data = open_record_set(str(folder / "records/*.tfrecord"), MINI_CONFIG)
    batch = next(iter(data.training_batches(16, seed=12345, first_batch=0)))
    kept = open_record_set(str(path), MINI_CONFIG)
    assert_same_batch(batch, next(iter(kept.evaluation_batches(16, max_batches=1))))


def assert_same_batch(one, other):
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_skipped_updates_change_nothing(folder, results):
    assert names.numbered_checkpoints(folder / "not finite") == [2]
    found = runs.tensors(folder / "not finite/model.ckpt-2")
    weights = runs.tensors(folder / "nan.ckpt")
    runs.assert_equal({name: found[name] for name in weights}, weights)
    moments = [name for name in found if name.endswith(("adam_m", "adam_v"))]
    assert len(moments) == 2 * len(weights)
    assert not any(np.any(found[name]) for name in moments)


def test_the_best_checkpoint_is_kept_besides_the_newest(folder, results):
    said(results, "worse")
    evaluations = runs.rows(folder / "worse", "eval_loss")
    best = min(evaluations, key=lambda step: evaluations[step]["eval_loss"])
    assert best == 10
    assert names.numbered_checkpoints(folder / "worse") == [10, 30]
