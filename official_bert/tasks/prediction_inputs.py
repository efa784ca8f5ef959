"""Read the inputs of fine-tuned models from lines of text or JSON.

* Taggers: a text; or `{"text": …}`.
* SQuAD: "question ||| context"; or `{"question": …, "context": …}`.
* Multiple choice: only JSON, see `choice.files`.

A line that begins with `{` is JSON in any file. In a JSON lines file, all lines are
JSON. Other keys of the objects are ignored. Blank lines are skipped, except that a
blank line of plain text for a tagger is a text without words.
"""

from collections.abc import Iterable, Iterator

from official_bert.tables.table_files import fail_for_rows, parse_object
from official_bert.tables.text_pairs import SEPARATOR
from official_bert.tasks.choice.files import parse_prompt

_BOM = "\ufeff"


def texts(lines: Iterable[str], name: str, is_json: bool = False) -> Iterator[str]:
    """Yield the text of each line, for a tagger, as the lines arrive.

    Args:
      lines: iterable of str, without line ends.
      name: name of the source, for messages.
      is_json: whether all lines are JSON.

    Raises:
      UserError: a line cannot be read. The message names it.
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
    """Yield the (prompt, choices) of each line of JSON; see `texts`."""
    advice = 'write lines like {"prompt": "Where?", "choices": ["In Rome.", "Here."]}'
    return _read(lines, name, _no_json, parse_prompt, advice)


def _read(lines, name, of_text, of_json, advice, keep_blank=False):
    """Yield the content of each line; see `texts`.

    `of_text` converts a line of plain text, `of_json` a line of JSON. Their
    `ValueError` describes the problem of a line. `advice` describes valid lines.
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
    # Split at the first separator: a context may contain one, a question hardly does.
    question, mark, context = line.partition(SEPARATOR)
    if not mark:
        raise ValueError(f"has no {SEPARATOR.strip()} between two texts")
    return question, context


def _pair_of_json(line):
    record = parse_object(line)
    return _text_of(record, "question"), _text_of(record, "context")


def _text_of(record, key):
    if not isinstance(record.get(key), str):
        raise ValueError(f'has no text in "{key}"')
    return record[key]
