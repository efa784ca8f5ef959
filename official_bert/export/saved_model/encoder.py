"""A pre-trained or embedding encoder as a graph that takes raw text."""

from collections.abc import Iterable, Mapping

import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import CORE_OPS, WINDOW
from official_bert.export.saved_model import rows
from official_bert.export.saved_model.classifier import cut_into_windows
from official_bert.export.saved_model.row_model import TOKENS, RowModel
from official_bert.export.saved_model.served_model import ServedModel
from official_bert.export.saved_model.signatures import (
    ATTENTION,
    FILL_MASK,
    Signature,
    of_strings,
)
from official_bert.export.saved_model.texts import per_text
from official_bert.modeling.embedding.model import normalized
from official_bert.pretrained.fill_mask import MASK
from official_bert.tasks.embedding.vectors import EmbeddingPredictor

# Predicted tokens per mask.
TOP_K = 5


class ServedEncoder(ServedModel):
    """Encodes texts as vectors; texts above the last of the lengths are truncated."""

    def __init__(
        self, bert: Bert, lengths: Iterable[int], tokenizer_ops: str = CORE_OPS
    ):
        """Hold the model of a `Bert`; see `ServedModel`."""
        super().__init__(bert, lengths, tokenizer_ops, bert.outputs)
        vocab, config = bert.tokenizer.vocab, bert.config
        self._mask = vocab.get(MASK)
        self._names = list(vocab)
        self._counts = {
            "layer": config.num_hidden_layers,
            "head": config.num_attention_heads,
        }

        def attend(inputs):
            maps = bert.encoder(inputs, output_attention_probs=True)["attention_probs"]
            # Of each layer only the chosen head: [B, L, S, S].
            maps = [
                tf.gather(one, inputs["head"], axis=1, batch_dims=1) for one in maps
            ]
            maps = tf.stack(maps, 1)
            maps = tf.gather(maps, inputs["layer"], axis=1, batch_dims=1)
            is_token = tf.cast(inputs["input_mask"], tf.float32)
            return {"attention_probs": maps * is_token[:, :, None]}

        specs = {name: tf.TensorSpec([None], tf.int32, name) for name in self._counts}
        # One row at a time: all maps of a long row already take much memory.
        self._maps = RowModel(attend, bert.encoder.weights, {**TOKENS, **specs}, 1)

    def signatures(self) -> dict[str, Signature]:
        """Return a dict of name -> `Signature`."""
        number = tf.TensorSpec([None], tf.int32)
        specs = {"text": tf.TensorSpec([None], tf.string)}
        attention = Signature(
            self.attention, specs | dict.fromkeys(self._counts, number)
        )
        return {**super().signatures(), ATTENTION: attention}

    def of_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encode texts, string [B].

        Returns:
          dict: `pooled_output` float32 [B, H], if the model has a pooler;
          `sequence_output` [B, S, H]; and `input_ids` and `input_mask`, int32
          [B, S],
          the tokens of the vectors.
        """
        inputs = self._lay_out(self._tokenizer.ids(text))
        names = ("input_ids", "input_mask")
        return {**self._model(inputs), **{name: inputs[name] for name in names}}

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Encode rows of ids, a dict of `INPUTS` int32 [B, S].

        Returns:
          dict: `pooled_output` and `sequence_output`, see `of_text`.
        """
        return self._model(inputs)

    def attention(
        self, text: tf.Tensor, layer: tf.Tensor, head: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the attention map of one layer and head, see `attention_maps`.

        Args:
          text: string [B]; `[MASK]` in it is the mask token.
          layer: int32 [B], from 0; -1 is the last one.
          head: int32 [B], also.

        Returns:
          dict: `tokens` string [B, S], "" for padding; `attention_probs` float32
          [B, S, S]: token that attends, token that it attends to. Padding has 0.

        Raises:
          InvalidArgumentError: the model does not have this layer or head.
        """
        inputs = self._lay_out(self._ids_with_masks(text))
        numbers = {
            name: _from_start(values, self._counts[name], name, tf.size(text))
            for name, values in (("layer", layer), ("head", head))
        }
        tokens = tf.gather(self._names, inputs["input_ids"])
        return {
            "tokens": tf.where(inputs["input_mask"] > 0, tokens, ""),
            **self._maps({**inputs, **numbers}),
        }

    def _ids_with_masks(self, text):
        """Return the ids of texts, ragged; each `[MASK]` is one token."""
        if self._mask is None:
            return self._tokenizer.ids(text)
        # As in `encode_with_masks`.
        parts = tf.strings.split(text, MASK)
        ids = self._tokenizer.ids(parts.values)
        of_text = tf.cast(parts.value_rowids(), tf.int32)
        # A mask follows each part of a text except the last.
        is_last = of_text != tf.concat([of_text[1:], [-1]], 0)
        ids = rows.with_token(ids, ~is_last, self._mask)
        return rows.joined(ids, of_text, tf.size(text))

    def _lay_out(self, ids):
        ids = ids[:, : self._layout.lengths[-1] - 2]
        return self._layout.lay_out(ids, rows.no_tokens(ids.nrows(tf.int32)))


class ServedEmbedding(ServedModel):
    """Encodes each text as one vector, like `EmbeddingPredictor.vectors`."""

    what = "sentence embeddings"

    def __init__(
        self,
        predictor: EmbeddingPredictor,
        lengths: Iterable[int],
        tokenizer_ops: str = CORE_OPS,
    ):
        """Hold the model of an `EmbeddingPredictor`; see `ServedModel`."""
        super().__init__(predictor, lengths, tokenizer_ops, predictor.model.embedding)

    def of_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return a dict with `embedding` float32 [B, size] for texts, string [B]."""
        ids = self._tokenizer.ids(text)
        number, room = tf.size(text), self.task.max_seq_length - 2
        none = rows.no_tokens(number)
        if self.task.long_text != WINDOW:
            return self._model(self._layout.lay_out(ids[:, :room], none))
        windows = cut_into_windows(ids, none, tf.fill([number], room))
        of_text, *texts = windows
        vectors = self._model(self._layout.lay_out(*texts))["embedding"]
        sums = tf.math.unsorted_segment_sum(vectors, of_text, number)
        counts = tf.math.bincount(of_text, minlength=number, maxlength=number)
        means = sums / tf.cast(counts, tf.float32)[:, None]
        if self.task.normalize:
            means = tf.where(counts[:, None] > 1, normalized(means), means)
        return {"embedding": means}

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return a dict with `embedding` for rows of ids, `INPUTS` int32 [B, S]."""
        return self._model(inputs)


class ServedMaskedLM(ServedEncoder):
    """Encodes texts as vectors, and predicts words for `[MASK]` like `fill_mask`."""

    def __init__(
        self, bert: Bert, lengths: Iterable[int], tokenizer_ops: str = CORE_OPS
    ):
        """Hold the `PretrainingModel` of a `Bert`; see `ServedModel`."""
        super().__init__(bert, lengths, tokenizer_ops)
        model, tokenizer = bert.model, bert.tokenizer
        self._mask = tokenizer.vocab[MASK]  # The head needs it.

        def fill(inputs):
            vectors = inputs["vectors"][None]
            positions = tf.range(tf.shape(vectors)[1])[None]
            logits = model.cls.predictions(
                vectors, positions, model.bert.embedding_table
            )
            logits = logits[0, :, : len(tokenizer.vocab)]
            values, ids = tf.math.top_k(tf.nn.softmax(logits), TOP_K)
            return {"probabilities": values, "ids": ids}

        width = model.config.hidden_size
        specs = {"vectors": tf.TensorSpec([None, width], tf.float32, "vectors")}
        self._head = RowModel(fill, model.weights, specs)

    def signatures(self) -> dict[str, Signature]:
        """Return a dict of name -> `Signature`."""
        fill_mask = of_strings(self.fill_mask, self.text_names)
        return {**super().signatures(), FILL_MASK: fill_mask}

    def fill_mask(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the most likely tokens for each `[MASK]` in texts, string [B].

        Returns:
          dict: `tokens` string [B, M, K] and `probabilities` float32 [B, M, K].
            M is
          the largest number of masks in a text; other texts are padded with ""
          and 0.
        """
        inputs = self._lay_out(self._ids_with_masks(text))
        vectors = self._model(inputs)["sequence_output"]
        where = tf.where(inputs["input_ids"] == self._mask)
        pieces = self._head({"vectors": tf.gather_nd(vectors, where)})
        of_text, number = where[:, 0], tf.size(text)
        tokens = tf.gather(self._names, pieces["ids"])
        return {
            "tokens": per_text(tokens, of_text, number, ""),
            "probabilities": per_text(pieces["probabilities"], of_text, number, 0.0),
        }


def _from_start(numbers, count, name, size):
    """Return numbers of layers or heads, int32 [size], counted from 0."""
    is_right = tf.size(numbers) == size
    is_right &= tf.reduce_all((numbers >= -count) & (numbers < count))
    message = f"{name} must be a number from {-count} to {count - 1} for each text."
    with tf.control_dependencies([tf.debugging.Assert(is_right, [message])]):
        return tf.where(numbers < 0, numbers + count, numbers)
