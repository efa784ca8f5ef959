"""A model is a directory: config, vocabulary, casing, weights."""

import dataclasses
import os
import shutil

from official_bert import files
from official_bert.checkpoints import google, names
from official_bert.checkpoints.initialize import load_weights
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size, guess_do_lower_case

CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer_config.json"


@dataclasses.dataclass(frozen=True)
class Bert:
    """What `load` returns.

    Attributes:
      model: `PretrainingModel`; its encoder is `model.bert`.
      tokenizer: `FullTokenizer`.
      config: `BertConfig`.
    """

    model: PretrainingModel
    tokenizer: FullTokenizer
    config: BertConfig


def load(directory):
    """Load a pre-trained model from its directory.

    Args:
      directory: holds `bert_config.json`, `vocab.txt` and `bert_model.ckpt.*`
        (Google's release, or what `run_pretraining.py` wrote). Casing is read
        from `tokenizer_config.json`, or guessed from the vocabulary.

    Returns:
      `Bert`.

    Raises:
      UserError: something is missing or does not fit.
    """
    if not os.path.isdir(directory):
        raise UserError(f"{directory} is no directory; give a model's directory.")
    config = BertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))
    tokenizer = load_tokenizer(directory)
    check_vocab_size(tokenizer.vocab, config, os.path.join(directory, VOCAB_FILE))
    model = PretrainingModel(config)
    report = load_weights(model, directory)
    if report.new:
        raise UserError(
            f"{report.prefix} is no pre-trained model with both heads: it lacks "
            f"{', '.join(report.new)}."
        )
    return Bert(model, tokenizer, config)


def load_tokenizer(directory):
    """Return the `FullTokenizer` of a model directory, with its casing."""
    vocab_file = os.path.join(directory, VOCAB_FILE)
    stated = os.path.join(directory, TOKENIZER_FILE)
    if os.path.exists(stated):
        settings = files.read_json(stated, "a tokenizer config")
        return FullTokenizer(vocab_file, settings.get("do_lower_case", True))
    tokenizer = FullTokenizer(vocab_file)
    if guess_do_lower_case(tokenizer.vocab):
        return tokenizer
    return FullTokenizer(vocab_file, do_lower_case=False)


def save(directory, model, vocab_file=None, do_lower_case=None):
    """Write a model directory; no optimizer state goes into it.

    Args:
      directory: exists already.
      model: a model of this package with a `config`.
      vocab_file: its vocabulary, copied beside it, if known.
      do_lower_case: its casing, if known.
    """
    place = os.path.join(directory, "")
    files.write_text(place + CONFIG_FILE, model.config.to_json_string())
    copy = place + VOCAB_FILE
    if vocab_file and not (os.path.exists(copy) and os.path.samefile(vocab_file, copy)):
        with files.atomic_path(copy) as temporary:
            shutil.copyfile(vocab_file, temporary)
    if do_lower_case is not None:
        files.write_json(place + TOKENIZER_FILE, {"do_lower_case": do_lower_case})
    google.write_checkpoint(
        place + google.MODEL_PREFIX,
        {names.google_name(v): v.numpy() for v in model.trainable_variables},
    )
