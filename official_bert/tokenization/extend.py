"""Adding words to the vocabulary of a pre-trained model.

A word of a special field that the model cuts into many pieces can get a token
of its own, in the place of an `[unused…]` token or after the last one. The ids
of all other tokens stay.

What that does to texts: WordPiece takes the longest piece from the left, so a
new word becomes a piece that longer words can begin with. With a new word
"bio", "biology" may turn from "bi ##ology" into "bio ##logy". A word is cut as
before unless it is a new word, or begins with one that is longer than its first
piece was; a text without such words has the same ids. No choice of words keeps
every other text as it was (there is always some "bioxyz"), unless they are
characters that stand alone. But words can be left out until no other word of a
given text changes (`harmless_words`).
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

# Of the file of suggestions; the first one is what is read back.
COLUMNS = ("word", "count", "pieces", "saved", "cut")

_UNUSED = re.compile(r"\[unused\d+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A word of a text that is worth a token.

    Attributes:
      word: as the basic tokenizer leaves it.
      count: its occurrences.
      pieces: what it is cut into, a tuple of str.
    """

    word: str
    count: int
    pieces: tuple[str, ...]

    @property
    def saved(self) -> int:
        """Tokens of the text that the word would save, its score."""
        return self.count * (len(self.pieces) - 1)

    @property
    def columns(self) -> tuple[str, int, int, int, str]:
        """Its values for `COLUMNS`."""
        cut = " ".join(self.pieces)
        return self.word, self.count, len(self.pieces), self.saved, cut


@dataclasses.dataclass(frozen=True)
class Change:
    """A word that is no new one and is cut differently with the new words.

    Attributes:
      word: the word.
      count: its occurrences.
      before: its pieces by the old vocabulary, a list of str.
      after: its pieces by the new one.
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
    """Return the words whose tokens would save most.

    Args:
      counter: a `WordCounter` that was given the text, in the tokenizer's casing.
      tokenizer: `FullTokenizer` of the model.
      num_words: suggestions wanted; there may be fewer.
      min_frequency: how often a word has to occur.
      keep_others: leave out words that change how another word of the text is
        cut; see `harmless_words`.

    Returns:
      list of `Suggestion`, by `saved`, then by count, then by word. Words that
      are [UNK] are not among them, since they are one token already.
    """
    cut = tokenizer.wordpiece_tokenizer.tokenize_word
    suggestions = {}
    for word, count in counter.words().items():
        pieces = cut(word) if count >= min_frequency else ()
        # Half of a surrogate pair cannot be written into a file, and a few letters
        # change once more when their word is lower-cased again.
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
    """Return the words of a text that are [UNK] and could be added, commonest first.

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

    `read_words` takes the lines back, also when some were removed or added.
    """
    rows = [COLUMNS, *(one.columns for one in suggestions)]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def read_words(
    path: str | os.PathLike[str], tokenizer: FullTokenizer
) -> tuple[list[str], list[str]]:
    """Read a list of words to add.

    Args:
      path: UTF-8 text with a word a line, alone or before a tab (the file of
        `suggestions_text`). Blank lines are passed over.
      tokenizer: `FullTokenizer` of the model. Words are taken as it would meet
        them: lower-cased and without accents, if it does that.

    Returns:
      (words, notes): list of str, in the order of the file, that are no tokens
      yet; and sentences about what was changed or passed over.

    Raises:
      UserError: some lines cannot become tokens (all are named), or no word is
        left.
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
        # A list with more mistakes than 100 is the wrong file.
        raise UserError(
            f"{path}: {len(problems)} of its {len(lines)} words cannot become tokens; "
            f"mend or remove these lines: {list_some(problems, 100, '; ')}."
        )
    words, notes = _sort_out(lines, tokenizer)
    notes = [f"{path}: {note}" for note in notes]
    if not words:
        raise UserError(" ".join([f"{path}: there is no word to add.", *notes]))
    return words, notes


def _problem(text, tokenizer):
    """Return why a text cannot become a token, or None."""
    words = tokenizer.basic_tokenizer.tokenize(text)
    shown = repr(text if len(text) <= 40 else f"{text[:40]}…")
    if not words:
        return f"({shown}) is empty to the tokenizer"
    if CONTINUATION in text:
        return f"({shown}) has {CONTINUATION}, and only whole words can be added"
    if len(words) > 1:
        return f"({shown}) is {len(words)} words: {list_some(words, separator=' ')}"
    if len(words[0]) > MAX_INPUT_CHARS_PER_WORD:
        return (
            f"({shown}) has {len(words[0])} characters, and words of more than "
            f"{MAX_INPUT_CHARS_PER_WORD} are always {UNKNOWN}"
        )
    return None


def _sort_out(lines, tokenizer):
    """Return the new words of good lines, and notes on the others."""
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
        "taken as the tokenizer writes them": changed,
        "tokens already, passed over": tokens,
        "there before, passed over": again,
    }
    return list(words), [
        f"{what}: {list_some(those, 10)}." for what, those in notes.items() if those
    ]


def place_words(
    vocab: Mapping[str, int], words: Iterable[str], use_unused: bool = True
) -> dict[str, int]:
    """Return the ids that new words get.

    Args:
      vocab: dict of token -> id of the model, in order.
      words: list of str, none of them in it.
      use_unused: put them in the places of `[unused…]` tokens first, those of
        lower ids before others.

    Returns:
      dict of word -> id. Ids from `len(vocab)` on are new lines of the
      vocabulary, and follow each other.
    """
    free = [index for token, index in vocab.items() if _UNUSED.fullmatch(token)]
    ids = itertools.chain(free if use_unused else [], itertools.count(len(vocab)))
    return dict(zip(words, ids, strict=False))


def extended_vocab(vocab_file: str | os.PathLike[str], ids: Mapping[str, int]) -> bytes:
    """Return the bytes of a vocabulary with new words in it.

    All other lines keep every byte, since some hold what only looks empty (see
    `load_vocab`).

    Args:
      vocab_file: path of the old one.
      ids: dict of word -> id, of `place_words`.
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
    """Return the other words of a text that are cut differently from now on.

    Args:
      words: Counter of the words of a text.
      tokenizer: `FullTokenizer` of the model, still without the new words.
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
      tokenizer: `FullTokenizer` of the model, still without the new words.
      candidates: list of new words, the best first.
      num_words: how many to return at most.

    Returns:
      list of str. Each word of the text is one of them, or is cut as before.
    """
    counts = dict.fromkeys(words, 1)
    while True:
        chosen = candidates[:num_words]
        changes = changed_words(counts, tokenizer, chosen)
        if not changes:
            return chosen
        # Only the first piece of a word can be a new word, and of those that it begins
        # with that is the longest.
        new = set(chosen)
        harmful = {list(_beginnings(change.word, new))[-1] for change in changes}
        # What is left out is another word again, which a shorter one may change.
        candidates = [word for word in candidates if word not in harmful]


def _beginnings(word, new_words):
    """Yield the new words that a longer word begins with, the shortest first."""
    return (word[:n] for n in range(1, len(word)) if word[:n] in new_words)
