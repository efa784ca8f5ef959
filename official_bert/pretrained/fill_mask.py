"""Predict the tokens at the `[MASK]` positions of a text."""

import dataclasses
from collections.abc import Sized

import numpy as np
import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer

MASK = "[MASK]"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A WordPiece token for a mask.

    Attributes:
      token: the token, as in the vocabulary.
      probability: the model's probability of the token at this position.
    """

    token: str
    probability: float


def fill_mask(bert: Bert, text: str, top_k: int = 5) -> list[list[Candidate]]:
    """Return the most likely tokens for each `[MASK]` of a text.

    Several masks are predicted independently of each other, as in training (Sec. 3.1).
    The best tokens may therefore not fit together.

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text: text with one or more `[MASK]`.
      top_k: tokens per mask.

    Returns:
      For each mask, a list of `Candidate`, the most likely first.

    Raises:
      UserError: there is no mask, or the text is too long for the model.
    """
    input_ids = encode_with_masks(bert.tokenizer, text)
    check_fits(input_ids, bert.config)
    mask_id = bert.tokenizer.vocab[MASK]
    positions = [n for n, token in enumerate(input_ids) if token == mask_id]
    if not positions:
        raise UserError(
            f"The text {text!r} contains no {MASK}. Replace a word with {MASK}."
        )
    outputs = bert.model(
        {
            "input_ids": tf.constant([input_ids]),
            "masked_lm_positions": tf.constant([positions]),
        }
    )
    logits = outputs["masked_lm_logits"][0, :, : len(bert.tokenizer.vocab)]
    values, ids = tf.math.top_k(tf.nn.softmax(logits), k=min(top_k, logits.shape[-1]))
    return [
        [
            Candidate(bert.tokenizer.inv_vocab[int(token)], float(probability))
            for token, probability in zip(row_ids, row, strict=True)
        ]
        for row_ids, row in zip(np.asarray(ids), np.asarray(values), strict=True)
    ]


def encode_with_masks(tokenizer: FullTokenizer, text: str) -> list[int]:
    """Return the ids of `[CLS] text [SEP]`, with `[MASK]` kept as one token.

    The tokenizer itself splits `[MASK]` in a text into brackets and a word, like the
    original's.

    Args:
      tokenizer: `FullTokenizer`.
      text: str.

    Returns:
      list of int.
    """
    vocab = tokenizer.vocab
    input_ids = [vocab["[CLS]"]]
    for number, part in enumerate(text.split(MASK)):
        if number:
            input_ids.append(vocab[MASK])
        input_ids += tokenizer.encode(part)
    return [*input_ids, vocab["[SEP]"]]


def encode_pair(
    bert: Bert, text_a: str, text_b: str | None
) -> tuple[list[int], list[int]]:
    """Return (input_ids, segment_ids) of `[CLS] a [SEP] b [SEP]`, lists of int.

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text_a: str; see `encode_with_masks`.
      text_b: str; None for no second text.

    Raises:
      UserError: the texts are too long for the model.
    """
    first = encode_with_masks(bert.tokenizer, text_a)
    second: list[int] = []
    if text_b is not None:
        second = encode_with_masks(bert.tokenizer, text_b)[1:]
    check_fits(first + second, bert.config)
    return first + second, [0] * len(first) + [1] * len(second)


def check_fits(input_ids: Sized, config: BertConfig) -> None:
    """Raise `UserError` for more tokens than a model of a `BertConfig` can read."""
    limit = config.max_position_embeddings
    if len(input_ids) > limit:
        raise UserError(
            f"The text has {len(input_ids)} tokens, but the model reads at most "
            f"{limit}. Shorten the text."
        )
