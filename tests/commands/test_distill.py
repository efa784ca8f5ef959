"""`distill.py` from the command line: a student of a fine-tuned classifier."""

import csv
import random

import pytest
import tiny_model
from script_runs import assert_refused, run_many

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905
TRAIN = (
    "--train_file=own.csv --max_seq_length=16 --train_batch_size=8 "
    "--num_train_epochs=2 --learning_rate=3e-3"
)
STUDENT = "--bert_config_file=student/bert_config.json --vocab_file=student/vocab.txt"
RUNS = {
    "student": f"{TRAIN} --teacher=teacher {STUDENT} --output_dir=student-run",
    "no teacher": f"{TRAIN} {STUDENT} --output_dir=a",
    "pre-trained teacher": f"{TRAIN} --teacher=model {STUDENT} --output_dir=b",
    "bilstm": f"{TRAIN} --teacher=teacher --bilstm {STUDENT} --output_dir=c",
}
BAD = {
    "no teacher": ["--teacher"],
    "pre-trained teacher": ["model", "task"],
    "bilstm": ["--bilstm"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distill")
    tiny_model.write(folder / "model")
    tiny_model.write(folder / "student", hidden_size=8, intermediate_size=16)
    rng = random.Random(0)
    with open(folder / "own.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(80):
            writer.writerow([" ".join(rng.choices(WORDS, k=6)), "ab"[number % 2]])
    arguments = f"{TRAIN} --model=model --do_train --do_eval --output_dir=teacher"
    teacher = {"teacher": {"arguments": arguments.split()}}
    done = run_many("run_classifier", teacher, folder)
    assert done["teacher"]["status"] == 0, done["teacher"]["stderr"]
    runs = {name: {"arguments": flags.split()} for name, flags in RUNS.items()}
    return folder, run_many("distill", runs, folder)


def test_one_command_trains_and_evaluates_a_student(results):
    folder, found = results
    assert found["student"]["status"] == 0, found["student"]["stderr"]
    student = folder / "student-run"
    assert "eval_accuracy" in (student / "eval_results.txt").read_text()
    assert '"hidden_size": 8' in (student / "bert_config.json").read_text()
    assert (student / "task.json").exists()


@pytest.mark.parametrize("name", BAD)
def test_it_refuses(results, name):
    folder, found = results
    assert_refused(found[name], BAD[name])
