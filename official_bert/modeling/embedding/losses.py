"""The losses of sentence embeddings.

Each compares all examples of a batch with each other, so it takes the vectors of the
whole batch. Legend: `B` examples, `K` texts of an example, `H` hidden size.

An example is an anchor, its positive text and any number of hard negatives; or a pair
with a score.
"""

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from official_bert.constants import COSENT, COSINE, INFO_NCE, SIMCSE
from official_bert.modeling.embedding.model import normalized

# The score of a text that is not a candidate.
NO_CANDIDATE = -1e9
Features = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class LossSettings:
    """Which loss is minimized.

    Attributes:
      name: one of `constants.EMBEDDING_LOSSES`.
      temperature: cosines are divided by it. `COSINE` does not use it.
      symmetric: whether `INFO_NCE` also searches the anchor of each positive text.
      sizes: of the vectors (Matryoshka): the loss is the mean over vectors that are
        cut to each size; () for the whole vectors.
      max_score: the score of two texts that mean the same, for `COSINE`.
    """

    name: str
    temperature: float = 0.05
    symmetric: bool = True
    sizes: tuple[int, ...] = ()
    max_score: float = 1.0


def make_terms(
    settings: LossSettings,
) -> Callable[[Features, Features], dict[str, tuple[tf.Tensor, tf.Tensor]]]:
    """Return the terms of a `training.step.Objective` whose examples are joint.

    Args:
      settings: `LossSettings`.

    Returns:
      function: (outputs with `vectors` [B, K, H], features) -> dict of name ->
      (sum over the examples, B): `embedding_loss`, and `accuracy` if texts are
      searched. Features are `text_mask` [B, K], 1 for texts that exist; `text_numbers`
      [B, K], equal for texts that mean the same; and `scores` float32 [B].
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
        # The accuracy of the largest vectors is reported.
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
    """Find the positive of each anchor among all texts of the batch.

    The loss is the cross-entropy over cosines / temperature (van den Oord et al.,
    2018). The candidates of an anchor are the positives and hard negatives of all
    examples. With `symmetric` it is the mean of this and of the search of anchors for
    each positive. A text with the number of the anchor or of its positive is not a
    negative.

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
    """Return whether each of two lists of numbers are equal, bool [B, C]."""
    return rows[:, tf.newaxis] == columns


def _search(scores, is_candidate, temperature):
    """Return (cross-entropy, whether the first is best), of each row of [B, C].

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
    """Make the cosine of each pair equal its score / `max_score`.

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
    """Give pairs with a higher score a higher cosine (CoSENT, Su 2022).

    The loss is log(1 + sum of exp((cos_j - cos_i) / temperature)) over all i, j of the
    batch where the score of pair i is higher than that of pair j.

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
