"""`WordpieceTokenizer` as TensorFlow ops: words to pieces, for all words at once."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from official_bert.tokenization.graph_words import table, take, while_loop
from official_bert.tokenization.wordpiece import (
    CONTINUATION,
    MAX_INPUT_CHARS_PER_WORD,
    UNKNOWN,
)

# The key of an edge of a trie is node * 2**CHARACTER_BITS + code point.
CHARACTER_BITS = 21
WORD_ROOT, REST_ROOT = 0, 1
NUM_ROOTS = 2


class Wordpieces(tf.Module):
    """Splits words into pieces like `WordpieceTokenizer`.

    It looks up the longest piece at each character, for all characters at once, one
    step down the vocabulary's trie at a time. Then all words advance from piece to
    piece. The number of steps therefore depends on the longest piece and on the most
    pieces of a word, not on the number of words.
    """

    def __init__(self, vocab: Mapping[str, int]):
        """Store the vocabulary, a dict of piece -> id."""
        super().__init__()
        edges, pieces = _trie(vocab)
        self._edges = table(edges)
        self._pieces = table(pieces)
        self._unknown = vocab[UNKNOWN]

    def __call__(
        self, code_points: tf.Tensor, words: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the characters at which pieces begin, and the ids of the pieces.

        Args:
          code_points: int32 [characters] of the words.
          words: int32 [characters], the number of each character's word: 0, ... 0, 1,
            ...

        Returns:
          (begins, ids): bool and int32 [characters]. An id is valid only where a piece
          begins. A word that cannot be split, or is too long, is one unknown piece.
        """
        begins_word = words != tf.concat([[-1], words], 0)[:-1]
        starts = tf.cast(tf.where(begins_word)[:, 0], tf.int32)
        ends = tf.concat([starts, [tf.size(words)]], 0)[1:]
        too_long = ends - starts > MAX_INPUT_CHARS_PER_WORD
        # A word that is too long gets limit = start, and so is not looked up.
        limits = tf.where(too_long, starts, ends)
        root = tf.where(begins_word, WORD_ROOT, REST_ROOT)
        lengths, ids = self._longest(code_points, root, tf.gather(limits, words))
        begins, failed = _walk(starts, limits, lengths)
        failed |= too_long
        of_failed = tf.gather(failed, words)
        begins = tf.where(of_failed, begins_word, begins)
        return begins, tf.where(of_failed, self._unknown, ids)

    def _longest(self, code_points, root, limit):
        """Return length (or 0) and id of the longest piece from each character on.

        Args:
          code_points: int32 [characters].
          root: int32 [characters], the node at which the search starts.
          limit: int32 [characters], the end of each character's word.
        """
        places = tf.range(tf.size(code_points))
        none = tf.zeros_like(places)

        def any_left(_depth, places, *_):
            return tf.size(places) > 0

        def descend(depth, places, nodes, lengths, ids):
            inside = places + depth < tf.gather(limit, places)
            places, nodes = take(inside, places, nodes)
            characters = tf.cast(tf.gather(code_points, places + depth), tf.int64)
            keys = tf.cast(nodes, tf.int64) * 2**CHARACTER_BITS
            keys += characters
            edges = tf.searchsorted(self._edges, keys)
            edges = tf.minimum(edges, tf.size(self._edges) - 1)
            exists = tf.gather(self._edges, edges) == keys
            places, edges = take(exists, places, edges)
            pieces = tf.gather(self._pieces, edges)
            at, pieces = take(pieces >= 0, places, pieces)
            at = at[:, None]
            lengths = tf.tensor_scatter_nd_update(
                lengths, at, tf.fill(tf.shape(pieces), depth + 1)
            )
            ids = tf.tensor_scatter_nd_update(ids, at, pieces)
            return depth + 1, places, edges + NUM_ROOTS, lengths, ids

        *_, lengths, ids = while_loop(any_left, descend, (0, places, root, none, none))
        return lengths, ids


def _walk(starts, limits, lengths):
    """Advance from piece to piece through all words at once.

    Args:
      starts: int32 [words], the index of each word's first character.
      limits: int32 [words], the end of each word.
      lengths: int32 [characters], the length of the longest piece at each, or 0.

    Returns:
      (begins, failed): bool [characters], whether a piece begins there; bool [words],
      whether a part of the word has no piece.
    """
    size = tf.size(lengths)
    nowhere = tf.zeros([size], tf.bool)
    not_failed = tf.zeros([tf.size(starts)], tf.bool)

    def any_left(words, *_):
        return tf.size(words) > 0

    def advance(words, places, begins, failed):
        inside = places < tf.gather(limits, words)
        words, places = take(inside, words, places)
        steps = tf.gather(lengths, places)
        begins = tf.tensor_scatter_nd_update(
            begins, places[:, None], tf.ones_like(places, tf.bool)
        )
        (stuck,) = take(steps == 0, words)
        failed = tf.tensor_scatter_nd_update(
            failed, stuck[:, None], tf.ones_like(stuck, tf.bool)
        )
        return *take(steps > 0, words, places + steps), begins, failed

    words = tf.range(tf.size(starts))
    *_, begins, failed = while_loop(
        any_left, advance, (words, starts, nowhere, not_failed)
    )
    return begins, failed


def _trie(vocab):
    """Return two tries of a vocabulary: of word beginnings, and of "##" pieces.

    Edge e leads to node e + 2. Nodes are numbered in the order of their edges, so the
    keys are sorted and no array of children is needed.

    Args:
      vocab: dict of piece -> id.

    Returns:
      edges: int64 [edges], the sorted keys, node * 2**21 + code point. Node 0 is the
        root of words, node 1 the root of "##" pieces.
      pieces: int32 [edges], the id of the piece that ends at the child, or -1.
    """
    ids = {(WORD_ROOT, piece): index for piece, index in vocab.items()}
    for piece, index in vocab.items():
        if piece.startswith(CONTINUATION):
            ids[REST_ROOT, piece.removeprefix(CONTINUATION)] = index
    beginnings = {
        (root, text[:length])
        for root, text in ids
        for length in range(1, len(text) + 1)
    }
    # Sort by length first. A child then comes after its parent, and the children of a
    # node are neighbors, in the order of their characters.
    ordered = sorted(beginnings, key=lambda one: (len(one[1]), *one))
    nodes = {(root, ""): root for root in (WORD_ROOT, REST_ROOT)}
    nodes |= {one: number for number, one in enumerate(ordered, NUM_ROOTS)}
    edges = [
        (nodes[root, text[:-1]] << CHARACTER_BITS) + ord(text[-1])
        for root, text in ordered
    ]
    pieces = [ids.get(one, -1) for one in ordered]
    return np.array(edges, np.int64), np.array(pieces, np.int32)
