"""`extend_vocab.py` from the command line."""

import gzip
import json
import os

import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI, MINI_CONFIG
from script_runs import assert_refused, run_many

import official_bert
from official_bert.checkpoints import google, model_directory
from official_bert.files import sha256_of

CORPUS = """\
The horsehouse is on the water.
Horsehouse, horsehouse and logshoes on logshoes; logshoes light, logshoes!

counting counting counting the HORSEHOUSE counting and one horsehouse horsehouse
zoo zoo horsehouses horsehouses logshoes counting
"""
# 125 tokens, 5 of them [unused…], in a table of 128 rows.
WORDS = ["horsehouse", "loghouse", "the", "j", "q", "z", "J", "ß", "lightning"]
WORDS += ["overlight", "bookish", "waterhorse", "counted"]
LIST = ["Logshoes", *WORDS]
ADDED = ["logshoes", *(word for word in WORDS if word not in ("the", "J"))]

INIT = "--init_checkpoint=model"
TEXT = "--input_file=corpus.txt"
GOOD = {
    "suggest": [INIT, TEXT, "--suggest_only", "--suggestions_file=words.tsv"],
    "print": [INIT, TEXT, "--suggest_only", "--min_frequency=1", "--output_dir=no"],
    "text": [INIT, TEXT, "--num_words=2", "--output_dir=from_text"],
    "lost": [
        *(INIT, "--input_file=articles.json", "--input_format=wikiextractor"),
        *("--min_frequency=3", "--suggest_only", "--vocab_file=lossy.txt"),
    ],
    "gzip": [INIT, "--input_file=*.gz", "--num_words=2", "--output_dir=from_gzip"],
    "list": [INIT, "--new_words_file=list.txt", "--output_dir=from_list"],
    "back": [INIT, TEXT, "--new_words_file=words.tsv", "--output_dir=sub/back"],
    "append": [
        "--init_checkpoint=model/bert_model.ckpt.index",
        "--new_words_file=list.txt",
        "--output_dir=appended",
        "--nouse_unused",
    ],
    "keep": [INIT, TEXT, "--keep_other_words", "--output_dir=kept"],
    "keep list": [
        *(INIT, TEXT, "--keep_other_words", "--new_words_file=words.tsv"),
        "--output_dir=kept_list",
    ],
    "cased text": [
        *(INIT, TEXT, "--nodo_lower_case", "--min_frequency=4", "--suggest_only"),
    ],
    "cased": [
        *("--init_checkpoint=bare", "--vocab_file=model/vocab.txt"),
        *("--nodo_lower_case", "--new_words_file=list.txt", "--output_dir=cased"),
    ],
}
BAD = {
    "no model": ([TEXT, "--output_dir=x"], ["Give --model:"]),
    "no words": ([INIT, "--output_dir=x"], ["--input_file", "--new_words_file"]),
    "no output": ([INIT, TEXT], ["Give --output_dir"]),
    "missing": (
        ["--init_checkpoint=none", TEXT, "--output_dir=x"],
        ["No checkpoint", "none"],
    ),
    "no text": (
        [INIT, "--input_file=none.txt", "--output_dir=x"],
        ["--input_file", "none.txt"],
    ),
    "empty text": (
        [INIT, "--input_file=empty.txt", "--output_dir=x"],
        ["--input_file", "no words"],
    ),
    "nothing worth it": (
        [INIT, TEXT, "--min_frequency=99", "--output_dir=x"],
        ["There is no word to add", "--min_frequency=99"],
    ),
    "mistakes": (
        [INIT, "--new_words_file=mistakes.txt", "--output_dir=x"],
        ["2 of its 3 words", "line 1 ('a-b')", "line 3 ('##ing')"],
    ),
    "all there": (
        [INIT, "--new_words_file=there.txt", "--output_dir=x"],
        ["no new word", "the (line 1)"],
    ),
    "all harmful": (
        [
            *(INIT, TEXT, "--new_words_file=harmful.txt", "--output_dir=x"),
            "--keep_other_words",
        ],
        ["harmful.txt", "Leave out --keep_other_words"],
    ),
    "list and number": (
        [INIT, "--new_words_file=list.txt", "--num_words=3", "--output_dir=x"],
        ["--num_words", "--new_words_file"],
    ),
    "list and suggestions": (
        [INIT, "--new_words_file=list.txt", "--suggest_only"],
        ["--suggest_only", "--new_words_file"],
    ),
    "list and their file": (
        [
            *(INIT, "--new_words_file=list.txt", "--suggestions_file=s"),
            "--output_dir=x",
        ],
        ["--suggestions_file", "--new_words_file"],
    ),
    "keep without text": (
        [
            *(INIT, "--new_words_file=list.txt", "--keep_other_words"),
            "--output_dir=x",
        ],
        ["--keep_other_words", "--input_file"],
    ),
    "a model is there": (
        [INIT, "--new_words_file=list.txt", "--output_dir=model"],
        ["--output_dir", "model", "not an empty directory"],
    ),
    "suggestions over the text": (
        [INIT, TEXT, "--suggest_only", "--suggestions_file=./corpus.txt"],
        ["--suggestions_file", "corpus.txt is also an input"],
    ),
    "suggestions nowhere": (
        [INIT, TEXT, "--suggest_only", "--suggestions_file=none/s.tsv"],
        ["--suggestions_file", "does not exist"],
    ),
    "no vocabulary": (
        ["--init_checkpoint=bare", TEXT, "--output_dir=x"],
        ["bare", "vocab.txt"],
    ),
    "other vocabulary": (
        [INIT, TEXT, "--vocab_file=there.txt", "--output_dir=x"],
        ["there.txt", "[PAD]"],
    ),
    "long vocabulary": (
        [INIT, TEXT, "--vocab_file=long.txt", "--output_dir=x"],
        ["long.txt: line 129 ('w3')", "vocab_size is 128"],
    ),
    "other config": (
        [INIT, TEXT, "--bert_config_file=large.json", "--output_dir=x"],
        ["model", "hidden_size", "1024"],
    ),
    "number": ([INIT, TEXT, "--num_words=0", "--output_dir=x"], ["--num_words"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a model with non-zero biases, the same without heads, and texts."""
    from official_bert.config import BertConfig
    from official_bert.modeling.pretraining import PretrainingModel

    folder = tmp_path_factory.mktemp("models")
    model = PretrainingModel(MINI_CONFIG)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    for name, vocab_file in {"model": MINI / "vocab.txt", "bare": None}.items():
        (folder / name).mkdir()
        casing = True if vocab_file else None
        model_directory.save(str(folder / name), model, vocab_file, casing)
    (folder / "corpus.txt").write_text(CORPUS)
    (folder / "corpus.txt.gz").write_bytes(gzip.compress(CORPUS.encode()))
    article = {"text": "Counti counti counti, counting. zoo zo\ud800o"}
    (folder / "articles.json").write_text(json.dumps(article))
    long = (MINI / "vocab.txt").read_text() + "w0\nw1\nw2\nw3\n"
    (folder / "long.txt").write_text(long)
    lossy = (MINI / "vocab.txt").read_text().replace("##n\n", "##nnn\n")
    (folder / "lossy.txt").write_text(lossy)
    (folder / "empty.txt").write_text(" \n")
    (folder / "list.txt").write_text("\n".join(LIST), encoding="utf-8")
    (folder / "mistakes.txt").write_text("a-b\nbookish\n##ing\n")
    (folder / "there.txt").write_text("the\nThe\n")
    (folder / "harmful.txt").write_text("horsehouse\n")
    (folder / "large.json").write_text(BertConfig.named("large", 128).to_json_string())
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {**{name: run for name, (run, _) in BAD.items()}, **GOOD}
    runs = {name: {"arguments": arguments} for name, arguments in runs.items()}
    return run_many("extend_vocab", runs, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, folder, name):
    assert_refused(results[name], BAD[name][1])
    assert not (folder / "x").exists()
    assert not list(folder.glob("*.tmp.*"))


def good(results, name):
    assert results[name]["status"] == 0, results[name]["stderr"]
    assert results[name]["stderr"] == ""
    return results[name]["stdout"].splitlines()


def test_suggestions_are_printed_and_written(results, folder):
    lines = good(results, "suggest")
    assert [line.split() for line in lines[1:4]] == [
        ["word", "count", "pieces", "saved", "cut"],
        ["logshoes", "5", "3", "10", "log", "##shoe", "##s"],
        ["horsehouse", "6", "2", "6", "horse", "##house"],
    ]
    assert lines[0].startswith("The model does not know 1 words of the text, most o")
    assert "often zoo. " in lines[0]
    assert lines[5] == "All 3 suggestions are in words.tsv."
    rows = (folder / "words.tsv").read_text().splitlines()
    assert rows[1:] == [
        "logshoes\t5\t3\t10\tlog ##shoe ##s",
        "horsehouse\t6\t2\t6\thorse ##house",
        "counting\t5\t2\t5\tcount ##ing",
    ]


def test_all_suggestions_are_printed_if_they_are_not_written(results, folder):
    lines = good(results, "print")
    assert [line.split()[0] for line in lines[2:6]] == [
        "logshoes",
        "horsehouse",
        "counting",
        "horsehouses",
    ]
    assert not (folder / "no").exists()


def test_what_the_words_save(results):
    lines = good(results, "text")
    # 36 words and marks: 5 have 3 tokens, 11 have 2, and 2 have 3.
    before = 36 + 5 * 2 + 11 + 2 * 2
    saved, changed = lines[-2:]
    assert saved.startswith(f"Tokens of the text: {before} before, ")
    # 5 times 2 for logshoes, 6 for horsehouse, 1 for each of 2 horsehouses.
    assert f" {before - 18} with the new words, {18 / before:.2%} less" in saved
    assert changed.startswith(
        "Other words are tokenized differently, because they start with a new"
    )
    assert f"new word: 1 ({2 / 36:.2%} of the text)" in changed
    assert "horsehouses from horse ##house ##s to horsehouse ##s" in changed


def test_the_new_model_directory(results, folder):
    good(results, "text")
    assert sorted(os.listdir(folder / "from_text")) == [
        "README.md",
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
        "new_words.tsv",
        "run.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    run = json.loads((folder / "from_text" / "run.json").read_text())
    assert run["flags"]["num_words"] == 2
    assert {os.path.basename(path) for path in run["inputs"]} >= {
        "corpus.txt",
        "vocab.txt",
    }
    assert (folder / "from_text" / "new_words.tsv").read_text().count("\n") == 3
    config = json.loads((folder / "from_text" / "bert_config.json").read_text())
    assert config == MINI_CONFIG.to_dict()


def test_words_that_become_unknown_are_told_of(results):
    """Unprintable text, half a surrogate pair, does not prevent the report."""
    lines = good(results, "lost")
    assert [line.split() for line in lines[2:-3]] == [
        ["counti", "3", "2", "3", "count", "##i"]
    ]
    assert "does not know 1 words of the text, most often zoo. " in lines[0]
    assert lines[-1].startswith("1 of these words become unknown, ")
    assert lines[-1].endswith("such as counting from count ##ing to [UNK].")


def test_compressed_text_gives_the_same(results, folder):
    good(results, "gzip")
    for name in ("vocab.txt", "bert_model.ckpt.data-00000-of-00001"):
        assert sha256_of(folder / "from_gzip" / name) == sha256_of(
            folder / "from_text" / name
        )


def old_and_new(folder, name):
    return official_bert.load(str(folder / "model")), official_bert.load(
        str(folder / name)
    )


PLACES = {"from_list": [1, 2, 3, 4, 5, *range(125, 132)], "appended": range(125, 137)}


@pytest.mark.parametrize("name", list(PLACES))
def test_words_in_unused_rows_in_padding_and_in_new_rows(results, folder, name):
    lines = good(results, {"from_list": "list", "appended": "append"}[name])
    old, new = old_and_new(folder, name)
    assert new.config.vocab_size == {"from_list": 132, "appended": 137}[name]
    tables = [
        {v.path: v.numpy() for v in bert.model.trainable_variables}
        for bert in (old, new)
    ]
    for word, index in zip(ADDED, PLACES[name], strict=True):
        assert new.tokenizer.encode(word) == [index]
        ids = old.tokenizer.encode(word)
        for table in ("bert/embeddings/word_embeddings", "cls/predictions/output_bias"):
            np.testing.assert_array_equal(
                tables[1][table][index], tables[0][table][ids].mean(axis=0)
            )
    unused, rows = {"from_list": (5, 4), "appended": (0, 9)}[name]
    assert (
        f"{name}: 12 words added: {unused} replaced [unused…] tokens, "
        f"3 replaced padding rows of the embedding table, {rows} are new rows. "
        f"vocab_size was 128 and is now {new.config.vocab_size}." in lines
    )
    assert lines[0].endswith("changed to the tokenizer's form: Logshoes as logshoes "
                             "(line 1).")  # fmt: skip
    assert lines[1].endswith("already in the vocabulary, skipped: the (line 4).")
    assert lines[2].endswith("repeated, skipped: J (line 8).")
    assert lines[-1].endswith("Give --input_file to see the effect on a text.")


@pytest.mark.parametrize("name", ["from_text", "from_list", "appended"])
def test_texts_without_the_new_words_give_the_same_bits(results, folder, name):
    good(results, "append")
    old, new = old_and_new(folder, name)
    text = "She found the horse, the house and the logbook on the water over years."
    ids = old.tokenizer.encode(text)
    assert ids == new.tokenizer.encode(text)
    ids = [9, *ids, 10]
    inputs = {"input_ids": tf.constant([ids])}
    inputs["masked_lm_positions"] = tf.constant([[1, 5, 9]])
    before, after = (bert.model(inputs) for bert in (old, new))
    for output in ("sequence_output", "pooled_output"):
        np.testing.assert_array_equal(
            old.model.bert(inputs)[output], new.model.bert(inputs)[output]
        )
    np.testing.assert_array_equal(
        before["next_sentence_logits"], after["next_sentence_logits"]
    )
    kept = range(6, 125)
    np.testing.assert_array_equal(
        tf.gather(before["masked_lm_logits"], kept, axis=-1),
        tf.gather(after["masked_lm_logits"], kept, axis=-1),
    )


def test_suggestions_given_back(results, folder):
    lines = good(results, "back")
    assert "sub/back: 3 words added: 3 replaced [unused…] tokens" in " ".join(lines)
    vocab = (folder / "sub" / "back" / "vocab.txt").read_text().splitlines()
    assert vocab[:7] == [
        *("[PAD]", "logshoes", "horsehouse", "counting", "[unused3]", "[unused4]"),
        "[UNK]",
    ]
    assert vocab[6:] == (MINI / "vocab.txt").read_text().splitlines()[6:]


@pytest.mark.parametrize("name", ["keep", "keep list"])
def test_other_words_can_be_kept(results, folder, name):
    lines = good(results, name)
    assert lines[-1] == "All other words of the text keep their tokens."
    vocab = (folder / name.replace("keep ", "kept_").replace("keep", "kept")) / (
        "vocab.txt"
    )
    assert vocab.read_text().splitlines()[1:4] == ["logshoes", "counting", "[unused2]"]
    if name == "keep list":
        assert "Left out because of --keep_other_words: horsehouse." in lines


def test_casing_and_vocabulary_can_be_given(results, folder):
    lines = good(results, "cased text")
    assert ["horsehouse", "4"] in [line.split()[:2] for line in lines]
    lines = good(results, "cased")
    settings = json.loads((folder / "cased" / "tokenizer_config.json").read_text())
    assert settings == {"do_lower_case": False}
    vocab = (folder / "cased" / "vocab.txt").read_text().splitlines()
    assert "Logshoes" in vocab and "J" in vocab and len(vocab) == 133
    assert google.find_prefix(folder / "cased")
    assert lines[-2].startswith("cased: 13 words added")
