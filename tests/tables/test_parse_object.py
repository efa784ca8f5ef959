"""JSON objects are read as written; other lines are rejected."""

import pytest

from official_bert.tables.table_files import parse_object


def test_values():
    line = ' {"a": 1.0, "b": -3e5, "c": [1, true, null], "d": "é\\ud83c\\udf55"}\r\n'
    expected = {"a": "1.0", "b": "-3e5", "c": ["1", True, None], "d": "é🍕"}
    assert parse_object(line) == expected
    assert parse_object("{}") == {}
    assert parse_object('{"a": ' + "9" * 5000 + "}") == {"a": "9" * 5000}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ('{"a": 1} {}', "is not JSON"),
        ("{'a': 1}", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('"a"', "is not a JSON object"),
        ('{"a": 1, "a": 2}', "has a key twice"),
        ('{"b": [{"a": 1, "a": 1}]}', "has a key twice"),
        (r'{"a": "\ud800"}', "half a character"),
        (r'{"\udfff": 1}', "half a character"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_no_object(line, words):
    with pytest.raises(ValueError, match=words):
        parse_object(line)


def test_a_number_of_too_many_digits():
    with pytest.raises(ValueError, match="^has a whole number of too many digits$"):
        parse_object('{"a": ' + "9" * 5000 + "}", numbers_as_text=False)
