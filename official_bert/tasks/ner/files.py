"""Files of tagged text, in two formats: CoNLL columns and JSON lines.

* CoNLL: a word a line, with its tag in the last column; blank lines end sentences
  and rows that begin with `-DOCSTART-` begin documents. Columns stand between
  spaces or tabs. The scheme of the tags is found by looks, and they are converted
  to IOB2. Without `-DOCSTART-` a file is one document.
* JSON lines: `{"text": …, "entities": [{"start": …, "end": …, "label": …}]}`, each
  line a document of one sentence. Offsets count characters (code points), and the
  end is after the last one. The words are those of `split_words`; an entity that
  ends within one is read as the whole word, and a note tells where that was.

Text is UTF-8 as `table_files.read_text` reads it, plain or gzipped. Whatever cannot be
used is collected over the whole file and reported once.
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
    """Read a file; the module's docstring says what it may look like.

    Args:
      path: the file: JSON lines if it ends in `.jsonl`, `.ndjson` or `.json`
        (also with `.gz`) or begins with a JSON object, else CoNLL columns.
      flag: the flag it came from, for messages.
      labels: the types there may be, as `NerData.labels`; None for any.
      with_tags: whether the words have tags. If not, columns behind a word,
        and entities, are not looked at.

    Returns:
      `NerData`.

    Raises:
      UserError: the file cannot be read, or holds no sentences; or rows have
        more or fewer columns than the first, or tags that are none or of an
        unknown type; or lines are no such JSON, or have entities that leave
        the text, overlap, or share a word. Names the lines.
    """
    path = os.fspath(path)
    text, is_json = _read(path, flag)
    read = read_json_lines if is_json else read_conll
    return read(path, text, None if labels is None else set(labels), with_tags)


def has_tags(path: str | os.PathLike[str], flag: str) -> bool:
    """Tell whether a file has tags: the last column of a row, or a line of JSON.

    A file to be tagged may have other columns behind its words.

    Raises:
      UserError: the file cannot be read.
    """
    text, is_json = _read(os.fspath(path), flag)
    return any(map(has_entities if is_json else has_tag, text.split("\n")))


def _read(path, flag):
    """Return a file's text with line ends as on Unix, and whether it is JSON lines."""
    text = read_text(path, flag).replace("\r\n", "\n").replace("\r", "\n")
    is_json = path.removesuffix(".gz").lower().endswith((".jsonl", ".ndjson", ".json"))
    with contextlib.suppress(ValueError, RecursionError):
        first_line = text.lstrip().partition("\n")[0]
        is_json = is_json or isinstance(json.loads(first_line), dict)
    return text, is_json
