"""The shipped configs are the released sizes, and every flag in them exists."""

import json
import math
import subprocess
import sys

import pytest
from places import ROOT

from official_bert.config import SIZES, BertConfig

CONFIGS = ROOT / "configs"
PHASE_1, PHASE_2 = list(SIZES), ["base_512", "large_512"]

# Prints the flags of `run_pretraining.py` under each flag file.
PRINT_FLAGS = """
import json, sys
sys.path.insert(0, "run_scripts")
import run_pretraining
from absl import flags
found = {}
for name in sys.argv[1:]:
    flags.FLAGS.unparse_flags()
    for flag in run_pretraining.FLAGS:
        run_pretraining.FLAGS[flag].unparse()
    run_pretraining.FLAGS(["x", f"--flagfile=configs/{name}.flags"])
    modules = run_pretraining, run_pretraining.training_flags
    ours = [f for m in modules for f in run_pretraining.FLAGS.get_flags_for_module(m)]
    found[name] = {flag.name: flag.value for flag in ours}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def flag_files():
    names = [*PHASE_1, *PHASE_2]
    done = subprocess.run(
        [sys.executable, "-c", PRINT_FLAGS, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("size", list(SIZES))
def test_the_json_is_that_of_the_released_size(size):
    text = (CONFIGS / f"bert_{size}.json").read_text()
    assert text == BertConfig.named(size).to_json_string()


@pytest.mark.parametrize("name", [*PHASE_1, *PHASE_2])
def test_a_flag_file_says_all_that_a_run_needs(flag_files, name):
    flags = flag_files[name]
    size = name.split("_")[0]
    assert flags["bert_config_file"] == f"configs/bert_{size}.json"
    assert flags["do_train"] and flags["do_eval"]
    length = 512 if name in PHASE_2 else 128
    assert flags["max_seq_length"] == length
    assert flags["max_predictions_per_seq"] == math.ceil(0.15 * length)
    assert f"pretraining_{length}/" in flags["input_file"]
    assert f"pretraining_{length}_heldout/" in flags["eval_input_file"]
    assert flags["output_dir"] == f"output/{size}_{length}"
    assert flags["num_warmup_steps"] < flags["num_train_steps"]


@pytest.mark.parametrize("name", ["base", "large"])
def test_the_papers_two_phases(flag_files, name):
    first, second = flag_files[name], flag_files[f"{name}_512"]
    assert first["train_batch_size"] == second["train_batch_size"] == 256
    assert (first["stop_at_step"], second["stop_at_step"]) == (900_000, None)
    for phase in (first, second):
        assert phase["num_train_steps"] == 1_000_000
        assert (phase["learning_rate"], phase["num_warmup_steps"]) == (1e-4, 10_000)
    assert second["continue_from"] == first["output_dir"]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.flags")), ids=lambda p: p.stem)
def test_a_flag_file_explains_itself(path):
    """It begins with a comment, and each is for one script's --flagfile."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert all(line == "" or line.startswith(("#", "--")) for line in lines)
    given = [line.split("=")[0] for line in lines if line.startswith("--")]
    assert len(given) == len(set(given))
    assert "--train_batch_size" in given
