"""The sentence embedding model: one vector per text.

Shape letters: `B` examples, `K` texts per example, `R` rows (windows of texts) per
example, `S` tokens per row, `H` hidden size.
"""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.constants import INPUTS, WINDOW_WEIGHTS
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels

# Vectors shorter than this are divided by this length instead of their own.
SHORTEST = 1e-12


@keras.saving.register_keras_serializable("official_bert")
class EmbeddingModel(EncoderModel):
    """BERT with one vector per text, as in Reimers and Gurevych (2019).

    It has no head: the encoder's outputs are pooled without dropout or new weights.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      pooling: one of `constants.POOLINGS`; see `pool`.
      size: see `finished`.
      normalize: see `finished`.
      recompute: see `BertEncoder`.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        pooling: str = "mean",
        size: int | None = None,
        normalize: bool = True,
        recompute: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, recompute, pooled=pooling == "pooler", **kwargs)
        self.pooling, self.size, self.normalize = pooling, size, normalize
        self.built = True

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Return the vectors of texts.

        Args:
          inputs: `input_ids`, `input_mask` and `segment_ids` int [B, K, S], or [B, S]
            for one text in each example. With windows: `INPUTS` int [B, R, S] and
            `window_weights` float32 [B, K, R], the share of each row in each text.
            Other keys are ignored.
          training: whether dropout is active.
          dropout_seed: see `BertEncoder.call`.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `vectors` [B, K, H] or [B, H], not normalized. The vector of
          a text with windows is the mean of its windows' vectors. These are normalized
          before, if `normalize`.
        """
        shape = tf.shape(inputs["input_ids"])
        rows = {name: tf.reshape(inputs[name], [-1, shape[-1]]) for name in INPUTS}
        encoded = self.bert(
            rows, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        vectors = pool(encoded, rows["input_mask"], self.pooling)
        width = [self.config.hidden_size]
        vectors = tf.reshape(vectors, tf.concat([shape[:-1], width], 0))
        if WINDOW_WEIGHTS in inputs:
            vectors = _joined(vectors, inputs[WINDOW_WEIGHTS], self.normalize)
        return {"vectors": vectors}

    def embedding(
        self, inputs: Mapping[str, tf.Tensor], kernels: Kernels = WITH_GRADIENTS
    ) -> dict[str, tf.Tensor]:
        """Return dict with `embedding` [B, size], the vectors that users get.

        Args:
          inputs: `INPUTS`, int [B, S].
          kernels: see `BertEncoder.call`.
        """
        vectors = self(inputs, kernels=kernels)["vectors"]
        return {"embedding": finished(vectors, self.size, self.normalize)}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {
            "pooling": self.pooling,
            "size": self.size,
            "normalize": self.normalize,
        }
        return {**super().get_config(), **own}


def pool(
    encoded: Mapping[str, tf.Tensor], input_mask: tf.Tensor, pooling: str
) -> tf.Tensor:
    """Return one vector per row, float32 [B, H].

    Args:
      encoded: the outputs of `BertEncoder.call`.
      input_mask: int [B, S], 1 for tokens and 0 for padding.
      pooling: "mean": the mean vector of all tokens, including `[CLS]` and `[SEP]`; 0
        for a row without tokens. "cls": the vector of `[CLS]`. "pooler": the pooled
        output.

    Raises:
      ValueError: `pooling` is another string.
    """
    if pooling == "pooler":
        return tf.cast(encoded["pooled_output"], tf.float32)
    sequence = tf.cast(encoded["sequence_output"], tf.float32)  # [B, S, H]
    if pooling == "cls":
        return sequence[:, 0]
    if pooling != "mean":
        raise ValueError(f"pooling is {pooling!r}: use mean, cls or pooler.")
    mask = tf.cast(input_mask, tf.float32)  # [B, S]
    sums = tf.matmul(mask[:, tf.newaxis], sequence)[:, 0]  # [B, H]
    return sums / tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1.0)


def _joined(vectors, weights, normalize):
    """Return the mean vector of each text's windows, float32 [B, K, H].

    Args:
      vectors: float32 [B, R, H] of the windows.
      weights: float32 [B, K, R].
      normalize: whether to normalize the windows' vectors before.
    """
    if normalize:
        vectors = normalized(vectors)
    return tf.matmul(tf.cast(weights, tf.float32), vectors)


def normalized(vectors: tf.Tensor) -> tf.Tensor:
    """Return vectors [..., H] scaled to length 1; zero vectors stay zero."""
    squares = tf.reduce_sum(tf.square(vectors), -1, keepdims=True)
    return vectors * tf.math.rsqrt(tf.maximum(squares, SHORTEST**2))


def finished(vectors: tf.Tensor, size: int | None, normalize: bool) -> tf.Tensor:
    """Return vectors in the form that users get.

    Args:
      vectors: float32 [..., H].
      size: number of leading elements to keep (Matryoshka); None keeps all.
      normalize: whether to scale the vectors to length 1 after the cut.

    Returns:
      float32 [..., size].
    """
    if size is not None:
        vectors = vectors[..., :size]
    return normalized(vectors) if normalize else vectors
