"""Convert tagged sentences to the features of a tagger: windows of WordPiece tokens.

As in Devlin et al. (Sec. 5.3), only the first token of a word carries its tag, and a
window is filled with neighbouring sentences of the document. Windows overlap. Each
word is trained and scored in one window only, in which its shorter context, left or
right, is longest. So no word is lost, however long a sentence is. A word without
tokens (control characters, or only accents if they are dropped) becomes `[UNK]`.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert.constants import IGNORED
from official_bert.errors import UserError
from official_bert.fine_tuning.windows import best_spans, make_spans
from official_bert.metrics.entities import OUTSIDE
from official_bert.tasks.ner.sentences import Sentence
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.model_inputs import check_length, pad_rows
from official_bert.tokenization.wordpiece import UNKNOWN


class NerFeatures(NamedTuple):
    """A window over a document: T tokens, of which K words are scored here.

    Attributes:
      input_ids: int32 [T], `[CLS] tokens [SEP]`.
      segment_ids: int32 [T], all 0.
      label_ids: int32 [T], indexes of tags. `IGNORED` at tokens without a label:
        words that are scored in another window, later tokens of a word (unless all
        are labeled), and unknown tags.
      document: int, index of the document.
      positions: int32 [K], position of the first token of each scored word.
      words: int32 [K, 2], index of the sentence in the document, and of the word in
        the sentence.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    label_ids: np.ndarray
    document: int
    positions: np.ndarray
    words: np.ndarray


class _Pieces(NamedTuple):
    """The P tokens of W consecutive words."""

    ids: np.ndarray  # int32 [P].
    labels: np.ndarray  # int32 [P], the label of the word.
    firsts: np.ndarray  # int64 [W], first token of each word.
    words: np.ndarray  # int32 [W, 2], as in `NerFeatures`.


def tag_names(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the tags for types of entities: ("O", "B-LOC", "I-LOC", …).

    Args:
      labels: types, as in `NerData.labels`; the result is in sorted order.
    """
    pairs = (
        (f"B-{label}", f"I-{label}") if label else "BI" for label in sorted(labels)
    )
    return (OUTSIDE, *itertools.chain.from_iterable(pairs))


def convert_documents(
    documents: Iterable[Sequence[Sentence]],
    tokenizer: FullTokenizer,
    max_seq_length: int,
    tags: Sequence[str] = (),
    doc_stride: int | None = None,
    one_sentence: bool = False,
    label_all_pieces: bool = False,
) -> list[NerFeatures]:
    """Return the windows over documents, in order.

    Args:
      documents: list of documents, each a list of `Sentence`.
      tokenizer: `FullTokenizer`.
      max_seq_length: maximum number of tokens per window, including `[CLS]` and
        `[SEP]`; at least 3.
      tags: names of the tags in the order of their numbers, see `tag_names`; ()
        leaves all tokens without a label.
      doc_stride: tokens from the start of a window to the next start; None for half
        a window.
      one_sentence: whether a window contains words of one sentence only.
      label_all_pieces: whether all tokens of a scored word in its window carry its
        label.

    Returns:
      list of `NerFeatures`. Each word is scored in exactly one of them.

    Raises:
      UserError: `max_seq_length` is below 3, or `doc_stride` below 1.
      ValueError: a sentence has a tag that is not in `tags`.
    """
    check_length(max_seq_length)
    if doc_stride is not None and doc_stride < 1:
        raise UserError(f"doc_stride is {doc_stride}, but it must be at least 1.")
    room = max_seq_length - 2
    stride = doc_stride or max(1, room // 2)
    label_ids = {tag: index for index, tag in enumerate(tags)}
    features = []
    for number, sentences in enumerate(documents):
        numbered = list(enumerate(sentences))
        groups = [[each] for each in numbered] if one_sentence else [numbered]
        for group in groups:
            pieces = _pieces_of(group, tokenizer, label_ids)
            spans = make_spans(len(pieces.ids), room, stride)
            windows = _windows(pieces, spans, label_all_pieces, tokenizer.vocab, number)
            features.extend(windows)
    return features


def _pieces_of(sentences, tokenizer, label_ids):
    """Tokenize (number, `Sentence`) pairs, in order; return `_Pieces`."""
    unknown = [tokenizer.vocab[UNKNOWN]]
    ids: list[int] = []
    labels, firsts, words = [], [], []
    for sentence_number, sentence in sentences:
        sentence_labels = [IGNORED] * len(sentence.words)
        if sentence.tags is not None and label_ids:
            unknown_tags = [tag for tag in sentence.tags if tag not in label_ids]
            if unknown_tags:
                raise ValueError(
                    f"The sentence of line {sentence.line} has the tag "
                    f"{unknown_tags[0]!r}, which is not one of {', '.join(label_ids)}."
                )
            sentence_labels = [label_ids[tag] for tag in sentence.tags]
        for word_number, word in enumerate(sentence.words):
            word_ids = tokenizer.encode(word) or unknown
            firsts.append(len(ids))
            words.append((sentence_number, word_number))
            ids += word_ids
            labels += [sentence_labels[word_number]] * len(word_ids)
    return _Pieces(
        np.array(ids, np.int32),
        np.array(labels, np.int32),
        np.array(firsts, np.int64),
        np.array(words, np.int32).reshape(-1, 2),
    )


def _windows(pieces, spans, label_all_pieces, vocab, document):
    """Yield the `NerFeatures` of all windows that score at least one word."""
    num_pieces = len(pieces.ids)
    best = best_spans(spans, num_pieces)[pieces.firsts]
    # Token -> the window that scores its word.
    best_of_pieces = np.repeat(best, np.diff(pieces.firsts, append=num_pieces))
    for number, (start, length) in enumerate(spans):
        first, end = np.searchsorted(pieces.firsts, [start, start + length])
        scored = first + np.flatnonzero(best[first:end] == number)
        if not scored.size:
            continue
        inside = slice(start, start + length)
        positions = pieces.firsts[scored] - start
        is_labeled = np.zeros(length, bool)
        if label_all_pieces:
            is_labeled = best_of_pieces[inside] == number
        is_labeled[positions] = True
        labels = np.where(is_labeled, pieces.labels[inside], IGNORED)
        input_ids = [vocab["[CLS]"], *pieces.ids[inside].tolist(), vocab["[SEP]"]]
        yield NerFeatures(
            np.array(input_ids, np.int32),
            np.zeros(len(input_ids), np.int32),
            np.pad(labels, 1, constant_values=IGNORED).astype(np.int32),
            document,
            (positions + 1).astype(np.int32),
            pieces.words[scored],
        )


def word_tags(
    documents: Iterable[Sequence[Sentence]],
    features: Iterable[NerFeatures],
    predictions: Iterable[Sequence[int] | np.ndarray],
    tags: Sequence[str],
) -> list[list[list[str]]]:
    """Return the predicted tag of each word.

    Args:
      documents: the documents from which `features` were made.
      features: all windows from `convert_documents`, in any order.
      predictions: for each window the numbers of the predicted tags of its tokens,
        sequence of int [>= T].
      tags: names of the tags, as for `convert_documents`.

    Returns:
      list of documents, each a list of sentences, each a list of str.

    Raises:
      ValueError: a word has no prediction, or several.
    """
    tagged: list[list[list[Any]]] = [
        [[None] * len(s.words) for s in document] for document in documents
    ]
    for window, numbers in zip(features, predictions, strict=True):
        of_document = tagged[window.document]
        at_words = np.asarray(numbers)[window.positions].tolist()
        for (sentence, word), number in zip(
            window.words.tolist(), at_words, strict=True
        ):
            if of_document[sentence][word] is not None:
                raise ValueError(f"Word {word} of a sentence has two predictions.")
            of_document[sentence][word] = tags[number]
    if any(None in sentence for document in tagged for sentence in document):
        raise ValueError("Some words have no prediction, because windows are missing.")
    return tagged


def pad_ner_features(
    features: Sequence[NerFeatures], length: int
) -> dict[str, np.ndarray]:
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B `NerFeatures`.
      length: S, tokens per row, at least as many as the longest window has.

    Returns:
      dict of int32 arrays [B, S] `input_ids`, `input_mask` and `segment_ids`, 0 at
      padding, and `label_ids`, `IGNORED` at padding.
    """
    batch = pad_rows(features, length)
    batch["label_ids"] = np.full((len(features), length), IGNORED, np.int32)
    for row, one in enumerate(features):
        batch["label_ids"][row, : len(one.label_ids)] = one.label_ids
    return batch
