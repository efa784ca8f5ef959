"""Fine-tuned models without training, in the format that training writes."""

import dataclasses

import tiny_model

from official_bert.checkpoints import google
from official_bert.fine_tuning.task_file import write_task


def write_model(directory, task, tensors=None):
    """Write a model with `tiny_model`'s weights and a `task.json`.

    Args:
      directory: the new folder.
      task: its task; None for no `task.json`.
      tensors: replaces `tiny_model.tensors()`.
    """
    tensors = tensors or tiny_model.tensors()
    checkpoint = dataclasses.replace(
        tiny_model.checkpoint(),
        shapes={name: value.shape for name, value in tensors.items()},
        read=tensors.__getitem__,
    )
    directory.mkdir()
    google.write_model(str(directory), checkpoint)
    if task is not None:
        write_task(str(directory), task, 7)


def with_outputs(number):
    """Return `tiny_model.tensors()` with an output layer of this size."""
    tensors = tiny_model.tensors()
    head = {name: tensors[name][:number] for name in ("output_weights", "output_bias")}
    return tensors | head
