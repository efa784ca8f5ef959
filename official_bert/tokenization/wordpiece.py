"""Words to pieces: the longest match first, from the left."""

from collections.abc import Collection

from official_bert.tokenization import characters
from official_bert.tokenization.basic import to_unicode

UNKNOWN = "[UNK]"
CONTINUATION = "##"
MAX_INPUT_CHARS_PER_WORD = 200
_TO_SPACE = str.maketrans(dict.fromkeys(characters.SPACES, " "))


class WordpieceTokenizer:
    """Cuts words into pieces that the vocabulary holds.

    Follows `WordpieceTokenizer` in google-research/bert tokenization.py.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = UNKNOWN,
        max_input_chars_per_word: int = MAX_INPUT_CHARS_PER_WORD,
    ):
        """Set the vocabulary.

        Args:
          vocab: a dict or set of the pieces; those inside a word begin "##".
          unk_token: what a word becomes that cannot be cut, or is too long.
          max_input_chars_per_word: the longest word, in characters.
        """
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word

    def tokenize(self, text: str | bytes) -> list[str]:
        """Return the pieces of a text of words between whitespace.

        Args:
          text: str, or UTF-8 bytes, as `BasicTokenizer` leaves it:
            "unaffable" becomes ["un", "##aff", "##able"].
        """
        pieces = []
        # Like `str.split()`, whatever the Unicode version of this Python.
        for word in to_unicode(text).translate(_TO_SPACE).split(" "):
            pieces += self.tokenize_word(word)
        return pieces

    def tokenize_word(self, word: str) -> list[str]:
        """Return the pieces of one word; [unk_token] if one is missing."""
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        pieces = []
        start, end = 0, len(word)
        while start < end:
            piece = word[start:end]
            if start:
                piece = CONTINUATION + piece
            if piece in self.vocab:
                pieces.append(piece)
                start, end = end, len(word)
            else:
                end -= 1
        return pieces if start == len(word) else [self.unk_token]
