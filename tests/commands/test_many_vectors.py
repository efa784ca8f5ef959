"""Vectors of many lines: killed, resumed with the same bytes, in bounded memory."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tiny_exports
from places import ROOT

from official_bert.pretrained.vector_files import CHUNK

LINES = 2 * CHUNK + 100


def command(model, lines, output):
    script = ROOT / "run_scripts" / "extract_features.py"
    flags = [
        f"--model={model}",
        f"--input_file={lines}",
        f"--sentence_vectors={output}",
    ]
    return [sys.executable, str(script), *flags, "--batch_size=256"]


def killed_after_a_chunk(arguments, partial):
    """Start a command, and kill it when a chunk is complete."""
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        try:
            while run.poll() is None:
                if partial.exists() and partial.stat().st_size > CHUNK * 9 * 4:
                    break
                time.sleep(0.01)
        finally:
            run.send_signal(signal.SIGKILL)
        run.communicate()
    assert run.returncode == -signal.SIGKILL


@pytest.mark.slow  # Faster tests kill the writer without the command.
def test_the_command_resumes_with_the_same_bytes(tmp_path):
    model = tiny_exports.write_kind(tmp_path, "vectors")
    lines, whole, killed = (
        tmp_path / n for n in ("lines.txt", "whole.npy", "killed.npy")
    )
    words = ("horse", "water", "light", "years")
    texts = [f"the {words[n % 4]} is on {words[n // 4 % 4]} {n}" for n in range(LINES)]
    lines.write_text("\n".join(texts) + "\n")
    killed_after_a_chunk(command(model, lines, killed), tmp_path / "killed.npy.partial")
    assert not killed.exists()
    runs = [
        subprocess.run(command(model, lines, path), capture_output=True, text=True)
        for path in (killed, whole)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr[-500:]
    assert "vectors of an earlier run" in runs[0].stderr
    assert "vectors of an earlier run" not in runs[1].stderr
    assert killed.read_bytes() == whole.read_bytes()
    assert np.load(whole, mmap_mode="r").shape == (LINES, 9)
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


MEMORY = """
import resource, sys
import numpy as np
from official_bert.pretrained.vector_files import write_vectors

count, path = int(sys.argv[1]), sys.argv[2]

def vectors_of(texts):
    return np.full((len(texts), 256), len(texts[-1]), np.float32)

write_vectors(path, (f"text {n}" for n in range(count)), vectors_of, None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_number_of_lines(tmp_path):
    """The second file has 200 MB more than the first."""
    peaks = []
    for count in (CHUNK, CHUNK + 200_000):
        path = tmp_path / f"{count}.npy"
        arguments = [sys.executable, "-c", MEMORY, str(count), str(path)]
        run = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
        assert run.returncode == 0, run.stderr[-500:]
        assert np.load(path, mmap_mode="r").shape == (count, 256)
        peaks.append(int(run.stdout))
        path.unlink()
    assert peaks[1] - peaks[0] < 50_000  # kB
