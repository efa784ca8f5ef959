"""`FullTokenizer` as TensorFlow ops, for a model that reads raw text.

It uses only ops of TensorFlow itself, none of TensorFlow Text, so that every server for
TensorFlow models can run it. (`graph_tf_text` uses TensorFlow Text for most texts.)
`graph_simple` splits texts of simple characters, almost all texts. `graph_words` and
`graph_wordpieces` split all others.
"""

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from official_bert.tokenization.graph_simple import SimpleTexts
from official_bert.tokenization.graph_wordpieces import Wordpieces
from official_bert.tokenization.graph_words import BasicWords, take

COLUMNS = ("ids", "starts", "ends")


@dataclasses.dataclass(frozen=True, eq=False)
class Pieces:
    """The WordPieces of texts; each attribute is ragged int32 [texts, (pieces)].

    Attributes:
      ids: equal to the result of `FullTokenizer.encode`.
      starts, ends: equal to `FullTokenizer.tokenize_with_offsets`: ranges of the
        decoded characters of the text.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class GraphTokenizer(tf.Module):
    """Converts texts to WordPieces, equal to `FullTokenizer` for every string."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        """Create the tables.

        Args:
          vocab: dict of piece -> id.
          do_lower_case: as in `FullTokenizer`.
        """
        super().__init__()
        self._simple = SimpleTexts(vocab, do_lower_case)
        self._words = BasicWords(do_lower_case)
        self._wordpieces = Wordpieces(vocab)

    def __call__(self, texts: tf.Tensor) -> Pieces:
        """Return the `Pieces` of texts, string [texts] in UTF-8."""
        return Pieces(**self.columns(texts, COLUMNS))

    def ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return only the ids of `Pieces`; this is faster."""
        return self.columns(texts, COLUMNS[:1])["ids"]

    def columns(
        self, texts: tf.Tensor, names: tuple[str, ...]
    ) -> dict[str, tf.RaggedTensor]:
        """Return a dict of some columns of `Pieces`: `COLUMNS`, or its first one."""
        with tf.device("CPU:0"):
            is_simple = self._simple.are_simple(texts)
            return two_ways(texts, is_simple, names, self._simple, self._any_texts)

    def _any_texts(self, texts, names):
        """Return a dict of columns of `Pieces` of any texts, string [texts]."""
        found, words = self._words(texts)
        begins, ids = self._wordpieces(found.code_points, words)
        ids, rows = take(begins, ids, found.texts)
        # A character belongs to the last piece that began before or at it.
        piece = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        starts = tf.math.unsorted_segment_min(found.starts, piece, tf.size(ids))
        ends = tf.math.unsorted_segment_max(found.ends, piece, tf.size(ids))
        number = tf.size(texts)
        columns = zip(COLUMNS, (ids, starts, ends), strict=True)
        return {
            name: tf.RaggedTensor.from_value_rowids(values, rows, number)
            for name, values in columns
            if name in names
        }


def two_ways(
    texts: tf.Tensor,
    is_easy: tf.Tensor,
    names: tuple[str, ...],
    easy: Callable[[tf.Tensor, bool], tuple[tf.Tensor, list[tf.Tensor]]],
    others: Callable[[tf.Tensor, tuple[str, ...]], dict[str, tf.RaggedTensor]],
) -> dict[str, tf.RaggedTensor]:
    """Return columns of `Pieces` of texts, by a fast function where it is possible.

    Args:
      texts: string [texts].
      is_easy: bool [texts], the texts for the fast function.
      names: see `GraphTokenizer.columns`.
      easy: function of (easy texts, whether to return starts and ends) -> (number of
        pieces of each text, int32 [texts]; list of flat columns).
      others: function of (any texts, names) -> dict of columns.
    """

    # The executor visits each operation of a branch that it does not take, but a
    # function that is not inlined is one operation.
    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def with_others():
        return _with_others(texts, is_easy, names, easy, others)

    def without_others():
        return easy(texts, len(names) > 1)

    lengths, columns = tf.cond(tf.reduce_all(is_easy), without_others, with_others)
    splits = tf.concat([[0], tf.cumsum(lengths)], 0)
    return {
        name: tf.RaggedTensor.from_row_splits(column, splits, validate=False)
        for name, column in zip(names, columns, strict=True)
    }


def _with_others(texts, is_easy, names, easy, others):
    """Return what `easy` returns. Some of the texts need `others`."""
    lengths, flat = easy(tf.where(is_easy, texts, ""), len(names) > 1)
    columns = others(take(~is_easy, texts)[0], names)
    # The row of each text in the columns of easy texts and then others.
    rank = tf.cumsum(tf.cast(~is_easy, tf.int32), exclusive=True)
    number = tf.size(texts)
    row = tf.where(is_easy, tf.range(number), number + rank)
    merged = []
    for name, values in zip(names, flat, strict=True):
        column = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
        both = tf.concat([column, columns[name]], 0)
        merged.append(tf.gather(both, row))
    return merged[0].row_lengths(), [one.values for one in merged]
