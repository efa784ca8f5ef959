"""`FullTokenizer` as TensorFlow ops, for a model that takes raw text.

Only ops of TensorFlow itself, none of TensorFlow Text: every server that runs the model
runs this too.
"""

import dataclasses

import tensorflow as tf

from official_bert.tokenization.graph_wordpiece import Wordpieces
from official_bert.tokenization.graph_words import BasicWords, take


@dataclasses.dataclass(frozen=True, eq=False)
class Pieces:
    """The WordPieces of texts; each attribute is ragged int32 [texts, (pieces)].

    Attributes:
      ids: as `FullTokenizer.encode` gives them.
      starts, ends: as `FullTokenizer.tokenize_with_offsets` gives them: ranges of
        the decoded characters of the text.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class GraphTokenizer(tf.Module):
    """Texts to WordPieces, the same as `FullTokenizer`'s for every string."""

    def __init__(self, vocab, do_lower_case):
        """Hold the tables.

        Args:
          vocab: dict of piece -> id.
          do_lower_case: as in `FullTokenizer`.
        """
        super().__init__()
        self._words = BasicWords(do_lower_case)
        self._wordpieces = Wordpieces(vocab)

    def __call__(self, texts):
        """Return the `Pieces` of texts, string [texts] in UTF-8."""
        with tf.device("CPU:0"):
            found, words = self._words(texts)
            begins, ids = self._wordpieces(found.code_points, words)
            ids, rows = take(begins, ids, found.texts)
            # A character belongs to the piece that began last.
            piece = tf.cumsum(tf.cast(begins, tf.int32)) - 1
            starts = tf.math.unsorted_segment_min(found.starts, piece, tf.size(ids))
            ends = tf.math.unsorted_segment_max(found.ends, piece, tf.size(ids))
            number = tf.size(texts)
            return Pieces(
                *(
                    tf.RaggedTensor.from_value_rowids(values, rows, number)
                    for values in (ids, starts, ends)
                )
            )
