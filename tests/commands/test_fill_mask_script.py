"""`fill_mask.py` from the command line."""

import dataclasses
import json
import shutil
import zipfile

import keras
import pytest
from record_files import MINI, MINI_CONFIG
from script_runs import assert_refused, run_many

from official_bert.checkpoints import google, model_directory
from official_bert.pretrained.likelihood import next_sentence_probability

CONFIG = dataclasses.replace(MINI_CONFIG, initializer_range=0.3)
MODEL = ["--model_dir=model"]
SCORE = [*MODEL, "--score"]
PAIR = ["--text=the [MASK] of water", "--text_b=she is on it"]
GOOD = {
    "one": {"arguments": [*MODEL, "--text=the [MASK] of water"]},
    "two": {"arguments": [*MODEL, "--text=[MASK] is [MASK]", "--top_k=2"]},
    "texts": {"arguments": [*MODEL, "--text=a [MASK]", "--text=b [MASK]", "--json"]},
    "stdin": {
        "arguments": [*MODEL, "--json", "--top_k=3"],
        "stdin": "the [MASK]\n\n  [MASK] 师 [MASK]  \r\nbad \udcff [MASK]\n",
    },
    "nothing": {"arguments": MODEL, "stdin": ""},
    "zip": {"arguments": ["--init_checkpoint=model.zip", "--text=the [MASK] of water"]},
    "index": {
        "arguments": [
            "--init_checkpoint=weights/bert_model.ckpt.index",
            "--bert_config_file=model/bert_config.json",
            "--vocab_file=model/vocab.txt",
            "--do_lower_case",
            "--text=the [MASK] of water",
        ]
    },
    "cased": {
        "arguments": [*MODEL, "--nodo_lower_case", "--score", "--json", "--text=The a"]
    },
    "score": {"arguments": [*SCORE, "--text=the light", "--text=water"]},
    "score json": {"arguments": [*SCORE, "--json", "--text=the light of 老"]},
    "score batch": {
        "arguments": [*SCORE, "--json", "--text=the light of 老", "--batch_size=1"]
    },
    "score lines": {"arguments": SCORE, "stdin": "the light\n\n  water \n"},
    "pair": {"arguments": [*MODEL, *PAIR]},
    "pair json": {"arguments": [*MODEL, "--json", *PAIR]},
    "pair only": {"arguments": [*MODEL, "--text=the light", "--text_b=she is on it"]},
    "pair score": {
        "arguments": [
            *SCORE,
            "--json",
            "--text=the light",
            "--text_b=she is on it",
            "--text=she is on it",
            "--text_b=the light",
        ]
    },
    "no next-sentence head": {
        "arguments": ["--model_dir=headless", "--score", "--text=the light"]
    },
}
BAD = {
    "no model": ({"arguments": ["--text=[MASK]"]}, ["Give --model:"]),
    "missing": ({"arguments": ["--model_dir=none", "--text=[MASK]"]}, ["none"]),
    "no mask": ({"arguments": [*MODEL, "--text=water"]}, ["no [MASK]", "water"]),
    "empty text": ({"arguments": [*MODEL, "--text="]}, ["no [MASK]"]),
    "too long": (
        {"arguments": [*MODEL, "--text=[MASK] " + "of " * 40]},
        ["43 tokens", "32"],
    ),
    "top_k": ({"arguments": [*MODEL, "--text=[MASK]", "--top_k=0"]}, ["top_k", "0"]),
    "no vocabulary": (
        {"arguments": ["--model_dir=bare", "--text=[MASK]"]},
        ["bare has no vocab.txt"],
    ),
    "half a model": (
        {"arguments": ["--model_dir=half", "--text=[MASK]"]},
        ["half contains no checkpoint"],
    ),
    "two names, of which the last counts": (
        {"arguments": [*MODEL, "--init_checkpoint=none", "--text=[MASK]"]},
        ["none"],
    ),
    "missing vocabulary": (
        {"arguments": [*MODEL, "--vocab_file=gone.txt", "--text=[MASK]"]},
        ["gone.txt"],
    ),
    "nothing to score": ({"arguments": [*SCORE, "--text="]}, ["no tokens to score"]),
    "a mask to score": (
        {"arguments": [*SCORE, "--text=the [MASK]"]},
        ["contains [MASK]"],
    ),
    "too long to score": (
        {"arguments": [*SCORE, "--text=" + "of " * 31]},
        ["33 tokens", "32"],
    ),
    "no batch": (
        {"arguments": [*SCORE, "--text=the", "--batch_size=0"]},
        ["batch_size", "positive"],
    ),
    "more second texts": (
        {"arguments": [*MODEL, *PAIR, "--text_b=the"]},
        ["--text_b is given 2 times, but --text 1"],
    ),
    "second texts only": (
        {"arguments": [*MODEL, "--text_b=the"], "stdin": "the\n"},
        ["--text_b is given 1 times, but --text 0"],
    ),
    "empty second text": (
        {"arguments": [*MODEL, "--text=the", "--text_b="]},
        ["is empty. Give two texts"],
    ),
    "no head for pairs": (
        {"arguments": ["--model_dir=headless", *PAIR]},
        ["headless", "cls/seq_relationship/output_weights"],
    ),
    "no heads": (
        {"arguments": ["--model_dir=encoder", "--text=[MASK]"]},
        ["encoder", "masked-LM head", "cls/predictions/output_bias"],
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from official_bert.modeling.pretraining import PretrainingModel

    folder = tmp_path_factory.mktemp("models")
    keras.utils.set_random_seed(1)
    model = PretrainingModel(CONFIG)
    for name in ("model", "bare", "half", "headless", "encoder"):
        (folder / name).mkdir()
        vocab = MINI / "vocab.txt" if name != "bare" else None
        model_directory.save(str(folder / name), model, vocab, True)
    google.delete_checkpoint(str(folder / "half" / "bert_model.ckpt"))
    for name, left_out in {
        "headless": "cls/seq_relationship",
        "encoder": "cls",
    }.items():
        kept = {
            v.path: v.numpy()
            for v in model.trainable_variables
            if not v.path.startswith(left_out)
        }
        google.write_checkpoint(str(folder / name / "bert_model.ckpt"), kept)
    (folder / "weights").mkdir()
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        for path in (folder / "model").iterdir():
            archive.write(path, f"uncased/{path.name}")
            if path.name.startswith("bert_model"):
                shutil.copy(path, folder / "weights")
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {**{name: run for name, (run, _) in BAD.items()}, **GOOD}
    return run_many("fill_mask", runs, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, name):
    assert_refused(results[name], BAD[name][1])
    assert results[name]["stdout"] == ""


def good(results, name):
    assert results[name]["status"] == 0, results[name]["stderr"]
    assert results[name]["stderr"] == ""
    return results[name]["stdout"].splitlines()


def test_one_mask(results):
    text, answers = good(results, "one")
    assert text == "the [MASK] of water"
    assert answers.startswith("  [MASK]: ")
    assert answers.count("%") == 5


def test_two_masks(results):
    lines = good(results, "two")
    assert [line.split(":")[0] for line in lines[1:]] == ["  [MASK] 1", "  [MASK] 2"]
    assert [line.count("%") for line in lines[1:]] == [2, 2]


def test_json_for_each_text(results):
    first, second = map(json.loads, good(results, "texts"))
    assert (first["text"], second["text"]) == ("a [MASK]", "b [MASK]")
    ((*candidates,),) = first["masks"]
    assert len(candidates) == 5
    assert set(candidates[0]) == {"token", "probability"}
    assert 0 < sum(c["probability"] for c in candidates) <= 1


def test_lines_of_standard_input(results):
    """Empty lines are skipped, and invalid bytes are left out."""
    rows = list(map(json.loads, good(results, "stdin")))
    assert [row["text"] for row in rows] == [
        "the [MASK]",
        "[MASK] 师 [MASK]",
        "bad  [MASK]",
    ]
    assert [len(row["masks"]) for row in rows] == [1, 2, 1]


def test_no_lines_no_answers(results):
    assert good(results, "nothing") == []


@pytest.mark.parametrize("name", ["zip", "index"])
def test_other_places_of_the_same_model(results, name):
    assert good(results, name) == good(results, "one")


def test_casing_can_be_given(results):
    """In the cased case, "The" is not in this vocabulary."""
    (answer,) = map(json.loads, good(results, "cased"))
    assert [t["token"] for t in answer["tokens"]] == ["[UNK]", "a"]


def test_scores(results):
    first, score, second, _ = good(results, "score")
    assert (first, second) == ("the light", "water")
    assert score.startswith("  pseudo-log-likelihood: -")
    assert "nats   tokens: 2   pseudo-perplexity: " in score
    assert good(results, "score lines") == good(results, "score")


def test_scores_as_json(results):
    (answer,) = map(json.loads, good(results, "score json"))
    assert [t["token"] for t in answer["tokens"]] == ["the", "light", "of", "老"]
    total = sum(t["log_probability"] for t in answer["tokens"])
    assert answer["pseudo_log_likelihood"] == pytest.approx(total)
    assert answer["num_tokens"] == 4
    assert answer["pseudo_perplexity"] == pytest.approx(2.718281828 ** (-total / 4))
    assert "masks" not in answer
    (one_by_one,) = map(json.loads, good(results, "score batch"))
    other = one_by_one["pseudo_log_likelihood"]
    assert other == pytest.approx(total, abs=1e-4)


def test_a_next_sentence(results):
    *before, last = good(results, "pair")
    assert before == good(results, "one")
    assert last.startswith("  next sentence: ") and last.endswith("%   she is on it")
    (answer,) = map(json.loads, good(results, "pair json"))
    assert list(answer) == ["text", "masks", "text_b", "next_sentence_probability"]
    assert f"{answer['next_sentence_probability']:.1%}" in last


def test_a_next_sentence_alone(results):
    """Without a mask, it prints only the next-sentence probability."""
    text, last = good(results, "pair only")
    assert text == "the light"
    assert last.startswith("  next sentence: ")


def test_each_pair_has_its_probability(results, folder):
    there, back = map(json.loads, good(results, "pair score"))
    assert (there["text"], there["text_b"]) == ("the light", "she is on it")
    assert (back["text"], back["text_b"]) == ("she is on it", "the light")
    bert = model_directory.load(str(folder / "model"))
    for answer in (there, back):
        wanted = next_sentence_probability(bert, answer["text"], answer["text_b"])
        assert answer["next_sentence_probability"] == pytest.approx(wanted, abs=1e-6)
    ways = [answer["next_sentence_probability"] for answer in (there, back)]
    assert abs(ways[0] - ways[1]) > 1e-5
    assert all("pseudo_log_likelihood" in answer for answer in (there, back))


def test_scores_need_the_masked_lm_head_only(results):
    assert good(results, "no next-sentence head") == good(results, "score")[:2]
