"""Files of pairs, triplets, scores, groups and texts are read."""

import pytest

from official_bert.errors import UserError
from official_bert.tasks.embedding.files import (
    ColumnNames,
    check_loss,
    default_loss,
    read_examples,
)

FILES = {
    "pairs.csv": "anchor,positive\na,b\nc,d\n",
    "plain.csv": "How do I pay?,By card.\nWhere are you?,In Rome.\n",
    "triplets.tsv": "anchor\tpositive\tnegative_1\tnegative_2\na\tb\tc\td\ne\tf\tg\t\n",
    "scores.jsonl": '{"sentence1": "a", "sentence2": "b", "score": 2.5}\n',
    "groups.csv": "text,cluster\na,1\nb,2\nc,1\nd,1\ne,2\nf,3\n",
    "lists.jsonl": '{"texts": ["a", "b"]}\n{"texts": ["c", "d", "e"]}\n{"texts": []}\n',
    "texts.txt": "a\n\n b \n",
    "three.csv": "x,y,z\na b,c d,e f\ng h,i j,k l\n",
    "empty.csv": "anchor,positive\na,\nb,c\n,\n",
    "score.csv": "text1,text2,score\na,b,high\n",
    "one.jsonl": '{"texts": ["f"]}\n',
    "strings.jsonl": '{"texts": "f"}\n',
}


def read(folder, name, **columns):
    path = folder / name
    path.write_text(FILES[name])
    return read_examples(path, "--train_file", ColumnNames(**columns))


def texts(examples):
    return [example.texts for example in examples]


def test_pairs(tmp_path):
    found = read(tmp_path, "pairs.csv")
    assert texts(found) == [("a", "b"), ("c", "d")]
    assert [each.guid for each in found] == [2, 3]
    assert {(each.score, each.group) for each in found} == {(None, None)}
    assert texts(read(tmp_path, "plain.csv"))[1] == ("Where are you?", "In Rome.")


def test_hard_negatives_may_be_missing(tmp_path):
    assert texts(read(tmp_path, "triplets.tsv")) == [
        ("a", "b", "c", "d"),
        ("e", "f", "g"),
    ]


def test_scores(tmp_path):
    (one,) = read(tmp_path, "scores.jsonl")
    assert (one.texts, one.score) == (("a", "b"), 2.5)


def test_groups_become_pairs(tmp_path):
    """Three texts make a ring of pairs, two texts one pair, and one text no pair."""
    found = read(tmp_path, "groups.csv")
    rings = [("a", "c"), ("c", "d"), ("d", "a"), ("b", "e")]
    assert texts(found) == rings
    assert [each.group for each in found] == ["1", "1", "1", "2"]
    found = read(tmp_path, "lists.jsonl")
    assert texts(found) == [("a", "b"), ("c", "d"), ("d", "e"), ("e", "c")]
    assert [each.group for each in found] == ["1", "2", "2", "2"]


def test_plain_text(tmp_path):
    found = read(tmp_path, "texts.txt")
    assert texts(found) == [("a",), ("b",)]
    assert [each.guid for each in found] == [1, 3]


def test_columns_by_name(tmp_path):
    found = read(tmp_path, "three.csv", texts=("z", "x"), has_header=True)
    assert texts(found) == [("e f", "a b"), ("k l", "g h")]


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("three.csv", {"has_header": True}, "Choose --text_columns from 0 'x'"),
        ("three.csv", {"texts": ("x", "w")}, "--text_columns: .* has no column 'w'"),
        ("three.csv", {"texts": ("x", "x")}, "must be different columns"),
        ("three.csv", {"texts": ("x",), "score": "y"}, "a score needs two texts"),
        ("pairs.csv", {"group": "anchor"}, "has no examples"),
        (
            "three.csv",
            {"texts": ("x", "y"), "group": "z"},
            "a table of groups has one text column",
        ),
        ("empty.csv", {}, "line 2 has an empty text, line 4 has"),
        ("score.csv", {}, "the score 'high', which is not a number"),
        ("one.jsonl", {}, "has no examples"),
        ("strings.jsonl", {}, "is not a list of texts"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, columns, words):
    with pytest.raises(UserError, match=words):
        read(tmp_path, name, **columns)


def test_losses_for_files(tmp_path):
    wanted = {"pairs.csv": "info_nce", "scores.jsonl": "cosent", "texts.txt": "simcse"}
    for name, loss in wanted.items():
        examples = read(tmp_path, name)
        assert default_loss(examples) == loss
        check_loss(examples, loss, "--train_file")
    with pytest.raises(UserError, match="line 2 has no score"):
        check_loss(read(tmp_path, "pairs.csv"), "cosine", "--train_file")
    with pytest.raises(UserError, match="line 1 has one"):
        check_loss(read(tmp_path, "texts.txt"), "info_nce", "--train_file")
