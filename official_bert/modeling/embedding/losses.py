"""The losses of sentence embeddings.

Each loss compares all examples of a batch with each other, so it needs the vectors of
the whole batch. Shape letters: `B` examples, `K` texts per example, `H` hidden size.

An example is an anchor, its positive text and any number of hard negatives. For
losses with scores, it is a pair of texts and a score.
"""

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from official_bert.constants import COSENT, COSINE, INFO_NCE, SIMCSE
from official_bert.modeling.embedding.model import normalized

# Logit of a text that is not a candidate.
NO_CANDIDATE = -1e9
Features = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class LossSettings:
    """The loss to minimize and its settings.

    Attributes:
      name: one of `constants.EMBEDDING_LOSSES`.
      temperature: divisor of the cosines. `COSINE` does not use it.
      symmetric: whether `INFO_NCE` also searches the anchor of each positive text.
      sizes: vector sizes (Matryoshka). The loss is the mean over vectors cut to each
        size. () uses the complete vectors.
      max_score: the score of two texts with the same meaning, for `COSINE`.
    """

    name: str
    temperature: float = 0.05
    symmetric: bool = True
    sizes: tuple[int, ...] = ()
    max_score: float = 1.0


def make_terms(
    settings: LossSettings,
) -> Callable[[Features, Features], dict[str, tuple[tf.Tensor, tf.Tensor]]]:
    """Return the terms of a `training.step.Objective` with joint examples.

    Args:
      settings: `LossSettings`.

    Returns:
      function: (outputs with `vectors` [B, K, H], features) -> dict of name ->
      (sum over the examples, B): `embedding_loss`, and `accuracy` for losses that
      search texts. Features are `text_mask` [B, K], 1 for existing texts;
      `text_numbers` [B, K], equal for texts with the same meaning; and `scores`
      float32 [B].
    """
    of_vectors = {
        INFO_NCE: info_nce,
        SIMCSE: info_nce,
        COSINE: cosine_regression,
        COSENT: cosent,
    }[settings.name]

    def terms(outputs, features):
        vectors = outputs["vectors"]
        sizes = settings.sizes or (vectors.shape[-1],)
        # Report the accuracy of the largest vectors.
        parts = [
            of_vectors(vectors[..., :size], features, settings)
            for size in sorted(sizes)
        ]
        loss = tf.add_n([part["embedding_loss"] for part in parts]) / len(parts)
        means = parts[-1] | {"embedding_loss": loss}
        count = tf.cast(tf.shape(vectors)[0], tf.float32)
        return {name: (mean * count, count) for name, mean in means.items()}

    return terms


def info_nce(
    vectors: tf.Tensor, features: Features, settings: LossSettings
) -> dict[str, tf.Tensor]:
    """Return the loss of finding each anchor's positive among all texts of the batch.

    The loss is the cross-entropy over cosines / temperature (van den Oord et al.,
    2018). The candidates of an anchor are the positives and hard negatives of all
    examples. With `symmetric`, the loss is the mean of this and of searching each
    positive's anchor. A text with the number of the anchor or of its positive is not
    used as a negative.

    Args:
      vectors: float32 [B, K, H], K >= 2; see `make_terms` for the features.
      features: `text_mask` and `text_numbers` [B, K].
      settings: `LossSettings`.

    Returns:
      dict: `embedding_loss`, the mean in nats; `accuracy`, the share of anchors whose
      nearest candidate is their positive.
    """
    vectors = normalized(vectors)
    numbers, mask = features["text_numbers"], features["text_mask"]
    anchors, positives = vectors[:, 0], vectors[:, 1]
    count = tf.shape(vectors)[0]
    own = tf.eye(count, dtype=tf.bool)
    first, second = numbers[:, 0], numbers[:, 1]  # [B]
    same = _equal(first, first) | _equal(second, second)
    same |= _equal(first, second) | _equal(second, first)

    # Candidates are the B positives, then the hard negatives: [B, B * (K - 1)].
    others = tf.reshape(vectors[:, 2:], [-1, vectors.shape[-1]])
    other_numbers = tf.reshape(numbers[:, 2:], [-1])
    is_other = tf.reshape(mask[:, 2:], [-1]) > 0
    is_negative = (
        is_other & ~_equal(first, other_numbers) & ~_equal(second, other_numbers)
    )
    scores = tf.matmul(anchors, tf.concat([positives, others], 0), transpose_b=True)
    counts = tf.concat([own | ~same, is_negative], 1)
    losses, hits = _search(scores, counts, settings.temperature)
    if settings.symmetric:
        scores = tf.matmul(positives, anchors, transpose_b=True)
        losses = (losses + _search(scores, own | ~same, settings.temperature)[0]) / 2
    return {
        "embedding_loss": tf.reduce_mean(losses),
        "accuracy": tf.reduce_mean(hits),
    }


def _equal(rows, columns):
    """Compare each element of [B] with each of [C], bool [B, C]."""
    return rows[:, tf.newaxis] == columns


def _search(scores, is_candidate, temperature):
    """Return (cross-entropy, whether the right candidate is best) per row of [B, C].

    The right candidate of row i is i.
    """
    logits = tf.where(is_candidate, scores / temperature, NO_CANDIDATE)
    labels = tf.range(tf.shape(scores)[0])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    best = tf.argmax(logits, 1, tf.int32)
    return losses, tf.cast(best == labels, tf.float32)


def cosine_regression(
    vectors: tf.Tensor, features: Features, settings: LossSettings
) -> dict[str, tf.Tensor]:
    """Return the squared error between each pair's cosine and score / `max_score`.

    Args:
      vectors: float32 [B, K, H]; the first two texts are the pair.
      features: `scores` float32 [B].
      settings: `LossSettings`.

    Returns:
      dict: `embedding_loss`, the mean squared error.
    """
    targets = features["scores"] / settings.max_score
    errors = tf.square(_cosines(vectors) - targets)
    return {"embedding_loss": tf.reduce_mean(errors)}


def cosent(
    vectors: tf.Tensor, features: Features, settings: LossSettings
) -> dict[str, tf.Tensor]:
    """Return a loss that ranks cosines like scores (CoSENT, Su 2022).

    The loss is log(1 + sum of exp((cos_j - cos_i) / temperature)). The sum is over all
    i, j of the batch for which pair i has a higher score than pair j.

    Args:
      vectors: float32 [B, K, H]; the first two texts are the pair.
      features: `scores` float32 [B].
      settings: `LossSettings`.

    Returns:
      dict: `embedding_loss`.
    """
    cosines, scores = _cosines(vectors) / settings.temperature, features["scores"]
    differences = cosines[tf.newaxis] - cosines[:, tf.newaxis]  # cos_j - cos_i
    is_higher = scores[:, tf.newaxis] > scores[tf.newaxis]
    logits = tf.reshape(tf.where(is_higher, differences, NO_CANDIDATE), [-1])
    return {"embedding_loss": tf.reduce_logsumexp(tf.concat([[0.0], logits], 0))}


def _cosines(vectors):
    """Return the cosine of the first two texts of each example, [B]."""
    vectors = normalized(vectors)
    return tf.reduce_sum(vectors[:, 0] * vectors[:, 1], -1)
