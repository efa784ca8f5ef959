"""What fine-tuned models are asked, from lines of text and of JSON.

* Taggers: a text; or `{"text": …}`.
* SQuAD: "question ||| context"; or `{"question": …, "context": …}`.
* Multiple choice: JSON alone, see `choice.files`.

A line that begins with `{` is JSON, wherever it stands; of JSON lines every line is.
What else its object holds is not looked at. Blank lines are no questions; of text
for a tagger a blank line is a text without words.
"""

from collections.abc import Iterable, Iterator

from official_bert.tables.table_files import fail_for_rows, parse_object
from official_bert.tables.text_pairs import SEPARATOR
from official_bert.tasks.choice.files import parse_prompt

_BOM = "\ufeff"


def texts(lines: Iterable[str], name: str, is_json: bool = False) -> Iterator[str]:
    """Yield the text of each line, for a tagger, as lines come.

    Args:
      lines: iterable of str, without line ends.
      name: of what they are from, for messages.
      is_json: whether all of them are JSON.

    Raises:
      UserError: a line cannot be read; names it.
    """
    advice = 'write lines like {"text": "In Rome."}'
    of_text = _no_json if is_json else str

    def of_json(line):
        return _text_of(parse_object(line), "text")

    return _read(lines, name, of_text, of_json, advice, keep_blank=not is_json)


def questions(
    lines: Iterable[str], name: str, is_json: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the (question, context) of each line; see `texts`."""
    advice = 'write lines like {"question": "Where?", "context": "In Rome."}'
    if not is_json:
        advice += f", or like Where?{SEPARATOR}In Rome"
    of_text = _no_json if is_json else _pair_of_text
    return _read(lines, name, of_text, _pair_of_json, advice)


def prompts(lines: Iterable[str], name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the (prompt, choices) of each line, which is JSON; see `texts`."""
    advice = 'write lines like {"prompt": "Where?", "choices": ["In Rome.", "Here."]}'
    return _read(lines, name, _no_json, parse_prompt, advice)


def _read(lines, name, of_text, of_json, advice, keep_blank=False):
    """Yield what lines hold; see `texts`.

    `of_text` converts a line without JSON, `of_json` one with it; their `ValueError`
    says what is wrong. `advice` says how lines must be.
    """
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(_BOM).lstrip()
        if not line and not keep_blank:
            continue
        try:
            value = (of_json if line.startswith("{") else of_text)(line)
        except ValueError as error:
            fail_for_rows(name, [(number, str(error))], advice)
        yield value


def _no_json(line):
    raise ValueError("is not a JSON object")


def _pair_of_text(line):
    # A context may well have the mark in it, a question hardly.
    question, mark, context = line.partition(SEPARATOR)
    if not mark:
        raise ValueError(f"has no {SEPARATOR.strip()} between two texts")
    return question, context


def _pair_of_json(line):
    record = parse_object(line)
    return _text_of(record, "question"), _text_of(record, "context")


def _text_of(record, key):
    if not isinstance(record.get(key), str):
        raise ValueError(f'has no "{key}" that is a text')
    return record[key]
