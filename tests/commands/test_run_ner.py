"""`run_ner.py` from the command line: good, resumed and bad runs."""

import dataclasses
import json
import pathlib
import statistics

import numpy as np
import pytest
import tiny_model
import warm_python
from ner_runs import (
    BAD,
    FIRST,
    LATER,
    STOPPED,
    prepare_later,
    sentences,
    write_files,
)
from places import ROOT
from script_runs import (
    assert_refused,
    contents,
    first_runs,
    json_lines,
    later_runs,
    new_of,
    said,
    scores,
)

from official_bert.checkpoints import google, names
from official_bert.metrics import entities
from official_bert.tasks.ner.files import read_ner_file
from official_bert.tasks.ner.predictor import NerPredictor

WEIGHTS = "bert_model.ckpt.data-00000-of-00001"
SCORES = {f"eval_{name}" for name in ("f1", "precision", "recall", "word_accuracy")}
TEST = sentences(6, "test")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return (folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("ner")
    (folder / "model").mkdir()
    google.write_model(str(folder / "model"), start())
    write_files(folder)
    return folder, first_runs("run_ner", FIRST, folder)


def start():
    """Return the `Checkpoint` of an encoder that learns within some steps."""
    random = tiny_model.checkpoint(heads=False)

    def read(name):
        return (0.2 * random.read(name) + name.endswith("gamma")).astype(np.float32)

    return dataclasses.replace(random, read=read)


@pytest.fixture(scope="module")
def later(first):
    """Return (results of the later and bad runs, earlier contents of the folders)."""
    folder, _ = first
    prepare_later(folder)
    return later_runs("run_ner", LATER, BAD, folder)


@pytest.mark.parametrize("flags", list(BAD), ids=range(len(BAD)))
def test_refused(first, later, flags):
    """A refused command creates nothing."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert "held-out" not in later[0][flags]["stdout"]
    assert not new_of(first[0], BAD, flags).exists()


@pytest.mark.parametrize("name", ["iob1", "model", "frozen", "classified", "damaged"])
def test_refusals_harm_nothing(first, later, name):
    assert contents(first[0] / name) == later[1][name]


def json_of(path):
    return json.loads(path.read_text())


def blocks(path):
    """Return the rows of cells between the blank lines of a file of columns."""
    text = path.read_text()
    assert text.endswith("\n\n")
    parts = text.removesuffix("\n\n").split("\n\n")
    return [[row.split(" ") for row in part.split("\n")] for part in parts]


def test_scores(first):
    """The scores are those of the best model, with `conlleval`'s table."""
    folder, results = first
    out = folder / "iob1"
    found = scores(out)
    assert set(found) == {*SCORES, "global_step"} and found["eval_f1"] > 0.5
    note = json_of(out / "best_checkpoint.json")
    assert note == {"step": found["global_step"], "f1": found["eval_f1"]}
    rows = [r for r in json_lines(out / "metrics.jsonl") if "eval_f1" in r]
    assert found["eval_f1"] == max(row["eval_f1"] for row in rows)
    row = next(r for r in rows if r["step"] == note["step"])
    assert {name: row[name] for name in SCORES} == {
        name: found[name] for name in SCORES
    }
    printed = results["iob1"]["stdout"]
    assert printed.count("***** Eval results *****") == 1
    assert printed.count("processed ") == 2 and printed.count("FB1: ") == 6
    table = printed[: printed.index("Test set:")]
    assert f"FB1: {100 * found['eval_f1']:6.2f}\n" in table


def test_the_scheme_makes_no_difference(first):
    """Weights and scores do not depend on the scheme."""
    one, other = first[0] / "iob1", first[0] / "iob2"
    for name in (WEIGHTS, "eval_results.txt", "task.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_predicted_columns(first):
    """Columns: words, further columns, the tags in IOB2, and the predicted tags."""
    folder, results = first
    found = blocks(folder / "iob1" / "test_predictions.conll")
    borders = [block for block in found if block[0][0] == "-DOCSTART-"]
    assert borders == 2 * [[["-DOCSTART-", "-X-", "-X-", "O", "O"]]]
    assert [found.index(borders[0]), found[5]] == [0, borders[1]]
    found = [block for block in found if block not in borders]
    for rows, (words, _, tags) in zip(found, TEST, strict=True):
        expected = [[w, "NN", "NN", t] for w, t in zip(words, tags, strict=True)]
        assert [row[:4] for row in rows] == expected
    gold, predicted = ([[r[i] for r in rows] for rows in found] for i in (3, 4))
    table = entities.conlleval_table(entities.score(gold, predicted))
    assert results["iob1"]["stdout"].endswith(f"Test set:\n{table}\n")


def test_predicted_entities(first):
    """They equal the entities of the columns, and the file can be read again."""
    path = first[0] / "iob1" / "test_predictions"
    rows = json_lines(path.with_suffix(".jsonl"))
    assert [row["text"] for row in rows] == [" ".join(words) for words, *_ in TEST]
    found = blocks(path.with_suffix(".conll"))
    found = [block for block in found if block[0][0] != "-DOCSTART-"]
    count = 0
    for row, block in zip(rows, found, strict=True):
        assert set(row) == {"text", "entities"}
        for one in row["entities"]:
            assert set(one) == {"start", "end", "label", "text"}
            assert row["text"][one["start"] : one["end"]] == one["text"]
        named = [(one["text"], one["label"]) for one in row["entities"]]
        spans = entities.to_spans([cells[-1] for cells in block])
        words = [cells[0] for cells in block]
        assert named == [(" ".join(words[a:b]), label) for a, b, label in spans]
        count += len(spans)
    assert count > 3
    data = read_ner_file(path.with_suffix(".jsonl"), "--test_file")
    tags = [list(sentence.tags) for (sentence,) in data.documents]
    assert tags == [
        entities.convert_tags([cells[-1] for cells in block], entities.IOB2)
        for block in found
    ]


def test_a_test_set_without_tags(first):
    """Where documents are the same, the tags equal those with tags; no scores."""
    folder, results = first
    for name in ("iob2", "frozen"):
        found = blocks(folder / name / "test_predictions.conll")
        words = [[cells[0] for cells in block] for block in found]
        assert words == [sentence[0] for sentence in TEST]
        assert {len(cells) for block in found for cells in block} == {2}
        assert "Test set:" not in results[name]["stdout"]
        tags = {cells[1] for block in found for cells in block}
        assert tags <= {"O", "B-ANI", "I-ANI", "B-LOC", "I-LOC"}


def test_json_lines(first):
    folder, results = first
    assert set(scores(folder / "json")) == {*SCORES, "global_step"}
    rows = json_lines(folder / "json" / "test_predictions.jsonl")
    texts = [row["text"] for row in json_lines(folder / "texts.jsonl")]
    assert [row["text"] for row in rows] == texts
    assert rows[6] == {"text": "", "entities": []}
    for row in rows:
        for one in row["entities"]:
            assert row["text"][one["start"] : one["end"]] == one["text"]
    assert len(rows[8]["entities"]) > 10
    assert "Test set:" not in results["json"]["stdout"]
    # An empty text has no sentence in the columns.
    columns = blocks(folder / "json" / "test_predictions.conll")
    assert sum(len(block) for block in columns if block[0][0] != "-DOCSTART-") == sum(
        len(text.split()) for text in texts
    )


def test_what_is_left(first):
    out = first[0] / "iob1"
    task = json_of(out / "task.json")
    assert task == {
        "task": "ner",
        "tags": ["O", "B-ANI", "I-ANI", "B-LOC", "I-LOC"],
        "max_seq_length": 16,
        "doc_stride": None,
        "one_sentence": False,
        "label_all_pieces": False,
        "feature_based": None,
        "global_step": scores(out)["global_step"],
    }
    run = json_of(out / "run.json")
    assert run["command"][2:-1] == FIRST["iob1"].split()
    wanted = {"iob1.train", "iob1.dev", "iob1.test", "model/vocab.txt"}
    assert wanted <= set(run["inputs"])
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        assert (out / name).exists()
    assert not list(first[0].rglob("*.tmp.*"))


def test_what_people_see(first):
    """The notes on a file and the model's casing, in a run that stops early."""
    script = ROOT / "run_scripts" / "run_ner.py"
    done = warm_python.run(
        [script, *STOPPED.split(), "--output_dir=stopped"], cwd=first[0]
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "iob1.train: the tags are IOB1 and were converted to IOB2.",
        "A cased model, as in the paper, finds names better.",
    ):
        assert done.stderr.count(words) == 1
    assert "Traceback" not in done.stderr and "step 1/1 " in done.stdout
    assert "held-out" not in done.stdout and "Eval results" not in done.stdout
    assert json_of(first[0] / "stopped" / "task.json")["global_step"] == 1


def test_a_bilstm(first, later):
    """Its encoder is the checkpoint's; prediction does not need the flag."""
    folder, _ = first
    assert json_of(folder / "frozen" / "task.json")["feature_based"] == (
        "weighted_sum_all"
    )
    before, after = (
        google.open_weights(str(folder / name / names.MODEL_PREFIX), name)
        for name in ("model", "frozen")
    )
    encoder = [name for name in after.shapes if name.startswith("bert/")]
    assert len(encoder) > 20 and len(after.shapes) == len(encoder) + 1 + 12 + 2
    for name in encoder:
        assert (before.read(name) == after.read(name)).all()
    assert not (folder / "frozen" / "eval_results.txt").exists()
    said(later, "frozen-alone")
    assert set(scores(folder / "frozen-alone")) == {*SCORES, "global_step"}
    assert_same_file(folder, "frozen-alone", "frozen", "test_predictions.jsonl")


def assert_same_file(folder, one, other, name):
    assert (folder / one / name).read_bytes() == (folder / other / name).read_bytes()


def test_seeds(first):
    folder, results = first
    rows = json_of(folder / "seeds" / "runs.json")
    assert [row["seed"] for row in rows] == [5, 6]
    values = [row["f1"] for row in rows]
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    printed = results["seeds"]["stdout"]
    assert (
        f"2 seeds: f1 {mean:.4f} ± {deviation:.4f} (best {max(values):.4f})" in printed
    )
    assert scores(folder / "seeds")["eval_f1"] == max(values)
    task = json_of(folder / "seeds" / "task.json")
    assert task["one_sentence"] is True and task["words_as_columns"] is True
    models = (folder / "seeds").rglob("*.data-*")
    assert [path.relative_to(folder / "seeds") for path in models] == [
        pathlib.Path(WEIGHTS)
    ]


def test_the_same_command_again(first, later):
    assert "The run in iob1 is done at step" in said(later, "iob1")
    assert contents(first[0] / "iob1") == later[1]["iob1"]


def test_asked_alone(first, later):
    """Separate evaluation and prediction repeat the earlier results."""
    folder = first[0]
    for name, files in (
        ("eval-alone", ["eval_results.txt"]),
        ("predict-alone", ["test_predictions.conll", "test_predictions.jsonl"]),
    ):
        said(later, name)
        for file in files:
            assert_same_file(folder, name, "iob1", file)
        found = {path.name for path in (folder / name).iterdir()}
        assert found == {*files, "eval_run.json"}


def test_read_in_other_windows(first, later):
    """Flags change the reading; other settings come from the model."""
    folder = first[0]
    said(later, "reread")
    known = NerPredictor(str(folder / "iob1")).task
    task = dataclasses.replace(known, max_seq_length=8, doc_stride=2, one_sentence=True)
    predictor = NerPredictor(str(folder / "iob1"), task=task)
    documents = read_ner_file(str(folder / "iob1.test"), "--test_file").documents
    outputs = predictor.outputs(documents, predictor.features(documents))
    expected = [tags for document in outputs for tags in document]
    found, before = (
        [
            [cells[-1] for cells in block]
            for block in blocks(folder / name / "test_predictions.conll")
            if block[0][0] != "-DOCSTART-"
        ]
        for name in ("reread", "iob1")
    )
    assert found == expected != before
    # The flags also change the reading of a Hugging Face tagger.
    said(later, "hugging-face")
    name = "test_predictions.conll"
    left, right = (folder / run / name for run in ("reread", "hugging-face"))
    assert left.read_text() == right.read_text()


def test_tags_without_beginnings_are_no_obstacle_to_a_score(later):
    """Taggers in IOB1, whose `config.json` has no B-, can be scored."""
    assert "f1" in said(later, "no-beginnings")


def test_one_format_after_the_other(first, later):
    """A model trained on columns reads JSON lines and scores their tags."""
    assert "Test set:" in said(later, "from-json")
    path = first[0] / "from-json" / "test_predictions.conll"
    rows = [block for block in blocks(path) if block[0][0] != "-DOCSTART-"]
    for block, (words, _, tags) in zip(rows, sentences(9, "dev"), strict=True):
        assert [cells[0] for cells in block] == words
        assert [cells[1] for cells in block] == tags
