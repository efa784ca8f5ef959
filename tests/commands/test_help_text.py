"""The help of each command: required, most used and other flags."""

import json
import re
import subprocess
import sys

import pytest
from places import ROOT

from official_bert.command_line.command_table import COMMANDS

NAMES = [
    command.name
    for command in COMMANDS
    if (ROOT / f"official_bert/commands/{command.module}.py").exists()
]

# Prints the three help texts of each command, and facts about its flags. TensorFlow,
# which has its own flags, is not imported. Each command has its own process.
PRINT_HELP = """
import importlib, json, multiprocessing, sys
from absl import flags
from official_bert.command_line import command_table, flag_values, help_text

def facts_of(name):
    sys.argv = ["bin/official-bert"]
    command = command_table.find(name)
    module = importlib.import_module(f"official_bert.commands.{command.module}")
    if hasattr(module, "define_flags"):
        module.define_flags([])
    own = flag_values.own_flags()
    old = [flag.name for flag in own if flag.help.startswith("For old commands")]
    return {
        "texts": {flag: help_text.help_text(module, flag) for flag in TEXTS},
        "required": module.REQUIRED,
        "most_used": module.MOST_USED,
        "old": old,
        "flags": [flag.name for flag in own],
        "aliases": {flag.name: flag_values.aliases_of(flag.name) for flag in own},
    }

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    print(json.dumps(dict(zip(NAMES, pool.map(facts_of, NAMES, 1)))))
"""
TEXTS = ("h", "help", "helpfull")
# All names of one concept, in our commands and in the original's.
CONCEPTS = {
    "model": {"init_checkpoint", "model_dir", "from"},
    "dev_file": {"eval_input_file", "predict_file", "heldout_file", "data_file"},
    "seed": {"random_seed"},
}


@pytest.fixture(scope="module")
def helps():
    """Return name -> facts of `PRINT_HELP`."""
    program = f"NAMES, TEXTS = {NAMES!r}, {TEXTS!r}\n{PRINT_HELP}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def flags_in(text):
    """Return the flags that a help describes, in their order."""
    return re.findall(r"^  --(\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_required_flags_come_first_then_the_most_used(helps, name):
    facts = helps[name]
    first = [*facts["required"], *facts["most_used"]]
    assert len(facts["most_used"]) <= 10
    assert len({*first}) == len(first)
    assert set(first) <= {"flagfile", *facts["flags"]}
    for text in facts["texts"].values():
        assert flags_in(text)[: len(first)] == first
        assert ("\nRequired:\n" in text) == bool(facts["required"])


@pytest.mark.parametrize("name", NAMES)
def test_the_short_help_is_short_and_the_full_one_complete(helps, name):
    facts = helps[name]
    short, usual, full = (facts["texts"][flag] for flag in TEXTS)
    if facts["flags"]:
        assert flags_in(short) == [*facts["required"], *facts["most_used"]]
        assert "--help shows all flags." in short
    every = {"flagfile", *facts["flags"]}
    assert set(flags_in(full)) == every
    assert len(flags_in(full)) == len(every)
    assert set(flags_in(usual)) == every - {*facts["old"]}
    assert ("--helpfull also shows" in usual) == bool(facts["old"])
    for text in (short, usual, full):
        assert text.endswith("\n") and not text.endswith("\n\n")
        assert max(map(len, text.splitlines())) <= 92


@pytest.mark.parametrize("name", NAMES)
def test_the_programs_help_names_no_script(helps, name):
    for text in helps[name]["texts"].values():
        assert "run_scripts/" not in text
        example = next(line for line in text.splitlines() if "official-bert " in line)
        assert f"official-bert {name}" in example


@pytest.mark.parametrize("name", NAMES)
def test_a_concept_has_one_name(helps, name):
    facts = helps[name]
    for concept, others in CONCEPTS.items():
        assert not others & {*facts["flags"]}
        for alias in facts["aliases"].get(concept, []):
            assert alias in others
            assert f"--{alias}" in facts["texts"]["help"]


def test_the_originals_names_are_aliases(helps):
    for name, flag, alias in [
        ("classify", "model", "init_checkpoint"),
        ("features", "model", "init_checkpoint"),
        ("pretrain", "model", "init_checkpoint"),
        ("squad", "model", "init_checkpoint"),
        ("squad", "dev_file", "predict_file"),
        ("records", "seed", "random_seed"),
    ]:
        assert alias in helps[name]["aliases"][flag]
