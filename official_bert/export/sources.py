"""What an export is made of: a model's directory, of any kind."""

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


def predictor_of(
    path: str | os.PathLike[str], max_seq_length: int | None = None
) -> TaskPredictor | None:
    """Return what answers for a fine-tuned model; None for a pre-trained one.

    Args:
      path: a fine-tuned model's directory or what else `tasks.predictor.load` takes,
        or any pre-trained checkpoint with its vocabulary and config.
      max_seq_length: from the flag; a fine-tuned model has its own.

    Raises:
      UserError: something is missing or does not fit.
    """
    if tflite_model.find_file(path):
        raise UserError(
            f"{path} is an export already; give the directory that it was made from."
        )
    if not has_task(path) and not sentence_files.has_files(path):
        with any_format.opened(path) as checkpoint:
            # It may be fine-tuned, and show for what.
            if class_of(checkpoint) is None:
                return None
    predictor = load(path)
    if predictor.task.TASK not in EXPORTED_TASKS:
        raise UserError(
            f"{path} is a model of the task {predictor.task.TASK!r}, for which no "
            f"export is written; the tasks are {', '.join(EXPORTED_TASKS)}."
        )
    if max_seq_length:
        raise UserError(
            f"{path} is fine-tuned to read {predictor.task.max_seq_length} tokens; "
            "--max_seq_length is for pre-trained models."
        )
    return predictor


def load_pretrained(
    path: str | os.PathLike[str], max_seq_length: int | None = None
) -> tuple[Bert, bool, int]:
    """Load a pre-trained model, with its masked-LM head where it has one.

    The longest row is `max_seq_length`, or all that the model reads.

    Returns:
      (`Bert`, whether it has the head, the longest row).

    Raises:
      UserError: something is missing, or the model cannot read rows so long.
    """
    with any_format.opened(path) as checkpoint:
        has_head = "cls/predictions/output_bias" in checkpoint.shapes
        if "output_weights" in checkpoint.shapes:
            logging.warning(
                "%s was fine-tuned, and no file says for what: its output_weights "
                "are left out of the export.",
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
            f"--max_seq_length is {longest}: it must be from 3 to {limit}, which "
            "is all that the model reads."
        )
    return bert, has_head, longest


def files_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the files that go along: those of a directory that say what it is.

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
    """Write `vocab.txt` and, where a model has labels, `labels.txt`: a name a line.

    Raises:
      UserError: a label is of several lines.
    """
    for label in labels:
        if len(label.splitlines()) > 1:
            raise UserError(
                f"The label {label!r} is of several lines, and {LABELS_FILE} has one "
                "for each label; give it another name and train again."
            )
    for name, lines in ((google.VOCAB_FILE, tokenizer.vocab), (LABELS_FILE, labels)):
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            files.write_text(os.path.join(folder, name), text)


def up_to(lengths: Iterable[int], longest: int) -> tuple[int, ...]:
    """Return the lengths below the longest, and that."""
    return (*(n for n in sorted(set(lengths)) if n < longest), longest)
