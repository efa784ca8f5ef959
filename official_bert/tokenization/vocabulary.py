"""Vocabularies: reading `vocab.txt` and checking it."""

import codecs
import os
from collections.abc import Collection, Iterable

from official_bert import files, given_paths
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization import characters

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Some models are padded to a larger multiple (30522 -> 30528 or 30592), by fewer rows
# than this. With a larger difference the vocabulary belongs to another model.
LARGEST_PADDING = 128


def load_vocab(vocab_file: str | os.PathLike[str]) -> dict[str, int]:
    """Read a vocabulary: one token per line, whose id is the line number - 1.

    Follows `load_vocab` in google-research/bert tokenization.py. Whitespace around each
    token is removed. An empty line counts as the token "", which no text contains. The
    released Chinese vocabulary has one: line 344, which contains U+2028. There are two
    differences. For two equal lines the original uses the last one, so that ids are
    shared or lost; this function raises an error. The original does not find "[PAD]"
    after a byte order mark; this function removes the mark.

    Args:
      vocab_file: path of a UTF-8 text file.

    Returns:
      dict of token -> id, in the order of the file.

    Raises:
      UserError: the file cannot be read, is not UTF-8, contains a token twice, or lacks
        a special token.
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
                    f"{vocab_file}: line {index + 1} is not UTF-8 text. Check that "
                    "this file is a vocabulary."
                ) from error
            if token in vocab:
                twice = twice or (token, vocab[token] + 1, index + 1)
            else:
                vocab[token] = index
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise UserError(
            f"{vocab_file} has no {' or '.join(missing)} in its {index + 1} lines. "
            f"BERT needs a vocabulary with {' '.join(SPECIAL_TOKENS)}, one per line."
        )
    if twice:
        token, first, second = twice
        raise UserError(
            f"{vocab_file}: lines {first} and {second} are both {token!r}. Each token "
            "may occur only once. Remove one of the lines."
        )
    return vocab


def require_vocab(vocab_file: str | os.PathLike[str]) -> None:
    """Raise `UserError`, which says how to create one, if the file does not exist."""
    if not files.exists(vocab_file):
        raise UserError(
            f"--vocab_file: {vocab_file} does not exist. Use the vocabulary of a "
            "released model, or create one with: python run_scripts/train_vocab.py "
            f"--input_file=YOUR_TEXT.txt --output_file={vocab_file}"
        )
    given_paths.require_readable(vocab_file, "--vocab_file")


def check_vocab_size(
    vocab: Collection[str], config: BertConfig, vocab_file: str | os.PathLike[str]
) -> None:
    """Raise `UserError` unless the sizes of vocabulary and model agree.

    A model may have up to 127 more rows than the vocabulary has tokens, if its number
    of rows is a multiple of 8. Such padding is common and harmless.

    Args:
      vocab: dict from `load_vocab`.
      config: a `BertConfig`.
      vocab_file: path of the vocabulary, for the message.
    """
    size, expected = len(vocab), config.vocab_size
    remedy = (
        f"Use the vocabulary of this model. For a new model, set vocab_size to {size} "
        "in its bert_config.json."
    )
    padding = expected - size
    if padding == 0 or (0 < padding < LARGEST_PADDING and expected % 8 == 0):
        return
    if padding < 0:
        token = list(vocab)[expected]
        raise UserError(
            f"{vocab_file}: line {expected + 1} ({token!r}) has no embedding. The "
            f"model's vocab_size is {expected}, but the file has {size} lines. {remedy}"
        )
    raise UserError(
        f"{vocab_file} ends at line {size}, but the model's vocab_size is "
        f"{expected}. {remedy}"
    )


def guess_do_lower_case(vocab: Iterable[str]) -> bool:
    """Return whether the text of a vocabulary was lower-cased.

    Lower-casing and decomposing remove all capital and accented letters, so a
    vocabulary with such a letter is cased. The Chinese vocabulary is uncased although
    it contains "<S>" and "<T>", which no word can become.

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
