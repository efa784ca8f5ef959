"""The comparison with PyTorch, without PyTorch: data, flags, scores, our run."""

import importlib.util
import json
import subprocess
import sys

import pytest
import tiny_model
import warm_python
from places import MINI, ROOT

from benchmarks import compared_tasks
from official_bert.errors import UserError
from official_bert.tasks.choice import files as choice_files
from official_bert.tasks.ner import files as ner_files
from official_bert.tasks.squad import files as squad_files

pytestmark = pytest.mark.slow

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905
CONLL = """-DOCSTART- -X- -X- O

Paris NNP B-NP B-LOC
sleeps VB B-VP O

Jo NNP B-NP B-PER

-DOCSTART- -X- -X- O

Rome NNP B-NP B-LOC
"""
ARC = 'Why?,"a, b",c,d,,B\nDamaged,,,,,2\nHow?,one,two,three,four,1\n'


@pytest.mark.parametrize("most", [1, 2, 3, 5, 1000])
def test_cut_squad(most):
    text = (MINI / "squad.json").read_text(encoding="utf-8")

    def questions(text):
        return [
            (article["title"], paragraph["context"], question)
            for article in json.loads(text)["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]

    cut = compared_tasks.cut_squad(text, most)
    assert questions(cut) == questions(text)[:most]
    articles = json.loads(cut)["data"]
    assert all(paragraph["qas"] for a in articles for paragraph in a["paragraphs"])
    assert all(article["paragraphs"] for article in articles)


def test_cut_conll(tmp_path):
    path = tmp_path / "cut.txt"
    for most, words in ((1, [["Paris"]]), (2, [["Paris", "Jo"]]), (9, None)):
        path.write_text(compared_tasks.cut_conll(CONLL, most), encoding="utf-8")
        documents = ner_files.read_ner_file(path).documents
        found = [[one.words[0] for one in document] for document in documents]
        assert found == (words or [["Paris", "Jo"], ["Rome"]])
    assert compared_tasks.cut_conll(CONLL, 9) == CONLL


def prepare(name, sources, folder, most=None, most_dev=None):
    folder.mkdir()
    task = compared_tasks.find_task(name)
    flags = task.prepare([str(path) for path in sources], folder, most, most_dev)
    return dict(flag.removeprefix("--").split("=", 1) for flag in flags)


def test_squad_files_are_written(tmp_path):
    source = MINI / "squad.json"
    whole = squad_files.read_examples(source, False)
    files = prepare("squad2", [source, source], tmp_path / "a", 2)
    assert list(files) == ["train_file", "predict_file"]
    assert squad_files.read_examples(files["train_file"], False) == whole[:2]
    assert squad_files.read_examples(files["predict_file"], False) == whole
    files = prepare("squad1", [source, source], tmp_path / "b", None, 1)
    assert squad_files.read_examples(files["train_file"], False) == whole
    assert squad_files.read_examples(files["predict_file"], False) == whole[:1]


def test_conll_files_are_written(tmp_path):
    source = tmp_path / "all.txt"
    source.write_text(CONLL, encoding="utf-8")
    files = prepare("conll", [source] * 3, tmp_path / "a", 1, 2)
    counts = {
        name: sum(map(len, ner_files.read_ner_file(path).documents))
        for name, path in files.items()
    }
    assert counts == {"train_file": 1, "dev_file": 2, "test_file": 2}


def test_choices_of_several_files(tmp_path):
    for name in ("easy", "hard"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.csv").write_text(ARC.replace("Why", name))
    pattern = tmp_path / "*" / "train.csv"
    files = prepare("arc", [pattern, tmp_path / "hard" / "train.csv"], tmp_path / "a")

    def read(path):
        return [
            (one.context, one.choices, one.label)
            for one in choice_files.read_choices(path)[0]
        ]

    hard = ("hard?", ("a, b", "c", "d"), 1)
    how = ("How?", ("one", "two", "three", "four"), 0)
    assert read(files["train_file"]) == [("easy?", *hard[1:]), how, hard, how]
    assert read(files["dev_file"]) == [hard, how]
    files = prepare("arc", [pattern, pattern], tmp_path / "b", 3, 1)
    assert [len(read(path)) for path in files.values()] == [3, 1]


@pytest.mark.parametrize("name, header", [("rte", 1), ("cola", 0)])
def test_glue_keeps_its_header(tmp_path, name, header):
    folder = tmp_path / name.upper().replace("COLA", "CoLA")
    folder.mkdir()
    lines = [f"line {number}" for number in range(9)]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(lines))
    files = prepare(name, [tmp_path], tmp_path / "a", 2, 4)
    for split, most in (("train", 2), ("dev", 4)):
        written = (tmp_path / "a" / f"{split}.tsv").read_text().split("\n")
        assert written == lines[: most + header]
    assert files == {"data_dir": str(tmp_path / "a")}


def test_scores_are_read(tmp_path):
    (tmp_path / "eval_results.txt").write_text("exact_match = 50.0\nf1 = 62.5\n")
    found = compared_tasks.SQUAD_1.read_scores(tmp_path)
    assert found == {"exact_match": 0.5, "f1": 0.625}
    (tmp_path / "eval_results.txt").write_text("eval_f1 = 0.25\nglobal_step = 3\n")
    assert compared_tasks.ARC.read_scores(tmp_path) == {"f1": 0.25, "global_step": 3}
    # One of two entities is predicted, and one wrong entity.
    (tmp_path / "test_predictions.conll").write_text(
        "Paris NNP B-LOC B-LOC\nJo NNP B-PER O\nis VB O B-PER\n"
    )
    found = compared_tasks.CONLL.read_scores(tmp_path)
    assert (found["f1"], found["test_f1"]) == (0.25, 0.5)


def test_settings_are_flags_of_our_commands(tmp_path):
    for task in map(compared_tasks.find_task, (*compared_tasks.TASKS, "mrpc")):
        shown = subprocess.run(
            [sys.executable, ROOT / "run_scripts" / task.script, "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        known = {line.strip().partition("=")[0] for line in shown.splitlines()}
        known |= {name.replace("--no", "--") for name in known}
        for flag in [*task.setting_flags(), *task.our_flags]:
            assert flag.partition("=")[0] in known, (task.name, flag)
        assert importlib.util.find_spec(f"benchmarks.peers.{task.peer}")


def test_sources_are_counted():
    with pytest.raises(UserError, match=r"--conll_files has 2 files. Give 3"):
        compared_tasks.check_sources(compared_tasks.CONLL, ["a", "b"])
    compared_tasks.check_sources(compared_tasks.ARC, ["a", "b"])


def run_benchmark(folder, *flags):
    done = warm_python.run(
        [ROOT / "benchmarks" / "fine_tuning.py", "--model=model"]
        + ["--who=ours", "--seeds=1", "--output=runs.jsonl", *flags],
        cwd=folder,
    )
    runs = folder / "runs.jsonl"
    lines = runs.read_text().splitlines() if runs.exists() else []
    return done, list(map(json.loads, lines))


def test_our_run_is_a_line(tmp_path):
    tiny_model.write(tmp_path / "model", max_position_embeddings=128)
    sentences = [f"{word} NN O B-X\nthe DT O O\n" for word in WORDS] * 160
    (tmp_path / "tags.txt").write_text("\n".join(sentences))
    flags = ["--tasks=conll", "--conll_files=tags.txt,tags.txt,tags.txt"]
    flags += ["--max_dev_rows=30", "--num_train_epochs=1"]
    further = "ours with --num_train_epochs=2 --train_batch_size=16"
    done, rows = run_benchmark(tmp_path, *flags, f"--who={further}")
    assert done.returncode == 0, done.stderr
    row, other = rows
    assert other["who"] == further and other["steps"] > row["steps"]
    assert other["rate"] == pytest.approx(other["steps"] * 16 / other["seconds"])
    assert list(row)[:3] == ["who", "task", "seed"]
    assert list(row)[3:] == ["f1", "test_f1", "steps", "seconds", "rate"]
    assert (row["who"], row["task"], row["seed"]) == ("ours", "conll", 1)
    assert row["f1"] == row["test_f1"]  # From the same file.
    assert row["rate"] == pytest.approx(row["steps"] * 32 / row["seconds"])
    # The run exists, so it is shown without running again.
    row["f1"] = 0.125
    theirs = row | {"who": "PyTorch", "f1": 0.5, "rate": row["rate"] / 2}
    lines = [json.dumps(one) for one in (row, theirs)]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    done, rows = run_benchmark(tmp_path, *flags)
    assert rows == [row, theirs]
    refused, _ = run_benchmark(tmp_path, "--who=theirs", *flags)
    assert "--who=theirs is not ours" in refused.stderr
    shown = [line.split() for line in done.stdout.splitlines()]
    assert ["conll", "f1", "ours", "12.5", "(1", "seed)", "apart:", "-"] in shown
    assert ["conll", "f1", "PyTorch", "50.0", "(1", "seed)"] in shown
    assert "median 2.00" in done.stdout


def test_missing_data_is_told(tmp_path):
    done, rows = run_benchmark(tmp_path, "--tasks=squad2")
    assert (done.returncode, rows) == (1, [])
    assert done.stderr.startswith("error: Give --squad2_files: train-v2.0.json, dev-")
    done, rows = run_benchmark(tmp_path, "--tasks=rte")
    assert done.stderr.startswith("error: Give --data_dir:")
