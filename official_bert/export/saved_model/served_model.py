"""Base class of models that take raw text."""

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.export.saved_model import rows, signatures
from official_bert.export.saved_model.row_model import RowModel
from official_bert.export.saved_model.signatures import (
    EXAMPLES,
    SERVING,
    TOKENS,
    Signature,
)
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tokenization.graph import GraphTokenizer


class ServedModel(tf.Module):
    """A model as a graph that takes raw text, or token ids.

    Subclasses define `of_text`, a function of strings [B], and `of_tokens`, a
    function of a dict of `INPUTS`. Both return a dict of tensors.

    Attributes:
      what: description of the task.
      text_names: names of the inputs of `of_text`.
      labels: names of the classes or tags, or ().
      task: the predictor's task; None for a pre-trained model.
    """

    what: str = "pre-trained encoder"
    text_names: tuple[str, ...] = ("text",)
    labels: tuple[str, ...] = ()

    def __init__(
        self,
        source: Bert | TaskPredictor,
        lengths: Iterable[int],
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None,
    ):
        """Hold the model of a predictor or `checkpoints.model_directory.Bert`.

        `lengths`: see `rows.Layout`. `compute`: a function of a dict of
        `INPUTS`; default: the model.
        """
        super().__init__()
        self.task: Any = getattr(source, "task", None)
        vocab, do_lower_case = source.tokenizer.vocab, source.tokenizer.do_lower_case
        self._tokenizer = GraphTokenizer(vocab, do_lower_case)
        self._layout = rows.Layout(vocab, lengths)
        self._model = RowModel(compute or source.model, source.model.weights)

    def signatures(self) -> dict[str, Signature]:
        """Return a dict of name -> `Signature`."""
        return {
            SERVING: signatures.of_strings(self.of_text, self.text_names),
            TOKENS: signatures.of_tokens(self.of_tokens),
            EXAMPLES: signatures.of_examples(self.of_tokens),
        }
