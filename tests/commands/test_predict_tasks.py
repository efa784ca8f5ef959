"""`predict.py` with models of tasks other than classification."""

import gzip
import json
import os
import select
import subprocess
import sys
import time

import pytest
import tiny_model
from places import ROOT
from script_runs import assert_refused, run_many
from untrained_models import with_outputs, write_model

from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.choice.training import ChoiceTask
from official_bert.tasks.ner.features import tag_names
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tasks.squad.training import SquadTask

TASKS = {
    "ner": NerTask(tag_names(["LOC"]), 16),
    "squad": SquadTask(32, 8, 8, Decoding(5, 9)),
    # With this threshold, some questions get an answer and others do not.
    "squad2": SquadTask(32, 8, 8, Decoding(5, 9, True, -1.0)),
    "swag": ChoiceTask(24),
}
TEXTS = [
    "the horse is on né water, in 北京",
    "",
    "of her {years}",
    "the grand light of the horse" + " the grand light of the horse" * 7,
]
CONTEXT = "the horse is on water . her light was found in a logbook , years on . " * 3
PAIRS = [
    ("what is on water", CONTEXT.strip()),
    ("where was light", "her light was found in 北京 , she said"),
    ("who", "horse"),
]
PROMPTS = [
    ("the horse", ["is on water", "was found in the light of years", "in"]),
    ("her years", ["of light", "of water"]),
    ("a logbook", ["the", "of", "in", "on", "is"]),
]
SENTENCES = [("the horse", "her", ["on", "in the light", "is", "of years"])] * 2
SENTENCES += [("in", "", ["water", "light", "crust", "horse"])]


def lines(*records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


NER_JSON = lines(*({"text": text, "entities": 5, "more": [1]} for text in TEXTS))
PAIR_LINES = "".join(f"{question} ||| {context}\n" for question, context in PAIRS)
SQUAD_JSON = lines(*({"question": q, "context": c, "id": 7} for q, c in PAIRS))
CHOICE_JSON = lines(
    {"prompt": PROMPTS[0][0], "choices": PROMPTS[0][1], "label": "never"},
    {"question": PROMPTS[1][0], "choices": [{"text": t} for t in PROMPTS[1][1]]}
    | {"choices": {"text": PROMPTS[1][1], "label": ["B", "A"]}, "answerKey": "Z"},
    {"context": PROMPTS[2][0], "choices": PROMPTS[2][1], "answerKey": "A"},
)
# Labels that training would reject.
SWAG = "sent1,sent2,ending0,ending1,ending2,ending3,label\n" + "".join(
    f"{sentence},{start},{','.join(endings)},-1\n"
    for sentence, start, endings in SENTENCES
)
SWAG_JSON = lines(
    *(
        {"sent1": sentence, "sent2": start, "label": -1}
        | {f"ending{n}": text for n, text in enumerate(endings)}
        for sentence, start, endings in SENTENCES
    )
)
FILES = {
    "texts.txt": "\n".join(TEXTS) + "\n",
    "texts.jsonl": "\ufeff\n" + NER_JSON,
    "texts.jsonl.gz": gzip.compress(NER_JSON.replace("\n", "\r\n\r\n").encode()),
    "pairs.txt": PAIR_LINES,
    "pairs.jsonl": SQUAD_JSON,
    "prompts.jsonl": CHOICE_JSON,
    "prompts.txt": "\n\n" + CHOICE_JSON,
    "swag.csv": SWAG,
    "swag.json": SWAG,
    "swag.jsonl": SWAG_JSON,
    # More good lines than one chunk of predictions.
    "late.jsonl": NER_JSON + '{"text": ""}\n' * 2000 + '{"text": "on"\n{"text": 5}\n',
    "late.txt": PAIR_LINES + "the horse\n",
    "late-prompts.jsonl": CHOICE_JSON + '\n{"prompt": "on"}\n{}\n',
    "labels.csv": "label,text\nbad,the horse\n",
    "list.json": json.dumps([{"text": "on"}]),
}
# Name of the run -> (name of the model, flags, standard input).
GOOD = {
    "ner lines": ("ner", "", FILES["texts.txt"]),
    "ner mixed": (
        "ner",
        "",
        f'\ufeff{TEXTS[0]}\r\n\r\n  {{"text": "{TEXTS[2]}"}}\n{TEXTS[3]}',
    ),
    "ner one by one": ("ner", "--batch_size=1", NER_JSON),
    "ner file": ("ner", "--input_file=texts.txt", ""),
    "ner json": ("ner", "--input_file=texts.jsonl", ""),
    "ner gzip": ("ner", "--input_file=texts.jsonl.gz", ""),
    "ner to file": ("ner", "--input_file=texts.txt --output_file=new.jsonl", ""),
    "ner nothing": ("ner", "", ""),
    "squad lines": ("squad", "", PAIR_LINES),
    "squad json": ("squad", "", "\n" + SQUAD_JSON + "\n"),
    "squad one by one": ("squad", "--batch_size=1", SQUAD_JSON),
    "squad file": ("squad", "--input_file=pairs.txt", ""),
    "squad json file": ("squad", "--input_file=pairs.jsonl", ""),
    "squad2 lines": ("squad2", "", PAIR_LINES),
    "squad blank": ("squad", "", lines({"question": "", "context": ""})),
    "swag lines": ("swag", "", CHOICE_JSON),
    "swag one by one": ("swag", "--batch_size=1", CHOICE_JSON),
    "swag file": ("swag", "--input_file=prompts.jsonl", ""),
    "swag text file": ("swag", "--input_file=prompts.txt", ""),
    "swag csv": ("swag", "--input_file=swag.csv", ""),
    "swag csv, so named": ("swag", "--input_file=swag.json", ""),
    "swag json": ("swag", "--input_file=swag.jsonl", ""),
    "swag pipe": ("swag", "", SWAG_JSON),
}
# As `GOOD`, with words of the error.
TO_FILE = "--output_file=out.jsonl"
BAD = {
    "ner cut": ("ner", "", '{"text": "on"', "Standard input … line 1 is not JSON"),
    "ner brace": ("ner", "", "{x\n", 'line 1 is not JSON … {"text": "In Rome."}'),
    "ner key": ("ner", "", '\n{"texts": "on"}', 'line 2 has no text in "text"'),
    "ner deep": ("ner", "", '{"text": ' + "[" * 99999, "line 1 is nested too deeply"),
    "ner half": ("ner", "", '{"text": "\\ud800"}', "line 1 contains a lone surrogate"),
    "ner late": (
        "ner",
        f"--input_file=late.jsonl {TO_FILE}",
        "",
        "late.jsonl … line 2005",
    ),
    "ner printed": ("ner", "--input_file=late.jsonl", "", "late.jsonl … line 2005"),
    "ner list": ("ner", "--input_file=list.json", "", "list.json … line 1 is not a"),
    "ner table": ("ner", "--input_file=labels.csv", "", "labels.csv is a table"),
    "ner column": (
        "ner",
        "--input_file=texts.jsonl --text_column=text",
        "",
        "--text_column … classifiers … ner",
    ),
    "squad no pair": ("squad", "", "on ||| on\nthe horse\n", "line 2 has no ||| betwe"),
    "squad one": ("squad", "", '{"question": "on"}', 'has no text in "context"'),
    "squad list": ("squad", "", '{"question": ["on"]}', 'has no text in "question"'),
    "squad late": (
        "squad",
        f"--input_file=late.txt {TO_FILE}",
        "",
        "late.txt … line 4",
    ),
    "squad text": (
        "squad",
        "--input_file=list.json",
        "",
        "line 1 is not a JSON object",
    ),
    "swag text": ("swag", "", "the horse\n", "line 1 is not a JSON object … choices"),
    "swag one": ("swag", "", '{"prompt": "on", "choices": ["is"]}', "has 1 choice"),
    "swag empty": (
        "swag",
        "",
        '{"prompt": "", "choices": ["is", "in"]}',
        "empty quest",
    ),
    "swag number": ("swag", "", '{"prompt": "on", "choices": ["is", {}]}', "choices"),
    "swag late": (
        "swag",
        f"--input_file=late-prompts.jsonl {TO_FILE}",
        "",
        "late-prompts.jsonl: 2 rows cannot be used: line 5 has no choices, line 6",
    ),
    "swag table": ("swag", "--input_file=labels.csv", "", "neither SWAG's CSV … JSON"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    weights = {
        # With these weights, some words are in entities and others are not.
        "ner": tiny_model.tensors(seed=4),
        "swag": with_outputs(1),
    }
    for name, task in TASKS.items():
        write_model(folder / name, task, weights.get(name))
    for name, content in FILES.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    (folder / "out.jsonl").write_text("an older answer\n")
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {
        name: {"arguments": [f"--model_dir={model}", *flags.split()], "stdin": stdin}
        for name, (model, flags, stdin, *_) in {**BAD, **GOOD}.items()
    }
    return run_many("predict", runs, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, folder, name):
    assert_refused(results[name], BAD[name][-1].split(" … "))
    assert results[name]["stdout"] == ""
    assert (folder / "out.jsonl").read_text() == "an older answer\n"
    assert not list(folder.glob("*.tmp.*"))


def answers(results, name):
    assert results[name]["status"] == 0, results[name]["stderr"]
    return [json.loads(line) for line in results[name]["stdout"].splitlines()]


@pytest.fixture(scope="module")
def tagged(folder):
    """Return the expected records of `TEXTS`."""
    found = NerPredictor(str(folder / "ner")).predict(TEXTS)
    assert [len(entities) for entities in found[:3]] == [3, 0, 4]
    return [
        {
            "text": text,
            "entities": [
                {"start": e.start, "end": e.end, "label": e.label, "text": e.text}
                for e in entities
            ],
        }
        for text, entities in zip(TEXTS, found, strict=True)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "ner lines",
        "ner mixed",
        "ner one by one",
        "ner file",
        "ner json",
        "ner gzip",
    ],
)
def test_taggers(results, tagged, name):
    found = answers(results, name)
    assert found == tagged
    for record in found:
        for entity in record["entities"]:
            assert list(entity) == ["start", "end", "label", "text"]
            assert record["text"][entity["start"] : entity["end"]] == entity["text"]


def test_to_a_file(results, folder):
    assert answers(results, "ner to file") == []
    found = [json.loads(line) for line in (folder / "new.jsonl").open()]
    assert found == answers(results, "ner file")


def test_no_lines_no_answers(results):
    assert answers(results, "ner nothing") == []


def assert_same(found, answer, has_null):
    keys = ["answer", "start", "end", "score", "null_score", "probability"]
    assert list(found) == [key for key in keys if key != "null_score" or has_null]
    assert (found["answer"], found["start"]) == (answer.text, answer.start)
    assert found["end"] == answer.end
    assert found["score"] == pytest.approx(answer.score, abs=1e-4)
    assert found["probability"] == pytest.approx(answer.probability, abs=1e-5)
    if has_null:
        assert found["null_score"] == pytest.approx(answer.null_score, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("squad lines", "squad"),
        ("squad json", "squad"),
        ("squad one by one", "squad"),
        ("squad file", "squad"),
        ("squad json file", "squad"),
        ("squad2 lines", "squad2"),
    ],
)
def test_questions(results, folder, name, model):
    wanted = SquadPredictor(str(folder / model)).predict_all(PAIRS)
    assert any(answer.text for answer in wanted)
    found = answers(results, name)
    for record, answer, (_, context) in zip(found, wanted, PAIRS, strict=True):
        assert_same(record, answer, model == "squad2")
        assert context[record["start"] : record["end"]] == record["answer"]


def test_a_context_without_words(results):
    (found,) = answers(results, "squad blank")
    assert (found["answer"], found["start"], found["end"]) == ("", 0, 0)


def assert_chosen(found, folder, pairs):
    wanted = ChoicePredictor(str(folder / "swag")).predict_all(pairs)
    for record, answer in zip(found, wanted, strict=True):
        assert list(record) == ["index", "choice", "probabilities"]
        assert (record["index"], record["choice"]) == (answer.index, answer.choice)
        assert record["probabilities"] == pytest.approx(answer.probabilities, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["swag lines", "swag one by one", "swag file", "swag text file"]
)
def test_choices(results, folder, name):
    assert_chosen(answers(results, name), folder, PROMPTS)


@pytest.mark.parametrize(
    "name", ["swag csv", "swag csv, so named", "swag json", "swag pipe"]
)
def test_swag(results, folder, name):
    pairs = [
        (first, [f"{start} {e}" for e in rest]) for first, start, rest in SENTENCES
    ]
    assert_chosen(answers(results, name), folder, pairs)


def read_line(stream, seconds=120):
    """Return the next line of a pipe, or fail after a timeout."""
    end, line = time.monotonic() + seconds, b""
    while not line.endswith(b"\n"):
        left = max(0, end - time.monotonic())
        assert select.select([stream], [], [], left)[0], f"only {line} came"
        piece = os.read(stream.fileno(), 1)
        assert piece, f"the stream ended after {line}"
        line += piece
    return json.loads(line)


def test_each_line_is_answered_as_it_comes(folder):
    """A line is predicted before the next one arrives; a bad line then ends it."""
    script = str(ROOT / "run_scripts" / "predict.py")
    # This variable would hide output that remains in a buffer.
    hiding = "PYTHONUNBUFFERED"
    with subprocess.Popen(
        [sys.executable, script, "--model_dir=swag", "--batch_size=1"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != hiding},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        for line in CHOICE_JSON.splitlines()[:2]:
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()
            assert read_line(child.stdout)["choice"]
        out, err = child.communicate(b"{\n")
        assert (child.returncode, out) == (1, b"")
        assert err.startswith(b"error: Standard input: 1 row") and b"line 3" in err
