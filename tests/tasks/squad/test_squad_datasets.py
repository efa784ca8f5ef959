"""SQuAD by name from TFDS equals the same file from our reader."""

import json

import pytest
from named_datasets import opened, prepare, prepare_rows, tfds

from official_bert.errors import UserError
from official_bert.tasks.squad.datasets import (
    has_impossible_questions,
    read_articles,
)
from official_bert.tasks.squad.files import read_examples, read_gold_answers

CONTEXTS = ("Anna is in Rome.", "  Two  spaces,\n好 and a line.", "Bob sings.")


def question(number, context, text, impossible=None):
    answers = [] if impossible else [{"text": text, "answer_start": context.find(text)}]
    fields = {"id": f"q{number}", "question": f"Question {number}?", "answers": answers}
    if impossible is not None:
        fields["is_impossible"] = impossible
    if impossible:
        fields["plausible_answers"] = [{"text": text, "answer_start": 0}]
    return fields


def articles(version_2, extra_answers=0):
    flag = False if version_2 else None
    qas = [
        [
            question(0, CONTEXTS[0], "Rome", flag),
            question(1, CONTEXTS[0], "Anna", flag),
        ],
        [question(2, CONTEXTS[1], "好 and", flag)],
        [question(3, CONTEXTS[2], "Bob", True if version_2 else None)],
    ]
    for one in qas:
        one[0]["answers"] += one[0]["answers"][:1] * extra_answers
    paragraphs = [
        {"context": context, "qas": questions}
        for context, questions in zip(CONTEXTS, qas, strict=True)
    ]
    first, second = {"title": "A", "paragraphs": paragraphs[:2]}, paragraphs[2:]
    return {"data": [first, {"title": "B", "paragraphs": second}]}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return (folder of SQuAD's files, folder of TFDS)."""
    folder = tmp_path_factory.mktemp("squad")
    for version in ("1.1", "2.0"):
        paths = {}
        for split, extra in (("train", 0), ("dev", 2)):
            paths[split] = folder / f"{split}-v{version}.json"
            content = articles(version == "2.0", extra)
            paths[split].write_text(json.dumps(content), encoding="utf-8")
        prepare(f"squad/v{version}", folder / "tfds", paths)
    return folder, folder / "tfds"


def by_id(examples):
    return {one.qas_id: one for one in examples}


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_examples_are_those_of_the_file(prepared, version):
    folder, data_dir = prepared
    dataset = opened(f"squad/v{version}", data_dir)
    version_2 = has_impossible_questions(dataset)
    assert version_2 == (version == "2.0")
    for split, name, trains in (("train", "train", True), ("validation", "dev", False)):
        found = read_examples(read_articles(dataset, split), trains, version_2)
        wanted = read_examples(folder / f"{name}-v{version}.json", trains, version_2)
        assert len(found) == len(wanted) == 4
        assert by_id(found) == by_id(wanted)
    assert (
        any(
            one.is_impossible
            for one in read_examples(read_articles(dataset, "train"), True, version_2)
        )
        == version_2
    )
    gold = read_gold_answers(read_articles(dataset, "validation"))
    assert gold == read_gold_answers(folder / f"dev-v{version}.json")
    assert gold["q0"] == ("Rome",) * 3


def test_questions_share_their_context(prepared):
    content = read_articles(opened("squad/v1.1", prepared[1]), "train")
    assert str(content) == "squad/v1.1 (train)"
    by_title = {one["title"]: one["paragraphs"] for one in content.articles}
    assert {len(one["qas"]) for one in by_title["A"]} == {1, 2}
    assert [one["context"] for one in by_title["B"]] == [CONTEXTS[2]]


def test_messages_name_the_dataset(prepared):
    dataset = opened("squad/v2.0", prepared[1])
    with pytest.raises(
        UserError, match=r"^squad/v2.0 \(train\): article .* has no answer"
    ):
        read_examples(read_articles(dataset, "train"), True, False)


def test_other_features(tmp_path):
    features = {"question": tfds.features.Text(), "context": tfds.features.Text()}
    rows = {"train": [{"question": "Who?", "context": "Anna"}]}
    prepare_rows("half_squad", tmp_path, features, rows)
    with pytest.raises(UserError) as caught:
        read_articles(opened("half_squad", tmp_path), "train")
    assert str(caught.value) == (
        "--dataset=half_squad lacks the SQuAD features id, answers. It has only "
        "context, question. Choose squad/v1.1, squad/v2.0 or a dataset with the same "
        "features."
    )
