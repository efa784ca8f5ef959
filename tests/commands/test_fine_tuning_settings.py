"""The settings that the flags of every fine-tuning command give."""

import json
import pathlib

import pytest
import warm_python

FOLDER = pathlib.Path(__file__).parent
EXAMPLES = 60
CASES = {
    "default": "",
    "epochs": "--num_train_epochs=2.5 --train_batch_size=8",
    "warm-up": "--train_batch_size=8 --num_train_epochs=2 --warmup_proportion=0.5",
    "corrected": "--bias_correction",
    "patient": "--early_stopping_patience=3",
    "checkpoints": "--save_checkpoints_steps=5 --iterations_per_loop=7",
    "seeds": "--num_seeds=3 --seed=5",
    "grid": "--grid --grid_learning_rates=1e-3,3e-3 --grid_epochs=1 "
    "--grid_batch_sizes=16,20",
    "paper's grid": "--grid",
    "too few": "--train_batch_size=61 --num_train_epochs=0.5",
    "stops late": "--stop_at_step=999",
}


@pytest.fixture(scope="module")
def trials():
    """Return name of a case -> list of (settings, epochs), or a message."""
    lines = [json.dumps([flags.split(), EXAMPLES]) for flags in CASES.values()]
    script = FOLDER / "fine_tuning_settings.py"
    done = warm_python.run([script], stdin="\n".join(lines))
    assert done.returncode == 0, done.stderr[-3000:]
    results = map(json.loads, done.stdout.splitlines())
    return dict(zip(CASES, results, strict=True))


def steps(settings):
    optimization = settings["optimization"]
    return optimization["num_train_steps"], optimization["num_warmup_steps"]


def test_three_epochs_of_which_a_tenth_is_warm_up(trials):
    [(settings, epochs)] = trials["default"]
    assert epochs == 3.0
    # 60 * 3 / 32 training steps; a checkpoint after each epoch of two steps.
    assert steps(settings) == (5, 0)
    assert settings["loop"]["save_checkpoints_steps"] == 2
    assert settings["optimization"]["bias_correction"] is False


def test_parts_of_epochs(trials):
    [(settings, epochs)] = trials["epochs"]
    assert (epochs, steps(settings)) == (2.5, (18, 1))


def test_half_is_warm_up(trials):
    assert steps(trials["warm-up"][0][0]) == (15, 7)


def test_flags_reach_the_settings(trials):
    assert trials["corrected"][0][0]["optimization"]["bias_correction"] is True
    loop = trials["checkpoints"][0][0]["loop"]
    assert (loop["save_checkpoints_steps"], loop["iterations_per_loop"]) == (5, 7)
    patience = trials["patient"][0][0]["loop"]["early_stopping_patience"]
    assert patience == 3


def test_each_seed_is_a_trial(trials):
    assert [settings["step"]["seed"] for settings, _ in trials["seeds"]] == [5, 6, 7]


def test_each_combination_of_the_grid_is_a_trial(trials):
    found = [
        (
            settings["loop"]["train_batch_size"],
            settings["optimization"]["learning_rate"],
            epochs,
        )
        for settings, epochs in trials["grid"]
    ]
    assert found == [(16, 1e-3, 1), (16, 3e-3, 1), (20, 1e-3, 1), (20, 3e-3, 1)]
    rates = {s["optimization"]["learning_rate"] for s, _ in trials["paper's grid"]}
    assert rates == {5e-5, 4e-5, 3e-5, 2e-5}


def test_runs_without_an_update_are_refused(trials):
    assert (
        "60 examples in batches of 61 give less than one training step"
        in trials["too few"]
    )
    assert (
        "--stop_at_step=999 is after the last step of the run" in trials["stops late"]
    )
