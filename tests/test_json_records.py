"""Small JSON records: valid and invalid ones."""

import dataclasses
import json

import pytest

from official_bert.errors import UserError
from official_bert.json_records import from_json, read_record


@dataclasses.dataclass(frozen=True)
class Inner:
    on: bool


@dataclasses.dataclass(frozen=True)
class Record:
    name: str
    count: int
    share: float
    words: tuple[str, ...]
    inner: Inner
    limit: int | None
    more: dict
    later: bool = False


ONE = Record("a", 3, 0.5, ("x", "y"), Inner(True), None, {"k": [1]}, True)
VALUES = json.loads(json.dumps(dataclasses.asdict(ONE)))


def read(values):
    return from_json(Record, values, optional=("later",))


def test_there_and_back():
    assert read(VALUES) == ONE
    assert read(VALUES | {"new": 1}) == ONE
    assert read(VALUES | {"limit": 7}).limit == 7
    share = read(VALUES | {"share": 1}).share
    assert share == 1.0 and isinstance(share, float)


def test_what_may_be_missing():
    found = {name: v for name, v in VALUES.items() if name != "later"}
    assert read(found) == dataclasses.replace(ONE, later=False)


@pytest.mark.parametrize("name", [name for name in VALUES if name != "later"])
def test_what_must_be_there(name):
    with pytest.raises(KeyError, match=name):
        read({key: v for key, v in VALUES.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 1),
        ("name", None),
        ("count", True),
        ("count", 3.0),
        ("count", "3"),
        ("share", "0.5"),
        ("share", True),
        ("share", float("nan")),
        ("words", "xy"),
        ("words", [1]),
        ("words", None),
        ("inner", {"on": 1}),
        ("inner", None),
        ("inner", [True]),
        ("limit", "7"),
        ("more", []),
        ("later", 1),
    ],
)
def test_what_is_of_another_type(name, value):
    with pytest.raises(ValueError, match="is"):
        read(VALUES | {name: value})


@dataclasses.dataclass(frozen=True)
class Pair:
    first: int
    others: dict[str, int]


def test_a_record_in_a_file(tmp_path):
    path = tmp_path / "pair.json"
    path.write_text('{"first": 1, "others": {"a": 2}}')
    assert read_record(Pair, path, "a pair", "redo it") == Pair(1, {"a": 2})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"first": 1}', "is not a pair: it has no others; redo it."),
        (
            '{"first": "1", "others": {}}',
            "is not a pair: first is '1'; redo it.",
        ),
        ('{"first": 1, "others": 2}', "is not a pair: others is 2; redo it."),
        ('{"first": 1', "is not a pair: line 1: "),
        ("[]", "is not a pair: it is not a JSON object."),
    ],
)
def test_a_damaged_record_in_a_file(tmp_path, text, words):
    path = tmp_path / "pair.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_record(Pair, path, "a pair", "redo it")
    assert f"{path} {words}" in str(caught.value)
