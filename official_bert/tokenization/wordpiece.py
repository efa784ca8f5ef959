"""WordPiece: splits words into pieces, the longest match first, from the left."""

from collections.abc import Collection

from official_bert.tokenization import characters
from official_bert.tokenization.basic import to_unicode

UNKNOWN = "[UNK]"
CONTINUATION = "##"
MAX_INPUT_CHARS_PER_WORD = 200
_TO_SPACE = str.maketrans(dict.fromkeys(characters.SPACES, " "))


class WordpieceTokenizer:
    """Splits words into pieces of the vocabulary.

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
          vocab: dict or set of the pieces. Pieces inside a word begin with "##".
          unk_token: the token for a word that cannot be split or is too long.
          max_input_chars_per_word: maximum number of characters of a word.
        """
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word

    def tokenize(self, text: str | bytes) -> list[str]:
        """Return the pieces of a text of words separated by whitespace.

        Args:
          text: str, or UTF-8 bytes, as from `BasicTokenizer`: "unaffable" becomes
            ["un", "##aff", "##able"].
        """
        pieces = []
        # Like `str.split()`, but independent of this Python's Unicode version.
        for word in to_unicode(text).translate(_TO_SPACE).split(" "):
            pieces += self.tokenize_word(word)
        return pieces

    def tokenize_word(self, word: str) -> list[str]:
        """Return the pieces of one word; [unk_token] if a part has no piece."""
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
