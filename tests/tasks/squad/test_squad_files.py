"""SQuAD's files are read: words, offsets, answers, and damaged files."""

import copy
import gzip
import json
import logging
import random

import pytest

from official_bert.errors import UserError
from official_bert.tasks.squad.files import (
    WHITESPACE,
    SquadExample,
    make_example,
    read_examples,
    read_gold_answers,
    split_words,
)

CONTEXT = "The  tower\nwas built\tin 1889\u202f(Paris)."
WORDS = ("The", "tower", "was", "built", "in", "1889", "(Paris).")
OFFSETS = (0, 5, 11, 15, 21, 24, 29)


def question(text="When?", qas_id="q", answers=(), **fields):
    return {"id": qas_id, "question": text, "answers": list(answers), **fields}


def answer(text, context=CONTEXT, start=None):
    start = context.index(text) if start is None else start
    return {"text": text, "answer_start": start}


def squad(*questions, context=CONTEXT):
    paragraph = {"context": context, "qas": list(questions)}
    return {"version": "x", "data": [{"title": "Tower", "paragraphs": [paragraph]}]}


@pytest.fixture
def write(tmp_path):
    def write(content, name="squad.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_words_are_where_their_offsets_say():
    assert split_words(CONTEXT) == (WORDS, OFFSETS)


@pytest.mark.parametrize("context", ["", " \n\u202f"])
def test_no_words(context):
    assert split_words(context) == ((), ())


def test_other_whitespace_does_not_separate():
    context = "a\u00a0b\u3000c\vd\u2028e\u200bf"
    assert split_words(f" {context} ") == ((context,), (1,))


def test_words_of_random_texts():
    draw = random.Random(3)
    for _ in range(300):
        context = "".join(draw.choices(WHITESPACE + "aé\u0301😀王ש\u00a0", k=30))
        words, offsets = split_words(context)
        rest = list(context)
        for word, offset in zip(words, offsets, strict=True):
            assert context[offset : offset + len(word)] == word != ""
            rest[offset : offset + len(word)] = " " * len(word)
        assert set(rest) <= set(WHITESPACE)
        assert "".join(words) == "".join(c for c in context if c not in WHITESPACE)


def test_questions_to_be_answered(write):
    second = question("Where?", "r", [answer("Paris"), answer("(Paris)")])
    path = write(squad(question(), second))
    expected = [
        SquadExample(qas_id, text, WORDS, None, None, None, False, CONTEXT, OFFSETS)
        for qas_id, text in (("q", "When?"), ("r", "Where?"))
    ]
    found = read_examples(path, is_training=False)
    assert found == expected
    assert found[0].doc_tokens is found[1].doc_tokens
    assert make_example("When?", CONTEXT, "q") == expected[0]


def test_what_is_not_needed_may_be_missing(write):
    content = squad({"id": 7, "question": "When?"})
    del content["version"], content["data"][0]["title"]
    (found,) = read_examples(write(content), is_training=False)
    assert found.qas_id == "7"
    assert read_gold_answers(write(content)) is None


def test_gzip_and_byte_order_mark(tmp_path):
    text = "\ufeff" + json.dumps(squad(question()))
    path = tmp_path / "squad.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert len(read_examples(path, is_training=False)) == 1


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1889", 5, 5),
        ("The  tower\nwas", 0, 2),
        ("Paris", 6, 6),
        ("r\nwas b", 1, 3),
        (" tower", 0, 1),  # The space belongs to the word before.
    ],
)
def test_answers_are_found(write, text, first, last):
    path = write(squad(question(answers=[answer(text)])))
    (found,) = read_examples(path, is_training=True)
    assert (found.start_position, found.end_position) == (first, last)
    assert found.orig_answer_text == text
    assert not found.is_impossible


def test_answers_that_are_not_there_are_counted(write, caplog):
    nbsp = "in\u00a01889"
    context = f"{CONTEXT} {nbsp}"
    answers = [
        answer("1889"),
        answer("1889", start=1),
        answer(nbsp, context),  # As in the original, it is not found.
        answer("1889", start=len(context) - 3),
        answer("1889", start=-4),
        answer("", start=3),
        answer(" ", start=3),
    ]
    questions = [question("?", f"q{n}", [one]) for n, one in enumerate(answers)]
    path = write(squad(*questions, context=context))
    with caplog.at_level(logging.WARNING):
        found = read_examples(path, is_training=True)
    assert [one.qas_id for one in found] == ["q0"]
    assert caplog.messages == [
        f"{path}: 6 of 7 questions are left out, because their answers are not "
        "at the given positions: q1, q2, q3, q4, q5 and 1 more."
    ]
    with pytest.raises(UserError, match="has no questions to train on"):
        read_examples(write(squad(*questions[1:])), is_training=True)


def test_questions_without_an_answer(write):
    impossible = question("Why?", "w", is_impossible=True, plausible_answers=[])
    possible = question("When?", "q", [answer("1889")], is_impossible=False)
    path = write(squad(impossible, possible))
    first, second = read_examples(path, True, version_2_with_negative=True)
    assert (first.start_position, first.end_position) == (-1, -1)
    assert (first.is_impossible, first.orig_answer_text) == (True, "")
    assert (second.start_position, second.is_impossible) == (5, False)
    assert not any(one.is_impossible for one in read_examples(path, False))
    assert read_gold_answers(path) == {"w": (), "q": ("1889",)}


def test_gold_answers(write):
    answers = [answer("1889"), answer("in 1889"), answer("1889")]
    path = write(squad(question(answers=answers)))
    assert read_gold_answers(path) == {"q": ("1889", "in 1889", "1889")}


@pytest.mark.parametrize(
    ("version_2", "message"),
    [
        (False, "no answer, but training needs one. For .* add --version_2_with_neg"),
        (True, "has no answer, but training needs one."),
    ],
)
def test_a_question_without_its_answer(write, version_2, message):
    path = write(squad(question(is_impossible=False)))
    with pytest.raises(UserError, match=message) as caught:
        read_examples(path, True, version_2)
    where = "article 1 (Tower), paragraph 1, question 1 (id q)"
    assert str(caught.value).startswith(f"{path}: {where} has")


def test_the_first_of_several_answers_is_trained_on(write, caplog):
    several = question("When?", "q", [answer("in"), answer("1889")])
    # If the first answer is not found, the second is not used.
    misplaced = question("Which?", "r", [answer("in", start=0), answer("in")])
    path = write(squad(several, misplaced, question("Who?", "s", [answer("Paris")])))
    with caplog.at_level(logging.WARNING):
        first, last = read_examples(path, is_training=True)
    assert (first.orig_answer_text, first.start_position) == ("in", 4)
    assert last.qas_id == "s"
    assert caplog.messages[0] == (
        f"{path}: 2 of 3 questions have several answers. The first one of each is used "
        "for training."
    )
    assert "1 of 3 questions are left out" in caplog.messages[1]


def test_ids_that_come_twice(write):
    answers = [answer("1889")]
    path = write(squad(question(answers=answers), question(answers=answers)))
    assert len(read_examples(path, is_training=True)) == 2
    for read in (lambda: read_examples(path, False), lambda: read_gold_answers(path)):
        with pytest.raises(
            UserError, match=r"question 2 \(id q\) has the id of anothe"
        ):
            read()


@pytest.mark.parametrize("key", ["context", "question", "id"])
def test_half_a_character(write, key):
    content = squad(question("When?"))
    paragraph = content["data"][0]["paragraphs"][0]
    (paragraph if key == "context" else paragraph["qas"][0])[key] += "\ud83d"
    with pytest.raises(UserError, match=f'"{key}" contains a lone surrogate'):
        read_examples(write(content), False)


WHOLE = squad(
    question(answers=[answer("1889")], is_impossible=False),
    question("Where?", "r", [answer("Paris")], is_impossible=False),
)
PARAGRAPH = ("data", 0, "paragraphs", 0)
SECOND = (*PARAGRAPH, "qas", 1)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ((*PARAGRAPH[:2], "paragraphs"), "article 1 (Tower)"),
        ((*PARAGRAPH, "context"), "article 1 (Tower), paragraph 1"),
        ((*PARAGRAPH, "qas"), "article 1 (Tower), paragraph 1"),
        ((*SECOND, "id"), "article 1 (Tower), paragraph 1, question 2"),
        ((*SECOND, "question"), "paragraph 1, question 2 (id r)"),
        ((*SECOND, "answers"), "paragraph 1, question 2 (id r)"),
        ((*SECOND, "is_impossible"), "paragraph 1, question 2 (id r)"),
        ((*SECOND, "answers", 0, "text"), "question 2 (id r), its answer"),
        ((*SECOND, "answers", 0, "answer_start"), "question 2 (id r), its answer"),
    ],
)
@pytest.mark.parametrize("damage", ["missing", None, "parent", True])
def test_damage_is_named(write, place, where, damage):
    content = copy.deepcopy(WHOLE)
    parent = content
    for key in place[:-1]:
        grandparent, parent = parent, parent[key]
    expected = f'{where}: "{place[-1]}" is {json.dumps(damage)}, which is not valid'
    if damage == "missing":
        del parent[place[-1]]
        expected = f'{where} has no "{place[-1]}"'
    elif damage == "parent":
        grandparent[place[-2]] = ["x"] if isinstance(grandparent, dict) else "x"
        expected = None
    elif damage is True and place[-1] == "is_impossible":
        return
    else:
        parent[place[-1]] = damage
    path = write(content)
    with pytest.raises(UserError) as caught:
        read_examples(path, is_training=True, version_2_with_negative=True)
    message = str(caught.value)
    assert message.startswith(f"{path}: article 1")
    assert "\n" not in message
    assert expected is None or expected in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(WHOLE)[:-9], "is not a SQuAD file: line 1, column .* truncated"),
        ("", "is not a SQuAD file: line 1, column 1"),
        ("[1]", 'must contain one JSON object with a list "data"'),
        ('{"data": {}}', 'must contain one JSON object with a list "data"'),
        ("[" * 100000, "nested too deeply"),
        ('{"data": []}', "has no questions."),
    ],
)
def test_files_that_are_not_squad(write, text, message):
    with pytest.raises(UserError, match=message):
        read_examples(write(text), is_training=False)


def test_gold_answers_of_some_questions_only(write):
    content = copy.deepcopy(WHOLE)
    del content["data"][0]["paragraphs"][0]["qas"][1]["answers"]
    with pytest.raises(UserError, match=r'\(id r\) has no "answers"'):
        read_gold_answers(write(content))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="--train_file: cannot read .*none.json"):
        read_examples(tmp_path / "none.json", True, flag="--train_file")


def test_real_files(shared, caplog):
    folder = shared / "data" / "squad"
    with caplog.at_level(logging.WARNING):
        found = read_examples(folder / "train-v2.0-subset10.json", True, True)
    assert len(found) > 4000
    assert 0 < sum(one.is_impossible for one in found) < len(found)
    for one in found:
        assert all(
            one.context.startswith(word, offset)
            for word, offset in zip(one.doc_tokens, one.doc_offsets, strict=True)
        )
