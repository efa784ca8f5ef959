"""Read files of tagged text in two formats: CoNLL columns and JSON lines.

* CoNLL: one word per line, with its tag in the last column. Blank lines end sentences.
  Rows that begin with `-DOCSTART-` begin documents; without them, a file is one
  document. Spaces or tabs separate columns. The scheme of the tags is detected, and
  tags are converted to IOB2.
* JSON lines: `{"text": …, "entities": [{"start": …, "end": …, "label": …}]}`. Each
  line is a document of one sentence. Offsets count characters (code points); `end` is
  the index after the last one. The words are those of `split_words`. If an entity
  begins or ends inside a word, it is extended to the complete word, and a note lists
  the lines.

Text is UTF-8, plain or gzipped; see `table_files.read_text`. The reader checks the
complete file, and one error reports all problems.
"""

import contextlib
import json
import os
from collections.abc import Iterable

from official_bert.tables.table_files import read_text
from official_bert.tasks.ner.conll import has_tag, read_conll
from official_bert.tasks.ner.json_lines import has_entities, read_json_lines
from official_bert.tasks.ner.sentences import NerData


def read_ner_file(
    path: str | os.PathLike[str],
    flag: str = "--train_file",
    labels: Iterable[str] | None = None,
    with_tags: bool = True,
) -> NerData:
    """Read a tagged file; the module's docstring describes the formats.

    Args:
      path: the file: JSON lines if the name ends with `.jsonl`, `.ndjson` or
        `.json` (also with `.gz`) or the text begins with a JSON object, else CoNLL
        columns.
      flag: the flag that named the file, for messages.
      labels: allowed types, as in `NerData.labels`; None allows all.
      with_tags: whether the words have tags. If not, columns after the word, and
        entities, are ignored.

    Returns:
      `NerData`.

    Raises:
      UserError: the file cannot be read, or contains no sentences. Rows have more or
        fewer columns than the first one, invalid tags or unknown types. Lines are
        not valid JSON. Entities extend beyond the text, overlap or share a word.
        The message names the lines.
    """
    path = os.fspath(path)
    text, is_json = _read(path, flag)
    read = read_json_lines if is_json else read_conll
    return read(path, text, None if labels is None else set(labels), with_tags)


def has_tags(path: str | os.PathLike[str], flag: str) -> bool:
    """Return whether a file has tags: in the last column, or as JSON entities.

    An untagged file may also have columns after its words.

    Raises:
      UserError: the file cannot be read.
    """
    text, is_json = _read(os.fspath(path), flag)
    return any(map(has_entities if is_json else has_tag, text.split("\n")))


def _read(path, flag):
    """Return a file's text with Unix line ends, and whether it is JSON lines."""
    text = read_text(path, flag).replace("\r\n", "\n").replace("\r", "\n")
    is_json = path.removesuffix(".gz").lower().endswith((".jsonl", ".ndjson", ".json"))
    with contextlib.suppress(ValueError, RecursionError):
        first_line = text.lstrip().partition("\n")[0]
        is_json = is_json or isinstance(json.loads(first_line), dict)
    return text, is_json
