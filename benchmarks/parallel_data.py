"""Measure records from a corpus of any size: memory, speed, equal bytes, kills.

    python benchmarks/parallel_data.py --vocab_file=vocab.txt --megabytes=50,500

makes corpora of these sizes from --text (with its lines in different orders, so
that all are similar). It builds records with `create_pretraining_data.py` and
writes the measurements as JSON to --output_file:

* peak memory of all processes together (PSS: shared pages count once) and of
  the largest one, for each size;
* seconds and megabytes of text per second, for each number of workers, and for
  the exact mode on corpora of up to --most_exact megabytes;
* the same on the smallest corpus with Apache Beam, for each of --beam_options, and
  with Apache Spark, for each of --spark_master;
* whether the bytes are equal for each number of workers, and after kills with
  all workers at --kills random moments.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402

SCRIPT = ROOT / "run_scripts" / "create_pretraining_data.py"
SECONDS_BETWEEN_LOOKS = 0.05

flags.DEFINE_string("text", None, "Text file, one sentence per line.")
flags.DEFINE_string("vocab_file", None, "Vocabulary file.")
flags.DEFINE_list("megabytes", ["50", "500"], "Sizes of the corpora in megabytes.")
flags.DEFINE_list("workers", ["1", "2", "8"], "Numbers of worker processes.")
flags.DEFINE_integer(
    "most_workers_timed",
    2,
    "Larger numbers of workers run only on the smallest corpus.",
)
flags.DEFINE_float(
    "most_exact", 50, "Size in megabytes of the largest corpus for the exact mode."
)
flags.DEFINE_multi_string(
    "beam_options", [], "Beam's flags, as one text for each run with Beam."
)
flags.DEFINE_multi_string(
    "spark_master", [], "Spark's master, such as local[2], for each run with Spark."
)
flags.DEFINE_integer("kills", 5, "Number of kills of a run on the smallest corpus.")
flags.DEFINE_integer("dupe_factor", 5, "Passes over the text.")
flags.DEFINE_integer("files", 4, "Number of record files.")
flags.DEFINE_string("output_file", "parallel_data.json", "JSON file for the numbers.")
flags.DEFINE_string("folder", None, "Folder for corpora and records.")
FLAGS = flags.FLAGS


def main():
    """Run everything; write the numbers after each run."""
    require("text", "vocab_file")
    figures = {"dupe_factor": FLAGS.dupe_factor, "runs": [], "kills": []}
    with tempfile.TemporaryDirectory(dir=FLAGS.folder) as folder:
        folder = pathlib.Path(folder)
        sizes = sorted(map(float, FLAGS.megabytes))
        for megabytes in sizes:
            corpus = folder / "text.txt"
            _write_corpus(corpus, megabytes)
            for workers in _numbers_of_workers(megabytes, sizes[0]):
                figures["runs"].append(_measure(folder, corpus, workers))
                _save(figures)
        _write_corpus(corpus, sizes[0])
        for workers in (1, 2) if FLAGS.kills else ():
            expected = next(
                run["sha256"]
                for run in figures["runs"]
                if run["workers"] and run["megabytes"] == _megabytes(corpus)
            )
            figures["kills"].append(_kill(folder, corpus, workers, expected))
            _save(figures)


def _numbers_of_workers(megabytes, smallest):
    """Return the runs on a corpus; None is the exact mode, a text names a cluster."""
    numbers = [*map(int, FLAGS.workers), *FLAGS.beam_options, *FLAGS.spark_master]
    if megabytes != smallest:
        most = FLAGS.most_workers_timed
        numbers = [n for n in numbers if isinstance(n, int) and n <= most]
    return ([None] if megabytes <= FLAGS.most_exact else []) + numbers


def _save(figures):
    with open(FLAGS.output_file, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=2)
        file.write("\n")


def _write_corpus(path, megabytes):
    """Write documents of the text repeatedly, with their lines in different orders."""
    text = pathlib.Path(FLAGS.text).read_text(encoding="utf-8")
    documents = [document.split("\n") for document in text.split("\n\n")]
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            document = rng.choice(documents)
            rng.shuffle(document)
            file.write("\n".join(document) + "\n\n")


def _megabytes(path):
    return path.stat().st_size / 1e6


def _command(folder, corpus, workers):
    how = [f"--num_workers={workers}"] if workers else []
    if workers in FLAGS.spark_master:
        how = ["--runner=spark", f"--spark_master={workers}"]
    elif isinstance(workers, str):
        how = ["--runner=beam", f"--beam_options={workers}"]
    return [
        sys.executable,
        str(SCRIPT),
        f"--input_file={corpus}",
        f"--output_file={folder}/out/r@{FLAGS.files}.tfrecord",
        f"--vocab_file={FLAGS.vocab_file}",
        f"--dupe_factor={FLAGS.dupe_factor}",
        *how,
    ]


def _measure(folder, corpus, workers):
    """Run the script once; return its measurements and the digest of its files."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    start = time.monotonic()
    process = subprocess.Popen(
        _command(folder, corpus, workers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    together = largest = 0
    while process.poll() is None:
        shares = [_memory(number) for number in _tree(process.pid)]
        together = max(together, sum(pss for pss, _ in shares))
        largest = max([largest, *(rss for _, rss in shares)])
        time.sleep(SECONDS_BETWEEN_LOOKS)
    seconds = time.monotonic() - start
    assert process.returncode == 0, process.returncode
    return {
        "megabytes": _megabytes(corpus),
        "workers": workers,
        "seconds": round(seconds, 1),
        "megabytes_per_second": round(_megabytes(corpus) / seconds, 4),
        "peak_pss_megabytes": round(together / 1e6, 1),
        "peak_rss_of_one_megabytes": round(largest / 1e6, 1),
        "load": os.getloadavg(),
        "sha256": _digest(folder),
    }


def _kill(folder, corpus, workers, expected):
    """Kill runs at random moments; return whether the final bytes are right."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    rng = random.Random(workers)
    start = time.monotonic()
    moments = []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for _ in range(FLAGS.kills):
        process = subprocess.Popen(_command(folder, corpus, workers), **quiet)
        moments.append(round(rng.uniform(2, 30), 2))
        try:
            process.wait(moments[-1])
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    subprocess.run(_command(folder, corpus, workers), check=True, **quiet)
    return {
        "workers": workers,
        "killed_after_seconds": moments,
        "seconds": round(time.monotonic() - start, 1),
        "same_bytes": _digest(folder) == expected,
        "left_behind": (folder / "out" / _first(folder)).exists(),
    }


def _first(folder):
    return f"{min((folder / 'out').glob('*.tfrecord')).name}.work"


def _digest(folder):
    digest = hashlib.sha256()
    for path in sorted((folder / "out").glob("*.tfrecord")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _tree(number):
    """Return the ids of a process and of all its children."""
    found = [number]
    for parent in found:
        try:
            path = f"/proc/{parent}/task/{parent}/children"
            found += map(int, pathlib.Path(path).read_text().split())
        except OSError:
            continue
    return found


def _memory(number):
    """Return (PSS, RSS) of a process in bytes, 0 after its end."""
    try:
        lines = pathlib.Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return sizes.get("Pss:", 0) * 1024, sizes.get("Rss:", 0) * 1024


if __name__ == "__main__":
    run(main)
