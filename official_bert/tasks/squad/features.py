"""Convert questions and contexts to the features of windows.

If a context is too long for one row, several windows cover it. Each one contains the
complete question. Follows `convert_examples_to_features` in google-research/bert
`run_squad.py`, except that features are not padded.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import UserError
from official_bert.fine_tuning.windows import Span, best_spans, make_spans
from official_bert.tasks.squad.files import SquadExample
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.model_inputs import pad_rows

FIRST_UNIQUE_ID = 1000000000
NO_WORD = -1


class SquadFeatures(NamedTuple):
    """One window, `[CLS] question [SEP] part of the context [SEP]`, T tokens.

    Attributes:
      unique_id: int, from `FIRST_UNIQUE_ID` on.
      example_index: int, the index of the example in its list.
      doc_span_index: int, the number of the window, from 0.
      input_ids: int32 [T].
      segment_ids: int32 [T], 0 for the question, 1 from the context on.
      token_to_orig_map: int32 [T], for each token of the context the number of its
        word in `doc_tokens`; `NO_WORD` for other tokens.
      token_is_max_context: bool [T], whether a token of the context has more context
        here than in any other window; see `windows.best_spans`.
      start_position: int, position of the answer's first token in this row. It is 0
        if the window does not contain the complete answer, or if there is no
        answer; None if the example has no answer information.
      end_position: the same for the answer's last token.
      is_impossible: copied from the example.
      doc_start: index of the window's first context token in all context tokens.
    """

    unique_id: int
    example_index: int
    doc_span_index: int
    input_ids: np.ndarray
    segment_ids: np.ndarray
    token_to_orig_map: np.ndarray
    token_is_max_context: np.ndarray
    start_position: int | None
    end_position: int | None
    is_impossible: bool
    doc_start: int


class _Document(NamedTuple):
    """A context of D tokens and W words."""

    ids: np.ndarray  # int32 [D].
    token_to_word: np.ndarray  # int32 [D].
    word_starts: np.ndarray  # int64 [W + 1]: tokens before word i.


def convert_examples(
    examples: Iterable[SquadExample],
    tokenizer: FullTokenizer,
    max_seq_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
) -> list[SquadFeatures]:
    """Return the features of examples, in order; warn about questions that were cut.

    An example whose context has no words has no features.

    Args:
      examples: iterable of `SquadExample`, with or without answers.
      tokenizer: `FullTokenizer`.
      max_seq_length: maximum number of tokens per window.
      doc_stride: context tokens from the start of a window to the next start.
      max_query_length: maximum number of tokens of a question; the rest is cut off.

    Returns:
      list of `SquadFeatures`.

    Raises:
      UserError: the lengths leave no room for the context, or one is below 1.
    """
    _check_lengths(max_seq_length, doc_stride, max_query_length)
    cls_id, sep_id = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    features: list[SquadFeatures] = []
    documents, cut = {}, []
    for index, example in enumerate(examples):
        # Training examples are shuffled, so questions about a context may be far apart.
        if example.context not in documents:
            documents[example.context] = _tokenize(example.doc_tokens, tokenizer)
        document = documents[example.context]
        query = tokenizer.encode(example.question_text)
        if len(query) > max_query_length:
            cut.append(len(query) - max_query_length)
            query = query[:max_query_length]
        head = np.array([cls_id, *query, sep_id], np.int32)
        answer = _answer_tokens(example, document, tokenizer)
        room = max_seq_length - len(query) - 3
        spans = make_spans(len(document.ids), room, doc_stride)
        best = best_spans(spans, len(document.ids))
        for number, span in enumerate(spans):
            features.append(
                SquadFeatures(
                    FIRST_UNIQUE_ID + len(features),
                    index,
                    number,
                    *_window(head, document, span, best == number),
                    *_positions(answer, span, len(head)),
                    example.is_impossible,
                    span.start,
                )
            )
    if cut:
        logging.warning(
            "%d questions are longer than max_query_length %d: %d tokens were cut "
            "off, at most %d from one question.",
            len(cut),
            max_query_length,
            sum(cut),
            max(cut),
        )
    return features


def _window(
    head: np.ndarray, document: _Document, span: Span, is_best: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the four arrays [T] of a window, which begins with the ids `head`.

    `is_best`, bool [D], is True for tokens that have maximal context here.
    """
    inside = slice(span.start, span.start + span.length)
    context = slice(len(head), len(head) + span.length)
    input_ids = np.concatenate([head, document.ids[inside], head[-1:]])
    segment_ids = np.ones(len(input_ids), np.int32)
    segment_ids[: len(head)] = 0
    to_word = np.full(len(input_ids), NO_WORD, np.int32)
    to_word[context] = document.token_to_word[inside]
    is_max_context = np.zeros(len(input_ids), bool)
    is_max_context[context] = is_best[inside]
    return input_ids, segment_ids, to_word, is_max_context


def _positions(
    answer: tuple[int | None, int | None], span: Span, first: int
) -> tuple[int | None, int | None]:
    """Return the positions of the answer's first and last token in a window.

    `answer` is a result of `_answer_tokens`; the window's context begins at `first`.
    """
    start, end = answer
    if start is None or end is None:
        return None, None
    if start < span.start or end >= span.start + span.length:
        return 0, 0
    return first + start - span.start, first + end - span.start


def _tokenize(words, tokenizer):
    """Tokenize the words of a context; return a `_Document`."""
    pieces = [tokenizer.encode(word) for word in words]
    lengths = np.array([len(each) for each in pieces], np.int64)
    return _Document(
        ids=np.array([index for each in pieces for index in each], np.int32),
        token_to_word=np.repeat(np.arange(len(words), dtype=np.int32), lengths),
        word_starts=np.concatenate([[0], np.cumsum(lengths)]),
    )


def _answer_tokens(example, document, tokenizer):
    """Return the first and last token of the answer in the document.

    (None, None) without answer information, (-1, -1) if there is no answer.
    """
    if example.start_position is None:
        return None, None
    if example.is_impossible:
        return -1, -1
    start = int(document.word_starts[example.start_position])
    end = int(document.word_starts[example.end_position + 1]) - 1
    answer = np.array(tokenizer.encode(example.orig_answer_text), np.int32)
    return _improve_span(document.ids, start, end, answer)


def _improve_span(ids, start, end, answer):
    """Narrow a span of complete words to the tokens of the answer.

    An answer may be a part of a word, such as the year 1895 in "(1895-1943).". The
    span stays the same if it does not contain the answer's ids ("Japan" in
    "Japanese"). Follows `_improve_answer_span` in google-research/bert `run_squad.py`.
    """
    length = len(answer)
    if length:
        for first in range(start, end - length + 2):
            if np.array_equal(ids[first : first + length], answer):
                return first, first + length - 1
    return start, end


def pad_squad_features(
    features: Sequence[SquadFeatures], length: int
) -> dict[str, np.ndarray]:
    """Return windows as the arrays of one batch.

    Args:
      features: sequence of B `SquadFeatures`.
      length: S, tokens per row, at least as many as the longest window has.

    Returns:
      dict of int32 arrays [B, S] `input_ids`, `input_mask`, `segment_ids`. If
      answers are known, also [B] `start_positions`, `end_positions`.
    """
    batch = pad_rows(features, length)
    if features[0].start_position is not None:
        for name in ("start", "end"):
            positions = [getattr(one, f"{name}_position") for one in features]
            batch[f"{name}_positions"] = np.array(positions, np.int32)
    return batch


def _check_lengths(max_seq_length, doc_stride, max_query_length):
    lengths = {"doc_stride": doc_stride, "max_query_length": max_query_length}
    for name, value in lengths.items():
        if value < 1:
            raise UserError(f"{name} is {value}, but it must be at least 1.")
    if max_seq_length <= max_query_length + 3:
        raise UserError(
            f"max_seq_length {max_seq_length} must be greater than max_query_length "
            f"{max_query_length} + 3. Otherwise the context gets no room."
        )
