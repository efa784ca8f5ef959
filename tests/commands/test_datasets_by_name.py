"""`--dataset` of the commands, with datasets that TFDS made of small files."""

import json

import numpy as np
import pytest
import tiny_model
from named_datasets import prepare, prepare_glue, prepare_rows, tfds, write_glue
from script_runs import assert_refused, json_lines, run_many, scores

BRIEF = (
    "--init_checkpoint=model --max_seq_length=32 --train_batch_size=2 "
    "--num_train_epochs=1 --do_train"
)
RUN = f"{BRIEF} --do_eval --do_predict --data_dir=tfds"
MRPC = f"{BRIEF} --do_eval --do_predict --task_name=MRPC"
WORDS = ("water", "light")


def run(script, folder, good, bad):
    """Run good and bad commands in one process; return name -> result."""
    runs = {
        name: {"arguments": [*flags.split(), f"--output_dir={name}"]}
        for name, flags in good.items()
    }
    for number, flags in enumerate(bad):
        runs[flags] = {"arguments": [*flags.split(), f"--output_dir=new-{number}"]}
    results = run_many(script, runs, folder)
    for name in good:
        assert results[name]["status"] == 0, (name, results[name]["stderr"])
    for number, (flags, words) in enumerate(bad.items()):
        assert_refused(results[flags], words.split(" … "))
        assert not (folder / f"new-{number}").exists(), flags
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("named")
    tiny_model.write(made / "model")
    return made


def record_of(folder, name):
    """Return the dataset in a run's `run.json`; the model card names it too."""
    (record,) = json.loads((folder / name / "run.json").read_text())["datasets"]
    assert f"| `--dataset` | {record['name']}" in (
        folder / name / "README.md"
    ).read_text("utf-8")
    return record


CLASSIFIER_BAD = {
    f"{RUN} --dataset=reviews --train_file=a.csv": "--dataset=reviews and --train_file",
    f"{RUN} --dataset=reviews --task_name=MRPC": "and --task_name both name the data",
    f"{RUN} --dataset=reviews --tfds": "and --tfds both name the data",
    f"{RUN} --dataset=glue/mrpc --text_column=a": "--text_column … a GLUE task",
    f"{RUN} --dataset=glue/mnli_matched": "glue/mnli has both dev sets",
    f"{RUN} --dataset=reviews --has_header": "--has_header is only for files",
    f"{RUN} --dataset=reviews --glue_submission=x": "--glue_submission … GLUE task",
    f"{RUN} --dataset=reviews --label_column=stars": "no feature stars … label (class)",
    f"{RUN} --dataset=reviewz": "TFDS has no dataset reviewz",
    f"{RUN} --dataset=a+b": "--dataset=a+b is not a TFDS name",
    f"{RUN} --dataset=glue/mrpc --data_dir=model/vocab.txt": "vocab.txt is a file",
    f"{RUN} --dataset=unlabeled": "no feature may be the label",
    "--do_eval --dataset=reviews --data_dir=tfds --init_checkpoint=reviews": (
        "no validation split … --do_predict scores the test set"
    ),
}


def test_run_classifier(folder):
    rows = [
        {"text": f"the {WORDS[n % 2]} {n}", "label": ("neg", "pos")[n % 2]}
        for n in range(20)
    ]
    text = {"text": tfds.features.Text()}
    features = text | {"label": tfds.features.ClassLabel(names=["pos", "neg"])}
    splits = {"train": rows, "test": rows[:4]}
    prepare_rows("reviews", folder / "tfds", features, splits, license="CC0")
    prepare_rows("unlabeled", folder / "tfds", text, {"train": [{"text": "a"}]})
    good = {
        "reviews": f"{RUN} --dataset=reviews",
        "later": "--do_predict --dataset=reviews:1.0.0 --data_dir=tfds "
        "--init_checkpoint=reviews",
    }
    results = run("run_classifier", folder, good, CLASSIFIER_BAD)
    said = results["reviews"]["stdout"]
    assert "Dataset reviews: version 1.0.0; source " in said
    assert "; license: CC0" in said and "Test set test: " in said
    assert "2 of 20 rows were split off as the dev set" in results["reviews"]["logged"]
    task = json.loads((folder / "reviews" / "task.json").read_text())
    assert (task["labels"], task["columns"]["text"]) == (["pos", "neg"], "text")
    record = record_of(folder, "reviews")
    assert (record["name"], record["version"]) == ("reviews", "1.0.0")
    predictions = json_lines(folder / "reviews" / "test_predictions.jsonl")
    assert len(predictions) == 4
    assert predictions == json_lines(folder / "later" / "test_predictions.jsonl")


@pytest.mark.slow  # Faster tests compare features of files and datasets.
def test_glue_is_the_same_wherever_it_comes_from(folder):
    write_glue(folder / "glue")
    prepare_glue("mrpc", folder / "glue", folder / "tfds")
    good = {
        "named": f"{RUN} --dataset=glue/mrpc:2.0.0",
        "alias": "--task_name=MRPC --tfds --data_dir=tfds --do_eval --do_predict "
        "--init_checkpoint=named",
        "files": f"{MRPC} --data_dir=glue",
    }
    bad = {
        "--do_eval --dataset=glue/rte --data_dir=tfds --init_checkpoint=named": (
            "fine-tuned for the labels 0, 1 … rte has the labels entailment"
        ),
    }
    prepare_glue("rte", folder / "glue", folder / "tfds")
    run("run_classifier", folder, good, bad)
    assert record_of(folder, "named")["checksums"]
    alias = json.loads((folder / "alias" / "eval_run.json").read_text())["datasets"]
    assert alias == [record_of(folder, "named")]
    assert set(scores(folder / "files")) >= {"eval_f1", "eval_accuracy"}
    for name in ("eval_results.txt", "test_results.tsv"):
        wanted = (folder / "files" / name).read_bytes()
        for run_name in ("named", "alias"):
            assert (folder / run_name / name).read_bytes() == wanted, (run_name, name)
    assert "datasets" not in json.loads((folder / "files" / "run.json").read_text())


def prepare_squad(folder, version):
    questions = [
        {"id": f"q{n}", "question": "is the light", "answers": [], "context": text}
        for n, text in enumerate(f"the {word} is found in water" for word in WORDS * 2)
    ]
    for n, one in enumerate(questions):
        if version == "2.0":
            one["is_impossible"] = n == 1
        if version == "1.1" or n != 1:
            start = one["context"].find("found")
            one["answers"] = [{"text": "found", "answer_start": start}]
    paragraphs = [{"context": one.pop("context"), "qas": [one]} for one in questions]
    path = folder / f"v{version}.json"
    path.write_text(json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    prepare(f"squad/v{version}", folder / "tfds", {"train": path, "dev": path})


def test_run_squad(folder):
    prepare_squad(folder, "2.0")
    good = {"squad2": f"{RUN} --max_query_length=8 --dataset=squad/v2.0"}
    bad = {
        f"{RUN} --dataset=squad/v1.1 --predict_file=a.json": "and --dev_file both",
        f"{RUN} --train_file=v2.0.json --predict_file=v2.0.json": "--data_dir needs",
        f"{RUN} --dataset=squad/v3": "no config v3. Similar names: v1.1, v2.0",
        f"{RUN} --dataset=squad/v2.0 --noversion_2_with_negative": "--dev_file="
        "squad/v2.0 (validation) has questions without an answer",
    }
    run("run_squad", folder, good, bad)
    task = json.loads((folder / "squad2" / "task.json").read_text())
    assert task["version_2_with_negative"] is True
    assert set(scores(folder / "squad2")) >= {"best_exact", "best_f1"}
    record = record_of(folder, "squad2")
    assert record["version"] == "3.0.0" and record["checksums"]


@pytest.mark.slow  # SQuAD 2.0 covers 1.1.
def test_squad_1_and_a_model_that_is_asked_later(folder):
    for version in ("1.1", "2.0"):
        prepare_squad(folder, version)
    good = {
        "squad1": f"{RUN} --max_query_length=8 --dataset=squad/v1.1",
        "asked": "--do_predict --dataset=squad/v1.1 --data_dir=tfds "
        "--init_checkpoint=squad1",
    }
    bad = {
        "--do_predict --dataset=squad/v2.0 --data_dir=tfds --init_checkpoint=squad1": (
            "has questions without an answer. Add --version_2_with_negative"
        ),
    }
    run("run_squad", folder, good, bad)
    task = json.loads((folder / "squad1" / "task.json").read_text())
    assert task["version_2_with_negative"] is False
    assert set(scores(folder / "squad1")) >= {"exact_match", "f1"}
    for name in ("predictions.json", "eval_results.txt"):
        found, wanted = folder / "asked" / name, folder / "squad1" / name
        assert found.read_text() == wanted.read_text()


def test_run_ner(folder):
    sentence = "Anna NNP B-NP B-PER\nis VBZ B-VP O\nin IN B-PP O\nRome NNP I-NP I-LOC\n"
    (folder / "conll").mkdir()
    for name, count in (("train", 4), ("valid", 2), ("test", 2)):
        content = "-DOCSTART- -X- -X- O\n\n" + f"{sentence}\n" * count
        (folder / "conll" / f"{name}.txt").write_text(content)
    prepare("conll2003", folder / "tfds", folder / "conll")
    good = {"ner": f"{RUN} --dataset=conll2003"}
    bad = {
        f"{RUN} --dataset=conll2003 --dev_file=a.txt": "and --dev_file both name",
        f"{RUN} --dataset=conll2003 --noone_sentence": "have no order and no documents",
        f"{RUN} --train_file=conll/train.txt": "--data_dir needs --dataset",
    }
    results = run("run_ner", folder, good, bad)
    assert (
        "Dataset conll2003: version 1.0.0; source https://www.acl"
        in (results["ner"]["stdout"])
    )
    task = json.loads((folder / "ner" / "task.json").read_text())
    assert task["one_sentence"] is True
    assert set(task["tags"]) == {"O", "B-LOC", "I-LOC", "B-PER", "I-PER"}
    rows = (folder / "ner" / "test_predictions.conll").read_text().splitlines()
    assert rows[0].startswith("Anna NNP B-NP B-PER ") and rows[4] == ""
    assert len(rows) == 10  # Two sentences, without -DOCSTART-.
    assert record_of(folder, "ner")["source"].startswith("https://www.aclweb.org/")


def test_run_swag(folder):
    names = ("sent1", "sent2", "ending0", "ending1", "ending2", "ending3")
    features = {name: tfds.features.Text() for name in names}
    features["label"] = tfds.features.ClassLabel(num_classes=4)
    rows = [
        {name: f"the water {n} {name}" for name in names} | {"label": n % 4}
        for n in range(4)
    ]
    splits = {"train": rows, "validation": rows[:3], "test": rows}
    prepare_rows("swag", folder / "tfds", features, splits)
    good = {"swag": f"{RUN} --dataset=swag"}
    bad = {
        f"{RUN} --dataset=swag --test_file=a.csv": "and --test_file both name the data",
        f"{RUN} --dataset=swag --leave_out_generated": "no feature gold-source",
        f"{RUN} --dataset=hellaswog": "Similar names: hellaswag",
        f"{RUN} --train_file=a.csv": "--data_dir needs --dataset",
    }
    results = run("run_swag", folder, good, bad)
    assert "Test set" in results["swag"]["stdout"]
    assert len(json_lines(folder / "swag" / "test_predictions.jsonl")) == 4
    assert record_of(folder, "swag")["name"] == "swag"


EMBEDDING_BAD = {
    f"{RUN} --dataset=likeness --dev_file=a.csv": "and --dev_file both name",
    f"{RUN} --dataset=likeness --has_header": "--has_header is only for files",
    f"{RUN} --dataset=likeness --min_score=7": "no training pair has this score",
    f"{BRIEF} --train_file=a.csv --data_dir=tfds": "--data_dir needs --dataset",
    f"{RUN} --dataset=entailed": "is not a score … --text_columns=first,second",
    f"{RUN} --dataset=likeness --score_column=stars": "no column 'stars'",
}


def test_run_embedding(folder):
    rows = [
        {"first": f"the {WORDS[n % 2]}", "second": f"on {WORDS[n % 2]} {n}"}
        for n in range(8)
    ]
    text = dict.fromkeys(("first", "second"), tfds.features.Text())
    scored = [{**row, "label": n / 2} for n, row in enumerate(rows)]
    splits = {"train": scored, "validation": scored[:4], "test": scored[:3]}
    prepare_rows(
        "likeness", folder / "tfds", text | {"label": np.float32}, splits, license="CC0"
    )
    three = tfds.features.ClassLabel(names=["no", "maybe", "yes"])
    classes = [{**row, "label": n % 3} for n, row in enumerate(rows)]
    prepare_rows(
        "entailed", folder / "tfds", text | {"label": three}, {"train": classes}
    )
    good = {
        "likeness": f"{RUN} --dataset=likeness",
        "positives": f"{RUN} --dataset=likeness --loss=info_nce --min_score=2.5",
        "all": f"{BRIEF} --data_dir=tfds --dataset=likeness --loss=info_nce",
    }
    results = run("run_embedding", folder, good, EMBEDDING_BAD)
    assert "Loss: cosent." in results["likeness"]["stdout"]
    assert "Training pairs: 3 of 8, by score." in results["positives"]["stdout"]
    assert "--min_score" not in results["positives"]["logged"]
    assert "Add --min_score" in results["all"]["logged"]
    assert set(scores(folder / "likeness")) >= {"eval_spearman", "eval_pearson"}
    predictions = json_lines(folder / "likeness" / "test_predictions.jsonl")
    assert [one["guid"] for one in predictions] == [1, 2, 3]
    record = record_of(folder, "likeness")
    assert (record["name"], record["version"]) == ("likeness", "1.0.0")
