"""The comparison with sentence-transformers, without it: our run and the table."""

import json

import pytest
import tiny_model
import warm_python
from places import ROOT

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905


@pytest.mark.slow  # It trains a model.
def test_our_run_is_a_line(tmp_path):
    tiny_model.write(tmp_path / "model", max_position_embeddings=128)
    rows = [f"the {WORDS[n % 11]}\ton {WORDS[n % 7]}\t{n % 6}" for n in range(99)]
    lines = ["sentence1\tsentence2\tscore", *rows]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    command = [ROOT / "benchmarks" / "embeddings.py", "--model=model", "--who=ours"]
    command += [f"--{name}_file=pairs.tsv" for name in ("train", "dev", "test")]
    command += ["--seeds=1", "--output=runs.jsonl", "--max_rows=64"]
    command += ["--num_train_epochs=1"]
    done = warm_python.run(command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [line] = (tmp_path / "runs.jsonl").read_text().splitlines()
    row = json.loads(line)
    # 64 of the 99 rows in batches of 32.
    assert (row["who"], row["seed"], row["steps"]) == ("ours", 1, 2)
    assert row["dev_spearman"] == row["test_spearman"]  # From the same file.
    assert row["rate"] == pytest.approx(64 / row["seconds_per_step"])
    theirs = row | {
        "who": "sentence-transformers",
        "dev_spearman": 0.5,
        "rate": row["rate"] / 2,
    }
    (tmp_path / "runs.jsonl").write_text(f"{line}\n{json.dumps(theirs)}\n")
    done = warm_python.run([*command, "--results=results.json"], cwd=tmp_path)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2
    shown = [text.split() for text in done.stdout.splitlines()]
    assert ["dev_spearman", "sentence-transformers", "50.0", "(1", "seed)"] in shown
    assert "median 2.00 (2.00-2.00, 1 pairs)" in done.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["commands"][0].startswith("python benchmarks/embeddings.py --model")
    rows = results["tables"]["scores"]["rows"]
    ours = round(100 * row["dev_spearman"], 2)
    assert rows[0] == ["Spearman, dev", ours, 50.0, "-"]
