"""One Transformer block of the encoder: self-attention, then feed-forward.

The layers nest and are named so that each variable's path is the original's
name: `attention/self/query/kernel`, `attention/output/LayerNorm/gamma`,
`intermediate/dense/kernel`, `output/dense/kernel`.
"""

import math

import keras
import tensorflow as tf

from official_bert.modeling import layers

# Added to the score of a padded position, as in the original. Unlike -1e9 it
# is finite in float16, and a row without any token stays a softmax.
MASKED_SCORE = -10000.0


def attention_bias(input_mask, masked_score=MASKED_SCORE, causal=False):
    """Return what to add to attention scores so that padding is not seen.

    Follows `create_attention_mask_from_input_mask`: padded positions are
    hidden as keys, but still attend as queries.

    Args:
      input_mask: [B, S], 1 for tokens and 0 for padding.
      masked_score: what is added for a key that is hidden.
      causal: whether keys behind the query are hidden too, so that no token sees
        a later one (Sec. 5.1, "left-to-right").

    Returns:
      float32 of 0 and `masked_score`: [B, 1, 1, S], the same for all queries; if
      causal, [B, 1, S, S], queries first.
    """
    visible = tf.cast(input_mask, tf.float32)[:, tf.newaxis, tf.newaxis, :]
    if causal:
        places = tf.range(tf.shape(input_mask)[1])
        before = places[tf.newaxis, :] <= places[:, tf.newaxis]
        visible *= tf.cast(before, tf.float32)
    return (1.0 - visible) * masked_score


def last_token(x, input_mask):
    """Return the vector of each text's last token.

    Args:
      x: float [B, S, H].
      input_mask: int [B, S], 1 for tokens and 0 for padding.

    Returns:
      float [B, H]; the first position of a row without tokens.
    """
    real = tf.cast(input_mask != 0, tf.int32)
    places = tf.reduce_max(real * tf.range(tf.shape(input_mask)[1]), axis=1)
    return tf.gather(x, places, batch_dims=1)


class SelfAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention (Vaswani et al., 2017).

    Args:
      config: `BertConfig`.
      site: number of this layer's dropout within the model.
    """

    def __init__(self, config, site, **kwargs):
        super().__init__(**kwargs)
        self.config, self.site = config, site
        width = config.hidden_size
        self.query = layers.dense(width, config, "query")
        self.key = layers.dense(width, config, "key")
        self.value = layers.dense(width, config, "value")

    def build(self, input_shape=None):
        """Create the three projections [H, H]."""
        for projection in (self.query, self.key, self.value):
            projection.build((None, self.config.hidden_size))

    def call(self, x, bias, rows, dropout_seed=None):
        """Attend.

        Args:
          x: float [T, H].
          bias: float32 [B, 1, 1, S] or [B, 1, S, S], from `attention_bias`.
          rows: `TokenRows` of `x`.
          dropout_seed: int64 [2], or None in evaluation.

        Returns:
          (context [T, H], attention probabilities [B, A, S, S] before dropout).
        """
        config = self.config
        heads, width = config.num_attention_heads, config.head_size

        def split(projected):
            """[T, H] -> [B, A, S, D]."""
            shape = [rows.batch, -1, heads, width]
            return tf.transpose(tf.reshape(rows.spread(projected), shape), [0, 2, 1, 3])

        query, key = split(self.query(x)), split(self.key(x))
        scores = tf.matmul(query, key, transpose_b=True)  # [B, A, S, S]
        # Keras hands all floats over in the layer's precision, the bias too.
        bias = tf.cast(bias, tf.float32)
        scores = tf.cast(scores, tf.float32) * (1.0 / math.sqrt(width)) + bias
        probs = tf.cast(tf.nn.softmax(scores), x.dtype)
        dropped = layers.dropout(
            probs, config.attention_probs_dropout_prob, dropout_seed, self.site
        )
        context = tf.matmul(dropped, split(self.value(x)))  # [B, A, S, D]
        context = tf.transpose(context, [0, 2, 1, 3])
        return rows.take(tf.reshape(context, [-1, config.hidden_size])), probs


class ResidualOutput(keras.layers.Layer):
    """LayerNorm(residual + dropout(dense(x))), the end of each sub-layer.

    Args:
      config: `BertConfig`.
      input_width: width of `x`: H after attention, the intermediate size
        after the feed-forward layer.
      site: number of this layer's dropout within the model.
    """

    def __init__(self, config, input_width, site, **kwargs):
        super().__init__(**kwargs)
        self.config, self.input_width, self.site = config, input_width, site
        self.dense = layers.dense(config.hidden_size, config, "dense")
        self.layer_norm = layers.LayerNorm(config.layer_norm_eps, name="LayerNorm")

    def build(self, input_shape=None):
        """Create the projection and the normalisation."""
        self.dense.build((None, self.input_width))
        self.layer_norm.build((None, self.config.hidden_size))

    def call(self, x, residual, dropout_seed=None):
        """Map x [T, input_width] and residual [T, H] to [T, H]."""
        projected = layers.dropout(
            self.dense(x), self.config.hidden_dropout_prob, dropout_seed, self.site
        )
        return self.layer_norm(projected + residual)


class Attention(keras.layers.Layer):
    """Self-attention and its output projection (`attention/`)."""

    def __init__(self, config, first_site, **kwargs):
        super().__init__(**kwargs)
        self.self_attention = SelfAttention(config, first_site, name="self")
        self.attention_output = ResidualOutput(
            config, config.hidden_size, first_site + 1, name="output"
        )

    def build(self, input_shape=None):
        """Create both parts."""
        self.self_attention.build()
        self.attention_output.build()

    def call(self, x, bias, rows, dropout_seed=None):
        """Return (output [T, H], probabilities [B, A, S, S])."""
        context, probs = self.self_attention(
            x, bias, rows=rows, dropout_seed=dropout_seed
        )
        return self.attention_output(context, x, dropout_seed), probs


class Intermediate(keras.layers.Layer):
    """The wide half of the feed-forward layer (`intermediate/`)."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.dense = layers.dense(config.intermediate_size, config, "dense")
        self.activation = layers.activation(config.hidden_act)

    def build(self, input_shape=None):
        """Create the projection [H, intermediate]."""
        self.dense.build((None, self.config.hidden_size))

    def call(self, x):
        """Map [T, H] to [T, intermediate]."""
        return self.activation(self.dense(x))


class TransformerBlock(keras.layers.Layer):
    """`layer_<index>` of the encoder, post-norm as in the original.

    Args:
      config: `BertConfig`.
      index: number of the block, from 0.
    """

    def __init__(self, config, index, **kwargs):
        super().__init__(name=f"layer_{index}", **kwargs)
        # Site 0 is the embeddings'; each block has three of its own.
        site = 1 + 3 * index
        self.attention = Attention(config, site, name="attention")
        self.intermediate = Intermediate(config, name="intermediate")
        self.block_output = ResidualOutput(
            config, config.intermediate_size, site + 2, name="output"
        )

    def build(self, input_shape=None):
        """Create the three parts."""
        self.attention.build()
        self.intermediate.build()
        self.block_output.build()

    def call(self, x, bias, rows, dropout_seed=None):
        """Return (output [T, H], attention probabilities [B, A, S, S])."""
        attended, probs = self.attention(x, bias, rows=rows, dropout_seed=dropout_seed)
        wide = self.intermediate(attended)
        return self.block_output(wide, attended, dropout_seed), probs
