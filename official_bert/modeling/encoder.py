"""`BertEncoder`: token ids in, contextual vectors out."""

import functools
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling import layers, transformer
from official_bert.modeling.dropout import NUM_INDICES
from official_bert.modeling.embeddings import Embeddings
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


@keras.saving.register_keras_serializable("official_bert")
class BertEncoder(keras.layers.Layer):
    """The bidirectional Transformer encoder with its pooler (Sec. 3).

    With `causal_attention` it is the left-to-right encoder of Sec. 5.1. In that
    encoder `[CLS]` sees only itself. The pooler therefore reads the last token,
    `[SEP]`, which sees the whole text. The paper does not say which token its pooler
    read.

    Follows `BertModel` in google-research/bert `modeling.py`. It is an ordinary Keras
    layer for functional models, `fit` and saving. In your own `GradientTape` loop, pass
    `dropout_seed`: the dropout masks of a step are a pure function of it.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      recompute: keep only each block's input for the backward pass and compute the
        rest of the block again. This saves memory and adds a third more work.
        Attention maps are then not returned.
      name: "bert", the root of the original's variable names.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        recompute: bool = False,
        name: str = "bert",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config = BertConfig.of(config)
        self.embeddings = Embeddings(config, name="embeddings")
        self.recompute = recompute
        self.encoder = Encoder(config, recompute, name="encoder")
        self.pooler = Pooler(config, name="pooler")
        # Used only if the caller gives no seed, as in `fit`.
        self.seed_generator = keras.random.SeedGenerator()
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create all variables; the config alone decides their shapes."""
        if not self.built:
            self.embeddings.build()
            self.encoder.build()
            self.pooler.build()
            self.built: bool = True

    @property
    def embedding_table(self) -> keras.Variable:
        """The word embeddings [V, H], which the masked-LM head shares."""
        return self.embeddings.word_embeddings

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        output_attention_probs: bool = False,
        output_embedding_table: bool = False,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, Any]:
        """Return the hidden states of a batch.

        Args:
          inputs: dict with `input_ids` int [B, S], and optionally
            `input_mask` [B, S] (default: all tokens are real) and
            `segment_ids` [B, S] (default: all 0). Rows of several sequences
            (`data.packed_rows`) have other keys instead of `input_mask`:
            `sequence_numbers` [B, S], from 1, with 0 for padding;
            `position_ids` [B, S]; and `pooled_positions` [B, N].
          training: whether dropout is active.
          dropout_seed: int64 [2], see `dropout.dropout`; default: drawn here.
          output_attention_probs: whether to return the attention maps.
          output_embedding_table: whether to return the word embeddings as a
            tensor, for a `MaskedLM`. Some kernels then add both gradients of the
            table in one matrix. A functional model must take the table from here:
            Keras saves a variable among the arguments as a constant.
          kernels: `Kernels`, the functions of the layers; see `kernels.choose`.

        Returns:
          dict of float tensors:
          `sequence_output` [B, S, H];
          `pooled_output` [B, H] or [B * N, H];
          `embedding_output` [B, S, H];
          `all_encoder_layers`, a list of L tensors [B, S, H];
          on request `attention_probs`, a list of L tensors [B, A, S, S];
          on request `embedding_table` [V, H].

        Raises:
          UserError: S is larger than `max_position_embeddings`.
        """
        input_ids = inputs["input_ids"]
        self._check_length(input_ids.shape[1])
        packed = "sequence_numbers" in inputs
        input_mask = inputs.get("sequence_numbers" if packed else "input_mask")
        segment_ids = inputs.get("segment_ids")
        if input_mask is None:
            input_mask = tf.ones_like(input_ids)
        if segment_ids is None:
            segment_ids = tf.zeros_like(input_ids)
        seed = self.draw_dropout_seed(training, dropout_seed)

        causal = self.config.causal_attention
        bias_of = functools.partial(
            transformer.attention_bias,
            masked_score=kernels.masked_score,
            causal=causal,
            packed=packed,
        )
        packing, bias = None, bias_of(input_mask)
        if kernels.pack and seed is not None and not output_attention_probs:
            packing = kernels.pack(input_mask)
            bias = [bias_of(mask) for mask in packing.masks]
            kernels = packing.wrap(kernels)
        how = {"kernels": kernels, "dropout_seed": seed}
        embedded, table = self.embeddings(
            input_ids,
            segment_ids,
            position_ids=inputs.get("position_ids"),
            packing=packing,
            **how,
        )
        all_layers, all_probs = self.encoder(embedded, bias, **how)

        def unflatten(x):  # [T, H] -> [B, S, H]
            x = packing.unpack(x) if packing else x
            return tf.reshape(x, [*tf.unstack(tf.shape(input_ids)), x.shape[-1]])

        all_layers = [unflatten(x) for x in all_layers]
        tokens = self._pooled_tokens(all_layers[-1], inputs, input_mask)
        outputs = {
            "sequence_output": all_layers[-1],
            "pooled_output": self.pooler(tokens),
            "embedding_output": unflatten(embedded),
            "all_encoder_layers": all_layers,
        }
        if output_attention_probs:
            outputs["attention_probs"] = all_probs
        if output_embedding_table:
            outputs["embedding_table"] = table
        return outputs

    def _pooled_tokens(self, x, inputs, input_mask):
        """Return the vectors that the pooler reads, [B, H] or [B * N, H]."""
        if "pooled_positions" in inputs:
            tokens = tf.gather(x, inputs["pooled_positions"], batch_dims=1)
            return tf.reshape(tokens, [-1, tokens.shape[-1]])
        if self.config.causal_attention:
            return transformer.last_token(x, input_mask)
        return x[:, 0]

    def _check_length(self, length):
        limit = self.config.max_position_embeddings
        if length is not None and length > limit:
            raise UserError(
                f"The sequence length {length} is larger than the model's "
                f"max_position_embeddings {limit}. Use shorter sequences."
            )

    def draw_dropout_seed(
        self, training: bool, dropout_seed: tf.Tensor | None = None
    ) -> tf.Tensor | None:
        """Return the seed of one call, int64 [2], or None for no dropout.

        A model with dropout before its head calls this, so that the encoder and the
        head use the same seed with different dropout indices.

        Args:
          training: whether dropout is active.
          dropout_seed: the caller's seed; None draws one.
        """
        if not training:
            return None
        if dropout_seed is not None:
            return dropout_seed
        state = tf.cast(self.seed_generator.next(), tf.int64)
        return state * tf.constant([1, NUM_INDICES], tf.int64)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"config": self.config.to_dict(), "recompute": self.recompute}
        return {**super().get_config(), **own}


class Encoder(keras.layers.Layer):
    """The stack of Transformer blocks (`encoder/`)."""

    def __init__(self, config: BertConfig, recompute: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.recompute = recompute
        self.blocks = [
            transformer.TransformerBlock(config, index)
            for index in range(config.num_hidden_layers)
        ]

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the blocks' variables."""
        for block in self.blocks:
            block.build()

    def call(
        self,
        x: tf.Tensor,
        bias: tf.Tensor | list[tf.Tensor],
        kernels: Kernels,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor | None]]:
        """Return (outputs [T, H] of all blocks, their attention probabilities)."""
        how = {"kernels": kernels, "dropout_seed": dropout_seed}
        all_layers, all_probs = [], []
        for block in self.blocks:
            if self.recompute:
                x, probs = _recomputed(block, x, bias, how), None
            else:
                x, probs = block(x, bias, **how)
            all_layers.append(x)
            all_probs.append(probs)
        return all_layers, all_probs


def _recomputed(block, x, bias, how):
    """Return a block's output, keeping only its input for the backward pass.

    Dropout masks are functions of the seed, so both computations use the same ones.
    """
    return tf.recompute_grad(lambda x: block(x, bias, **how)[0])(x)


class Pooler(keras.layers.Layer):
    """tanh(dense(x)) of a token's vector; for `[CLS]` the text vector C (Sec. 3)."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.dense = layers.dense(config.hidden_size, config, "dense")

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the projection [H, H]."""
        self.dense.build((None, self.config.hidden_size))

    def call(self, token: tf.Tensor) -> tf.Tensor:
        """Map [B, H] to [B, H]."""
        return tf.tanh(self.dense(token))
