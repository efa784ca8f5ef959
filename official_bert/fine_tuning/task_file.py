"""`task.json`, which describes the task of a fine-tuned model, so no flag has to."""

import json
import os
from typing import Any, ClassVar, Protocol, Self, TypeVar

from official_bert import files
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.errors import UserError

TASK_FILE = "task.json"


class Task(Protocol):
    """The content of `task.json`. Each family of tasks has a frozen dataclass for it.

    Attributes:
      TASK: the family's name.
    """

    TASK: ClassVar[str]

    @property
    def max_seq_length(self) -> int:
        """The maximum number of tokens per sequence."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores. The first one selects the best model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`."""


_Task = TypeVar("_Task", bound=Task)


def has_task(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the directory of a fine-tuned model.

    A KerasHub preset also has a file `task.json`, with other content.
    """
    is_there = files.is_file(os.path.join(path, TASK_FILE))
    return is_there and not is_preset(path)


def task_content(task: Task) -> dict[str, Any]:
    """Return the task's name and fields as in `task.json`; tuples become lists."""
    return json.loads(json.dumps({"task": task.TASK, **task.to_dict()}))


def write_task(directory: str | os.PathLike[str], task: Task, global_step: int) -> None:
    """Write `task.json` into a model directory.

    Args:
      directory: the folder.
      task: has a name, `TASK`, and `to_dict()`, whose result fits JSON.
      global_step: number of training steps of the model.
    """
    content = {**task_content(task), "global_step": global_step}
    files.write_json(os.path.join(directory, TASK_FILE), content)


def task_name(directory: str | os.PathLike[str]) -> str | None:
    """Return the name in `task.json`; None if the directory has no task.

    Raises:
      UserError: the file is not JSON.
    """
    if not has_task(directory):
        return None
    path = os.path.join(directory, TASK_FILE)
    return files.read_json(path, "the description of a fine-tuned model").get("task")


def read_task(
    directory: str | os.PathLike[str], *classes: type[_Task]
) -> tuple[_Task, int]:
    """Read `task.json`.

    Args:
      directory: the folder.
      *classes: the accepted tasks, with `TASK` and `from_dict`.

    Returns:
      (the task, the number of training steps of the model).

    Raises:
      UserError: the file does not exist, is damaged, or describes another task.
    """
    path = os.path.join(directory, TASK_FILE)
    if not has_task(directory):
        raise UserError(
            f"{directory} has no {TASK_FILE}, so it is not the output directory of a "
            "finished fine-tuning. Train first."
        )
    values = files.read_json(path, "the description of a fine-tuned model")
    name = values.get("task")
    matching = [each for each in classes if name == each.TASK]
    if not matching:
        wanted = " or ".join(each.TASK for each in classes)
        raise UserError(f"{path} does not describe a {wanted}: its task is {name!r}.")
    try:
        return matching[0].from_dict(values), int(values["global_step"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({type(error).__name__}: {error}). Take it from "
            "another copy of the model, or train again."
        ) from error
