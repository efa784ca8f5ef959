"""Training a WordPiece vocabulary from text."""

import dataclasses
import itertools
from collections.abc import Iterable

from official_bert.errors import UserError
from official_bert.tokenization import characters
from official_bert.tokenization.word_counts import WordCounter
from official_bert.tokenization.wordpiece import (
    CONTINUATION,
    UNKNOWN,
    WordpieceTokenizer,
)

# [PAD] is 0. With 99 unused tokens, [UNK] [CLS] [SEP] [MASK] are 100 to 103, as in the
# vocabularies that Google released.
UNUSED_BEFORE_SPECIAL = 99

# Maximum number of words for the trainer, which reads about 2 million a second. Counts
# of a larger corpus are divided, which changes the order of rare pieces only.
MOST_WORDS_SHOWN = 100_000_000
WORDS_PER_STRING = 1000


@dataclasses.dataclass(frozen=True)
class VocabularyQuality:
    """Measures of how well a vocabulary covers a text.

    Attributes:
      num_words: number of words and punctuation marks of the text.
      unknown_rate: share of them that become [UNK].
      pieces_per_word: number of WordPieces / number of words; [UNK] counts as one.
    """

    num_words: int
    unknown_rate: float
    pieces_per_word: float


def train_vocab(
    counter: WordCounter,
    vocab_size: int,
    num_unused: int = 99,
    min_frequency: int = 2,
    limit_alphabet: int | None = None,
) -> list[str]:
    """Return the tokens of a WordPiece vocabulary, the most useful ones first.

    The Rust trainer of `tokenizers` makes the pieces (byte-pair merges of the most
    frequent neighbors, written with "##") from words of our own `BasicTokenizer`. The
    result depends only on the counts.

    Args:
      counter: `WordCounter` of the text.
      vocab_size: number of tokens; the result has fewer if the text is too short.
      num_unused: number of [unused…] tokens to reserve.
      min_frequency: minimum number of occurrences of a character or a pair of pieces.
        All words of such characters can be encoded.
      limit_alphabet: keep only this number of characters, the most frequent ones;
        None keeps all.

    Returns:
      list of str: [PAD], unused, [UNK], [CLS], [SEP], [MASK], the alphabet,
      its continuations ("##a"), then the merged pieces in order.

    Raises:
      UserError: the text has no words, or `vocab_size` is too small for the alphabet.
    """
    if not counter.words():
        raise UserError("The text contains no words. Check that it is the right file.")
    unused = [f"[unused{index}]" for index in range(num_unused)]
    before, after = unused[:UNUSED_BEFORE_SPECIAL], unused[UNUSED_BEFORE_SPECIAL:]
    reserved = ["[PAD]", *before, UNKNOWN, "[CLS]", "[SEP]", "[MASK]", *after]
    alphabet = _choose_alphabet(counter.characters(), min_frequency, limit_alphabet)
    # These are always separate words, so they get no "##" piece.
    alone = (characters.PUNCTUATION, characters.CJK)
    inside = [char for char in alphabet if characters.category(char) not in alone]
    single = alphabet + [CONTINUATION + char for char in inside]
    room = vocab_size - len(reserved)
    if room < len(single):
        raise UserError(
            f"--vocab_size is {vocab_size}, but {len(reserved)} reserved tokens "
            f"and an alphabet of {len(alphabet)} characters already take "
            f"{len(reserved) + len(single)}. Increase it, or lower --limit_alphabet "
            "or --num_unused, or raise --min_frequency."
        )
    known = set(alphabet)
    words = {w: n for w, n in counter.words().items() if known.issuperset(w)}
    return reserved + _train_pieces(words, single, room, min_frequency)


def measure_vocab(tokens: Iterable[str], counter: WordCounter) -> VocabularyQuality:
    """Return the `VocabularyQuality` of a vocabulary on a counted text.

    Args:
      tokens: list of str from `train_vocab`.
      counter: `WordCounter` of the text, with the same casing.
    """
    tokenizer = WordpieceTokenizer(frozenset(tokens))
    num_words = num_unknown = num_pieces = counter.num_too_long()
    for word, count in counter.words().items():
        pieces = tokenizer.tokenize_word(word)
        num_words += count
        num_pieces += count * len(pieces)
        num_unknown += count * (pieces == [UNKNOWN])
    if not num_words:
        raise UserError("The held-out text contains no words. Check the file.")
    return VocabularyQuality(num_words, num_unknown / num_words, num_pieces / num_words)


def _choose_alphabet(counts, min_frequency, limit_alphabet):
    """Return the characters to keep, sorted by code point."""
    frequent = [
        char
        for char, count in counts.items()
        # Half of a surrogate pair cannot be written as UTF-8.
        if count >= min_frequency and not "\ud800" <= char <= "\udfff"
    ]
    frequent.sort(key=lambda char: (-counts[char], char))
    return sorted(frequent[:limit_alphabet])


def _train_pieces(words, single, room, min_frequency):
    """Return at most `room` pieces from a dict of counts, `single` first."""
    # Imported here, because loading a vocabulary should not need the trainer.
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    scale = -(-sum(words.values()) // MOST_WORDS_SHOWN) or 1
    trainer = trainers.WordPieceTrainer(
        vocab_size=room,
        min_frequency=max(1, min_frequency // scale),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
        # The trainer numbers unknown characters in the order in which its threads find
        # them, and uses these numbers to order equally frequent pairs. With all
        # characters given in advance, it always makes the same vocabulary.
        special_tokens=single,
    )
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_repeat_words(words, scale), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _repeat_words(words, scale):
    """Yield each word as often as its count says; the trainer accepts only text."""
    for word, count in words.items():
        left = (count + scale // 2) // scale
        while left:
            repeats = min(left, WORDS_PER_STRING)
            yield " ".join(itertools.repeat(word, repeats))
            left -= repeats
