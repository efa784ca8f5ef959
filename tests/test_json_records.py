"""Small JSON records: what is read, and what is refused."""

import dataclasses
import json

import pytest

from official_bert.json_records import from_json


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
