"""Making a WordPiece vocabulary from text."""

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

# [PAD] is 0 and, with 99 unused tokens, [UNK] [CLS] [SEP] [MASK] are 100 to
# 103, as in the vocabularies Google released.
UNUSED_BEFORE_SPECIAL = 99

# Words that the trainer is shown, at some 2 million a second. Of a larger
# corpus all counts are divided, which changes ranks only among rare pieces.
MOST_WORDS_SHOWN = 100_000_000
WORDS_PER_STRING = 1000


@dataclasses.dataclass(frozen=True)
class VocabularyQuality:
    """How well a vocabulary covers a text.

    Attributes:
      num_words: words and punctuation marks of the text.
      unknown_rate: share of them that become [UNK].
      pieces_per_word: WordPieces over words, [UNK] counting as one.
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
    """Return the tokens of a WordPiece vocabulary, most useful ones first.

    The pieces are made by the Rust trainer of `tokenizers` (byte-pair merges
    of the most frequent neighbours, written with "##"), from words that our
    own `BasicTokenizer` made. The result depends on the counts alone.

    Args:
      counter: a `WordCounter` that was given the text.
      vocab_size: tokens wanted; there are fewer if the text has no more.
      num_unused: how many [unused…] tokens to reserve.
      min_frequency: how often a character or a pair of pieces has to occur.
        Words of characters that do can all be encoded.
      limit_alphabet: keep only so many characters, the most frequent ones;
        None keeps all.

    Returns:
      list of str: [PAD], unused, [UNK], [CLS], [SEP], [MASK], the alphabet,
      its continuations ("##a"), then the merged pieces in order.

    Raises:
      UserError: no text, or a `vocab_size` too small for the alphabet.
    """
    if not counter.words():
        raise UserError("There are no words in the text: is it the right file?")
    unused = [f"[unused{index}]" for index in range(num_unused)]
    before, after = unused[:UNUSED_BEFORE_SPECIAL], unused[UNUSED_BEFORE_SPECIAL:]
    reserved = ["[PAD]", *before, UNKNOWN, "[CLS]", "[SEP]", "[MASK]", *after]
    alphabet = _choose_alphabet(counter.characters(), min_frequency, limit_alphabet)
    # These are always words of their own: never "##" them.
    alone = (characters.PUNCTUATION, characters.CJK)
    inside = [char for char in alphabet if characters.category(char) not in alone]
    single = alphabet + [CONTINUATION + char for char in inside]
    room = vocab_size - len(reserved)
    if room < len(single):
        raise UserError(
            f"--vocab_size is {vocab_size}, but {len(reserved)} reserved tokens "
            f"and an alphabet of {len(alphabet)} characters already take "
            f"{len(reserved) + len(single)}: raise it, or lower --limit_alphabet "
            "or --num_unused, or raise --min_frequency."
        )
    known = set(alphabet)
    words = {w: n for w, n in counter.words().items() if known.issuperset(w)}
    return reserved + _train_pieces(words, single, room, min_frequency)


def measure_vocab(tokens: Iterable[str], counter: WordCounter) -> VocabularyQuality:
    """Return the `VocabularyQuality` of a vocabulary on a counted text.

    Args:
      tokens: list of str, as `train_vocab` returns it.
      counter: a `WordCounter` that was given the text, of the same casing.
    """
    tokenizer = WordpieceTokenizer(frozenset(tokens))
    num_words = num_unknown = num_pieces = counter.num_too_long()
    for word, count in counter.words().items():
        pieces = tokenizer.tokenize_word(word)
        num_words += count
        num_pieces += count * len(pieces)
        num_unknown += count * (pieces == [UNKNOWN])
    if not num_words:
        raise UserError("The held-out text has no words: is it the right file?")
    return VocabularyQuality(num_words, num_unknown / num_words, num_pieces / num_words)


def _choose_alphabet(counts, min_frequency, limit_alphabet):
    """Return the characters to keep, by code point."""
    frequent = [
        char
        for char, count in counts.items()
        # Half of a surrogate pair is no text, and cannot be written as UTF-8.
        if count >= min_frequency and not "\ud800" <= char <= "\udfff"
    ]
    frequent.sort(key=lambda char: (-counts[char], char))
    return sorted(frequent[:limit_alphabet])


def _train_pieces(words, single, room, min_frequency):
    """Return at most `room` pieces, `single` first, from a dict of counts."""
    # Imported late: loading a vocabulary should not need the trainer.
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    scale = -(-sum(words.values()) // MOST_WORDS_SHOWN) or 1
    trainer = trainers.WordPieceTrainer(
        vocab_size=room,
        min_frequency=max(1, min_frequency // scale),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
        # The trainer numbers unknown characters as its threads meet them, and
        # decides between equally frequent pairs by these numbers. Given all
        # characters beforehand, it makes the same vocabulary every time.
        special_tokens=single,
    )
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_repeat_words(words, scale), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _repeat_words(words, scale):
    """Yield each word as often as it counts; the trainer takes only text."""
    for word, count in words.items():
        left = (count + scale // 2) // scale
        while left:
            repeats = min(left, WORDS_PER_STRING)
            yield " ".join(itertools.repeat(word, repeats))
            left -= repeats
