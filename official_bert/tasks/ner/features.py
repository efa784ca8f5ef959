"""Tagged sentences as the features a tagger reads: windows of WordPieces.

As in Devlin et al. (Sec. 5.3): the first piece of a word carries its tag, the
others none, and a window is filled with neighbouring sentences of the document.
Windows overlap; a word is trained on and scored once, where it has the most
context on its poorer side. So no word is lost, however long a sentence is. A word
without pieces (control characters, or accents alone where they are dropped) is
read as `[UNK]`.
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
    """A window over a document: T tokens, K words of which are scored here.

    Attributes:
      input_ids: int32 [T], `[CLS] pieces [SEP]`.
      segment_ids: int32 [T], all 0.
      label_ids: int32 [T], places among the tags; `IGNORED` where there is no
        label: at pieces of words that are not scored here, behind the first
        piece of a word unless all were asked for, and where tags are unknown.
      document: int, the place of the document.
      positions: int32 [K], the first piece of each scored word.
      words: int32 [K, 2], the place of its sentence in the document, and its
        own in the sentence.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    label_ids: np.ndarray
    document: int
    positions: np.ndarray
    words: np.ndarray


class _Pieces(NamedTuple):
    """The P pieces of W words in a row."""

    ids: np.ndarray  # int32 [P].
    labels: np.ndarray  # int32 [P], that of its word for each piece.
    firsts: np.ndarray  # int64 [W], the first piece of each word.
    words: np.ndarray  # int32 [W, 2], as in `NerFeatures`.


def tag_names(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of types of entities: ("O", "B-LOC", "I-LOC", …).

    Args:
      labels: types, as `NerData.labels`; they are taken in sorted order.
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
      max_seq_length: tokens of a window at most, `[CLS]` and `[SEP]` among
        them; at least 3.
      tags: names of the tags in the order of their numbers, see `tag_names`;
        () leaves everything without label.
      doc_stride: tokens from one window's start to the next one's; None for
        half of a window.
      one_sentence: whether a window holds words of one sentence only.
      label_all_pieces: whether all pieces of a scored word that are in its
        window carry its label.

    Returns:
      list of `NerFeatures`; in all of them together each word is scored once.

    Raises:
      UserError: `max_seq_length` is below 3, or `doc_stride` below 1.
      ValueError: a sentence has a tag that is none of `tags`.
    """
    check_length(max_seq_length)
    if doc_stride is not None and doc_stride < 1:
        raise UserError(f"doc_stride is {doc_stride}: it must be at least 1.")
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
    """Return the `_Pieces` of (number, `Sentence`) pairs, in order."""
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
                    f"{unknown_tags[0]!r}, none of {', '.join(label_ids)}."
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
    """Yield the `NerFeatures` of the windows in which a word is scored."""
    num_pieces = len(pieces.ids)
    best = best_spans(spans, num_pieces)[pieces.firsts]
    # The window that scores the word of each piece.
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
    """Return what was predicted for each word.

    Args:
      documents: those that `features` were made of.
      features: all windows of `convert_documents`, in any order.
      predictions: for each of them the numbers of the tags at its tokens,
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
        raise ValueError("There are words without a prediction: windows are missing.")
    return tagged


def pad_ner_features(
    features: Sequence[NerFeatures], length: int
) -> dict[str, np.ndarray]:
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B `NerFeatures`.
      length: S, tokens of a row, at least as many as the longest has.

    Returns:
      dict of int32 arrays [B, S] `input_ids`, `input_mask` and `segment_ids`,
      0 where nothing stands, and `label_ids`, `IGNORED` there.
    """
    batch = pad_rows(features, length)
    batch["label_ids"] = np.full((len(features), length), IGNORED, np.int32)
    for row, one in enumerate(features):
        batch["label_ids"][row, : len(one.label_ids)] = one.label_ids
    return batch
