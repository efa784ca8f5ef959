"""Load and save model directories: config, vocabulary, casing, weights."""

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras

from official_bert.checkpoints import any_format, google, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.hub.find import find_model
from official_bert.checkpoints.initialize import Report, load_opened
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size, guess_do_lower_case

if TYPE_CHECKING:
    import tensorflow as tf

# Variables that a model without the next-sentence head may lack.
NEXT_SENTENCE = ("bert/pooler/", "cls/seq_relationship/")
# Report for a model that was not loaded from a checkpoint.
IN_MEMORY = Report("memory", loaded=[], new=[], unused=[], notes=[])
# Used when there is no checkpoint: config and vocabulary come from flags only.
NO_CHECKPOINT = Checkpoint(
    "the command line",
    "google",
    shapes={},
    read=lambda name: None,  # type: ignore[arg-type, return-value]
)


@dataclasses.dataclass(frozen=True)
class Bert:
    """A loaded model; `pretrained.bert.Bert` adds methods that read texts.

    Attributes:
      model: `PretrainingModel` with the encoder `model.bert`, or from
        `load_encoder` the `BertEncoder` itself.
      tokenizer: `FullTokenizer`.
      config: `BertConfig`.
      report: `initialize.Report`, the result for each weight.
    """

    model: keras.Model | keras.layers.Layer
    tokenizer: FullTokenizer
    config: BertConfig
    report: Report = IN_MEMORY

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the names of the encoder outputs that have trained weights.

        Masked-LM models of Hugging Face have no pooler, so theirs is random
        here.
        """
        if any(name.startswith("bert/pooler/") for name in self.report.new):
            return ("sequence_output",)
        return ("pooled_output", "sequence_output")

    @property
    def encoder(self) -> BertEncoder:
        """Return the `BertEncoder`."""
        return getattr(self.model, "bert", self.model)

    def outputs(
        self, inputs: Mapping[str, Any], **options: Any
    ) -> dict[str, "tf.Tensor"]:
        """Run the encoder.

        Args:
          inputs: dict of `INPUTS`, int32 [B, S].
          **options: see `BertEncoder.call`.

        Returns:
          dict of `output_names` -> tensor.
        """
        outputs = self.encoder(inputs, **options)
        return {name: outputs[name] for name in self.output_names}


def load(
    path: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
    next_sentence: bool = True,
) -> Bert:
    """Load a pre-trained model, with its heads, from any format.

    Args:
      path: a path, see `any_format.opened`, or a name, see `find_model`.
      config_file: a `bert_config.json`; by default the checkpoint's own.
      vocab_file: a `vocab.txt`; by default the checkpoint's own.
      do_lower_case: bool; default: the value in the checkpoint's files, or a
        guess from its vocabulary.
      next_sentence: whether this head is required. With False, models with only
        the masked-LM head load too; the next-sentence head is then random.

    Returns:
      `Bert`.

    Raises:
      UserError: a file or weight is missing or does not fit.
    """
    bert = _load(path, PretrainingModel, config_file, vocab_file, do_lower_case)
    if bert.config.causal_attention:
        raise UserError(
            f"{path} is a left-to-right model (causal_attention), trained "
            "without [MASK], so it cannot fill masks. Fine-tune it, or extract "
            "its features."
        )
    optional = () if next_sentence else NEXT_SENTENCE
    missing = [name for name in bert.report.new if not name.startswith(optional)]
    if missing:
        heads = "both heads" if next_sentence else "the masked-LM head"
        remedy = "load_encoder loads only the encoder."
        if all(name.startswith(NEXT_SENTENCE) for name in missing):
            remedy = "next_sentence=False loads it without the next-sentence head."
        raise UserError(
            f"{path} is not a pre-trained model with {heads}: it has no "
            f"{', '.join(missing)}. Fine-tuned and sentence-vector models do "
            "not keep these weights. Give the pre-trained model. In Python, "
            f"{remedy}"
        )
    return bert


def load_encoder(
    path: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> Bert:
    """Load only the encoder; see `load`.

    If the checkpoint has no pooler, the pooler is newly initialized.
    """
    return _load(path, BertEncoder, config_file, vocab_file, do_lower_case)


def _load(path, make_model, config_file, vocab_file, do_lower_case):
    with any_format.opened(find_model(path).path) as checkpoint:
        config = config_of(checkpoint, config_file)
        tokenizer = tokenizer_of(checkpoint, vocab_file, do_lower_case)
        vocab_file = vocab_file or checkpoint.vocab_file
        check_vocab_size(tokenizer.vocab, config, vocab_file)
        model = make_model(config)
        return Bert(model, tokenizer, config, load_opened(model, checkpoint))


def config_of(
    checkpoint: Checkpoint, config_file: str | os.PathLike[str] | None = None
) -> BertConfig:
    """Return the `BertConfig` from a file, or by default from a `Checkpoint`.

    Raises:
      UserError: neither has a config.
    """
    if config_file:
        return BertConfig.from_json_file(config_file)
    if checkpoint.config is None:
        raise UserError(
            f"{checkpoint.path} has no {google.CONFIG_FILE}. Put the file next "
            "to the weights, or use --bert_config_file."
        )
    return checkpoint.config


def tokenizer_of(
    checkpoint: Checkpoint,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> FullTokenizer:
    """Return the `FullTokenizer` of a `Checkpoint`, with its casing.

    `vocab_file` replaces the checkpoint's vocabulary. `do_lower_case` overrides
    the stated or guessed casing.

    Raises:
      UserError: the vocabulary is missing, or contradicts the stated casing.
    """
    vocab_file = vocab_file or checkpoint.vocab_file
    if not vocab_file:
        raise UserError(
            f"{checkpoint.path} has no {google.VOCAB_FILE}. Put the file next "
            "to the weights, or use --vocab_file."
        )
    if do_lower_case is None:
        vocab = FullTokenizer(vocab_file).vocab
        do_lower_case = guess_do_lower_case(vocab)
        # The reverse is common: the Chinese vocabulary has no capitals, and
        # some call it cased.
        if checkpoint.do_lower_case and not do_lower_case:
            raise UserError(
                f"{checkpoint.path} states do_lower_case true, but {vocab_file} "
                "has capitals or accents, which lowercased text never "
                "contains. Give the model's own vocabulary, correct its "
                f"{google.TOKENIZER_FILE}, or use --do_lower_case or "
                "--nodo_lower_case."
            )
        if checkpoint.do_lower_case is not None:
            do_lower_case = checkpoint.do_lower_case
    return FullTokenizer(vocab_file, do_lower_case)


def save(
    directory: str | os.PathLike[str],
    model: keras.Model | keras.layers.Layer,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    config: BertConfig | None = None,
) -> None:
    """Write a model of this package into an existing directory.

    Optimizer state is not written. The vocabulary and the casing are written if
    they are known. `config` is a `BertConfig`; default: the model's.
    """
    checkpoint = checkpoint_of(model, vocab_file, do_lower_case)
    if config:
        checkpoint = dataclasses.replace(checkpoint, config=config)
    google.write_model(directory, checkpoint)


def checkpoint_of(
    model: keras.Model | keras.layers.Layer,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
) -> Checkpoint:
    """Return a model in memory as a `Checkpoint`, for writing in any format."""
    variables = {names.google_name(v): v for v in model.weights}
    return Checkpoint(
        path="the model",
        format="google",
        shapes={name: tuple(v.shape) for name, v in variables.items()},
        read=lambda name: variables[name].numpy(),
        config=model.config,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
    )
