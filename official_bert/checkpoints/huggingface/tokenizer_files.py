"""Read and write Hugging Face tokenizer files.

All versions write `tokenizer_config.json`, fast tokenizers also
`tokenizer.json`, and versions before 5 `vocab.txt`.
"""

import atexit
import os
import shutil
import tempfile
from typing import NamedTuple

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, guess_do_lower_case

VOCAB_FILE = "vocab.txt"
SETTINGS_FILE = "tokenizer_config.json"
FAST_FILE = "tokenizer.json"

OUR_CLASSES = (None, "BertTokenizer", "BertTokenizerFast")
# These classes follow `tokenizer.json` in everything.
GENERAL_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")


class Tokenizer(NamedTuple):
    """A directory's tokenizer settings; None if no file states a value."""

    vocab_file: str | None
    do_lower_case: bool | None
    # Sentences about differences from `FullTokenizer`.
    notes: tuple[str, ...]


def read(directory: str | os.PathLike[str]) -> Tokenizer:
    """Return the `Tokenizer` of a directory.

    Raises:
      UserError: a file is not JSON, or two files contradict each other on
        casing.
    """
    settings_path = os.path.join(directory, SETTINGS_FILE)
    fast_path = os.path.join(directory, FAST_FILE)
    settings = _read_if_there(settings_path)
    fast = _read_if_there(fast_path)
    for key in ("normalizer", "model"):
        if not isinstance(fast.get(key) or {}, dict):
            raise UserError(
                f"{fast_path} is not a tokenizer file: {key} is not a JSON object."
            )
    # This step states the casing.
    normalizer = fast.get("normalizer") or {}
    steps = normalizer.get("normalizers") or [normalizer]
    normalizer = next((s for s in steps if s.get("type") == "BertNormalizer"), {})
    casing = _flag(settings, "do_lower_case")
    fast_casing = _flag(normalizer, "lowercase")
    if None not in (casing, fast_casing) and casing != fast_casing:
        raise UserError(
            f"{settings_path} has do_lower_case {casing}, but {fast_path} has "
            f"lowercase {fast_casing}. Correct or remove the wrong file."
        )
    if casing is None:
        casing = fast_casing
    vocab_file, note = _find_vocab(directory, fast)
    notes = [*_differences(settings, fast, normalizer, casing), note]
    return Tokenizer(vocab_file, casing, tuple(filter(None, notes)))


def _read_if_there(path):
    return files.read_json(path, "a tokenizer file") if os.path.isfile(path) else {}


def _flag(values, key):
    """Return a boolean from a file, or None if it is missing."""
    return values[key] if isinstance(values.get(key), bool) else None


def _differences(settings, fast, normalizer, casing):
    """Yield notes on differences from our tokenizer."""
    name = settings.get("tokenizer_class")
    general = name in GENERAL_CLASSES and normalizer
    if name not in OUR_CLASSES and not general:
        yield _note(SETTINGS_FILE, f"the tokenizer is {name}")
    if fast and not normalizer:
        yield _note(FAST_FILE, "the normalizer is not BERT's")
    if fast and (fast.get("model") or {}).get("type", "WordPiece") != "WordPiece":
        yield _note(FAST_FILE, f"the model is {fast['model']['type']}")
    for source, stated, chinese in (
        (SETTINGS_FILE, settings, "tokenize_chinese_chars"),
        (FAST_FILE, normalizer, "handle_chinese_chars"),
    ):
        if _flag(stated, chinese) is False:
            yield _note(source, f"{chinese} is false")
        strips = _flag(stated, "strip_accents")
        if strips is not None and casing is not None and strips != casing:
            yield _note(source, f"strip_accents is {strips} and lowercasing {casing}")
    if _flag(settings, "do_basic_tokenize") is False:
        yield _note(SETTINGS_FILE, "do_basic_tokenize is false")


def _note(source, what):
    return (
        f"{source}: {what}. The tokenizer here ignores this, so some texts may "
        "get other tokens than in the original model."
    )


def _find_vocab(directory, fast):
    """Return (path of a `vocab.txt` or None, a note or None)."""
    path = os.path.join(directory, VOCAB_FILE)
    if os.path.isfile(path):
        return path, None
    model = fast.get("model") or {}
    is_wordpiece = model.get("type", "WordPiece") == "WordPiece"
    ids = dict((is_wordpiece and model.get("vocab")) or {})
    if ids:
        ids |= {each["content"]: each["id"] for each in fast.get("added_tokens") or ()}
    tokens = sorted(ids, key=ids.__getitem__)
    is_vocab = tokens and [ids[token] for token in tokens] == list(range(len(tokens)))
    # A vocabulary file cannot store a token with a line break.
    if not is_vocab or any("\n" in token for token in tokens):
        note = (
            f"{VOCAB_FILE} does not exist, and {FAST_FILE} contains no usable "
            "vocabulary."
        )
        return None, note if fast else None
    # Version 5 never writes vocab.txt, so no note is needed.
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, VOCAB_FILE)
    files.write_text(path, "".join(token + "\n" for token in tokens))
    return path, None


def write(
    directory: str | os.PathLike[str],
    vocab_file: str | None,
    do_lower_case: bool | None,
    config: BertConfig,
) -> None:
    """Write `vocab.txt` and `tokenizer_config.json`.

    Without a `vocab_file`, only `tokenizer_config.json` is written, and only if
    the casing is known. Casing None is guessed from the vocabulary.
    """
    if vocab_file:
        files.copy(vocab_file, os.path.join(directory, VOCAB_FILE))
        if do_lower_case is None:
            vocab = files.read_text(vocab_file, "a vocabulary").split("\n")
            do_lower_case = guess_do_lower_case(vocab)
    if do_lower_case is None:
        return
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": config.max_position_embeddings,
        **dict(zip(names, SPECIAL_TOKENS, strict=True)),
    }
    files.write_json(os.path.join(directory, SETTINGS_FILE), settings)
