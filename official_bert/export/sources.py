"""Load the source of an export: any model directory."""

import os
from collections.abc import Iterable, Sequence

from absl import logging

from official_bert import files
from official_bert.checkpoints import any_format, google, model_directory
from official_bert.checkpoints.huggingface import sentence_files
from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import CLASSIFIER, EMBEDDING, MULTIPLE_CHOICE, NER, SQUAD
from official_bert.errors import UserError
from official_bert.fine_tuning import tflite_model
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.fine_tuning.task_file import TASK_FILE, has_task
from official_bert.tasks.predictor import class_of, load
from official_bert.tokenization.full import FullTokenizer

LABELS_FILE = "labels.txt"
EXPORTED_TASKS = (CLASSIFIER, SQUAD, NER, MULTIPLE_CHOICE, EMBEDDING)
# Rows are padded to the first of these that fits; see `rows.Layout`.
LENGTHS = (16, 32, 64, 128, 256, 512)
# A SavedModel has one graph for all lengths, so more lengths cost nothing. Rows get at
# most 31 positions of padding; those of up to 64 tokens at most 7.
SERVER_LENGTHS = (*range(8, 65, 8), *range(80, 257, 16), *range(288, 513, 32))


def predictor_of(
    path: str | os.PathLike[str], max_seq_length: int | None = None
) -> TaskPredictor | None:
    """Return the predictor of a fine-tuned model; None for a pre-trained model.

    Args:
      path: a fine-tuned model directory or another input of
        `tasks.predictor.load`, or a pre-trained checkpoint with vocabulary and
        config.
      max_seq_length: value of the flag; fine-tuned models have their own.

    Raises:
      UserError: a file or weight is missing or does not fit.
    """
    if tflite_model.find_file(path):
        raise UserError(
            f"{path} is already an export. Give the model directory that it "
            "was made from."
        )
    if not has_task(path) and not sentence_files.has_files(path):
        with any_format.opened(path) as checkpoint:
            # The weights may show that it is fine-tuned, and for which task.
            if class_of(checkpoint) is None:
                return None
    predictor = load(path)
    if predictor.task.TASK not in EXPORTED_TASKS:
        raise UserError(
            f"Models of the task {predictor.task.TASK!r} cannot be exported: "
            f"{path}. Supported tasks: {', '.join(EXPORTED_TASKS)}."
        )
    if max_seq_length:
        raise UserError(
            f"{path} is fine-tuned for {predictor.task.max_seq_length} tokens, "
            "but --max_seq_length is only for pre-trained models. Remove the "
            "flag."
        )
    return predictor


def load_pretrained(
    path: str | os.PathLike[str], max_seq_length: int | None = None
) -> tuple[Bert, bool, int]:
    """Load a pre-trained model, with its masked-LM head if it has one.

    The longest row has `max_seq_length` tokens; default: the model's limit.

    Returns:
      (`Bert`, whether it has the head, the longest row).

    Raises:
      UserError: a file or weight is missing, or the length exceeds the model's
        limit.
    """
    with any_format.opened(path) as checkpoint:
        has_head = "cls/predictions/output_bias" in checkpoint.shapes
        if "output_weights" in checkpoint.shapes:
            logging.warning(
                "%s was fine-tuned, but no file states its task. The export "
                "does not contain its output_weights.",
                path,
            )
    if has_head:
        bert = model_directory.load(path, next_sentence=False)
    else:
        bert = model_directory.load_encoder(path)
    limit = bert.config.max_position_embeddings
    longest = max_seq_length or limit
    if not 3 <= longest <= limit:
        raise UserError(
            f"--max_seq_length={longest} is out of range. Use a number from 3 "
            f"to {limit}, the model's limit."
        )
    return bert, has_head, longest


def files_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the description files of a model directory, to copy into an export.

    Returns:
      dict of name -> path.
    """
    names = [google.CONFIG_FILE, google.TOKENIZER_FILE]
    names += [TASK_FILE] * has_task(path)
    paths = {name: os.path.join(path, name) for name in names}
    return {name: path for name, path in paths.items() if files.is_file(path)}


def write_names(
    folder: str | os.PathLike[str], tokenizer: FullTokenizer, labels: Sequence[str]
) -> None:
    """Write `vocab.txt` and, if the model has labels, `labels.txt`: one name per line.

    Raises:
      UserError: a label contains a line break.
    """
    for label in labels:
        if len(label.splitlines()) > 1:
            raise UserError(
                f"The label {label!r} contains a line break, but {LABELS_FILE} "
                "has one line per label. Rename the label and train again."
            )
    for name, lines in ((google.VOCAB_FILE, tokenizer.vocab), (LABELS_FILE, labels)):
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            files.write_text(os.path.join(folder, name), text)


def up_to(lengths: Iterable[int], longest: int) -> tuple[int, ...]:
    """Return the lengths below the longest, and the longest."""
    return (*(n for n in sorted(set(lengths)) if n < longest), longest)
