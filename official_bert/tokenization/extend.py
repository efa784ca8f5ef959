"""Adding words to the vocabulary of a pre-trained model.

A technical word that the model splits into many pieces can get its own token. The token
replaces an `[unused…]` token or follows the last one. The ids of all other tokens stay.

Effect on text: WordPiece takes the longest piece from the left, so a new word becomes a
piece with which longer words can begin. With a new word "bio", "biology" may change
from "bi ##ology" to "bio ##logy". A word changes only if it is a new word, or begins
with a new word that is longer than its old first piece. A text without such words keeps
its ids. Except for single punctuation marks and Chinese characters, every new word can
change some other word (for example "bioxyz"). `harmless_words` therefore omits words
until no other word of a given text changes.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Mapping

from official_bert import files
from official_bert.errors import UserError, list_some
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.word_counts import WordCounter
from official_bert.tokenization.wordpiece import (
    CONTINUATION,
    MAX_INPUT_CHARS_PER_WORD,
    UNKNOWN,
    WordpieceTokenizer,
)

# Columns of the file of suggestions. Only the first one is read back.
COLUMNS = ("word", "count", "pieces", "saved", "cut")

_UNUSED = re.compile(r"\[unused\d+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A word of a text that should become a token.

    Attributes:
      word: the word in the form of the basic tokenizer.
      count: number of its occurrences.
      pieces: its WordPieces, a tuple of str.
    """

    word: str
    count: int
    pieces: tuple[str, ...]

    @property
    def saved(self) -> int:
        """Number of tokens that the word would save in the text, its score."""
        return self.count * (len(self.pieces) - 1)

    @property
    def columns(self) -> tuple[str, int, int, int, str]:
        """Its values for `COLUMNS`."""
        cut = " ".join(self.pieces)
        return self.word, self.count, len(self.pieces), self.saved, cut


@dataclasses.dataclass(frozen=True)
class Change:
    """Another word that is split differently because of the new words.

    Attributes:
      word: the word.
      count: number of its occurrences.
      before: its pieces with the old vocabulary, a list of str.
      after: its pieces with the new vocabulary.
    """

    word: str
    count: int
    before: list[str]
    after: list[str]

    def __str__(self) -> str:
        return f"{self.word} from {' '.join(self.before)} to {' '.join(self.after)}"


def suggest_words(
    counter: WordCounter,
    tokenizer: FullTokenizer,
    num_words: int,
    min_frequency: int = 5,
    keep_others: bool = False,
) -> list[Suggestion]:
    """Return the words that would save most tokens.

    Args:
      counter: `WordCounter` of the text, in the tokenizer's casing.
      tokenizer: `FullTokenizer` of the model.
      num_words: maximum number of suggestions.
      min_frequency: minimum number of occurrences of a word.
      keep_others: omit words that change the pieces of another word of the text; see
        `harmless_words`.

    Returns:
      list of `Suggestion`, sorted by `saved`, then by count, then by word. It does not
      contain words that are [UNK], because these are one token already.
    """
    cut = tokenizer.wordpiece_tokenizer.tokenize_word
    suggestions = {}
    for word, count in counter.words().items():
        pieces = cut(word) if count >= min_frequency else ()
        # Half of a surrogate pair cannot be written to a file. A few letters change
        # once more when their word is lower-cased again.
        if (
            len(pieces) > 1
            and not _SURROGATE.search(word)
            and tokenizer.basic_tokenizer.tokenize(word) == [word]
        ):
            suggestions[word] = Suggestion(word, count, tuple(pieces))
    best_first = sorted(
        suggestions.values(), key=lambda one: (-one.saved, -one.count, one.word)
    )
    if not keep_others:
        return best_first[:num_words]
    words = [one.word for one in best_first]
    kept = harmless_words(counter.words(), tokenizer, words, num_words)
    return [suggestions[word] for word in kept]


def unknown_words(
    counter: WordCounter, tokenizer: FullTokenizer
) -> list[tuple[str, int]]:
    """Return the [UNK] words of a text that could be added, most frequent first.

    Returns:
      list of (word, count).
    """
    cut = tokenizer.wordpiece_tokenizer.tokenize_word
    unknown = [
        (word, count)
        for word, count in counter.words().items()
        if cut(word) == [UNKNOWN] and not _SURROGATE.search(word)
    ]
    return sorted(unknown, key=lambda item: (-item[1], item[0]))


def suggestions_text(suggestions: Iterable[Suggestion]) -> str:
    """Return suggestions as lines of tab-separated `COLUMNS`, with a header.

    `read_words` reads the lines back, even if some were removed or added.
    """
    rows = [COLUMNS, *(one.columns for one in suggestions)]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def read_words(
    path: str | os.PathLike[str], tokenizer: FullTokenizer
) -> tuple[list[str], list[str]]:
    """Read a list of words to add.

    Args:
      path: UTF-8 text with one word per line, alone or before a tab, like the file of
        `suggestions_text`. Blank lines are ignored.
      tokenizer: `FullTokenizer` of the model. Words are converted to its form:
        lower-cased and without accents, if the tokenizer does that.

    Returns:
      (words, notes): the words that are not tokens yet, list of str in the order of the
      file; and sentences about changed or skipped words.

    Raises:
      UserError: some lines cannot become tokens (the message lists them), or no word
        remains.
    """
    text = files.read_text(path, "a list of words")
    lines = {
        number: line.split("\t")[0].strip()
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and tuple(line.split("\t")) != COLUMNS
    }
    problems = [
        f"line {number} {problem}"
        for number, text in lines.items()
        if (problem := _problem(text, tokenizer))
    ]
    if problems:
        # A list with more than 100 mistakes is probably the wrong file.
        raise UserError(
            f"{path}: {len(problems)} of its {len(lines)} words cannot become tokens. "
            f"Fix or remove these lines: {list_some(problems, 100, '; ')}."
        )
    words, notes = _sort_out(lines, tokenizer)
    notes = [f"{path}: {note}" for note in notes]
    if not words:
        raise UserError(" ".join([f"{path} contains no new word.", *notes]))
    return words, notes


def _problem(text, tokenizer):
    """Return the reason why a text cannot become a token, or None."""
    words = tokenizer.basic_tokenizer.tokenize(text)
    shown = repr(text if len(text) <= 40 else f"{text[:40]}…")
    if not words:
        return f"({shown}) is empty after tokenization"
    if CONTINUATION in text:
        return f"({shown}) contains {CONTINUATION}, but only whole words can be added"
    if len(words) > 1:
        return f"({shown}) is {len(words)} words: {list_some(words, separator=' ')}"
    if len(words[0]) > MAX_INPUT_CHARS_PER_WORD:
        return (
            f"({shown}) has {len(words[0])} characters; words with more than "
            f"{MAX_INPUT_CHARS_PER_WORD} are always {UNKNOWN}"
        )
    return None


def _sort_out(lines, tokenizer):
    """Return the new words of valid lines, and notes on the others."""
    words, changed, tokens, again = {}, [], [], []
    for number, text in lines.items():
        (word,) = tokenizer.basic_tokenizer.tokenize(text)
        where = f"{text} (line {number})"
        if word in tokenizer.vocab:
            tokens.append(where)
        elif word in words:
            again.append(where)
        else:
            words[word] = number
            if word != text:
                changed.append(f"{text} as {word} (line {number})")
    notes = {
        "changed to the tokenizer's form": changed,
        "already in the vocabulary, skipped": tokens,
        "repeated, skipped": again,
    }
    return list(words), [
        f"{what}: {list_some(those, 10)}." for what, those in notes.items() if those
    ]


def place_words(
    vocab: Mapping[str, int], words: Iterable[str], use_unused: bool = True
) -> dict[str, int]:
    """Return the ids of new words.

    Args:
      vocab: dict of token -> id of the model, in order.
      words: list of str that `vocab` does not contain.
      use_unused: first replace `[unused…]` tokens, in the order of their ids.

    Returns:
      dict of word -> id. Ids from `len(vocab)` on are new lines of the vocabulary,
      without gaps.
    """
    free = [index for token, index in vocab.items() if _UNUSED.fullmatch(token)]
    ids = itertools.chain(free if use_unused else [], itertools.count(len(vocab)))
    return dict(zip(words, ids, strict=False))


def extended_vocab(vocab_file: str | os.PathLike[str], ids: Mapping[str, int]) -> bytes:
    """Return the bytes of a vocabulary file with new words.

    All other lines keep every byte, because some only look empty (see `load_vocab`).

    Args:
      vocab_file: path of the old file.
      ids: dict of word -> id, from `place_words`.
    """
    with files.opened(vocab_file) as source:
        lines = list(source)
    if not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    for word, index in ids.items():
        line = word.encode("utf-8") + b"\n"
        lines[index : index + 1] = [line]
    return b"".join(lines)


def changed_words(
    words: Mapping[str, int], tokenizer: FullTokenizer, new_words: Iterable[str]
) -> list[Change]:
    """Return the other words of a text that the new words split differently.

    Args:
      words: Counter of the words of a text.
      tokenizer: `FullTokenizer` of the model, without the new words.
      new_words: iterable of str.

    Returns:
      list of `Change`, most frequent first.
    """
    new = set(new_words)
    before = tokenizer.wordpiece_tokenizer
    after = WordpieceTokenizer(new.union(before.vocab))
    changes = [
        Change(word, count, before.tokenize_word(word), after.tokenize_word(word))
        for word, count in words.items()
        if word not in new and any(_beginnings(word, new))
    ]
    changes = [change for change in changes if change.before != change.after]
    return sorted(changes, key=lambda change: (-change.count, change.word))


def harmless_words(
    words: Iterable[str],
    tokenizer: FullTokenizer,
    candidates: list[str],
    num_words: int,
) -> list[str]:
    """Return the first candidates with which all other words keep their pieces.

    Args:
      words: iterable of the words of a text.
      tokenizer: `FullTokenizer` of the model, without the new words.
      candidates: list of new words, the best first.
      num_words: maximum number of words to return.

    Returns:
      list of str. Each word of the text is in it, or keeps its pieces.
    """
    counts = dict.fromkeys(words, 1)
    while True:
        chosen = candidates[:num_words]
        changes = changed_words(counts, tokenizer, chosen)
        if not changes:
            return chosen
        # Only the first piece of a word can be a new word, and it is the longest new
        # word with which the word begins.
        new = set(chosen)
        harmful = {list(_beginnings(change.word, new))[-1] for change in changes}
        # An omitted word is an ordinary word again, which a shorter one may change.
        candidates = [word for word in candidates if word not in harmful]


def _beginnings(word, new_words):
    """Yield the new words with which a longer word begins, the shortest first."""
    return (word[:n] for n in range(1, len(word)) if word[:n] in new_words)
