"""`FullTokenizer`: text to the ids that a model reads."""

import itertools
import os
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import numpy as np

from official_bert.tokenization.basic import BasicTokenizer, to_unicode
from official_bert.tokenization.model_inputs import (
    check_length,
    join_texts,
    pad_rows,
    truncate_pair,
)
from official_bert.tokenization.vocabulary import load_vocab
from official_bert.tokenization.wordpiece import CONTINUATION, WordpieceTokenizer

# Words repeat, so their ids are cached. A full cache is emptied: 2**17 entries take
# about 30 MB, and English needs millions of words to fill it. Long keys seldom repeat
# (Chinese text has no spaces), so they are not cached.
REMEMBERED = 2**17
LONGEST_REMEMBERED = 64


class FullTokenizer:
    """Text to WordPieces and their ids, exactly like the original.

    Follows `FullTokenizer` in google-research/bert tokenization.py.

    Attributes:
      vocab: dict of piece -> id, in the order of the file.
      inv_vocab: dict of id -> piece.
      do_lower_case: whether text is lower-cased and its accents are removed.
    """

    def __init__(self, vocab_file: str | os.PathLike[str], do_lower_case: bool = True):
        """Read the vocabulary.

        Args:
          vocab_file: path of a `vocab.txt`.
          do_lower_case: True for the uncased and Chinese vocabularies, False
            for the cased ones.

        Raises:
          UserError: the file cannot be read or is not a vocabulary.
        """
        self.vocab = load_vocab(vocab_file)
        self.inv_vocab = {index: piece for piece, index in self.vocab.items()}
        self.do_lower_case = do_lower_case
        self.basic_tokenizer = BasicTokenizer(do_lower_case)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        self._word_ids = _Memory(self._look_up_word)
        self._chunk_ids = _Memory(self._look_up_chunk)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Return the pieces of a str (or of UTF-8 bytes) as a list of str."""
        return self.convert_ids_to_tokens(self.encode(text))

    def encode(self, text: str | bytes) -> list[int]:
        """Return the ids of `tokenize(text)`, a list of int; faster than `tokenize`."""
        text = to_unicode(text)
        if "\n" in text:
            text = text.replace("\n", " ")
        # A space always separates, and no rule looks across it. A chunk between spaces
        # therefore has the same ids in every text. Other whitespace differs: a vertical
        # tab, for example, is removed and joins its neighbors.
        chunks = map(self._chunk_ids.__getitem__, text.split(" "))
        return list(itertools.chain.from_iterable(chunks))

    def encode_batch(
        self, texts: Sequence[str | tuple[str, str]], max_seq_length: int = 512
    ) -> dict[str, np.ndarray]:
        """Return texts as the arrays that the models read.

        A text becomes `[CLS] text [SEP]`, a pair `[CLS] a [SEP] b [SEP]`. A text that
        is too long loses tokens at its end, a pair at the end of its longer text.
        Follows `convert_single_example` in google-research/bert `run_classifier.py`,
        except that the arrays are as long as the longest text.

        Args:
          texts: B texts or pairs of texts.
          max_seq_length: maximum tokens per text, including `[CLS]` and `[SEP]`.

        Returns:
          dict of `input_ids`, `input_mask`, `segment_ids`, int32 arrays [B, S].

        Raises:
          UserError: `max_seq_length` is below 3.
        """
        check_length(max_seq_length)
        rows = []
        for text in texts:
            text_a, text_b = (text, "") if isinstance(text, str) else text
            ids_a, ids_b = self.encode(text_a), self.encode(text_b)
            room = max_seq_length - (3 if ids_b else 2)
            pair = truncate_pair(ids_a, ids_b, room)
            input_ids, segment_ids = join_texts(self.vocab, *pair)
            rows.append(SimpleNamespace(input_ids=input_ids, segment_ids=segment_ids))
        return pad_rows(rows, max((len(row.input_ids) for row in rows), default=0))

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the pieces of a text and their positions in the text.

        Args:
          text: str, or UTF-8 bytes; the offsets then count decoded characters.

        Returns:
          (pieces, offsets): the list of `tokenize(text)`, and one range (start, end)
          per piece. text[start:end] is the source of the piece, including accents. An
          unknown word has the range of the word.
        """
        pieces, offsets = [], []
        for word, spans in self.basic_tokenizer.tokenize_with_offsets(text):
            word_pieces = self.wordpiece_tokenizer.tokenize_word(word)
            pieces += word_pieces
            offsets += _piece_offsets(word_pieces, spans)
        return pieces, offsets

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of pieces; KeyError for one not in the vocabulary."""
        return [self.vocab[token] for token in tokens]

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces of ids; KeyError for one not in the vocabulary."""
        return [self.inv_vocab[index] for index in ids]

    def _look_up_chunk(self, chunk):
        """Return the ids, a tuple, of a text between two spaces."""
        words = map(self._word_ids.__getitem__, self.basic_tokenizer.tokenize(chunk))
        return tuple(itertools.chain.from_iterable(words))

    def _look_up_word(self, word):
        """Return the ids, a tuple, of one word of the basic tokenizer."""
        pieces = self.wordpiece_tokenizer.tokenize_word(word)
        return tuple(self.convert_tokens_to_ids(pieces))


def _piece_offsets(pieces, spans):
    """Return one (start, end) per piece of a word.

    Args:
      pieces: the pieces of the word, or the single unknown token.
      spans: (start, end) in the original text of each character of the word.
    """
    if len(pieces) == 1:
        return [_cover(spans)]
    offsets: list[tuple[int, int]] = []
    for piece in pieces:
        length = len(piece) - (len(CONTINUATION) if offsets else 0)
        offsets.append(_cover(spans[:length]))
        spans = spans[length:]
    return offsets


def _cover(spans):
    """Return the smallest range that contains all spans."""
    return min(start for start, _ in spans), max(end for _, end in spans)


class _Memory(dict):
    """A cache of a function's results, with limited size."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def __missing__(self, key):
        value = self.function(key)
        if len(key) <= LONGEST_REMEMBERED:
            if len(self) >= REMEMBERED:
                self.clear()
            self[key] = value
        return value

    def __reduce__(self):
        # Worker processes get the tokenizer without the cached results.
        return _Memory, (self.function,)
