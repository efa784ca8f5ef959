"""Inputs are read from lines of text and of JSON, as they arrive; bad ones fail."""

import json

import pytest

from official_bert.errors import UserError
from official_bert.tasks.prediction_inputs import prompts, questions, texts


def record(**values):
    return json.dumps(values, ensure_ascii=False)


LINES = ["a", "", record(text=" b "), "c {", "[d]"]
PAIR = record(question="Where?", context="Here ||| there.")


def test_texts():
    assert list(texts(LINES, "in")) == ["a", "", " b ", "c {", "[d]"]
    assert list(texts(["\ufeffa"], "in")) == ["a"]
    assert list(texts(["\ufeff " + record(text="a")], "in")) == ["a"]
    assert list(texts(["", record(text="a"), "", ""], "in", is_json=True)) == ["a"]
    assert list(texts([record(text="")], "in", is_json=True)) == [""]


def test_questions():
    pair = ("Where?", "Here ||| there.")
    assert list(questions(["", PAIR, "", "a ||| b"], "in")) == [pair, ("a", "b")]
    # Contexts may contain the separator.
    assert list(questions(["a ||| b ||| c"], "in")) == [("a", "b ||| c")]
    assert list(questions([PAIR, ""], "in", is_json=True)) == [pair]


def test_prompts():
    lines = ["", record(prompt="a", choices=["b", "c"], label=7)]
    assert list(prompts(lines, "in")) == [("a", ("b", "c"))]


def test_lines_are_read_as_they_come():
    def endless():
        yield "a"
        raise AssertionError("read ahead")

    assert next(iter(texts(endless(), "in"))) == "a"
    found = texts(["a", "{"], "in")
    assert next(found) == "a"
    with pytest.raises(UserError, match="line 2"):
        next(found)


@pytest.mark.parametrize(
    ("read", "line", "words"),
    [
        (texts, "{a}", "is not JSON"),
        (texts, record(txt="a"), 'has no text in "text"'),
        (texts, record(text=None), 'has no text in "text"'),
        (texts, record(text=["a"]), 'has no text in "text"'),
        (questions, "a", "has no ||| between two texts"),
        (questions, "a|||b", "has no ||| between two texts"),
        (questions, record(question="a"), 'has no text in "context"'),
        (questions, record(context="a"), 'has no text in "question"'),
        (prompts, "a ||| b", "is not a JSON object"),
        (prompts, record(prompt="a", choices=["b"]), "has 1 choice"),
        (prompts, record(prompt="a"), "has no choices"),
    ],
)
def test_bad_lines(read, line, words):
    good = {texts: "a", questions: "a ||| b"}
    lines = [good.get(read, record(prompt="a", choices=["b", "c"])), "", line]
    with pytest.raises(UserError) as caught:
        list(read(lines, "name"))
    message = str(caught.value)
    assert message.startswith(f"name: 1 row cannot be used: line 3 {words}")
    assert "; write lines like {" in message and message.endswith(("}.", "Rome."))


@pytest.mark.parametrize("read", [texts, questions])
def test_json_lines_are_json(read):
    with pytest.raises(UserError, match="line 1 is not a JSON object"):
        list(read(["a ||| b"], "name", is_json=True))
