"""A pre-trained model for Python programs: texts in, tensors, vectors or words out."""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from official_bert.checkpoints import model_directory
from official_bert.constants import TRUNCATE
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.pretrained import feature_extraction, fill_mask
from official_bert.pretrained.fill_mask import Candidate
from official_bert.pretrained.reading import Reading

LONGEST, MAX_SEQ_LENGTH = "longest", "max_seq_length"
Text = str | tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Bert(model_directory.Bert):
    """What `load` and `load_encoder` return.

    Attributes:
      model: `PretrainingModel`, whose encoder is `model.bert`; from
        `load_encoder` the `BertEncoder` itself.
      encoder: the `BertEncoder`, a Keras layer that reads what `encode` returns.
      tokenizer: `FullTokenizer`.
      config: `BertConfig`.
      report: `initialize.Report`, what became of each weight.
    """

    def encode(
        self,
        texts: Iterable[Text],
        text_pairs: Iterable[str] | None = None,
        max_seq_length: int | None = None,
        padding: Literal["longest", "max_seq_length"] | None = None,
    ) -> dict[str, tf.Tensor]:
        """Return texts as the tensors that the encoder and Keras models read.

        A text becomes `[CLS] text [SEP]`, a pair `[CLS] a [SEP] b [SEP]`. As in
        training, a text that is too long loses its end, and a pair the last token of
        the longer of its texts, again and again.

        Args:
          texts: B texts, or pairs (text, text).
          text_pairs: the second texts, as many as `texts`; None for none.
          max_seq_length: tokens of a row at most, `[CLS]` and `[SEP]` included;
            None for all that the model reads (`max_position_embeddings`).
          padding: "longest" pads rows to the longest of them, "max_seq_length" to
            that length; None for the latter if `max_seq_length` is given.

        Returns:
          dict of `input_ids`, `input_mask`, `segment_ids`, int32 tensors [B, S]. The
          mask is 1 for tokens and 0 for padding.

        Raises:
          TypeError: `texts` is one text, or something in it is none.
          UserError: the model reads no such length or no pairs, or the texts and
            their pairs are not equally many.
        """
        pairs = self._pairs(texts, text_pairs)
        limit = self.config.max_position_embeddings
        length = limit if max_seq_length is None else max_seq_length
        if length > limit:
            raise UserError(
                f"max_seq_length is {length}, and the model reads up to {limit} tokens "
                "(max_position_embeddings); give a smaller one."
            )
        if padding not in (None, LONGEST, MAX_SEQ_LENGTH):
            raise UserError(
                f"padding is {padding!r}: choose {LONGEST!r} or {MAX_SEQ_LENGTH!r}."
            )
        arrays = self.tokenizer.encode_batch(pairs, length)
        if padding == MAX_SEQ_LENGTH or (max_seq_length and padding is None):
            missing = length - arrays["input_ids"].shape[1]
            arrays = {
                name: np.pad(rows, ((0, 0), (0, missing)))
                for name, rows in arrays.items()
            }
        return {name: tf.constant(rows, tf.int32) for name, rows in arrays.items()}

    def vectors(
        self,
        texts: Iterable[Text],
        text_pairs: Iterable[str] | None = None,
        max_seq_length: int | None = None,
        pooling: str = "mean",
        layers: Sequence[int] = (-1,),
        batch_size: int = 32,
        long_text: str = TRUNCATE,
    ) -> np.ndarray:
        """Return one vector for each text: float32 [B, H].

        Texts of similar length go through the encoder together.

        Args:
          texts: B texts, or pairs (text, text).
          text_pairs: the second texts, as many as `texts`; None for none.
          max_seq_length: tokens of a text at most, see `encode`.
          pooling: "mean" of all tokens, `[CLS]` and `[SEP]` included; "cls", the
            vector of `[CLS]`; or "pooler", the pooled output.
          layers: numbers of the layers whose mean is taken; -1 is the last.
          batch_size: texts that go through the encoder together.
          long_text: "truncate" or "window", see `reading.Reading`.

        Raises:
          TypeError: `texts` is one text, or something in it is none.
          UserError: see `feature_extraction.each_sentence_vector`.
        """
        pairs = self._pairs(texts, text_pairs)
        length = max_seq_length or self.config.max_position_embeddings
        reading = Reading(length, batch_size, long_text)
        return feature_extraction.sentence_vectors(
            self, pairs, pooling, layers, reading
        )

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[Candidate]]:
        """Return the likeliest tokens for each `[MASK]` of a text.

        Args:
          text: with one or more `[MASK]`.
          top_k: tokens per mask.

        Returns:
          a list with, for each mask, a list of `Candidate`, the likeliest first.

        Raises:
          UserError: the text has no mask or is too long, or the model has no
            masked-LM head.
        """
        if not isinstance(self.model, PretrainingModel):
            raise UserError(
                f"fill_mask needs the masked-LM head, but {self.report.path} was "
                "loaded with load_encoder. Load it with official_bert.load."
            )
        return fill_mask.fill_mask(self, text, top_k)

    def _pairs(self, texts, text_pairs):
        """Return texts as a list of str and (str, str); see `encode`."""
        if isinstance(texts, str) or isinstance(text_pairs, str):
            raise TypeError("encode and vectors take a list of texts, not a text.")
        texts = list(texts)
        if text_pairs is not None:
            second = list(text_pairs)
            if len(second) != len(texts):
                raise UserError(
                    f"There are {len(texts)} texts and {len(second)} text_pairs; give "
                    "as many."
                )
            texts = list(zip(texts, second, strict=True))
        for number, text in enumerate(texts):
            parts = text if isinstance(text, list | tuple) else (text,)
            if len(parts) > 2 or not all(isinstance(part, str) for part in parts):
                raise TypeError(
                    f"Text {number} is {text!r}: neither a str nor a pair of str."
                )
            if len(parts) == 2 and self.config.type_vocab_size < 2:
                raise UserError(
                    f"Text {number}, counted from 0, is a pair, but the model reads "
                    "single texts only (type_vocab_size 1)."
                )
        return texts


def load(
    path: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
    next_sentence: bool = True,
) -> Bert:
    """Load a pre-trained model, with its heads, from any format.

    Args:
      path: a model's directory or what else `model_directory.load` takes.
      config_file: a `bert_config.json`; by default the checkpoint's own.
      vocab_file: a `vocab.txt`; by default the checkpoint's own.
      do_lower_case: bool; by default what the checkpoint's files state, or
        else what its vocabulary looks like.
      next_sentence: whether its head is needed. False takes models that have
        the masked-LM head only.

    Returns:
      `Bert`.

    Raises:
      UserError: something is missing or does not fit.
    """
    return _with_methods(
        model_directory.load(
            path, config_file, vocab_file, do_lower_case, next_sentence
        )
    )


def load_encoder(
    path: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> Bert:
    """Load the encoder alone; see `load`. Its pooler is new where there is none.

    Its `fill_mask` raises `UserError`.
    """
    return _with_methods(
        model_directory.load_encoder(path, config_file, vocab_file, do_lower_case)
    )


def _with_methods(loaded):
    return Bert(loaded.model, loaded.tokenizer, loaded.config, loaded.report)
