"""The benchmark of recipes: flags, equal time, resuming, and a run of every kind."""

import json
import random
import string
import subprocess
import sys

import pytest
from places import ROOT

from benchmarks.recipes.settings import BASE, BUDGET, RECIPES, Recipe


def test_numbers_of_steps_are_those_of_the_run():
    assert Recipe(("--a={fifth}", "--b={first}:64,{second}:128")).flags_for(700) == [
        "--a=140",
        "--b=400:64,600:128",
    ]


def test_a_growing_batch_trains_each_third_with_its_size():
    """The sequences are those of a constant batch of 64."""
    recipe = RECIPES["growing batch"]
    constant = 600
    steps = int(constant * recipe.steps_ratio)
    changes = {0: 32}
    for flag in recipe.flags_for(steps):
        name, _, value = flag.partition("=")
        if name == "--batch_size_steps":
            pairs = [pair.split(":") for pair in value.split(",")]
            changes |= {int(step): int(size) for step, size in pairs}
        if name == "--train_batch_size":
            assert int(value) == changes[0]
    ends = [*list(changes)[1:], steps]
    parts = [
        (end - start) * size
        for (start, size), end in zip(changes.items(), ends, strict=True)
    ]
    assert parts == [constant * 64 / 3] * 3


def test_recipes_of_equal_cost_share_a_speed():
    cost = "--nodropout"
    same = {name for name, recipe in RECIPES.items() if recipe.cost == cost}
    assert {BASE, "base at half the rate", "budget", "no dropout"} <= same
    assert not {"2018", "Muon", "masking 40 %", "packing", "growing batch"} & same


def test_every_switch_is_added_to_the_base():
    base = set(RECIPES[BASE].flags)
    others = "2018", "no dropout", "initializer", "budget"
    for name, recipe in RECIPES.items():
        assert base <= set(recipe.flags) or name.startswith(others), name


def test_budget_has_the_flags_of_its_file():
    lines = (ROOT / "configs" / "budget.flags").read_text().splitlines()
    written = {line for line in lines if line.startswith("--")}
    depends_on_the_run = {"--num_decay_steps={fifth}"}
    size = {"--learning_rate=1e-3", "--train_batch_size=64"}
    assert written - size == set(BUDGET) - depends_on_the_run


def write_text(path):
    """Write 40 documents with so many words that a vocabulary has 8,000 entries."""
    chosen = random.Random(0)
    words = ["".join(chosen.choices(string.ascii_lowercase, k=6)) for _ in range(9_000)]
    documents = []
    for _ in range(40):
        lines = [" ".join(chosen.choices(words, k=9)) + "." for _ in range(60)]
        documents.append("\n".join(lines) + "\n")
    path.write_text("\n".join(documents))


# Enough for several training steps, even while other programs use the cores.
MINUTES = 0.1


# It makes a vocabulary of full size and trains three models.
@pytest.mark.slow
def test_runs_and_a_second_call(tmp_path):
    write_text(tmp_path / "text.txt")
    names = ["2018", "no next sentence", "causal then masked"]
    command = [
        *(sys.executable, "-m", "benchmarks.recipes"),
        *(f"--input_file={tmp_path}/text.txt", f"--output={tmp_path}/out"),
        *(f"--budget_minutes={MINUTES}", "--speed_steps=40"),
        *("--num_seeds=1", "--jobs=2"),
        *(f"--recipe={name}" for name in names),
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    path = tmp_path / "out" / "recipe_runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    seconds = {
        row["cost"]: 1 / row["sequences_per_second"]
        for row in rows
        if row["part"] == "speed"
    }
    runs = {row["recipe"]: row for row in rows if row["part"] == "loss"}
    assert set(runs) == set(names)
    for name, row in runs.items():
        recipe = RECIPES[name]
        second = (1 - recipe.causal_share) * seconds.pop(recipe.cost)
        if recipe.causal_share:
            second += recipe.causal_share * seconds.pop(f"causal {recipe.cost}")
        assert row["num_train_steps"] == int(60 * MINUTES / second / 64)
        assert row["curve"][-1][0] == row["num_train_steps"]
        assert row["curve"][-1][1] < row["curve"][0][1]
    assert not seconds
    before = path.read_bytes()
    subprocess.run(command, check=True, cwd=ROOT)
    assert path.read_bytes() == before
