"""Features of texts: the vectors of each token, or one vector for each text.

Follows `extract_features.py` in google-research/bert (the feature-based
approach of Sec. 5.3) in what a text becomes and in the JSON it is written as.
Texts come and results go one after the other, in the same order; only some
are held in memory.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import INPUTS, LONG_TEXT, POOLINGS, TRUNCATE, WINDOW
from official_bert.errors import UserError
from official_bert.fine_tuning.windows import best_spans, make_spans
from official_bert.modeling.kernels.choose import for_inference
from official_bert.tokenization.model_inputs import (
    check_length,
    join_texts,
    pad_rows,
    truncate_pair,
)

LAYERS = (-1, -2, -3, -4)
DEFAULT_LENGTH = 128

# Rows are read ahead and sorted, so that those of like length share a batch
# and little of it is padding: so many batches, or so many bytes of vectors.
READ_AHEAD_BATCHES = 64
READ_AHEAD_BYTES = 2**27

# Batches are as long as their longest row, rounded up to a multiple of this:
# a bounded number of shapes, and few positions wasted.
LENGTH_STEP = 4


@dataclasses.dataclass(frozen=True)
class Reading:
    """How texts become the rows of batches.

    Attributes:
      max_seq_length: tokens of a row at most, `[CLS]` and `[SEP]` among them;
        None for 128, the original's, or what the model reads if that is less.
      batch_size: rows that go through the model together.
      long_text: what becomes of a longer text: "truncate" cuts it off, as the
        original does; "window" reads it through overlapping windows, and
        takes each token from the one where it has maximal context. Of a pair
        the first text is then whole in each window, like a question of SQuAD.
      doc_stride: tokens from one window's start to the next one's; None for
        half of a window.
    """

    max_seq_length: int | None = None
    batch_size: int = 32
    long_text: str = TRUNCATE
    doc_stride: int | None = None

    def __post_init__(self) -> None:
        if self.max_seq_length is not None:
            check_length(self.max_seq_length)
        if self.batch_size < 1:
            raise UserError(f"batch_size is {self.batch_size}: it must be at least 1.")
        if self.long_text not in LONG_TEXT:
            raise UserError(
                f"long_text is {self.long_text!r}: choose from {', '.join(LONG_TEXT)}."
            )
        if self.doc_stride is not None and self.doc_stride < 1:
            raise UserError(f"doc_stride is {self.doc_stride}: it must be at least 1.")


DEFAULT_READING = Reading()


@dataclasses.dataclass(frozen=True)
class TokenFeatures:
    """The vectors of one text.

    Attributes:
      tokens: list of T word pieces, `[CLS]` and `[SEP]` among them.
      vectors: float32 [T, K, H], of the K layers that were asked for.
    """

    tokens: list[str]
    vectors: np.ndarray


class _Row(NamedTuple):
    """What the model reads at once: a text, or a window of it.

    Of its tokens, those at `kept` are the tokens at `positions` of the text.
    """

    input_ids: list[int]
    segment_ids: list[int]
    kept: np.ndarray
    positions: np.ndarray


class _Text(NamedTuple):
    """The ids of a text, the rows it is read by, and how much was cut off."""

    input_ids: list[int]
    rows: list[_Row]
    num_cut: int


def token_features(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    layers: Sequence[int] = LAYERS,
    reading: Reading = DEFAULT_READING,
) -> Iterator[TokenFeatures]:
    """Yield the vectors of each text's tokens.

    The vectors of a text do not depend on the others beyond rounding: below
    1e-5 of a vector's largest number. Some 128 MB of vectors are held at a
    time, or those of one text if it has more.

    Args:
      bert: what `model_directory.load_encoder` returns.
      texts: iterable of str, or of pairs (text_a, text_b).
      layers: numbers of the encoder's layers; -1 is the last, 0 the first.
      reading: `Reading`.

    Returns:
      iterator of `TokenFeatures`.

    Raises:
      UserError: there is no such layer, or the model reads no such length.
    """
    _check_layers(layers, bert.config)
    reading = _fitting(reading, bert.config)
    shape = (len(layers), bert.config.hidden_size)
    run = _compiled(bert.model, tuple(layers))
    chunks = _chunks(bert, texts, reading, READ_AHEAD_BYTES // (4 * math.prod(shape)))

    def features():
        for chunk in chunks:
            vectors_of_texts = [
                np.empty((len(text.input_ids), *shape), np.float32) for text in chunk
            ]
            for number, row, output in _outputs(run, chunk, reading):
                vectors_of_texts[number][row.positions] = output[row.kept]
            for text, vectors in zip(chunk, vectors_of_texts, strict=True):
                tokens = bert.tokenizer.convert_ids_to_tokens(text.input_ids)
                yield TokenFeatures(tokens, vectors)

    return features()


def sentence_vectors(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    pooling: str = "mean",
    layers: Sequence[int] = (-1,),
    reading: Reading = DEFAULT_READING,
) -> np.ndarray:
    """Return one vector for each text: float32 [N, H].

    See `each_sentence_vector`.
    """
    vectors = list(each_sentence_vector(bert, texts, pooling, layers, reading))
    return np.array(vectors, np.float32).reshape(-1, bert.config.hidden_size)


def each_sentence_vector(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    pooling: str = "mean",
    layers: Sequence[int] = (-1,),
    reading: Reading = DEFAULT_READING,
) -> Iterator[np.ndarray]:
    """Yield one vector for each text.

    Args:
      bert: what `model_directory.load_encoder` returns.
      texts: iterable of str, or of pairs (text_a, text_b).
      pooling: "mean": of all real tokens, `[CLS]` and `[SEP]` among them, as
        sentence-transformers has it; padding does not count. "cls": the
        vector of `[CLS]`. "pooler": the model's `pooled_output`, which is
        made from the last layer. In a text of several windows "mean" is that
        over its tokens, each once, and the others are means over the windows.
      layers: numbers of the encoder's layers, whose mean is taken; no matter
        for "pooler".
      reading: `Reading`.

    Returns:
      iterator of float32 arrays [H].

    Raises:
      UserError: there is no such layer, the model reads no such length, or
        its pooler was never trained.
    """
    if pooling not in POOLINGS:
        raise UserError(f"pooling is {pooling!r}: choose from {', '.join(POOLINGS)}.")
    if pooling == "pooler" and "pooled_output" not in bert.vectors:
        raise UserError(
            f"{bert.report.path} has no pooler (bert/pooler/dense), and a random one "
            "means nothing; give --pooling=mean or cls."
        )
    _check_layers(layers, bert.config)
    reading = _fitting(reading, bert.config)
    run = _compiled(bert.model, tuple(layers), pooling)
    chunks = _chunks(bert, texts, reading)

    def vectors():
        for chunk in chunks:
            sums = np.zeros((len(chunk), bert.config.hidden_size), np.float32)
            counts = np.zeros((len(chunk), 1), np.float32)
            for number, row, output in _outputs(run, chunk, reading):
                sums[number] += output
                counts[number] += len(row.kept) if pooling == "mean" else 1
            yield from sums / counts

    return vectors()


def _compiled(model, layers, pooling=None):
    """Return a function of the arrays of `_batch`, whatever their shapes.

    It returns the chosen layers, float32 [B, S, K, H], or with a pooling
    [B, H]: for "mean" sums over the kept tokens, else vectors. A second one
    for the same model and choice costs nothing.
    """
    ids = tf.TensorSpec([None, None], tf.int32)
    features = dict.fromkeys(INPUTS, ids)
    kept = tf.TensorSpec([None, None], tf.float32)
    _run.get_concrete_function(model, layers, pooling, features, kept)
    return functools.partial(_run, model, layers, pooling)


@tf.function(autograph=False)
def _run(model, layers, pooling, features, kept):
    encoded = model(features, kernels=for_inference())
    if pooling == "pooler":
        return tf.cast(encoded["pooled_output"], tf.float32)
    all_layers = encoded["all_encoder_layers"]
    chosen = [tf.cast(all_layers[layer], tf.float32) for layer in layers]
    if pooling is None:
        return tf.stack(chosen, axis=2)
    mean = tf.add_n(chosen) / len(chosen)  # [B, S, H]
    if pooling == "cls":
        return mean[:, 0]
    return tf.matmul(kept[:, tf.newaxis], mean)[:, 0]


def _chunks(bert, texts, reading, max_tokens=math.inf):
    """Yield lists of `_Text` that are run together, of bounded size."""
    max_rows = READ_AHEAD_BATCHES * reading.batch_size
    chunk: list[_Text] = []
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
    """Yield a `_Text` for each text; warn at the end of what was cut or empty."""
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
            "%d of %d texts are longer than max_seq_length %d: %d tokens were cut "
            "off; --long_text=window reads them whole.",
            num_long,
            num_texts,
            reading.max_seq_length,
            num_cut,
        )
    if num_empty:
        logging.warning(
            "%d of %d texts have no tokens: their features are those of [CLS] and "
            "[SEP] alone.",
            num_empty,
            num_texts,
        )


def _read_text(bert, text, number, reading):
    """Return the `_Text` of a str or a pair."""
    text_a, text_b = (text, "") if isinstance(text, str) else text
    encode, vocab = bert.tokenizer.encode, bert.tokenizer.vocab
    ids_a, ids_b = encode(text_a), encode(text_b or "")
    if ids_b and bert.config.type_vocab_size < 2:
        raise UserError(
            f"Text {number}, counted from 0, is a pair, but the model knows one kind "
            "of segment only (type_vocab_size 1); give single texts."
        )
    room = reading.max_seq_length - (3 if ids_b else 2)
    num_cut = max(0, len(ids_a) + len(ids_b) - room)
    if num_cut and reading.long_text == WINDOW:
        return _read_by_windows(vocab, ids_a, ids_b, number, reading)
    input_ids, segment_ids = join_texts(vocab, *truncate_pair(ids_a, ids_b, room))
    positions = np.arange(len(input_ids))
    row = _Row(input_ids, segment_ids, positions, positions)
    return _Text(input_ids, [row], num_cut)


def _read_by_windows(vocab, ids_a, ids_b, number, reading):
    """Return the `_Text` of what is too long for one row."""
    input_ids, _ = join_texts(vocab, ids_a, ids_b)
    document = ids_b or ids_a
    first = len(ids_a) + 2 if ids_b else 1  # Position of the document's first token.
    room = reading.max_seq_length - first - 1
    if room < 1:
        raise UserError(
            f"Text {number}, counted from 0, is a pair whose first part has "
            f"{len(ids_a)} tokens, which leaves no room for windows over the second "
            f"in max_seq_length {reading.max_seq_length}; shorten it, or give "
            "--long_text=truncate."
        )
    spans = make_spans(len(document), room, reading.doc_stride or max(1, room // 2))
    best = best_spans(spans, len(document))
    rows = []
    for window, (start, length) in enumerate(spans):
        part = document[start : start + length]
        texts = (ids_a, part) if ids_b else (part, [])
        row_ids, segment_ids = join_texts(vocab, *texts)
        kept = first + np.flatnonzero(best[start : start + length] == window)
        # What comes before is taken from the first window, the end from the last.
        if window == 0:
            kept = np.append(np.arange(first), kept)
        if window == len(spans) - 1:
            kept = np.append(kept, first + length)
        rows.append(_Row(row_ids, segment_ids, kept, kept + start))
    return _Text(input_ids, rows, 0)


def _outputs(run, chunk, reading):
    """Run the rows of a chunk, the longest first.

    Yield (the text's number in the chunk, `_Row`, the output of `run` for the row).
    """
    rows = [(number, row) for number, text in enumerate(chunk) for row in text.rows]
    rows.sort(key=lambda numbered: -len(numbered[1].input_ids))
    for start in range(0, len(rows), reading.batch_size):
        members = rows[start : start + reading.batch_size]
        batch = _batch([row for _, row in members], reading.max_seq_length)
        try:
            outputs = run(*batch).numpy()
        except tf.errors.ResourceExhaustedError as error:
            raise UserError(
                f"Out of memory with --batch_size={reading.batch_size}; give a "
                "smaller one, or a smaller --max_seq_length."
            ) from error
        for (number, row), output in zip(members, outputs, strict=True):
            yield number, row, output


def _batch(rows, max_length):
    """Return rows as padded arrays [B, S]: (dict of the features, `kept`)."""
    longest = max(len(row.input_ids) for row in rows)
    length = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, max_length)
    kept = np.zeros((len(rows), length), np.float32)
    for index, row in enumerate(rows):
        kept[index, row.kept] = 1.0
    return pad_rows(rows, length), kept


def _check_layers(layers, config):
    size = config.num_hidden_layers
    for layer in layers:
        if not -size <= layer < size:
            raise UserError(
                f"There is no layer {layer} in a model of {size}: --layers takes "
                f"numbers from {-size} to {size - 1}."
            )
    if not layers:
        raise UserError("--layers is empty: name at least one layer.")


def _fitting(reading, config):
    """Return a `Reading` with a length, which the model reads."""
    limit = config.max_position_embeddings
    length = reading.max_seq_length or min(DEFAULT_LENGTH, limit)
    if length > limit:
        raise UserError(
            f"max_seq_length {length} is larger than the model's "
            f"max_position_embeddings {limit}; give a smaller --max_seq_length."
        )
    return dataclasses.replace(reading, max_seq_length=length)
