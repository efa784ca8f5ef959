"""A sweep keeps the best model, also after kills at any moment."""

import dataclasses
import itertools
import json
import os

import numpy as np
import pytest
import tensorflow as tf
from run_settings import changed, fine_tuning_settings, start_of

from official_bert import files
from official_bert.checkpoints import google, names
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning import sweep
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.task import ClassifierTask

STRATEGY = tf.distribute.get_strategy()
TASK = ClassifierTask("single_label", ("no", "yes"), ("f1", "accuracy"), 16)
ONE = Features(np.array([7, 40, 8], np.int32), np.zeros(3, np.int32), 1, 0)
SETTINGS = fine_tuning_settings(
    learning_rate=0.0,
    num_train_steps=0,
    num_warmup_steps=0,
    save_checkpoints_steps=1,
    iterations_per_loop=1,
    seed=0,
)
START = start_of()
# The best run is neither the first nor the last, and the third run has the same score.
F1 = {1: 0.5, 2: 0.75, 3: 0.75, 4: 0.25}


@pytest.fixture
def runs_made(monkeypatch):
    """Replace runs by ones that only write model files; return a list of their
    seeds."""
    made = []

    def fine_tune(strategy, job, settings):
        seed = settings.step.seed
        made.append(seed)
        directory = settings.output_dir
        os.makedirs(directory, exist_ok=True)
        wanted = (*fine_tuning.MODEL_FILES, "training.json")
        # A finished run with a complete model is not changed.
        if not all(os.path.exists(os.path.join(directory, name)) for name in wanted):
            for name in wanted:
                _write(directory, name, f"{name} of {seed}")
        for step in (10, 20):
            for ending in google.ENDINGS:
                _write(directory, f"model.ckpt-{step}{ending}", "moments")
        _write(directory, "metrics.jsonl", "")
        score = F1.get(seed, 0.1)
        return {
            "global_step": 20,
            "loss": 1.0,
            "f1": score,
            "accuracy": score / 2,
            "predicted_classes": 1 if seed == 4 else 2,
        }

    monkeypatch.setattr(fine_tuning, "fine_tune", fine_tune)
    # Nothing needs collecting, and a collection takes long.
    monkeypatch.setattr(sweep.gc, "collect", lambda: 0)
    return made


def _write(directory, name, text):
    with open(os.path.join(directory, name), "w") as output:
        output.write(text)


def run(directory, seeds=(1, 2, 3, 4), rates=(1e-4,), task=TASK, dev=1, **settings):
    trials = [
        sweep.Trial(
            changed(
                SETTINGS,
                output_dir=str(directory),
                learning_rate=rate,
                num_train_steps=20,
                seed=seed,
                **settings,
            ),
            2.0,
        )
        for rate in rates
        for seed in seeds
    ]
    job = classifier.make_job(START, task, [ONE], [[ONE]] * dev)
    return sweep.run_trials(STRATEGY, job, trials)


def folder(directory, seed, rate="0.0001"):
    return directory / f"batch-16_rate-{rate}_epochs-2_seed-{seed}"


def assert_holds_model_of(directory, seed):
    for name in fine_tuning.MODEL_FILES:
        assert (directory / name).read_text() == f"{name} of {seed}"


def assert_finished(directory, best=2, seeds=(1, 2, 3, 4)):
    """The best model exists; of the runs, only results and logs remain."""
    assert_holds_model_of(directory, best)
    manifest = (directory / "training.json").read_text()
    assert manifest == f"training.json of {best}"
    rows = json.loads((directory / "runs.json").read_text())
    assert [row["seed"] for row in rows] == list(seeds)
    assert [row["f1"] for row in rows] == [F1[seed] for seed in seeds]
    for seed in seeds:
        names = {path.name for path in folder(directory, seed).iterdir()}
        assert {"result.json", "metrics.jsonl"} <= names
        assert not {name for name in names if ".ckpt" in name}
    assert not list(directory.glob("**/*.tmp.*"))


def test_the_best_model_of_all_is_left(tmp_path, runs_made, capsys):
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)
    row = json.loads((tmp_path / "runs.json").read_text())[1]
    assert row == {
        "train_batch_size": 16,
        "learning_rate": 1e-4,
        "num_train_epochs": 2.0,
        "seed": 2,
        "global_step": 20,
        "loss": 1.0,
        "f1": 0.75,
        "accuracy": 0.375,
        "predicted_classes": 2,
    }
    out = capsys.readouterr().out
    assert "Run 2 of 4: batch-16_rate-0.0001_epochs-2_seed-2\n" in out
    assert "All 1 dev examples are predicted as the same label" in out
    assert out.endswith(
        "Best f1 0.7500: batch size 16, learning rate 0.0001, 2 epochs, seed 2.\n",
    )


def test_run_again_it_says_the_same_and_trains_nothing(tmp_path, runs_made, capsys):
    run(tmp_path)
    first = capsys.readouterr().out.splitlines()
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)
    again = capsys.readouterr().out.splitlines()
    assert again.count("Already finished: loss 1.000  accuracy 0.3750  f1 0.7500") == 2
    assert [line for line in again if not line.startswith("Already finished")] == first


def test_one_process_of_several_speaks(tmp_path, runs_made, monkeypatch, capsys):
    run(tmp_path)
    capsys.readouterr()
    monkeypatch.setattr(sweep.strategies, "is_chief", lambda strategy: False)
    assert run(tmp_path) is True
    assert capsys.readouterr().out == ""


def killed(monkeypatch, directory, module, name, when):
    """Run a sweep that is killed at the `when`-th call of a function."""
    function, calls = getattr(module, name), []

    def call(*args, **named):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        return function(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, call)
        with pytest.raises(KeyboardInterrupt):
            run(directory)


@pytest.mark.parametrize("when", [1, 2, 3])
def test_killed_while_a_run_trains(tmp_path, runs_made, monkeypatch, when):
    killed(monkeypatch, tmp_path, fine_tuning, "fine_tune", when)
    assert run(tmp_path) is True
    # Finished runs are not repeated.
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


@pytest.mark.parametrize("number", [1, 2])
def test_killed_before_the_result_of_a_moved_model(
    tmp_path, runs_made, monkeypatch, number
):
    """The models of some runs are moved; the third run has no model to move."""
    write_json = files.write_json

    def die(path, value):
        if path.endswith("result.json") and f"seed-{number}" in path:
            raise KeyboardInterrupt
        write_json(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_json", die)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert_holds_model_of(tmp_path, number)
    assert not (folder(tmp_path, number) / "result.json").exists()
    # The run can resume from its checkpoints.
    assert names.numbered_checkpoints(folder(tmp_path, number)) == [10, 20]
    assert run(tmp_path) is True
    assert runs_made.count(number) == 2
    assert_finished(tmp_path)


@pytest.mark.parametrize("number", range(1, 5))
def test_killed_before_the_weights_are_removed(
    tmp_path, runs_made, monkeypatch, number
):
    killed(monkeypatch, tmp_path, sweep, "_remove_weights", number)
    assert (folder(tmp_path, number) / "result.json").exists()
    assert names.numbered_checkpoints(folder(tmp_path, number)) == [10, 20]
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


@pytest.mark.parametrize("when", range(1, 7))
def test_killed_while_weights_are_removed(tmp_path, runs_made, monkeypatch, when):
    """The kill comes between any two of four checkpoint files and two model files."""
    run(tmp_path, (1, 2))
    remove, calls = os.remove, []

    def die(path):
        if "seed-3" in str(path):
            calls.append(path)
            if len(calls) == when:
                raise KeyboardInterrupt
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "remove", die)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


@pytest.mark.parametrize("when", range(1, 7))
def test_killed_while_the_model_is_moved(tmp_path, runs_made, monkeypatch, when):
    """Until the move ends, the output directory has files of two models."""
    run(tmp_path, (1,))
    replace, calls = os.replace, []

    def die(source, target):
        if os.path.dirname(target) == str(tmp_path) and "seed-2" in str(source):
            calls.append(target)
            if len(calls) == when:
                raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    # The directory must not be usable: old weights with the new task would be wrong.
    assert not (tmp_path / f"{names.MODEL_PREFIX}.index").exists()
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 2, 3, 4]
    assert_finished(tmp_path)


def test_killed_before_the_summary(tmp_path, runs_made, monkeypatch):
    # The first calls are the claim, and the result and summary of run 1.
    killed(monkeypatch, tmp_path, files, "write_json", 5)
    assert run(tmp_path) is True
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


def test_stopped_as_by_sigterm(tmp_path, runs_made, monkeypatch):
    with monkeypatch.context() as patch:
        fine_tune = fine_tuning.fine_tune
        patch.setattr(
            fine_tuning,
            "fine_tune",
            lambda *what: fine_tune(*what) if what[-1].step.seed < 3 else None,
        )
        assert run(tmp_path) is False
    assert not (folder(tmp_path, 3) / "result.json").exists()
    assert run(tmp_path) is True
    assert_finished(tmp_path)


def test_more_seeds_later(tmp_path, runs_made):
    run(tmp_path, (1,))
    assert_holds_model_of(tmp_path, 1)
    run(tmp_path, (1, 2))
    assert_finished(tmp_path, seeds=(1, 2))
    run(tmp_path)
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


def test_a_run_that_is_added_in_front_does_not_replace_a_better_one(
    tmp_path, runs_made
):
    """Weights of finished runs are deleted, so only the best model remains."""
    run(tmp_path, (2, 3))
    assert_holds_model_of(tmp_path, 2)
    run(tmp_path, (1, 2, 3))
    assert runs_made == [2, 3, 1]
    assert_finished(tmp_path, seeds=(1, 2, 3))


def test_another_run_s_directory_is_left_alone(tmp_path, runs_made):
    _write(tmp_path, fine_tuning.MODEL_FILES[-1], "precious")
    with pytest.raises(
        UserError, match="contains another run or a model. Choose another"
    ):
        run(tmp_path)
    assert (tmp_path / fine_tuning.MODEL_FILES[-1]).read_text() == "precious"
    assert runs_made == []
    assert {path.name for path in tmp_path.iterdir()} <= {
        ".lock",
        fine_tuning.MODEL_FILES[-1],
    }


@pytest.mark.parametrize(
    "change",
    [
        {"dev": 2},
        {"task": dataclasses.replace(TASK, max_seq_length=8)},
        {"task": dataclasses.replace(TASK, labels=("yes", "no"))},
    ],
)
def test_other_data_are_another_sweep(tmp_path, runs_made, change):
    run(tmp_path)
    with pytest.raises(UserError, match="other settings or data"):
        run(tmp_path, **change)
    assert runs_made == [1, 2, 3, 4]
    assert_finished(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dev": 2}, "num_dev_windows|dev_"),
        ({"task": dataclasses.replace(TASK, labels=("yes", "no"))}, "task"),
        ({"task": dataclasses.replace(TASK, metrics=("matthews",))}, "task"),
        ({"num_warmup_steps": 5}, "num_warmup_steps"),
        ({"precision": "bfloat16"}, "precision"),
        ({"early_stopping_patience": 3}, "early_stopping_patience"),
    ],
)
def test_runs_that_cannot_be_compared(tmp_path, runs_made, change, words):
    """A sweep accepts new seeds or learning rates, but not other data."""
    run(tmp_path, seeds=(1, 2))
    with pytest.raises(UserError, match=f"other settings or data \\(.*({words})"):
        run(tmp_path, seeds=(3, 4), **change)
    assert runs_made == [1, 2]
    run(tmp_path, seeds=(3, 4), rates=(5e-5,))
    assert runs_made == [1, 2, 3, 4]


def test_two_sweeps_at_once(tmp_path, runs_made):
    with (
        files.locked_directory(str(tmp_path)),
        pytest.raises(UserError, match="another process is using"),
    ):
        run(tmp_path)


def test_a_grid_of_rates_and_seeds(tmp_path, runs_made):
    run(tmp_path, (1, 2), (1e-4, 5e-5))
    assert runs_made == [1, 2, 1, 2]
    assert folder(tmp_path, 2, "5e-05").is_dir()
    rows = json.loads((tmp_path / "runs.json").read_text())
    assert [(row["learning_rate"], row["seed"]) for row in rows] == [
        (1e-4, 1),
        (1e-4, 2),
        (5e-5, 1),
        (5e-5, 2),
    ]


def row(seed, score, rate=1e-4, **others):
    cell = {"train_batch_size": 16, "learning_rate": rate, "num_train_epochs": 3.0}
    scores = {"f1": score, "accuracy": score / 2}
    return {**cell, "seed": seed, **scores, **others}


def test_summary_by_hand():
    """0.5, 0.7, 0.9: mean 0.7, standard deviation √((0.04 + 0 + 0.04) / 2) = 0.2."""
    rows = [
        row(1, 0.5),
        row(2, 0.7),
        row(3, 0.9),
        row(1, 0.8, 5e-5),
        row(2, 0.2, 5e-5, failed=True),
    ]
    trouble = lambda row: "It failed." if row.get("failed") else None  # noqa: E731
    assert sweep.summary(rows, ("f1", "accuracy"), trouble) == [
        "batch size 16, learning rate 0.0001, 3 epochs, 3 seeds: "
        "f1 0.7000 ± 0.2000 (best 0.9000)  accuracy 0.3500 ± 0.1000 (best 0.4500)",
        # √(0.09 + 0.09) = 0.4243.
        "batch size 16, learning rate 5e-05, 3 epochs, 2 seeds: "
        "f1 0.5000 ± 0.4243 (best 0.8000)  "
        "accuracy 0.2500 ± 0.2121 (best 0.4000)  (1 learned nothing)",
    ]


@pytest.mark.parametrize("seeds", [(1, 2, 3), (1, 3, 2)])
def test_of_equally_good_ones_it_names_the_one_whose_model_is_left(
    tmp_path, runs_made, capsys, seeds
):
    run(tmp_path, seeds)
    assert_holds_model_of(tmp_path, seeds[1])
    assert capsys.readouterr().out.endswith(f"seed {seeds[1]}.\n")


def test_summary_of_one_seed_each():
    rows = [row(7, 0.5), row(7, 0.25, 3e-5)]
    lines = sweep.summary(rows, ("f1",), lambda row: None)
    assert lines[0].endswith("1 seeds: f1 0.5000 ± 0.0000 (best 0.5000)")
    assert lines[1].endswith("1 seeds: f1 0.2500 ± 0.0000 (best 0.2500)")


def test_a_grid_of_batches_and_epochs(tmp_path, runs_made):
    """The numbers of training steps and warm-up steps differ."""

    trials = []
    for batch, epochs in itertools.product((16, 32), (2.0, 3.0)):
        steps = int(320 / batch * epochs)
        settings = changed(
            SETTINGS,
            output_dir=str(tmp_path),
            train_batch_size=batch,
            learning_rate=1e-4,
            num_train_steps=steps,
            num_warmup_steps=steps // 10,
            seed=1,
        )
        trials.append(sweep.Trial(settings, epochs))
    job = classifier.make_job(START, TASK, [ONE], [[ONE]])
    assert sweep.run_trials(STRATEGY, job, trials)
    assert len(runs_made) == 4
