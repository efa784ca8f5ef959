"""`task.json`: what a fine-tuned model is for, so that no flag has to say it."""

import json
import os
from typing import Any, ClassVar, Protocol, Self, TypeVar

from official_bert import files
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.errors import UserError

TASK_FILE = "task.json"


class Task(Protocol):
    """What `task.json` keeps; each family of tasks has a frozen dataclass for it.

    Attributes:
      TASK: the family's name.
    """

    TASK: ClassVar[str]

    @property
    def max_seq_length(self) -> int:
        """Tokens of a row at most."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores; by the first a model is the best."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` takes, fit for JSON."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a task of what `to_dict` returned."""


_Task = TypeVar("_Task", bound=Task)


def has_task(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a fine-tuned model's directory.

    A KerasHub preset has a file of that name, too, which says something else.
    """
    is_there = files.is_file(os.path.join(path, TASK_FILE))
    return is_there and not is_preset(path)


def task_content(task: Task) -> dict[str, Any]:
    """Return a task's name and fields as `task.json` has them: tuples are lists."""
    return json.loads(json.dumps({"task": task.TASK, **task.to_dict()}))


def write_task(directory: str | os.PathLike[str], task: Task, global_step: int) -> None:
    """Write `task.json` into a model directory.

    Args:
      directory: the folder.
      task: has a name, `TASK`, and `to_dict()`, fit for JSON.
      global_step: the updates that the model has had.
    """
    content = {**task_content(task), "global_step": global_step}
    files.write_json(os.path.join(directory, TASK_FILE), content)


def task_name(directory: str | os.PathLike[str]) -> str | None:
    """Return the name in `task.json`; None if the directory has none.

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
      *classes: the tasks that it may be of, with `TASK` and `from_dict`.

    Returns:
      (the task, the updates that the model has had).

    Raises:
      UserError: there is none, or of another kind, or it is damaged.
    """
    path = os.path.join(directory, TASK_FILE)
    if not has_task(directory):
        raise UserError(
            f"{directory} has no {TASK_FILE}: it is not the output directory of a "
            "finished fine-tuning; train first."
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
            f"{path} is damaged ({type(error).__name__}: {error}); take it from "
            "another copy of the model, or train again."
        ) from error
