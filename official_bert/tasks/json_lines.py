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
    parsers = ("parse_int", "parse_float", "parse_constant")
    as_text = dict.fromkeys(parsers, str) if numbers_as_text else {}
    try:
        record = json.loads(content, object_pairs_hook=_without_duplicates, **as_text)
        json.dumps(record, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg})") from error
    except UnicodeEncodeError as error:
        raise ValueError("holds half a character (a lone surrogate)") from error
    except ValueError as error:
        if "int_max_str_digits" not in str(error):
            raise  # A key twice.
        raise ValueError("has a whole number of too many digits") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    return record


def _without_duplicates(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("has a key twice")
    return record
