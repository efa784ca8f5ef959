"""Convert texts to the rows that a model reads: truncated, or as windows.

Texts and rows are streamed in the same order, so only some of them are in memory.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert.checkpoints.model_directory import Bert
from official_bert.config import BertConfig
from official_bert.constants import LONG_TEXT, TRUNCATE, WINDOW
from official_bert.errors import UserError
from official_bert.fine_tuning.windows import best_spans, make_spans
from official_bert.tokenization.model_inputs import (
    check_length,
    join_texts,
    truncate_pair,
)

DEFAULT_LENGTH = 128
# Number of batches to read ahead. Rows are sorted by length, so that rows of similar
# length share a batch and need little padding.
READ_AHEAD_BATCHES = 64


@dataclasses.dataclass(frozen=True)
class Reading:
    """How texts become the rows of batches.

    Attributes:
      max_seq_length: maximum tokens of a row, including `[CLS]` and `[SEP]`; None for
        the original's 128, or the model's maximum if that is less.
      batch_size: number of rows per batch.
      long_text: handling of longer texts. "truncate" cuts, as the original does.
        "window" reads overlapping windows, and takes each token from the window with
        its maximal context. The first text of a pair is then complete in each window,
        like a question of SQuAD.
      doc_stride: tokens between the starts of two windows; None for half a window.
    """

    max_seq_length: int | None = None
    batch_size: int = 32
    long_text: str = TRUNCATE
    doc_stride: int | None = None

    def __post_init__(self) -> None:
        if self.max_seq_length is not None:
            check_length(self.max_seq_length)
        if self.batch_size < 1:
            raise UserError(
                f"batch_size={self.batch_size} is invalid. It must be at least 1."
            )
        if self.long_text not in LONG_TEXT:
            raise UserError(
                f"long_text={self.long_text!r} is invalid. Choose from "
                f"{', '.join(LONG_TEXT)}."
            )
        if self.doc_stride is not None and self.doc_stride < 1:
            raise UserError(
                f"doc_stride={self.doc_stride} is invalid. It must be at least 1."
            )


DEFAULT_READING = Reading()


class Row(NamedTuple):
    """One input of the model: a text, or a window of it.

    The row's tokens at `kept` are the text's tokens at `positions`.
    """

    input_ids: list[int]
    segment_ids: list[int]
    kept: np.ndarray
    positions: np.ndarray


class Text(NamedTuple):
    """The ids of a text, its rows, and the number of tokens that were cut."""

    input_ids: list[int]
    rows: list[Row]
    num_cut: int


def chunks(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    reading: Reading,
    max_tokens: float = math.inf,
) -> Iterator[list[Text]]:
    """Yield lists of `Text` that are run together, of bounded size.

    Args:
      bert: `Bert`, whose tokenizer reads the texts.
      texts: iterable of str, or of pairs (text_a, text_b).
      reading: `Reading` with a length; see `fitting`.
      max_tokens: maximum tokens of a list, unless it is a single text.

    Raises:
      UserError: a pair does not fit the model or the windows.
    """
    max_rows = READ_AHEAD_BATCHES * reading.batch_size
    chunk: list[Text] = []
    num_rows = num_tokens = 0
    for text in _read(bert, texts, reading):
        num_rows += len(text.rows)
        num_tokens += len(text.input_ids)
        if chunk and (num_rows > max_rows or num_tokens > max_tokens):
            yield chunk
            chunk, num_rows, num_tokens = [], len(text.rows), len(text.input_ids)
        chunk.append(text)
    if chunk:
        yield chunk


def _read(bert, texts, reading):
    """Yield a `Text` for each text; warn at the end about cut or empty texts."""
    num_texts = num_empty = num_long = num_cut = 0
    for text in texts:
        read = _read_text(bert, text, num_texts, reading)
        num_texts += 1
        num_empty += len(read.input_ids) == 2
        num_long += read.num_cut > 0
        num_cut += read.num_cut
        yield read
    if num_long:
        logging.warning(
            "%d of %d texts are longer than max_seq_length=%d: %d tokens were cut. "
            "Use --long_text=window to read whole texts.",
            num_long,
            num_texts,
            reading.max_seq_length,
            num_cut,
        )
    if num_empty:
        logging.warning(
            "%d of %d texts have no tokens. Their features are those of [CLS] and "
            "[SEP] only.",
            num_empty,
            num_texts,
        )


def _read_text(bert, text, number, reading):
    """Return the `Text` of a str or a pair."""
    text_a, text_b = (text, "") if isinstance(text, str) else text
    encode, vocab = bert.tokenizer.encode, bert.tokenizer.vocab
    ids_a, ids_b = encode(text_a), encode(text_b or "")
    if ids_b and bert.config.type_vocab_size < 2:
        raise UserError(
            f"Text {number} (counted from 0) is a pair, but the model has only one "
            "segment type (type_vocab_size 1). Give single texts."
        )
    room = reading.max_seq_length - (3 if ids_b else 2)
    num_cut = max(0, len(ids_a) + len(ids_b) - room)
    if num_cut and reading.long_text == WINDOW:
        return _read_by_windows(vocab, ids_a, ids_b, number, reading)
    input_ids, segment_ids = join_texts(vocab, *truncate_pair(ids_a, ids_b, room))
    positions = np.arange(len(input_ids))
    row = Row(input_ids, segment_ids, positions, positions)
    return Text(input_ids, [row], num_cut)


def _read_by_windows(vocab, ids_a, ids_b, number, reading):
    """Return the `Text` of a text that is too long for one row."""
    input_ids, _ = join_texts(vocab, ids_a, ids_b)
    document = ids_b or ids_a
    first = len(ids_a) + 2 if ids_b else 1  # Index of the first document token.
    room = reading.max_seq_length - first - 1
    if room < 1:
        raise UserError(
            f"Text {number} (counted from 0) is a pair whose first text has "
            f"{len(ids_a)} tokens. With max_seq_length={reading.max_seq_length} "
            "there is no room for windows over the second text. Shorten the first "
            "text, or use --long_text=truncate."
        )
    spans = make_spans(len(document), room, reading.doc_stride or max(1, room // 2))
    best = best_spans(spans, len(document))
    rows = []
    for window, (start, length) in enumerate(spans):
        part = document[start : start + length]
        texts = (ids_a, part) if ids_b else (part, [])
        row_ids, segment_ids = join_texts(vocab, *texts)
        kept = first + np.flatnonzero(best[start : start + length] == window)
        # Take the tokens before the document from the first window, [SEP] from the
        # last.
        if window == 0:
            kept = np.append(np.arange(first), kept)
        if window == len(spans) - 1:
            kept = np.append(kept, first + length)
        rows.append(Row(row_ids, segment_ids, kept, kept + start))
    return Text(input_ids, rows, 0)


def fitting(reading: Reading, config: BertConfig) -> Reading:
    """Return a `Reading` with a length.

    Raises:
      UserError: the length exceeds the maximum of the `BertConfig`.
    """
    limit = config.max_position_embeddings
    length = reading.max_seq_length or min(DEFAULT_LENGTH, limit)
    if length > limit:
        raise UserError(
            f"max_seq_length={length} is larger than the model's "
            f"max_position_embeddings={limit}. Use a smaller --max_seq_length."
        )
    return dataclasses.replace(reading, max_seq_length=length)
