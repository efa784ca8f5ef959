"""Evaluate retrieval over a corpus of queries, documents and relevance judgments.

The files are those of BEIR (Thakur et al., 2021):

* corpus and queries: JSON lines, `{"_id": ..., "text": ...}`, where a `"title"` is put
  before the text; or plain text, one per line, with the line number (from 1) as id;
* relevance: TSV or CSV with the columns query id, document id and gain.
"""

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from official_bert import given_paths
from official_bert.corpus.readers import read_text_lines
from official_bert.errors import UserError, list_some
from official_bert.metrics import retrieval
from official_bert.tables.table_files import fail_for_rows, parse_object, read_table
from official_bert.tasks.embedding.search import nearest

# Number of documents whose vectors are in memory at the same time.
BLOCK = 4096
DEPTHS = {"mrr": (10,), "recall": (1, 10, 100), "ndcg": (10,)}
_DEEPEST = max(map(max, DEPTHS.values()))
_ADVICE = 'write lines like {"_id": "1", "text": "In Rome."}, or plain text'


class Encoder(Protocol):
    """Makes vectors of texts, such as an `EmbeddingPredictor`."""

    def vectors(self, texts: Iterable[str], /) -> np.ndarray:
        """Return the vector of each text, float32 [N, D]."""


def read_texts(path: str | os.PathLike[str], flag: str) -> Iterator[tuple[str, str]]:
    """Yield (id, text) of each line of a corpus or query file, while reading it.

    Blank lines are skipped.

    Args:
      path: the file, plain or .gz.
      flag: the flag that named the file, for messages.

    Raises:
      UserError: the file cannot be read, or a line has no id or text.
    """
    given_paths.require_readable(path, flag)
    for number, line in enumerate(read_text_lines(os.fspath(path)), 1):
        if line.startswith("{"):
            try:
                yield _of_json(line)
            except ValueError as error:
                fail_for_rows(os.fspath(path), [(number, str(error))], _ADVICE)
        elif line:
            yield str(number), line


def _of_json(line):
    record = parse_object(line)
    name, text = record.get("_id", record.get("id")), record.get("text")
    if not isinstance(name, str) or not isinstance(text, str):
        raise ValueError('has no "_id" or no "text"')
    title = record.get("title")
    return name, f"{title} {text}" if isinstance(title, str) and title else text


def read_relevance(
    path: str | os.PathLike[str], flag: str
) -> dict[str, dict[str, float]]:
    """Return, for each query id, its relevant documents: document id -> gain.

    Documents with the gain 0 are not relevant.

    Raises:
      UserError: the file cannot be read, or has other columns.
    """
    table = read_table(path, flag)
    relevant: dict[str, dict[str, float]] = {}
    problems = []
    for row in table.rows:
        try:
            query, document, gain = map(str, row.cells)
            value = float(gain)
        except ValueError:
            problems.append((row.line, "is not a query id, a document id and a gain"))
            continue
        if value > 0:
            relevant.setdefault(query, {})[document] = value
    if problems:
        advice = "write a row like q1, d7, 1"
        fail_for_rows(table.path, problems, advice)
    if not relevant:
        raise UserError(
            f"{flag}: {table.path} has no document with a gain above 0. Check its "
            "columns."
        )
    return relevant


def evaluate(
    encoder: Encoder,
    corpus_file: str | os.PathLike[str],
    queries_file: str | os.PathLike[str],
    relevance_file: str | os.PathLike[str],
) -> dict[str, float]:
    """Search the documents of each query in the complete corpus, exactly.

    Memory holds the queries and `BLOCK` documents, independent of the corpus size.

    Args:
      encoder: makes vectors of texts.
      corpus_file: see `read_texts`; --corpus_file in messages.
      queries_file: see `read_texts`; --queries_file in messages. Queries without a
        relevant document are left out.
      relevance_file: see `read_relevance`; --relevance_file in messages.

    Returns:
      dict of `corpus_recall_at_10` and similar names -> float.

    Raises:
      UserError: a file cannot be read, or ids do not match between the files.
    """
    relevant = read_relevance(relevance_file, "--relevance_file")
    queries = dict(read_texts(queries_file, "--queries_file"))
    chosen = [query for query in queries if query in relevant]
    if not chosen:
        raise UserError(
            f"--relevance_file: {queries_file} contains none of the query ids in "
            f"{relevance_file}, such as {next(iter(relevant))!r}. Use matching files."
        )
    wanted = {document for query in chosen for document in relevant[query]}
    numbers: dict[str, int] = {}
    vectors = encoder.vectors([queries[query] for query in chosen])
    blocks = _blocks(encoder, corpus_file, wanted, numbers)
    _, found = nearest(vectors, blocks, _DEEPEST)
    missing = sorted(wanted - set(numbers))
    if missing:
        raise UserError(
            f"--corpus_file: {corpus_file} lacks {len(missing)} of the documents in "
            f"{relevance_file}: {list_some(missing, 3)}. Give the corpus to which "
            "these ids belong."
        )
    answers = [
        {numbers[document]: gain for document, gain in relevant[query].items()}
        for query in chosen
    ]
    scores = retrieval.score(found.tolist(), answers, DEPTHS)
    return {f"corpus_{name}": value for name, value in scores.items()}


def _blocks(encoder, path, wanted, numbers):
    """Yield the vectors of the corpus; record the numbers of the wanted documents."""
    texts = read_texts(path, "--corpus_file")
    first = 0
    while block := list(itertools.islice(texts, BLOCK)):
        for number, (name, _) in enumerate(block, first):
            if name in wanted:
                numbers[name] = number
        yield encoder.vectors([text for _, text in block])
        first += len(block)
