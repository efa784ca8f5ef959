"""Use a pre-trained model in Python: texts in; tensors, vectors or tokens out."""

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
    """The result of `load` and `load_encoder`.

    Attributes:
      model: `PretrainingModel`, whose encoder is `model.bert`; from `load_encoder` the
        `BertEncoder` itself.
      encoder: the `BertEncoder`, a Keras layer that reads the result of `encode`.
      tokenizer: `FullTokenizer`.
      config: `BertConfig`.
      report: `initialize.Report`, which lists loaded, missing and unused weights.
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
        training, a text that is too long is cut at its end. A pair that is too long
        loses the last token of its longer text, repeatedly.

        Args:
          texts: B texts, or pairs (text, text).
          text_pairs: the second texts, as many as `texts`; None for single texts.
          max_seq_length: maximum tokens of a row, including `[CLS]` and `[SEP]`; None
            for the model's maximum (`max_position_embeddings`).
          padding: "longest" pads rows to the longest of them, "max_seq_length" to that
            length. None means "max_seq_length" if `max_seq_length` is given, else
            "longest".

        Returns:
          dict of `input_ids`, `input_mask`, `segment_ids`, int32 tensors [B, S]. The
          mask is 1 for tokens and 0 for padding.

        Raises:
          TypeError: `texts` is a single text, or an item is not a text or pair.
          UserError: the model does not support this length or pairs, or the numbers of
            texts and pairs differ.
        """
        pairs = self._pairs(texts, text_pairs)
        limit = self.config.max_position_embeddings
        length = limit if max_seq_length is None else max_seq_length
        if length > limit:
            raise UserError(
                f"max_seq_length={length} is too long: the model reads at most "
                f"{limit} tokens (max_position_embeddings). Use a smaller value."
            )
        if padding not in (None, LONGEST, MAX_SEQ_LENGTH):
            raise UserError(
                f"padding={padding!r} is invalid. Choose {LONGEST!r} or "
                f"{MAX_SEQ_LENGTH!r}."
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

        Texts of similar length share a batch.

        Args:
          texts: B texts, or pairs (text, text).
          text_pairs: the second texts, as many as `texts`; None for single texts.
          max_seq_length: maximum tokens of a text, see `encode`.
          pooling: "mean" of all tokens, including `[CLS]` and `[SEP]`; "cls", the
            vector of `[CLS]`; or "pooler", the pooled output.
          layers: numbers of the layers that are averaged; -1 is the last.
          batch_size: number of texts per batch.
          long_text: "truncate" or "window", see `reading.Reading`.

        Raises:
          TypeError: `texts` is a single text, or an item is not a text or pair.
          UserError: see `feature_extraction.each_sentence_vector`.
        """
        pairs = self._pairs(texts, text_pairs)
        length = max_seq_length or self.config.max_position_embeddings
        reading = Reading(length, batch_size, long_text)
        return feature_extraction.sentence_vectors(
            self, pairs, pooling, layers, reading
        )

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[Candidate]]:
        """Return the most likely tokens for each `[MASK]` of a text.

        Args:
          text: text with one or more `[MASK]`.
          top_k: tokens per mask.

        Returns:
          For each mask, a list of `Candidate`, the most likely first.

        Raises:
          UserError: the text has no mask or is too long, or the model has no masked-LM
            head.
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
            raise TypeError(
                "encode and vectors take a list of texts, not a single text."
            )
        texts = list(texts)
        if text_pairs is not None:
            second = list(text_pairs)
            if len(second) != len(texts):
                raise UserError(
                    f"There are {len(texts)} texts but {len(second)} text_pairs. "
                    "Give one text_pair for each text."
                )
            texts = list(zip(texts, second, strict=True))
        for number, text in enumerate(texts):
            parts = text if isinstance(text, list | tuple) else (text,)
            if len(parts) > 2 or not all(isinstance(part, str) for part in parts):
                raise TypeError(
                    f"Text {number} is {text!r}, which is neither a str nor a pair "
                    "of str."
                )
            if len(parts) == 2 and self.config.type_vocab_size < 2:
                raise UserError(
                    f"Text {number} (counted from 0) is a pair, but the model reads "
                    "only single texts (type_vocab_size 1)."
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
      path: a model's directory or another path that `model_directory.load` takes.
      config_file: a `bert_config.json`; by default the checkpoint's.
      vocab_file: a `vocab.txt`; by default the checkpoint's.
      do_lower_case: bool; by default the setting in the checkpoint's files, else a
        guess from the vocabulary.
      next_sentence: whether the next-sentence head is required. False also accepts
        models with only the masked-LM head.

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
    """Load the encoder alone; see `load`. A missing pooler gets random weights.

    Its `fill_mask` raises `UserError`.
    """
    return _with_methods(
        model_directory.load_encoder(path, config_file, vocab_file, do_lower_case)
    )


def _with_methods(loaded):
    return Bert(loaded.model, loaded.tokenizer, loaded.config, loaded.report)
