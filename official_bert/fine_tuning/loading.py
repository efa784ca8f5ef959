"""Load a fine-tuned model from its directory: the base class of all predictors."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from official_bert import files
from official_bert.checkpoints import any_format, google, model_directory, names
from official_bert.checkpoints.initialize import load_opened
from official_bert.errors import UserError
from official_bert.fine_tuning import tflite_model
from official_bert.fine_tuning.task_file import Task, has_task, read_task
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size


class TaskPredictor:
    """A fine-tuned model, loaded once. Each task has a subclass.

    Several threads may call its methods at the same time. The first call compiles
    the model, and texts of other lengths or numbers never compile it again.

    A subclass defines the class attributes and the functions below them, and the
    methods `predict`, `make_example`, `features`, `outputs` and `results`.

    Attributes:
      task_class: class of the task in `task.json`.
      architecture: Hugging Face's class of the model, if that class exists for this
        task only; else None.
      head: name of the weights of the task's output layer. Their first axis is the
        number of outputs.
      model: the Keras model, or a `TfliteModel`.
      task: an instance of `task_class`.
      tokenizer: `FullTokenizer`.
      global_step: training steps of the model; None if unknown.
      batch_size: number of inputs per batch, unless `outputs` gets another number.
    """

    task_class: ClassVar[type[Task]]
    architecture: ClassVar[str | None] = None
    head: ClassVar[str] = "output_weights"

    # (`BertConfig`, task) -> Keras model.
    make_model: ClassVar[Callable[..., keras.Model]]
    # Keras model -> function: batch -> dict of arrays; see `outputs.compile_model`.
    compile_model: ClassVar[Callable[..., Callable[..., dict[str, np.ndarray]]]]
    # `BertConfig` of a model without `task.json` -> task, or None if unknown.
    task_of: ClassVar[Callable[..., Any]]
    # The public method: one or several inputs of the task -> their results.
    predict: ClassVar[Callable[..., Any]]

    model: Any
    task: Any
    tokenizer: FullTokenizer
    global_step: int | None
    batch_size: int

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 32,
        task: Any = None,
        config_file: str | None = None,
        vocab_file: str | None = None,
        do_lower_case: bool | None = None,
    ):
        """Load a model.

        Args:
          path: output directory of a finished fine-tuning; a Hugging Face model whose
            config describes the task; a `.tflite` file made from one of them; or, with
            `task`, any checkpoint with the weights of its head, such as the original's.
            A `.tflite` file ignores the arguments after `batch_size`.
          batch_size: number of inputs (texts, windows or choices) per batch.
          task: replaces the task in `task.json`.
          config_file: a `bert_config.json`; by default the checkpoint's.
          vocab_file: a `vocab.txt`; by default the checkpoint's.
          do_lower_case: bool; by default the setting in the checkpoint's files.

        Raises:
          UserError: a file is missing, or files do not match.
        """
        self.batch_size = batch_size
        tflite_file = tflite_model.find_file(path)
        if tflite_file:
            self.model, self.tokenizer, task_of_file = load_tflite(
                tflite_file, self.task_class
            )
            self.task, self.global_step = task_of_file
            self._run_batch = self.model
            return
        self.global_step = None
        if has_task(path):
            task_in_file, self.global_step = read_task(path, self.task_class)
            task = task or task_in_file
        with any_format.opened(path) as checkpoint:
            self._require_head(path, checkpoint)
            config = model_directory.config_of(checkpoint, config_file)
            self.task = task or self.task_of(config)
            if self.task is None:
                read_task(path, self.task_class)  # Raises the error.
            self.tokenizer = model_directory.tokenizer_of(
                checkpoint, vocab_file, do_lower_case
            )
            vocab_file = vocab_file or checkpoint.vocab_file
            assert vocab_file is not None  # Otherwise `tokenizer_of` has failed.
            check_vocab_size(self.tokenizer.vocab, config, vocab_file)
            if self.global_step is None:
                self.global_step = checkpoint.global_step
            self.model = self.make_model(config, self.task)
            self._load_weights(path, checkpoint)
        _check_length(self.task, config)
        self._run_batch = self.compile_model(self.model)

    def _require_head(self, path, checkpoint):
        if self.head not in checkpoint.shapes:
            raise UserError(
                f"{path} is not fine-tuned for {self.task_class.TASK!r}: it has no "
                f"weights {self.head}. Train first (--do_train)."
            )

    def _load_weights(self, path, checkpoint):
        weights = {names.google_name(each): each for each in self.model.weights}
        has, needs = checkpoint.shapes[self.head][0], weights[self.head].shape[0]
        if has != needs:
            raise UserError(
                f"The output layer of {path} has {has} outputs, but the task needs "
                f"{needs}. Give the model of this task."
            )
        missing = load_opened(self.model, checkpoint).new
        if missing:
            raise UserError(
                f"{path} is incomplete: it lacks {', '.join(missing)}. Use another "
                "copy, or train again."
            )

    def predict_all(self, inputs: Iterable[Any]) -> Any:
        """Return a result for each input, in their order.

        Args:
          inputs: iterable of values that `make_example` accepts.

        Raises:
          TypeError: an input has the wrong type for the task.
        """
        examples = [self.make_example(*numbered) for numbered in enumerate(inputs)]
        if not examples:
            return []
        return self.results(examples, self.outputs(examples, self.features(examples)))

    def make_example(self, number: int, value: Any, /) -> Any:
        """Return the example of one input. Error messages show `number`."""
        raise NotImplementedError

    def features(self, examples: Sequence[Any]) -> Any:
        """Return the features of a list of examples, in the form of this task."""
        raise NotImplementedError

    def outputs(self, examples: Sequence[Any], features: Any) -> Any:
        """Return the model outputs for N examples: logits, tags or spans."""
        raise NotImplementedError

    def results(self, examples: Sequence[Any], outputs: Any) -> list[Any]:
        """Return the result of each example, with names and texts."""
        raise NotImplementedError

    def to_json(self, value: Any, result: Any) -> dict[str, Any]:
        """Return the result of an input as a dict for JSON, with 6 decimal places."""
        return result.to_dict()


def load_tflite(
    path: str | os.PathLike[str], task_class: type[Task] | None = None
) -> tuple[tflite_model.TfliteModel, FullTokenizer, Any]:
    """Load a `.tflite` file and the files inside it.

    Args:
      path: the file, or the folder with the exported file.
      task_class: class of its task; None for a model without a task.

    Returns:
      (`TfliteModel`, `FullTokenizer`, None or (task, global step)).

    Raises:
      UserError: the file does not exist, is damaged, or has another task.
    """
    file = tflite_model.find_file(path)
    if not file:
        raise UserError(
            f"{path} is not a .tflite file or a folder with one. Export the model with "
            "export_model.py --format=tflite."
        )
    with tflite_model.carried_files(file) as folder:
        task = read_task(folder, task_class) if task_class else None
        settings_file = os.path.join(folder, google.TOKENIZER_FILE)
        settings = files.read_json(settings_file, "the casing of a vocabulary")
        if "do_lower_case" not in settings:
            raise UserError(
                f"{settings_file} has no do_lower_case. Export the model again."
            )
        vocab_file = os.path.join(folder, google.VOCAB_FILE)
        tokenizer = FullTokenizer(vocab_file, settings["do_lower_case"])
    return tflite_model.TfliteModel(file), tokenizer, task


def _check_length(task, config):
    limit = config.max_position_embeddings
    if task.max_seq_length > limit:
        raise UserError(
            f"max_seq_length is {task.max_seq_length}, but the model reads at most "
            f"{limit} tokens. Choose a smaller length."
        )
