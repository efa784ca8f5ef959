"""A fine-tuned multiple-choice model as a graph that takes raw text."""

from collections.abc import Iterable, Mapping

import tensorflow as tf

from official_bert.constants import CORE_OPS, INPUTS
from official_bert.export.saved_model import rows, signatures
from official_bert.export.saved_model.served_model import ServedModel
from official_bert.export.saved_model.signatures import SERVING, TOKENS, Signature
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.choice.training import outputs_of


class ServedChoice(ServedModel):
    """Chooses the best choice for each prompt, like `ChoicePredictor`."""

    what = "multiple choice"

    def __init__(
        self,
        predictor: ChoicePredictor,
        lengths: Iterable[int],
        tokenizer_ops: str = CORE_OPS,
    ):
        """Hold the model of a `ChoicePredictor`; see `ServedModel`."""
        super().__init__(predictor, lengths, tokenizer_ops, outputs_of(predictor.model))

    def signatures(self) -> dict[str, Signature]:
        """Return a dict of name -> `Signature`.

        There is no signature for records, because a record cannot hold several
        rows.
        """
        return {
            SERVING: signatures.of_strings(self.of_text, ("prompt",), ("choices",)),
            TOKENS: signatures.of_tokens(self.of_tokens, rank=3),
        }

    def of_text(self, prompt: tf.Tensor, choices: tf.Tensor) -> dict[str, tf.Tensor]:
        """Choose for each prompt.

        Args:
          prompt: string [B].
          choices: string [B, C].

        Returns:
          dict: `index` int32 [B], from 0; `choice` string [B], its text;
          `probabilities` float32 [B, C].
        """
        number = tf.shape(choices)[1]
        # Each choice truncates its copy of the prompt separately.
        of_prompt = tf.repeat(tf.range(tf.size(prompt)), number)
        ids_a = tf.gather(self._tokenizer.ids(prompt), of_prompt)
        ids_b = self._tokenizer.ids(tf.reshape(choices, [-1]))
        has_second = tf.cast(rows.row_lengths(ids_b) > 0, tf.int32)
        room = self.task.max_seq_length - 2 - has_second
        inputs = self._layout.lay_out(*rows.truncate_pairs(ids_a, ids_b, room))
        logits = tf.reshape(self._model(inputs)["logits"], tf.shape(choices))
        best = _chosen(logits)
        text = tf.gather(choices, best["index"], axis=1, batch_dims=1)
        return {**best, "choice": text}

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Choose among rows of ids, a dict of `INPUTS` int32 [B, C, S].

        Returns:
          dict: `index` and `probabilities`, see `of_text`.
        """
        shape = tf.shape(inputs["input_ids"])
        flat = {name: tf.reshape(inputs[name], [-1, shape[2]]) for name in INPUTS}
        return _chosen(tf.reshape(self._model(flat)["logits"], shape[:2]))


def _chosen(logits):
    return {
        "index": tf.argmax(logits, axis=1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(logits),
    }
