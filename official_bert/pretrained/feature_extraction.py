"""Compute features of texts: a vector for each token, or one for each text.

Input format and JSON output follow `extract_features.py` in google-research/bert, the
feature-based approach of Sec. 5.3. Texts and results are streamed in the same order, so
only some of them are in memory.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import INPUTS, POOLINGS
from official_bert.errors import UserError
from official_bert.modeling.kernels.choose import for_inference
from official_bert.pretrained.reading import (
    DEFAULT_READING,
    Reading,
    chunks,
    fitting,
)
from official_bert.tokenization.model_inputs import pad_rows

LAYERS = (-1, -2, -3, -4)
# Limit of the token vectors in memory at a time.
READ_AHEAD_BYTES = 2**27

# Batches are as long as their longest row, rounded up to a multiple of this. This
# limits the number of shapes and wastes few positions.
LENGTH_STEP = 4


@dataclasses.dataclass(frozen=True)
class TokenFeatures:
    """The vectors of one text.

    Attributes:
      tokens: list of T WordPiece tokens, including `[CLS]` and `[SEP]`.
      vectors: float32 [T, K, H], of the K requested layers.
    """

    tokens: list[str]
    vectors: np.ndarray


def token_features(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    layers: Sequence[int] = LAYERS,
    reading: Reading = DEFAULT_READING,
) -> Iterator[TokenFeatures]:
    """Yield the vectors of each text's tokens.

    Except for rounding, the vectors of a text do not depend on the other texts. The
    difference is below 1e-5 of a vector's largest number. About 128 MB of vectors are
    in memory at a time, or those of one text if it has more.

    Args:
      bert: result of `model_directory.load_encoder`.
      texts: iterable of str, or of pairs (text_a, text_b).
      layers: numbers of the encoder's layers; -1 is the last, 0 the first.
      reading: `Reading`.

    Returns:
      iterator of `TokenFeatures`.

    Raises:
      UserError: the layer does not exist, or the length exceeds the model's maximum.
    """
    _check_layers(layers, bert.config)
    reading = fitting(reading, bert.config)
    shape = (len(layers), bert.config.hidden_size)
    run = _compiled(bert.encoder, tuple(layers))
    parts = chunks(bert, texts, reading, READ_AHEAD_BYTES // (4 * math.prod(shape)))

    def features():
        for chunk in parts:
            collected = _Tokens(chunk, shape)
            for number, row, output in _outputs(run, chunk, reading):
                collected.add(number, row, output)
            yield from collected.features(bert.tokenizer)

    return features()


def token_and_sentence_features(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    pooling: str = "mean",
    layers: Sequence[int] = LAYERS,
    sentence_layers: Sequence[int] = (-1,),
    reading: Reading = DEFAULT_READING,
) -> Iterator[tuple[TokenFeatures, np.ndarray]]:
    """Yield the results of `token_features` and `each_sentence_vector`, in one pass.

    Args:
      bert: result of `load_encoder`.
      texts: iterable of str, or of pairs (text_a, text_b).
      pooling: see `each_sentence_vector`.
      layers: layer numbers for the token vectors.
      sentence_layers: layer numbers for the sentence vectors.
      reading: `Reading`.

    Returns:
      iterator of (`TokenFeatures`, float32 array [H]).

    Raises:
      UserError: see the two functions.
    """
    _check_pooling(bert, pooling)
    _check_layers(layers, bert.config)
    _check_layers(sentence_layers, bert.config)
    reading = fitting(reading, bert.config)
    shape = (len(layers), bert.config.hidden_size)
    run = _compiled(bert.encoder, tuple(layers), pooling, tuple(sentence_layers))
    parts = chunks(bert, texts, reading, READ_AHEAD_BYTES // (4 * math.prod(shape)))

    def features():
        for chunk in parts:
            collected = _Tokens(chunk, shape), _Sentences(len(chunk), shape[-1])
            for number, row, tokens, sentence in _outputs(run, chunk, reading):
                collected[0].add(number, row, tokens)
                collected[1].add(number, row, sentence, pooling)
            of_tokens = collected[0].features(bert.tokenizer)
            yield from zip(of_tokens, collected[1].vectors(), strict=True)

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
      bert: result of `model_directory.load_encoder`.
      texts: iterable of str, or of pairs (text_a, text_b).
      pooling: "mean": average of all tokens, including `[CLS]` and `[SEP]` but not
        padding, as in sentence-transformers. "cls": the vector of `[CLS]`. "pooler":
        the model's `pooled_output`, computed from the last layer. For a text of several
        windows, "mean" averages over its tokens, each once. The others average over the
        windows.
      layers: numbers of the encoder's layers, which are averaged; ignored for "pooler".
      reading: `Reading`.

    Returns:
      iterator of float32 arrays [H].

    Raises:
      UserError: the layer does not exist, the length exceeds the model's maximum, or
        its pooler was never trained.
    """
    _check_pooling(bert, pooling)
    _check_layers(layers, bert.config)
    reading = fitting(reading, bert.config)
    run = _compiled(bert.encoder, (), pooling, tuple(layers))
    parts = chunks(bert, texts, reading)

    def vectors():
        for chunk in parts:
            collected = _Sentences(len(chunk), bert.config.hidden_size)
            for number, row, output in _outputs(run, chunk, reading):
                collected.add(number, row, output, pooling)
            yield from collected.vectors()

    return vectors()


class _Tokens:
    """Collects the token vectors of a chunk's texts, row by row."""

    def __init__(self, chunk, shape):
        self._chunk = chunk
        self._vectors = [
            np.empty((len(text.input_ids), *shape), np.float32) for text in chunk
        ]

    def add(self, number, row, output):
        """Store the outputs [S, K, H] of a row of a text."""
        self._vectors[number][row.positions] = output[row.kept]

    def features(self, tokenizer):
        """Yield the `TokenFeatures` of each text."""
        for text, vectors in zip(self._chunk, self._vectors, strict=True):
            yield TokenFeatures(
                tokenizer.convert_ids_to_tokens(text.input_ids), vectors
            )


class _Sentences:
    """Averages vectors of texts over their tokens or over their rows."""

    def __init__(self, num_texts, width):
        self._sums = np.zeros((num_texts, width), np.float32)
        self._counts = np.zeros((num_texts, 1), np.float32)

    def add(self, number, row, output, pooling):
        """Add the output [H] of a row of a text."""
        self._sums[number] += output
        self._counts[number] += len(row.kept) if pooling == "mean" else 1

    def vectors(self):
        """Return the vectors, [texts, H]."""
        return self._sums / self._counts


def _compiled(model, layers, pooling=None, sentence_layers=()):
    """Return a compiled function of the arrays of `_batch`, for any shape.

    Without a pooling it returns the chosen layers, float32 [B, S, K, H]. With a pooling
    it returns [B, H]: sums over the kept tokens for "mean", else vectors. With `layers`
    and a pooling it returns both. A second call for the same model and choice reuses
    the compiled function.
    """
    ids = tf.TensorSpec([None, None], tf.int32)
    features = dict.fromkeys(INPUTS, ids)
    kept = tf.TensorSpec([None, None], tf.float32)
    choice = model, layers, pooling, sentence_layers
    _run.get_concrete_function(*choice, features, kept)
    return functools.partial(_run, *choice)


@tf.function(autograph=False)
def _run(model, layers, pooling, sentence_layers, features, kept):
    encoded = model(features, kernels=for_inference())
    if pooling is None:
        return _token_vectors(encoded, layers)
    pooled = _pooled(encoded, sentence_layers, pooling, kept)
    return (_token_vectors(encoded, layers), pooled) if layers else pooled


def _chosen(encoded, layers):
    """Return the outputs of layers, a list of float32 [B, S, H]."""
    all_layers = encoded["all_encoder_layers"]
    return [tf.cast(all_layers[layer], tf.float32) for layer in layers]


def _token_vectors(encoded, layers):
    return tf.stack(_chosen(encoded, layers), axis=2)


def _pooled(encoded, layers, pooling, kept):
    if pooling == "pooler":
        return tf.cast(encoded["pooled_output"], tf.float32)
    mean = tf.add_n(_chosen(encoded, layers)) / len(layers)  # [B, S, H]
    if pooling == "cls":
        return mean[:, 0]
    return tf.matmul(kept[:, tf.newaxis], mean)[:, 0]


def _outputs(run, chunk, reading):
    """Run the rows of a chunk, the longest first.

    Yield (the text's number in the chunk, `Row`, each output of `run` for the row).
    """
    rows = [(number, row) for number, text in enumerate(chunk) for row in text.rows]
    rows.sort(key=lambda numbered: -len(numbered[1].input_ids))
    for start in range(0, len(rows), reading.batch_size):
        members = rows[start : start + reading.batch_size]
        batch = _batch([row for _, row in members], reading.max_seq_length)
        try:
            outputs = run(*batch)
        except tf.errors.ResourceExhaustedError as error:
            raise UserError(
                f"Out of memory with --batch_size={reading.batch_size}. Use a "
                "smaller value, or a smaller --max_seq_length."
            ) from error
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        arrays = [output.numpy() for output in outputs]
        for (number, row), *of_row in zip(members, *arrays, strict=True):
            yield number, row, *of_row


def _batch(rows, max_length):
    """Return rows as padded arrays [B, S]: (dict of the features, `kept`)."""
    longest = max(len(row.input_ids) for row in rows)
    length = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, max_length)
    kept = np.zeros((len(rows), length), np.float32)
    for index, row in enumerate(rows):
        kept[index, row.kept] = 1.0
    return pad_rows(rows, length), kept


def _check_pooling(bert, pooling):
    if pooling not in POOLINGS:
        raise UserError(
            f"pooling={pooling!r} is invalid. Choose from {', '.join(POOLINGS)}."
        )
    if pooling == "pooler" and "pooled_output" not in bert.output_names:
        raise UserError(
            f"{bert.report.path} has no pooler (bert/pooler/dense), and a random "
            "pooler gives meaningless vectors. Use --pooling=mean or cls."
        )


def _check_layers(layers, config):
    size = config.num_hidden_layers
    for layer in layers:
        if not -size <= layer < size:
            raise UserError(
                f"Layer {layer} does not exist: the model has {size} layers. "
                f"--layers takes numbers from {-size} to {size - 1}."
            )
    if not layers:
        raise UserError("--layers is empty. Give at least one layer.")
