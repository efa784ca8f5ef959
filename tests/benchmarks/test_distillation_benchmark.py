"""The distillation benchmark trains a teacher and students, and measures them."""

import json
import random
import subprocess
import sys

import pytest
import tiny_model
from places import ROOT

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905


def write_task(folder):
    rng = random.Random(0)
    (folder / "SST-2").mkdir(parents=True)
    for name, count in (("train", 40), ("dev", 10)):
        lines = [f"{' '.join(rng.choices(WORDS, k=5))}\t{n % 2}" for n in range(count)]
        text = "\n".join(["sentence\tlabel", *lines, ""])
        (folder / "SST-2" / f"{name}.tsv").write_text(text)


@pytest.mark.slow
def test_scores_sizes_and_times_of_all_models(tmp_path):
    # The command's rows have 128 tokens.
    tiny_model.write(tmp_path / "teacher", max_position_embeddings=128)
    sizes = {"hidden_size": 8, "intermediate_size": 16}
    tiny_model.write(tmp_path / "student", max_position_embeddings=128, **sizes)
    write_task(tmp_path / "data")
    command = [
        *(sys.executable, ROOT / "benchmarks" / "distillation.py"),
        *("--teacher=teacher", "--student=small:student", "--data_dir=data"),
        *("--task=sst-2", "--num_seeds=1", "--time", "--output=out"),
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    path = tmp_path / "out" / "distillation_runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    scores, times = rows[:3], rows[3:]
    found = [(row["model"], row["how"]) for row in scores]
    assert found == [("teacher", "alone"), ("small", "alone"), ("small", "distilled")]
    assert all(0 <= row["score"] <= 1 for row in scores)
    assert scores[0]["parameters"] > scores[1]["parameters"] == scores[2]["parameters"]
    assert [row["model"] for row in times] == ["teacher", "small"]
    assert all(row["milliseconds"] > 0 for row in times)
    before = path.read_bytes()
    subprocess.run(command, check=True, cwd=tmp_path)
    assert path.read_bytes() == before
