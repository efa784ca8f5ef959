"""A fine-tuned model, read from its directory for any task."""

import dataclasses
import os
from collections.abc import Callable

from official_bert import files
from official_bert.checkpoints import any_format, google, model_directory, names
from official_bert.checkpoints.initialize import load_opened
from official_bert.errors import UserError
from official_bert.fine_tuning import tflite_model
from official_bert.fine_tuning.task_file import has_task, read_task
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size


@dataclasses.dataclass(frozen=True)
class FineTuned:
    """What `load` returns.

    Attributes:
      model: a Keras model, as `make_model` made it, or a `TfliteModel`.
      score: function: batch of features -> dict of arrays, see `scoring`.
      task: what it is for.
      tokenizer: `FullTokenizer`.
      global_step: the updates that the model has had; None where not known.
    """

    model: object
    score: Callable
    task: object
    tokenizer: FullTokenizer
    global_step: int | None


def load(
    path,
    task_class,
    make_model,
    make_scorer,
    head,
    task=None,
    task_of=lambda config: None,
    config_file=None,
    vocab_file=None,
    do_lower_case=None,
):
    """Load a fine-tuned model.

    Args:
      path: a finished fine-tuning's output directory; with `task`, any
        checkpoint that has the weights of its head, such as the original's; or a
        `.tflite` made of one, for which the rest that may be given does not count.
      task_class: class of its task, for `read_task`.
      make_model: function: (`BertConfig`, task) -> Keras model.
      make_scorer: function: Keras model -> function, see `scoring.make_scorer`.
      head: name of the weights that tell a model of this task, whose first
        axis is its number of outputs.
      task: instead of that of `task.json`.
      task_of: function: `BertConfig` -> the task that it tells of, or None.
      config_file: a `bert_config.json`; by default the checkpoint's own.
      vocab_file: a `vocab.txt`, likewise.
      do_lower_case: bool, likewise.

    Returns:
      `FineTuned`.

    Raises:
      UserError: something is missing or does not fit.
    """
    if tflite_model.find_file(path):
        return _load_tflite(tflite_model.find_file(path), task_class)
    global_step = None
    if has_task(path):
        found, global_step = read_task(path, task_class)
        task = task or found
    with any_format.opened(path) as checkpoint:
        if head not in checkpoint.shapes:
            raise UserError(
                f"{path} is not fine-tuned for {task_class.TASK!r}: it lacks {head}; "
                "train first (--do_train)."
            )
        config = model_directory.config_of(checkpoint, config_file)
        task = task or task_of(config)
        if task is None:
            read_task(path, task_class)  # Says what is missing.
        tokenizer = model_directory.tokenizer_of(checkpoint, vocab_file, do_lower_case)
        check_vocab_size(tokenizer.vocab, config, vocab_file or checkpoint.vocab_file)
        if global_step is None:
            global_step = checkpoint.global_step
        model = make_model(config, task)
        _check_outputs(path, checkpoint.shapes[head][0], _outputs_of(model, head))
        report = load_opened(model, checkpoint)
    if report.new:
        raise UserError(
            f"{path} is no whole model of its task: it lacks {', '.join(report.new)}."
        )
    limit = config.max_position_embeddings
    if task.max_seq_length > limit:
        raise UserError(
            f"max_seq_length is {task.max_seq_length}, and the model reads up to "
            f"{limit} tokens; choose a smaller one."
        )
    return FineTuned(model, make_scorer(model), task, tokenizer, global_step)


def _load_tflite(path, task_class):
    with tflite_model.carried_files(path) as folder:
        task, global_step = read_task(folder, task_class)
        tokenizer = _carried_tokenizer(folder)
    model = tflite_model.TfliteModel(path)
    return FineTuned(model, model, task, tokenizer, global_step)


def load_tflite(path):
    """Load a `.tflite` with the vocabulary that it carries.

    Args:
      path: its own, or that of the folder it was exported to.

    Returns:
      (`TfliteModel`, `FullTokenizer`).

    Raises:
      UserError: the file is damaged.
    """
    path = tflite_model.find_file(path)
    with tflite_model.carried_files(path) as folder:
        tokenizer = _carried_tokenizer(folder)
    return tflite_model.TfliteModel(path), tokenizer


def _carried_tokenizer(folder):
    """Return the `FullTokenizer` of the files that a `.tflite` carries."""
    place = os.path.join(folder, google.TOKENIZER_FILE)
    settings = files.read_json(place, "the casing of a vocabulary")
    if "do_lower_case" not in settings:
        raise UserError(f"{place} does not tell do_lower_case; export it again.")
    vocab_file = os.path.join(folder, google.VOCAB_FILE)
    return FullTokenizer(vocab_file, settings["do_lower_case"])


def _outputs_of(model, head):
    weights = {names.google_name(weight): weight for weight in model.weights}
    return weights[head].shape[0]


def _check_outputs(path, has, needs):
    if has != needs:
        raise UserError(
            f"{path} has a layer of {has} outputs, and the task asks for {needs}; give "
            "the model of that task."
        )
