"""The training loop costs little compared with a step of the smallest model."""

import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "loop_cost.py"


# It compiles and runs tiny at its real size.
@pytest.mark.slow
def test_the_loop_costs_less_than_two_percent_of_a_step(tmp_path):
    output = tmp_path / "cost.json"
    command = [sys.executable, SCRIPT, "--steps=3", "--rounds=2", f"--output={output}"]
    subprocess.run(command, check=True)
    found = json.loads(output.read_text())
    assert 0 < found["loop_seconds"] < found["step_seconds"]
    assert found["ratio"] == pytest.approx(sum(found["ratios"]) / 2)
    assert found["ratio"] < 0.02
