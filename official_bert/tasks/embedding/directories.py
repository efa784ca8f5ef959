"""Read and write embedding models' `task.json` and sentence-transformers files."""

import os

from official_bert import files
from official_bert.checkpoints.huggingface import config_json, sentence_files
from official_bert.constants import EMBEDDING
from official_bert.fine_tuning.task_file import (
    has_task,
    read_task,
    task_name,
    write_task,
)
from official_bert.tasks.embedding.task import EmbeddingTask


def described_task(path: str | os.PathLike[str]) -> EmbeddingTask | None:
    """Return the task of a model's directory; None if it is not an embedding task.

    A `task.json` has priority over the files of sentence-transformers.

    Raises:
      UserError: a file is damaged, or names an unsupported module.
    """
    if has_task(path):
        if task_name(path) != EMBEDDING:
            return None
        return read_task(path, EmbeddingTask)[0]
    if not sentence_files.has_files(path):
        return None
    settings = sentence_files.read(path)
    return EmbeddingTask(settings.max_seq_length, settings.pooling, settings.normalize)


def write_missing_task(directory: str | os.PathLike[str], task: EmbeddingTask) -> None:
    """Write a task into a model's directory, if it has none."""
    if not has_task(directory):
        write_task(directory, task, 0)


def write_sentence_files(
    directory: str | os.PathLike[str], task: EmbeddingTask
) -> list[str]:
    """Write sentence-transformers' files into a Hugging Face model directory.

    Returns:
      sentences about settings that these files cannot express.
    """
    if task.pooling == "pooler":
        return [
            "modules.json was not written, because sentence-transformers does not "
            "support the pooling 'pooler'."
        ]
    path = os.path.join(directory, config_json.CONFIG_FILE)
    width = files.read_json(path, "a config")["hidden_size"]
    settings = sentence_files.SentenceSettings(
        task.max_seq_length, task.pooling, task.normalize
    )
    sentence_files.write(directory, settings, width)
    if task.size is None:
        return []
    return [
        "sentence-transformers' files do not store the size of the vectors. Load "
        f"the model with SentenceTransformer(path, truncate_dim={task.size})."
    ]
