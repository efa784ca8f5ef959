"""How likely a text is to a pre-trained model, and whether one follows another."""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from official_bert.checkpoints.model_directory import NEXT_SENTENCE, Bert
from official_bert.errors import UserError
from official_bert.pretrained import fill_mask

# Class of the next-sentence head: the original's 0 is "is next", 1 "random".
IS_NEXT = 0


@dataclasses.dataclass(frozen=True)
class TextScore:
    """What a model gives to the tokens of a text.

    Attributes:
      tokens: list of word pieces, without `[CLS]` and `[SEP]`.
      log_probabilities: list of float, in nats: of each token where it alone
        is masked.
    """

    tokens: list[str]
    log_probabilities: list[float]

    @property
    def pseudo_log_likelihood(self) -> float:
        """Their sum, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def pseudo_perplexity(self) -> float:
        """Exponential of the mean loss; 1 is certainty."""
        return math.exp(-self.pseudo_log_likelihood / len(self.tokens))


def pseudo_log_likelihood(bert: Bert, text: str, batch_size: int = 32) -> TextScore:
    """Score a text by masking each of its tokens in turn.

    Follows Salazar et al., "Masked Language Model Scoring" (2020): the sum
    over the tokens of log p(token | all the others). Longer texts score
    lower; to compare texts of different length, use the pseudo-perplexity.

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text: str.
      batch_size: masked copies that go through the model together.

    Returns:
      `TextScore`.

    Raises:
      UserError: the text is empty, holds a mask, or is too long for the model.
    """
    if batch_size < 1:
        raise UserError(f"batch_size is {batch_size}: it must be at least 1.")
    if fill_mask.MASK in text:
        raise UserError(
            f"There is a {fill_mask.MASK} in the text {text!r}, which has no "
            "likelihood; write the word in its place."
        )
    input_ids = np.array(fill_mask.encode_with_masks(bert.tokenizer, text), np.int32)
    positions = np.arange(1, len(input_ids) - 1, dtype=np.int32)
    if not len(positions):
        raise UserError(f"There is nothing to score in the text {text!r}.")
    fill_mask.check_fits(input_ids, bert.config)
    vocab_size = len(bert.tokenizer.vocab)
    masked = np.repeat(input_ids[np.newaxis], len(positions), axis=0)
    masked[np.arange(len(positions)), positions] = bert.tokenizer.vocab[fill_mask.MASK]
    log_probabilities = []
    for start in range(0, len(positions), batch_size):
        part = slice(start, start + batch_size)
        log_p = _masked_log_probabilities(
            bert.model,
            tf.constant(masked[part]),
            tf.constant(positions[part]),
            tf.constant(input_ids[positions[part]]),
            tf.constant(vocab_size),
        )
        log_probabilities += log_p.numpy().tolist()
    tokens = bert.tokenizer.convert_ids_to_tokens(input_ids[positions].tolist())
    return TextScore(tokens, log_probabilities)


@tf.function(reduce_retracing=True)
def _masked_log_probabilities(model, input_ids, positions, targets, vocab_size):
    """Return log p(target) at the one masked position of each row, float32 [B]."""
    encoded = model.bert({"input_ids": input_ids})
    logits = model.cls.predictions(
        encoded["sequence_output"], positions[:, tf.newaxis], model.bert.embedding_table
    )
    # The table's rows after the vocabulary are padding and no words.
    words = logits[:, 0, :vocab_size]
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(targets, words)


def next_sentence_probability(bert: Bert, text_a: str, text_b: str) -> float:
    """Return the probability that `text_b` follows `text_a` (Sec. 3.1).

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text_a: str; `[MASK]` in it is one token, as in `fill_mask`.
      text_b: str, likewise.

    Returns:
      float, of the head's "is next".

    Raises:
      UserError: a text is empty, both are too long together, or the model
        came without the head.
    """
    new = [name for name in bert.report.new if name.startswith(NEXT_SENTENCE)]
    if new:
        raise UserError(
            f"{bert.report.path} has no next-sentence head (it lacks {new[0]}), so "
            "there is no next-sentence probability; take a checkpoint that has one."
        )
    input_ids, segment_ids = fill_mask.encode_pair(bert, text_a, text_b)
    num_second = sum(segment_ids)
    if num_second == 1 or len(segment_ids) - num_second == 2:
        raise UserError(
            f"One of the texts {text_a!r} and {text_b!r} is empty; give two texts."
        )
    logits = _next_sentence_logits(
        bert.model, tf.constant([input_ids]), tf.constant([segment_ids])
    )
    return float(tf.nn.softmax(logits)[0, IS_NEXT])


@tf.function(reduce_retracing=True)
def _next_sentence_logits(model, input_ids, segment_ids):
    """Return the head's two scores, float32 [B, 2], for int32 [B, S]."""
    encoded = model.bert({"input_ids": input_ids, "segment_ids": segment_ids})
    return model.cls.seq_relationship(encoded["pooled_output"])
