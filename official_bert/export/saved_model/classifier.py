"""A fine-tuned classifier as a graph that takes raw text."""

from collections.abc import Iterable, Mapping

import tensorflow as tf

from official_bert.constants import CORE_OPS, WINDOW
from official_bert.export.saved_model import rows
from official_bert.export.saved_model.served_model import ServedModel
from official_bert.tables.labels import MULTI_LABEL, REGRESSION
from official_bert.tasks.classifier.predictor import ClassifierPredictor


class ServedClassifier(ServedModel):
    """Classifies texts or pairs of texts, like `ClassifierPredictor`."""

    def __init__(
        self,
        predictor: ClassifierPredictor,
        lengths: Iterable[int],
        is_pair: bool,
        tokenizer_ops: str = CORE_OPS,
    ):
        """Hold the model of a `ClassifierPredictor`; see `ServedModel`.

        `is_pair`: whether the graph has an input for a second text.
        """
        super().__init__(predictor, lengths, tokenizer_ops)
        self.what = f"{self.task.kind.replace('_', '-')} classifier"
        self.text_names = ("text", "text_b") if is_pair else ("text",)
        self.labels = self.task.labels

    def of_text(
        self, text: tf.Tensor, text_b: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Classify texts, string [B]; see `of_tokens`."""
        ids_a = self._tokenizer.ids(text)
        ids_b = rows.no_tokens(tf.size(text))
        if text_b is not None:
            ids_b = self._tokenizer.ids(text_b)
        # An empty second text counts as absent, decided before truncation.
        is_pair = tf.cast(rows.row_lengths(ids_b) > 0, tf.int32)
        room = self.task.max_seq_length - 2 - is_pair
        if self.task.long_text == WINDOW:
            of_text, ids_a, ids_b = cut_into_windows(ids_a, ids_b, room)
            logits = self._model(self._layout.lay_out(ids_a, ids_b))["logits"]
            number = tf.size(text)
            sums = tf.math.unsorted_segment_sum(logits, of_text, number)
            counts = tf.math.bincount(of_text, minlength=number, maxlength=number)
            return self._named(sums / tf.cast(counts, tf.float32)[:, None])
        ids_a, ids_b = rows.truncate_pairs(ids_a, ids_b, room)
        return self.of_tokens(self._layout.lay_out(ids_a, ids_b))

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Classify rows of ids, a dict of `INPUTS` int32 [B, S].

        Returns:
          dict. Single-label tasks: `label`, string [B], and `probabilities`,
          float32
          [B, C] in the order of the labels. Multi-label tasks: `labels`, string
          [B, C],
          "" where a label does not apply, and `probabilities`. Regression
          tasks:
          `value`, float32 [B].
        """
        return self._named(self._model(inputs)["logits"])

    def _named(self, logits):
        if self.task.kind == REGRESSION:
            return {"value": logits[:, 0]}
        names = tf.constant(self.task.labels)
        if self.task.kind == MULTI_LABEL:
            probabilities = tf.nn.sigmoid(logits)
            holds = tf.cast(probabilities, tf.float64) >= self.task.threshold
            return {
                "labels": tf.where(holds, names, ""),
                "probabilities": probabilities,
            }
        probabilities = tf.nn.softmax(logits)
        return {
            "label": tf.gather(names, tf.argmax(probabilities, axis=-1)),
            "probabilities": probabilities,
        }


def cut_into_windows(
    ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor, room: tf.Tensor
) -> tuple[tf.Tensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Cut pairs into windows like `classifier.features.convert_windows`.

    Args:
      ids_a: first texts, ragged int32 [N, (tokens)].
      ids_b: second texts, ragged int32 [N, (tokens)]; all empty for single
        texts.
      room: int32 [N], maximum number of tokens of both texts.

    Returns:
      (pair index of each window, int32 [W]; its two texts, ragged [W,
      (tokens)]).
    """
    length_a, length_b = rows.row_lengths(ids_a), rows.row_lengths(ids_b)
    first_is_long = length_a > length_b
    long, short = tf.maximum(length_a, length_b), tf.minimum(length_a, length_b)
    short = tf.where(long + short <= room, short, tf.minimum(short, room // 2))
    size = room - short
    # A pair without tokens also gets a window.
    windows = rows.make_windows(tf.maximum(long, 1), size, tf.maximum(size // 2, 1))
    of_pair, start = windows.rows, windows.starts
    long, short, first_is_long = (
        tf.gather(values, of_pair) for values in (long, short, first_is_long)
    )
    length = tf.minimum(windows.lengths, long)
    whole = tf.zeros_like(start)
    return (
        of_pair,
        *(
            rows.slice_rows(
                ids,
                tf.where(is_long, start, whole),
                tf.where(is_long, length, short),
                of_pair,
            )
            for ids, is_long in ((ids_a, first_is_long), (ids_b, ~first_is_long))
        ),
    )
