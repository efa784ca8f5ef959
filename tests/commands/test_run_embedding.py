"""`run_embedding.py` from the command line: good, resumed and bad runs."""

import dataclasses
import json
import random

import numpy as np
import pytest
import tiny_model
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

from official_bert.checkpoints import google

TOPICS = "horse crust dough logbook years water her grand".split()  # noqa: SIM905
BRIEF = (
    "--init_checkpoint=model --max_seq_length=16 --train_batch_size=8 "
    "--num_train_epochs=1 --learning_rate=1e-3 --save_checkpoints_steps=2 --do_train"
)
TRAIN = f"{BRIEF} --do_eval --dev_file=dev.csv"
PAIRS = f"{TRAIN} --train_file=pairs.csv"
SCORED = f"{TRAIN} --train_file=scored.tsv --dev_file=scored.tsv"
EVAL = "--do_eval --dev_file=dev.csv --init_checkpoint=pairs"
CORPUS = (
    "--corpus_file=corpus.jsonl --queries_file=queries.txt --relevance_file=qrels.tsv"
)
SEARCH = f"--do_eval --init_checkpoint=pairs {CORPUS}"

FIRST = {
    "pairs": f"{PAIRS} --do_predict --test_file=dev.csv --micro_batch_size=4",
    "stopped": f"{PAIRS} --micro_batch_size=4 --stop_at_step=2",
}
SLOW_FIRST = {
    "cosine": f"{SCORED} --loss=cosine --pooling=cls --nonormalize",
    "cosent": f"{SCORED} --matryoshka_sizes=16,8 --vector_size=8",
    "texts": f"{BRIEF} --train_file=queries.txt --do_predict --test_file=queries.txt "
    "--num_train_epochs=3",
}
LATER = {"stopped": f"{PAIRS} --micro_batch_size=4", "searched": SEARCH}
# Complete commands -> words of the error.
BAD = {
    PAIRS.replace("--do_train --do_eval ", ""): "--do_train … --do_eval … --do_predict",
    f"{BRIEF} --train_file=gone.csv": "--train_file … gone.csv",
    f"{BRIEF} --do_eval --train_file=pairs.csv {CORPUS}": "needs --dev_file",
    f"{PAIRS} --loss=cosine": "--loss=cosine needs pairs with scores … line 2",
    f"{PAIRS} --loss=euclidean": "--loss",
    f"{SCORED} --loss=cosine --max_score=0": "--max_score=0 is invalid",
    f"{PAIRS} --matryoshka_sizes=8,x": "--matryoshka_sizes … 'x'",
    f"{PAIRS} --matryoshka_sizes=32": "--matryoshka_sizes: 32 exceeds the vector",
    f"{PAIRS} --vector_size=17": "--vector_size: 17 exceeds the vector size 16",
    f"{PAIRS} --text_columns=anchor,gone": "--text_columns … 'gone'",
    f"{PAIRS} --temperature=0": "--temperature",
    f"{PAIRS} --dev_file=queries.txt": "--dev_file contains single texts",
    f"{PAIRS} --max_seq_length=33": "33 … 32 tokens",
    f"{PAIRS} --max_seq_length=4 --long_text=window": "windows need at least 5",
    f"{PAIRS} {CORPUS.replace('--do_eval', '')} --corpus_file=gone": "--corpus_file",
    "--do_eval --init_checkpoint=pairs --corpus_file=corpus.jsonl": "--queries_file",
    f"{PAIRS} --micro_batch_size=3": "--micro_batch_size=3 does not divide the 8",
    EVAL.replace("=pairs", "=other"): "'squad'",
    f"{BRIEF} --train_file=queries.txt --init_checkpoint=still": "--loss=simcse "
    "… has no dropout … hidden_dropout_prob",
    f"{BRIEF} --train_file=queries.txt --nodropout": "--loss=simcse … --nodropout",
}


def small_weights():
    """Return a `Checkpoint` of an encoder that learns within a few steps."""
    found = tiny_model.checkpoint(heads=False)

    def read(name):
        value = tiny_model.tensors()[name]
        return np.ones_like(value) if name.endswith("gamma") else 0.2 * value

    return dataclasses.replace(found, read=read)


def write_files(folder):
    draw = random.Random(1)
    rows = [draw.sample(TOPICS, 2) for _ in range(40)]
    pairs = [f"the {a} of {b},{b} on the {a}" for a, b in rows]
    for name, some in (("pairs.csv", pairs[:32]), ("dev.csv", pairs[32:])):
        (folder / name).write_text("\n".join(["anchor,positive", *some]) + "\n")
    scored = [f"the {a}\tin {b}\t{len(a) % 6}" for a, b in rows[:16]]
    header = "sentence1\tsentence2\tscore"
    (folder / "scored.tsv").write_text("\n".join([header, *scored]) + "\n")
    lines = [json.dumps({"_id": name, "text": f"the {name}"}) for name in TOPICS]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "queries.txt").write_text("\n".join(f"the {t}" for t in TOPICS))
    qrels = [f"{n}\t{name}\t1" for n, name in enumerate(TOPICS, 1)]
    (folder / "qrels.tsv").write_text("\n".join(["query\tcorpus\tscore", *qrels]))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return (folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("embedding")
    for name in ("model", "other", "still"):
        (folder / name).mkdir()
        google.write_model(str(folder / name), small_weights())
    config = json.loads((folder / "still" / "bert_config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "still" / "bert_config.json").write_text(json.dumps(config))
    (folder / "other" / "task.json").write_text('{"task": "squad", "global_step": 1}')
    write_files(folder)
    return folder, first_runs("run_embedding", FIRST, folder)


@pytest.fixture(scope="module")
def later(first):
    """Return (results of the later and bad runs, earlier contents of the folders)."""
    return later_runs("run_embedding", LATER, BAD, first[0])


@pytest.mark.parametrize("flags", list(BAD), ids=range(len(BAD)))
def test_refused(first, later, flags):
    """A refused command creates nothing."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert not new_of(first[0], BAD, flags).exists()


def test_scores_and_task(first):
    out = first[0] / "pairs"
    found = scores(out)
    names = ("mrr_at_10", "recall_at_1", "recall_at_10", "ndcg_at_10")
    assert set(found) == {"global_step", *(f"eval_{name}" for name in names)}
    task = json.loads((out / "task.json").read_text())
    assert (task["task"], task["pooling"], task["normalize"]) == (
        "embedding",
        "mean",
        True,
    )
    assert task["global_step"] == found["global_step"]
    rows = [r for r in json_lines(out / "metrics.jsonl") if "eval_mrr_at_10" in r]
    assert found["eval_mrr_at_10"] == max(r["eval_mrr_at_10"] for r in rows)
    assert "Loss: info_nce." in first[1]["pairs"]["stdout"]


def test_predictions(first):
    rows = json_lines(first[0] / "pairs" / "test_predictions.jsonl")
    assert len(rows) == 8
    assert set(rows[0]) == {"guid", "text", "text_b", "similarity"}
    assert all(-1 <= row["similarity"] <= 1.000001 for row in rows)


def test_stopped_and_resumed(first, later):
    assert "resumes at step 2" in said(later, "stopped")
    for name in ("bert_model.ckpt.data-00000-of-00001", "eval_results.txt"):
        found, wanted = (first[0] / run / name for run in ("stopped", "pairs"))
        assert found.read_bytes() == wanted.read_bytes()


def test_search_in_a_corpus(first, later):
    """Each query equals one of the documents, word for word."""
    said(later, "searched")
    found = scores(first[0] / "searched")
    assert found["corpus_recall_at_1"] == found["corpus_mrr_at_10"] == 1


def test_refusals_harm_nothing(first, later):
    assert contents(first[0] / "pairs") == later[1]["pairs"]


@pytest.mark.slow  # Faster tests compare the losses with NumPy.
def test_other_losses(first):
    results = first_runs("run_embedding", SLOW_FIRST, first[0])
    assert "Loss: simcse." in results["texts"]["stdout"]
    tasks = {
        name: json.loads((first[0] / name / "task.json").read_text())
        for name in SLOW_FIRST
    }
    assert tasks["cosine"]["pooling"] == "cls" and not tasks["cosine"]["normalize"]
    assert tasks["cosent"]["size"] == 8
    assert set(scores(first[0] / "cosent")) > {"eval_spearman", "eval_pearson"}
    rows = json_lines(first[0] / "texts" / "test_predictions.jsonl")
    assert [len(row["vector"]) for row in rows] == [16] * 8
