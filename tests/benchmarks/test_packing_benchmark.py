"""The benchmark of packing prints a row for each length and size."""

import random
import subprocess
import sys

import pytest
from places import ROOT

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905


@pytest.mark.slow
def test_it_prints_a_table(tmp_path):
    rng = random.Random(0)
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
    vocab += [f"[filler{number}]" for number in range(30_522 - len(vocab))]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab) + "\n")
    # Documents of 60 words do not fill rows of 128 tokens.
    documents = [
        "".join(" ".join(rng.choices(WORDS, k=9)) + ".\n" for _ in range(6))
        for _ in range(200)
    ]
    (tmp_path / "text.txt").write_text("\n".join(documents))
    command = [
        *(sys.executable, ROOT / "benchmarks" / "packing.py", "--input_file=text.txt"),
        *("--vocab_file=vocab.txt", "--size=tiny", "--rounds=1", "--steps=5"),
        "--output=out",
    ]
    done = subprocess.run(
        command, check=True, cwd=tmp_path, capture_output=True, text=True
    )
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["| tiny", "128"], ["| tiny", "512"]]
    # More sequences share a longer row.
    assert 1 < float(rows[0][2]) < float(rows[1][2])
