"""One Transformer block of the encoder: self-attention, then feed-forward.

The layers nest and are named so that each variable's path is the original's
name: `attention/self/query/kernel`, `attention/output/LayerNorm/gamma`,
`intermediate/dense/kernel`, `output/dense/kernel`.
"""

import math

import keras
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.modeling import element_wise, layers
from official_bert.modeling.dropout import SITES, dropout, hashed_dropout, mask_key
from official_bert.modeling.token_rows import GROUPS

# Added to the score of a padded position, as in the original. Unlike -1e9 it
# is finite in float16, and a row without any token stays a softmax.
MASKED_SCORE = -10000.0

# Each group of texts has dropout sites of its own.
GROUP_SITES = SITES // GROUPS


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


def attend(query, key, value, bias, rate, dropout_seed, site):
    """softmax(query · keyᵀ / √D + bias), dropped out, · value.

    Args:
      query: float [B, A, S, D].
      key: likewise.
      value: likewise.
      bias: float32 that broadcasts to [B, A, S, S], see `attention_bias`.
      rate: probability of zero.
      dropout_seed: int64 [2], or None in evaluation.
      site: number of this dropout within the model.

    Returns:
      (context [B, A, S, D], probabilities [B, A, S, S] before dropout).
    """
    if dropout_seed is not None and element_wise.is_compiled():
        mask = mask_key(dropout_seed, site)
        return _attend_in_few_passes(query, key, value, bias, mask, rate)
    probs = tf.cast(_attention_probs(query, key, bias), query.dtype)
    return tf.matmul(dropout(probs, rate, dropout_seed, site), value), probs


def _attention_probs(query, key, bias):
    """Return softmax(query · keyᵀ / √D + bias), float32 [B, A, S, S]."""
    scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)
    return tf.nn.softmax(scores * _score_factor(query) + bias)


def _score_factor(query):
    return 1.0 / math.sqrt(query.shape[-1])


def _attend_in_few_passes(query, key, value, bias, mask, rate):
    """Compute what `attend` does, in float32; its probabilities have no gradient.

    Behind a softmax each row of the gradient loses its mean over the S keys, weighted
    by the probabilities. That mean equals the product of `upstream` and the context,
    added up over the D places of a head (Dao et al., 2022), which are fewer.
    """

    @tf.custom_gradient
    def compute(query, key, value):
        probs = _attention_probs(query, key, bias)
        dropped = hashed_dropout(probs, mask, rate=rate)
        context = tf.matmul(dropped, value)

        def gradient(upstream, _):
            along = tf.reduce_sum(upstream * context, axis=-1, keepdims=True)
            d_dropped = tf.matmul(upstream, value, transpose_b=True)
            d_scores = _score_gradient(
                probs, d_dropped, along, mask, rate=rate, factor=_score_factor(query)
            )
            return (
                tf.matmul(d_scores, key),
                tf.matmul(d_scores, query, transpose_a=True),
                tf.matmul(dropped, upstream, transpose_a=True),
            )

        return (context, probs), gradient

    return compute(query, key, value)


@element_wise.in_one_pass
def _score_gradient(probs, d_dropped, along, mask, rate, factor):
    """Return the gradient of the scores before their factor, [B, A, S, S]."""
    d_probs = hashed_dropout(d_dropped, mask, rate=rate)
    return probs * (d_probs - along) * factor


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

    def call(self, x, biases, rows, dropout_seed=None):
        """Attend.

        Args:
          x: float [T, H].
          biases: of each group of `rows`, float32 [B, 1, 1, S] or [B, 1, S, S], from
            `attention_bias`.
          rows: `TokenRows` of `x`.
          dropout_seed: int64 [2], or None in evaluation.

        Returns:
          (context [T, H], attention probabilities [B, A, S, S] before dropout of each
          group).
        """
        config = self.config
        projected = [
            rows.split(projection(x))
            for projection in (self.query, self.key, self.value)
        ]
        contexts, probs = [], []
        for number, (*parts, bias) in enumerate(zip(*projected, biases, strict=True)):
            context, group_probs = attend(
                *map(self._heads, parts),
                # Keras hands all floats over in the layer's precision, the bias too.
                tf.cast(bias, tf.float32),
                config.attention_probs_dropout_prob,
                dropout_seed,
                self.site + number * GROUP_SITES,
            )
            context = tf.transpose(context, [0, 2, 1, 3])
            contexts.append(tf.reshape(context, tf.shape(parts[0])))
            probs.append(group_probs)
        return rows.join(contexts), probs

    def _heads(self, x):
        """[B, S, H] -> [B, A, S, D]."""
        heads = self.config.num_attention_heads
        shape = [*tf.unstack(tf.shape(x)[:2]), heads, self.config.head_size]
        return tf.transpose(tf.reshape(x, shape), [0, 2, 1, 3])


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
        rate = self.config.hidden_dropout_prob
        return self.layer_norm.of_sum(
            self.dense(x), residual, rate, dropout_seed, self.site
        )


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

    def call(self, x, biases, rows, dropout_seed=None):
        """Return (output [T, H], list of probabilities [B, A, S, S])."""
        context, probs = self.self_attention(
            x, biases, rows=rows, dropout_seed=dropout_seed
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
        if site + 2 >= GROUP_SITES:
            raise UserError(
                f"num_hidden_layers: layer {index} is one too many; up to "
                f"{(GROUP_SITES - 1) // 3} have dropout masks of their own."
            )
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

    def call(self, x, biases, rows, dropout_seed=None):
        """Return (output [T, H], list of attention probabilities [B, A, S, S])."""
        attended, probs = self.attention(
            x, biases, rows=rows, dropout_seed=dropout_seed
        )
        wide = self.intermediate(attended)
        return self.block_output(wide, attended, dropout_seed), probs
