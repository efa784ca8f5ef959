"""JSON lines, one at a time: the object that a line holds."""

import json


def parse_object(content, numbers_as_text=True):
    """Return the dict on a line.

    Args:
      content: str.
      numbers_as_text: whether numbers stay as they are written, as str: 1.0 and 1
        may be two labels.

    Raises:
      ValueError: says what is wrong with the line, "is not JSON (...)".
    """
    parsers = {"parse_int": _whole_number}
    if numbers_as_text:
        parsers = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), str)
    try:
        record = json.loads(content, object_pairs_hook=_without_duplicates, **parsers)
        json.dumps(record, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg})") from error
    except UnicodeEncodeError as error:
        raise ValueError("holds half a character (a lone surrogate)") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    return record


def _whole_number(digits):
    try:
        return int(digits)
    except ValueError as error:
        raise ValueError("has a whole number of too many digits") from error


def _without_duplicates(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("has a key twice")
    return record
