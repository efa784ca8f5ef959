"""Score how likely a text is to a pre-trained model, or the next of another text."""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from official_bert.checkpoints.model_directory import NEXT_SENTENCE, Bert
from official_bert.errors import UserError
from official_bert.pretrained import fill_mask

# Class of the next-sentence head: the original's 0 means "is next", 1 "random".
IS_NEXT = 0


@dataclasses.dataclass(frozen=True)
class TextScore:
    """The model's scores of the tokens of a text.

    Attributes:
      tokens: list of WordPiece tokens, without `[CLS]` and `[SEP]`.
      log_probabilities: list of float, in nats: of each token when only that token is
        masked.
    """

    tokens: list[str]
    log_probabilities: list[float]

    @property
    def pseudo_log_likelihood(self) -> float:
        """Return the sum of the log-probabilities, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def pseudo_perplexity(self) -> float:
        """Return the exponential of the mean loss; 1 means certainty."""
        return math.exp(-self.pseudo_log_likelihood / len(self.tokens))


def pseudo_log_likelihood(bert: Bert, text: str, batch_size: int = 32) -> TextScore:
    """Score a text by masking its tokens one at a time.

    Follows Salazar et al., "Masked Language Model Scoring" (2020): the sum over the
    tokens of log p(token | all the others). Longer texts have lower scores. To compare
    texts of different lengths, use the pseudo-perplexity.

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text: str.
      batch_size: number of masked copies per batch.

    Returns:
      `TextScore`.

    Raises:
      UserError: the text is empty, contains a mask, or is too long for the model.
    """
    if batch_size < 1:
        raise UserError(f"batch_size={batch_size} is invalid. It must be at least 1.")
    if fill_mask.MASK in text:
        raise UserError(
            f"The text {text!r} contains {fill_mask.MASK}, which has no likelihood. "
            "Replace it with a word."
        )
    input_ids = np.array(fill_mask.encode_with_masks(bert.tokenizer, text), np.int32)
    positions = np.arange(1, len(input_ids) - 1, dtype=np.int32)
    if not len(positions):
        raise UserError(
            f"The text {text!r} has no tokens to score. Give a text with words."
        )
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
    # Rows of the embedding table after the vocabulary are padding, not tokens.
    words = logits[:, 0, :vocab_size]
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(targets, words)


def next_sentence_probability(bert: Bert, text_a: str, text_b: str) -> float:
    """Return the probability that `text_b` follows `text_a` (Sec. 3.1).

    Args:
      bert: `checkpoints.model_directory.Bert`.
      text_a: str; `[MASK]` in it is one token, as in `fill_mask`.
      text_b: str; as `text_a`.

    Returns:
      float, the probability of "is next".

    Raises:
      UserError: a text is empty, the texts are too long together, or the model was
        loaded without the head.
    """
    new = [name for name in bert.report.new if name.startswith(NEXT_SENTENCE)]
    if new:
        raise UserError(
            f"{bert.report.path} has no next-sentence head (it lacks {new[0]}), so "
            "it cannot compute a next-sentence probability. Use a checkpoint with "
            "this head."
        )
    input_ids, segment_ids = fill_mask.encode_pair(bert, text_a, text_b)
    num_second = sum(segment_ids)
    if num_second == 1 or len(segment_ids) - num_second == 2:
        raise UserError(
            f"One of the texts {text_a!r} and {text_b!r} is empty. Give two texts."
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
