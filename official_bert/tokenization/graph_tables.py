"""The character table and the vocabulary as arrays that TensorFlow ops can read."""

import dataclasses
import functools

import numpy as np

from official_bert.tokenization import characters
from official_bert.tokenization.wordpiece import CONTINUATION

BLOCK_BITS = 8
# What an entry of `CharacterArrays.facts` is made of: (lowest bit, number of bits).
CATEGORY = (0, 3)
SIGMA_CONTEXT = (3, 2)
COMBINING_CLASS = (5, 8)
FOLDING = (13, 18)

# A key of a trie's edge is node * 2**CHARACTER_BITS + code point.
CHARACTER_BITS = 21
WORD_ROOT, REST_ROOT = 0, 1
NUM_ROOTS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class CharacterArrays:
    """The character table in two steps: a block of 256 characters, then the character.

    Attributes:
      blocks: int32 [4352], the number of each block of code points.
      facts: int32 [number of different blocks * 256], what is known of a character,
        packed as `CATEGORY`, `SIGMA_CONTEXT`, `COMBINING_CLASS` and `FOLDING` say.
        The last is a row of the next two, or 0 for a character that stays.
      folded_splits: int32 [rows + 1], where each row of `folded_values` begins.
      folded_values: int32, the code points of each lower case in NFD.
    """

    blocks: np.ndarray
    facts: np.ndarray
    folded_splits: np.ndarray
    folded_values: np.ndarray


@functools.cache
def character_arrays():
    """Return the shipped table as `CharacterArrays`; made once per process."""
    table = characters.load_table()
    # Row 0 of the foldings is not used.
    folding = np.zeros(characters.CODE_POINTS, np.int32)
    folding[list(table.folded)] = np.arange(1, len(table.folded) + 1)
    facts = sum(
        np.asarray(values).astype(np.int32) << field[0]
        for field, values in (
            (CATEGORY, np.frombuffer(table.category, np.uint8)),
            (SIGMA_CONTEXT, np.frombuffer(table.sigma_context, np.uint8)),
            (COMBINING_CLASS, np.frombuffer(table.combining_class, np.uint8)),
            (FOLDING, folding),
        )
    )
    different, blocks = np.unique(
        facts.reshape(-1, 2**BLOCK_BITS), axis=0, return_inverse=True
    )
    lengths = [0, *map(len, table.folded.values())]
    return CharacterArrays(
        blocks=blocks.reshape(-1).astype(np.int32),
        facts=different.reshape(-1),
        folded_splits=np.cumsum([0, *lengths]).astype(np.int32),
        folded_values=np.array(
            [ord(char) for text in table.folded.values() for char in text], np.int32
        ),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Trie:
    """Two trees of the vocabulary's characters: of words, and of what follows "##".

    The child at the end of edge e is node e + 2: nodes are numbered in the order of
    their edges, so that the keys are sorted and no array of children is needed.

    Attributes:
      edges: int64 [edges], the sorted keys, node * 2**21 + code point. The words'
        root is node 0, that of what continues a word node 1.
      pieces: int32 [edges], the id of the piece that ends at the child, or -1.
    """

    edges: np.ndarray
    pieces: np.ndarray


def vocabulary_trie(vocab):
    """Return the `Trie` of a vocabulary.

    Args:
      vocab: dict of piece -> id.
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
    # By length first: a child comes after its parent, and the children of one node
    # stand together, in the order of their characters.
    ordered = sorted(beginnings, key=lambda one: (len(one[1]), *one))
    nodes = {(root, ""): root for root in (WORD_ROOT, REST_ROOT)}
    nodes |= {one: number for number, one in enumerate(ordered, NUM_ROOTS)}
    edges = [
        (nodes[root, text[:-1]] << CHARACTER_BITS) + ord(text[-1])
        for root, text in ordered
    ]
    return Trie(
        edges=np.array(edges, np.int64),
        pieces=np.array([ids.get(one, -1) for one in ordered], np.int32),
    )
