"""A short ablation with the real commands, from text to the table."""

import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import warm_python
from places import MINI, ROOT

from official_bert.ablations import steps
from official_bert.checkpoints import names

pytestmark = pytest.mark.slow

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905
ROW = "table5_ltr_no_nsp_bilstm"


def write_vocab(path):
    """Write the small vocabulary, padded to the models' 8,000 tokens."""
    lines = (MINI / "vocab.txt").read_text("utf-8").splitlines()
    lines += [f"[filler{n}]" for n in range(8000 - len(lines))]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def write_task(folder):
    """Write a few sentences as SST-2."""
    rng = random.Random(0)
    (folder / "SST-2").mkdir()
    for name, count in (("train", 40), ("dev", 8)):
        sentences = [" ".join(rng.choices(WORDS, k=5)) for _ in range(count)]
        rows = [f"{sentence}\t{n % 2}" for n, sentence in enumerate(sentences)]
        table = "\n".join(["sentence\tlabel", *rows])
        (folder / "SST-2" / f"{name}.tsv").write_text(table + "\n")


def run_ablation(folder, *arguments):
    """Return the finished process of a short table with one task."""
    arguments = [
        "--input_file=text.txt",
        "--vocab_file=vocab.txt",
        "--output_dir=x",
        "--glue_data_dir=.",
        "--tasks=sst-2",
        "--num_train_steps=10",
        "--num_seeds=2",
        *arguments,
    ]
    return warm_python.run(
        [ROOT / "run_scripts" / "run_ablation.py", *arguments], cwd=folder
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return (folder, output of the command) of a row of Table 5."""
    folder = tmp_path_factory.mktemp("ablation")
    write_vocab(folder / "vocab.txt")
    text = (MINI / "text.txt").read_text("utf-8")
    (folder / "text.txt").write_text("\n\n".join([text] * 10), "utf-8")
    write_task(folder)
    done = run_ablation(folder, "--table=table5", f"--rows={ROW}")
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_a_row_from_text_to_scores(made):
    folder, printed = made
    table = (folder / "x" / "table5.md").read_text("utf-8")
    assert printed.endswith(f"\n\n{table}")
    row = table.splitlines()[4].strip("| ").split(" | ")
    assert row[0] == "LTR & No NSP + BiLSTM"
    # After little training, the 8,000 tokens are reduced to those of the text.
    assert math.e < float(row[1].rstrip("*")) < 8000
    assert re.fullmatch(r"[\d.]+ ± [\d.]+", row[2])
    assert row[3:] == ["82.1", "84.1", "75.7", "91.6", "84.9"]
    run = json.loads((folder / "x" / "table5.run.json").read_text("utf-8"))
    assert run["flags"]["num_seeds"] == 2


def test_the_same_command_again_makes_nothing(made):
    folder, printed = made
    before = (folder / "x" / "results.jsonl").read_bytes()
    done = run_ablation(folder, "--table=table5", f"--rows={ROW}")
    table = (folder / "x" / "table5.md").read_text("utf-8")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"\n{table}")
    assert (folder / "x" / "results.jsonl").read_bytes() == before


def test_one_seed_has_no_deviation(made):
    folder, _ = made
    arguments = ["--table=table5", f"--rows={ROW}", "--num_seeds=1", "--output_dir=y"]
    done = run_ablation(folder, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    table = (folder / "y" / "table5.md").read_text("utf-8")
    score = table.splitlines()[4].strip("| ").split(" | ")[2]
    assert re.fullmatch(r"[\d.]+", score)
    results = folder / "y" / "fine_tuned" / ROW / "sst-2" / "eval_results.txt"
    accuracy = re.search(r"eval_accuracy = (.*)", results.read_text())[1]
    assert score == f"{100 * float(accuracy):.1f}"


def test_the_model_goes_on_as_it_was_trained(made):
    """Fine-tuning keeps the left-to-right model and BiLSTM without any flag."""
    folder = made[0] / "x"
    for name in ("models/table5_ltr_no_nsp", f"fine_tuned/{ROW}/sst-2"):
        config = (folder / name / "bert_config.json").read_text("utf-8")
        assert json.loads(config)["causal_attention"] is True
    task = (folder / f"fine_tuned/{ROW}/sst-2" / "task.json").read_text("utf-8")
    assert json.loads(task)["bilstm"] is True


BAD = {
    "--ner_train_file=a.txt": "--ner_train_file and --ner_dev_file must be given",
    "--glue_data_dir=glue": "--glue_data_dir=glue has no train set of sts-b "
    "(STS-B/train.tsv). Give the folder of GLUE, or leave sts-b out with --tasks",
    "--vocab_file=small.txt": "small.txt",
}


@pytest.mark.parametrize("flag", BAD)
def test_what_is_missing_is_told_before_the_first_step(flag, tmp_path):
    (tmp_path / "glue").mkdir()
    write_task(tmp_path / "glue")
    shutil.copy(MINI / "vocab.txt", tmp_path / "small.txt")
    write_vocab(tmp_path / "vocab.txt")
    shutil.copy(MINI / "text.txt", tmp_path / "a.txt")
    arguments = ["--table=table5", "--input_file=a.txt", "--output_dir=x"]
    arguments += ["--vocab_file=vocab.txt", flag]
    done = warm_python.run(
        [ROOT / "run_scripts" / "run_ablation.py", *arguments], cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and BAD[flag] in done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "x").exists()


FAILING = """
import subprocess
import sys
from official_bert.commands import run_ablation
from absl import flags
from official_bert.ablations.steps import Step

folder, script = sys.argv[1:]


def run_child(name, arguments, **options):
    done = subprocess.run([sys.executable, script], check=False, **options)
    return done.returncode, None


run_ablation.run_child = run_child
flags.FLAGS(["run_ablation.py", f"--output_dir={folder}"])
try:
    run_ablation._run_step(Step("models/bert", "run_pretraining.py", []))
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("prints", ["error: The vocabulary is gone.", ""])
def test_the_error_is_that_of_this_attempt(tmp_path, prints):
    """The log also contains errors of earlier attempts."""
    log = tmp_path / "logs" / "models_bert.log"
    log.parent.mkdir()
    log.write_text("error: No space left.\n")
    script = tmp_path / "script.py"
    script.write_text(f"print({prints!r})\nraise SystemExit(9)\n")
    done = warm_python.run(["-c", FAILING, tmp_path, script], cwd=ROOT)
    told = done.stdout.splitlines()[-1].partition("ended with status 9: ")[2]
    assert told == (prints.removeprefix("error: ") or f"see {log}.")


# Terminals send Ctrl-C to the whole group, `timeout` SIGTERM, `kill` one signal.
@pytest.mark.parametrize(
    ("number", "send", "ends_with"),
    [
        (signal.SIGINT, os.killpg, (130, "interrupted\n")),
        (signal.SIGTERM, os.kill, (143, "")),
        (signal.SIGTERM, os.killpg, (143, "")),
    ],
)
def test_what_ends_it_ends_the_command_within(tmp_path, number, send, ends_with):
    """The inner command has saved, and does not count as finished."""
    write_vocab(tmp_path / "vocab.txt")
    shutil.copy(MINI / "text.txt", tmp_path / "text.txt")
    script = str(ROOT / "run_scripts" / "run_ablation.py")
    arguments = ["--table=table5", "--input_file=text.txt", "--vocab_file=vocab.txt"]
    arguments += ["--eval_input_file=text.txt", "--output_dir=x"]
    child = subprocess.Popen(
        [sys.executable, script, *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(tmp_path / "x" / "models" / "bert" / "metrics.jsonl", child)
        send(child.pid, number)
        _, errors = child.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert (child.returncode, errors) == ends_with
    done = steps.read_results(str(tmp_path / "x" / "results.jsonl"))
    assert [row["step"] for row in done] == ["records/heldout", "records/bert"]
    assert names.numbered_checkpoints(tmp_path / "x" / "models" / "bert")


def wait_for(path, child):
    """Wait until a process has written a file."""
    for _ in range(1200):
        if path.exists():
            return
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.1)
    pytest.fail(f"no {path} after two minutes")
