"""One Transformer block of the encoder: self-attention, then feed-forward.

The layers' nesting and names give each variable the original's name as its path:
`attention/self/query/kernel`, `attention/output/LayerNorm/gamma`,
`intermediate/dense/kernel`, `output/dense/kernel`.

The argument `kernels` of the layers' calls is a `kernels.interface.Kernels`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling import layers
from official_bert.modeling.dropout import GROUP_INDICES, dropout

# Added to the score of a padded position, as in the original. e^-10000 is 0, so padding
# gets no attention. Unlike -1e9, the number is finite in float16. Unlike -inf, it keeps
# the softmax of a row without tokens defined.
MASKED_SCORE = -10000.0


def attention_bias(
    input_mask: tf.Tensor,
    masked_score: float = MASKED_SCORE,
    causal: bool = False,
    packed: bool = False,
) -> tf.Tensor:
    """Return the term to add to attention scores so that padding is hidden.

    Follows `create_attention_mask_from_input_mask`: padded positions are hidden as
    keys, but still attend as queries.

    Args:
      input_mask: [B, S], 1 for tokens and 0 for padding. In packed rows it is the
        number of each token's sequence, from 1.
      masked_score: the number added for a hidden key.
      causal: whether keys after the query are hidden too, so that no token sees
        a later one (Sec. 5.1, "left-to-right").
      packed: whether a row holds several sequences. Each sequence sees only itself: a
        block-diagonal matrix (Krell et al., 2021). Padding sees padding.

    Returns:
      float32 of 0 and `masked_score`: [B, 1, 1, S], the same for all queries; if
      causal or packed, [B, 1, S, S], queries first.
    """
    if packed:
        keys = input_mask[:, tf.newaxis, tf.newaxis, :]
        queries = input_mask[:, tf.newaxis, :, tf.newaxis]
        visible = tf.cast(queries == keys, tf.float32)  # [B, 1, S, S]
    else:
        visible = tf.cast(input_mask, tf.float32)[:, tf.newaxis, tf.newaxis, :]
    if causal:
        positions = tf.range(tf.shape(input_mask)[1])
        before = positions[tf.newaxis, :] <= positions[:, tf.newaxis]  # [S, S]
        visible *= tf.cast(before, tf.float32)
    return (1.0 - visible) * masked_score


def last_token(x: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    """Return the vector of each text's last token.

    Args:
      x: float [B, S, H].
      input_mask: int [B, S], 1 for tokens and 0 for padding.

    Returns:
      float [B, H]; for a row without tokens the vector of position 0.
    """
    real = tf.cast(input_mask != 0, tf.int32)
    positions = tf.range(tf.shape(input_mask)[1])
    last = tf.reduce_max(real * positions, axis=1)  # [B]
    return tf.gather(x, last, batch_dims=1)  # [B, H]


def attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    num_heads: int,
    rate: float,
    dropout_seed: tf.Tensor | None,
    dropout_index: int,
    *,
    dropout: Callable[..., tf.Tensor] = dropout,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return dropout(softmax(Q · Kᵀ / √D + bias)) · V of each head.

    Args:
      query: float [T, H], the heads' Q side by side.
      key: float [T, H].
      value: float [T, H].
      bias: float that broadcasts to [B, A, S, S], see `attention_bias`.
      num_heads: A.
      rate: probability of zero.
      dropout_seed: int64 [2], or None in evaluation.
      dropout_index: dropout index within the model.
      dropout: function with the signature of `dropout`.

    Returns:
      (context [T, H], probabilities [B, A, S, S] before dropout).
    """
    query, key, value = (split_heads(x, bias, num_heads) for x in (query, key, value))
    probs = tf.cast(attention_probs(query, key, bias), value.dtype)
    dropped = dropout(probs, rate, dropout_seed, dropout_index)
    return merge_heads(tf.matmul(dropped, value)), probs


def attention_probs(query: tf.Tensor, key: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Return softmax(Q · Kᵀ / √D + bias), float32 [B, A, S, S].

    The sum of D products grows with √D. Divided by √D, the scores stay in the range
    where the softmax has a gradient.
    """
    scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)
    # Keras casts the bias to the layer's precision.
    return tf.nn.softmax(scores * score_factor(query) + tf.cast(bias, tf.float32))


def score_factor(query: tf.Tensor) -> float:
    """Return 1 / √D for float [B, A, S, D]."""
    return 1.0 / math.sqrt(query.shape[-1])


def split_heads(x: tf.Tensor, bias: tf.Tensor, num_heads: int) -> tf.Tensor:
    """Reshape [T, H] to [B, A, S, D]; B and S are those of `bias`."""
    batch, length = tf.shape(bias)[0], tf.shape(bias)[-1]
    x = tf.reshape(x, [batch, length, num_heads, x.shape[-1] // num_heads])
    return tf.transpose(x, [0, 2, 1, 3])  # [B, A, S, D]


def merge_heads(x: tf.Tensor) -> tf.Tensor:
    """Reshape [B, A, S, D] to [T, H]."""
    width = x.shape[1] * x.shape[3]
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [-1, width])  # [T, H]


def project(
    dense: keras.layers.Dense,
    x: tf.Tensor,
    bias: tf.Tensor | list[tf.Tensor],
    num_heads: int,
) -> tf.Tensor:
    """Return dense(x), the projection to or from the heads of attention.

    Args:
      dense: `keras.layers.Dense`.
      x: float [T, H].
      bias: see `attention`; for kernels that need B and S.
      num_heads: A, for kernels that need it.

    Returns:
      float [T, H].
    """
    del bias, num_heads
    return dense(x)


class SelfAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention (Vaswani et al., 2017).

    Args:
      config: `BertConfig`.
      dropout_index: dropout index of this layer within the model.
    """

    def __init__(self, config: BertConfig, dropout_index: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.config, self.dropout_index = config, dropout_index
        self.query = layers.dense(config.hidden_size, config, "query")
        self.key = layers.dense(config.hidden_size, config, "key")
        self.value = layers.dense(config.hidden_size, config, "value")

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the three projections [H, H]."""
        for projection in (self.query, self.key, self.value):
            projection.build((None, self.config.hidden_size))

    def call(
        self,
        x: tf.Tensor,
        bias: tf.Tensor | list[tf.Tensor],
        kernels: Any,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Return softmax(Q · Kᵀ / √D + bias) · V, see `attention`.

        Args:
          x: float [T, H].
          bias: float [B, 1, 1, S] or [B, 1, S, S], from `attention_bias`; with
            packed tokens a list of biases.
          kernels: `Kernels`.
          dropout_seed: int64 [2], or None in evaluation.

        Returns:
          (context [T, H], attention probabilities [B, A, S, S] before dropout).
        """
        num_heads = self.config.num_attention_heads
        query, key, value = (
            kernels.to_heads(dense, x, bias, num_heads)
            for dense in (self.query, self.key, self.value)
        )
        return kernels.attention(
            query,
            key,
            value,
            bias,
            num_heads,
            self.config.attention_probs_dropout_prob,
            dropout_seed,
            self.dropout_index,
        )


class ResidualOutput(keras.layers.Layer):
    """LayerNorm(residual + dropout(dense(x))), the end of each sub-layer.

    Args:
      config: `BertConfig`.
      input_width: width of `x`: H after attention, the intermediate size
        after the feed-forward layer.
      dropout_index: dropout index of this layer within the model.
    """

    def __init__(
        self, config: BertConfig, input_width: int, dropout_index: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.config, self.input_width = config, input_width
        self.dropout_index = dropout_index
        self.dense = layers.dense(config.hidden_size, config, "dense")
        self.layer_norm = layers.LayerNorm(config.layer_norm_eps, name="LayerNorm")

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the projection and the normalization."""
        self.dense.build((None, self.input_width))
        self.layer_norm.build((None, self.config.hidden_size))

    def call(
        self,
        x: tf.Tensor,
        residual: tf.Tensor,
        kernels: Any,
        dropout_seed: tf.Tensor | None = None,
        project: Callable[..., tf.Tensor] | None = None,
    ) -> tf.Tensor:
        """Map x [T, input_width] and residual [T, H] to [T, H].

        Args:
          x: float [T, input_width].
          residual: float [T, H].
          kernels: `Kernels`.
          dropout_seed: int64 [2], or None in evaluation.
          project: function (dense layer, x) -> [T, H]; None calls the dense layer.
        """
        return kernels.residual_layer_norm(
            project(self.dense, x) if project else self.dense(x),
            residual,
            *self.layer_norm.parameters(),
            self.config.hidden_dropout_prob,
            dropout_seed,
            self.dropout_index,
        )


class Attention(keras.layers.Layer):
    """Self-attention and its output projection (`attention/`)."""

    def __init__(self, config: BertConfig, dropout_index: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.num_heads = config.num_attention_heads
        self.self_attention = SelfAttention(config, dropout_index, name="self")
        self.attention_output = ResidualOutput(
            config, config.hidden_size, dropout_index + 1, name="output"
        )

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create both parts."""
        self.self_attention.build()
        self.attention_output.build()

    def call(
        self,
        x: tf.Tensor,
        bias: tf.Tensor | list[tf.Tensor],
        kernels: Any,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Return (output [T, H], probabilities [B, A, S, S])."""
        how = {"kernels": kernels, "dropout_seed": dropout_seed}
        context, probs = self.self_attention(x, bias, **how)
        project = functools.partial(
            kernels.from_heads, bias=bias, num_heads=self.num_heads
        )
        return self.attention_output(context, x, project=project, **how), probs


class Intermediate(keras.layers.Layer):
    """The wide half of the feed-forward layer (`intermediate/`)."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.dense = layers.dense(config.intermediate_size, config, "dense")

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the projection [H, intermediate]."""
        self.dense.build((None, self.config.hidden_size))

    def call(self, x: tf.Tensor, kernels: Any) -> tf.Tensor:
        """Map [T, H] to [T, intermediate]: GELU(x W + b)."""
        return kernels.activation(self.config.hidden_act)(self.dense(x))


class TransformerBlock(keras.layers.Layer):
    """`layer_<index>` of the encoder, post-norm as in the original.

    Args:
      config: `BertConfig`.
      index: number of the block, from 0.
    """

    def __init__(self, config: BertConfig, index: int, **kwargs: Any):
        super().__init__(name=f"layer_{index}", **kwargs)
        # Dropout index 0 belongs to the embeddings. Each block has three indices.
        first = 1 + 3 * index
        if first + 2 >= GROUP_INDICES:
            raise UserError(
                f"num_hidden_layers is too large: layer {index} has no separate "
                f"dropout masks. Use at most {(GROUP_INDICES - 1) // 3}."
            )
        self.attention = Attention(config, first, name="attention")
        self.intermediate = Intermediate(config, name="intermediate")
        self.block_output = ResidualOutput(
            config, config.intermediate_size, first + 2, name="output"
        )

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the three parts."""
        self.attention.build()
        self.intermediate.build()
        self.block_output.build()

    def call(
        self,
        x: tf.Tensor,
        bias: tf.Tensor | list[tf.Tensor],
        kernels: Any,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Return (output [T, H], attention probabilities [B, A, S, S])."""
        how = {"kernels": kernels, "dropout_seed": dropout_seed}
        attended, probs = self.attention(x, bias, **how)
        wide = self.intermediate(attended, kernels=kernels)  # [T, intermediate]
        return self.block_output(wide, attended, **how), probs
