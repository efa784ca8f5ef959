"""Vocabularies: reading `vocab.txt`, and what can be wrong with one."""

import codecs
import os
from collections.abc import Collection, Iterable

from official_bert import files, given_paths
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization import characters

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Models are padded to a friendly multiple (30522 -> 30528 or 30592), by less
# than this. A larger gap is another model's vocabulary.
LARGEST_PADDING = 128


def load_vocab(vocab_file: str | os.PathLike[str]) -> dict[str, int]:
    """Read a vocabulary: one token a line, whose id is the line's number - 1.

    Follows `load_vocab` in google-research/bert tokenization.py: each line is
    stripped of whitespace, and an empty one counts, as the token "" that no
    text contains (the released Chinese vocabulary has one, line 344, which
    holds U+2028). Where the original lets the last of two equal lines win, we
    refuse: every id between would be shared or lost. A byte order mark, which
    makes the original miss "[PAD]", is no part of the first line.

    Args:
      vocab_file: path of a UTF-8 text file.

    Returns:
      dict of token -> id, in the order of the file.

    Raises:
      UserError: unreadable, not UTF-8, a token twice, a special one missing.
    """
    require_vocab(vocab_file)
    vocab: dict[str, int] = {}
    twice, index = None, -1
    with files.opened(vocab_file) as lines:
        for index, line in enumerate(lines):
            if index == 0:
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                token = line.decode("utf-8").strip(characters.SPACES)
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{vocab_file}: line {index + 1} is not UTF-8 text; is this a "
                    "vocabulary?"
                ) from error
            if token in vocab:
                twice = twice or (token, vocab[token] + 1, index + 1)
            else:
                vocab[token] = index
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise UserError(
            f"{vocab_file}: none of its {index + 1} lines is "
            f"{' or '.join(missing)}; a BERT vocabulary needs "
            f"{' '.join(SPECIAL_TOKENS)}, one token a line."
        )
    if twice:
        token, first, second = twice
        raise UserError(
            f"{vocab_file}: lines {first} and {second} are both {token!r}; a token may "
            "occur once, remove one of them."
        )
    return vocab


def require_vocab(vocab_file: str | os.PathLike[str]) -> None:
    """Raise `UserError`, which says how to make one, unless the file is there."""
    if not files.exists(vocab_file):
        raise UserError(
            f"--vocab_file: there is no {vocab_file}; take the one of a released "
            "model, or make it with: python run_scripts/train_vocab.py "
            f"--input_file=YOUR_TEXT.txt --output_file={vocab_file}"
        )
    given_paths.require_readable(vocab_file, "--vocab_file")


def check_vocab_size(
    vocab: Collection[str], config: BertConfig, vocab_file: str | os.PathLike[str]
) -> None:
    """Raise `UserError` unless the vocabulary and the model agree in size.

    A model may have up to 127 more rows than the vocabulary has tokens, if
    their number is a multiple of 8: such padding is common and harmless.

    Args:
      vocab: the dict of `load_vocab`.
      config: a `BertConfig`.
      vocab_file: where the vocabulary is from, for the message.
    """
    size, expected = len(vocab), config.vocab_size
    padding = expected - size
    if padding == 0 or (0 < padding < LARGEST_PADDING and expected % 8 == 0):
        return
    if padding < 0:
        token = list(vocab)[expected]
        raise UserError(
            f"{vocab_file}: line {expected + 1} ({token!r}) has no place in the "
            f"model, whose vocab_size is {expected}, while the file has {size} "
            "lines; use the vocabulary the model was made with."
        )
    raise UserError(
        f"{vocab_file} ends at line {size}, but the model's vocab_size is "
        f"{expected}; use the vocabulary the model was made with."
    )


def guess_do_lower_case(vocab: Iterable[str]) -> bool:
    """Tell from a vocabulary whether its text was lower-cased.

    Lower-casing and decomposing leave no capital and no accented letter, so
    a vocabulary that has one is cased. The Chinese one is uncased in spite of
    its "<S>" and "<T>", which no word can become.

    Args:
      vocab: the tokens, as a dict or list.
    """
    folded = characters.load_table().folded
    return not any(
        ord(char) in folded
        for token in vocab
        if not token.startswith(("[", "<"))
        for char in token
    )
