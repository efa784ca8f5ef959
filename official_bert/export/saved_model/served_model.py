"""Base class of models that take raw text."""

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import CORE_OPS, TF_TEXT_OPS
from official_bert.export.saved_model import rows, signatures
from official_bert.export.saved_model.row_model import RowModel
from official_bert.export.saved_model.signatures import (
    EXAMPLES,
    SERVING,
    TOKENS,
    Signature,
)
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tokenization import FullTokenizer
from official_bert.tokenization.graph import GraphTokenizer
from official_bert.tokenization.graph_tf_text import TfTextTokenizer


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
        tokenizer_ops: str = CORE_OPS,
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None,
    ):
        """Hold the model of a predictor or `checkpoints.model_directory.Bert`.

        `lengths`: see `rows.Layout`. `tokenizer_ops`: one of the constants
        `TOKENIZER_OPS`. `compute`: a function of a dict of `INPUTS`; default:
        the model.

        Raises:
          UserError: TensorFlow Text is not installed, or cannot use the
            vocabulary.
        """
        super().__init__()
        self.task: Any = getattr(source, "task", None)
        self._tokenizer = _graph_tokenizer(source.tokenizer, tokenizer_ops)
        self._layout = rows.Layout(source.tokenizer.vocab, lengths)
        self._model = RowModel(compute or source.model, source.model.weights)

    def signatures(self) -> dict[str, Signature]:
        """Return a dict of name -> `Signature`."""
        return {
            SERVING: signatures.of_strings(self.of_text, self.text_names),
            TOKENS: signatures.of_tokens(self.of_tokens),
            EXAMPLES: signatures.of_examples(self.of_tokens),
        }


def _graph_tokenizer(
    tokenizer: FullTokenizer, tokenizer_ops: str
) -> GraphTokenizer | TfTextTokenizer:
    """Return a `FullTokenizer` as a graph, with the given operations."""
    if tokenizer_ops == TF_TEXT_OPS:
        return TfTextTokenizer(tokenizer.vocab, tokenizer.do_lower_case)
    return GraphTokenizer(tokenizer.vocab, tokenizer.do_lower_case)
