"""A batch size that grows in steps during a run."""

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

from official_bert.errors import UserError
from official_bert.training.runs import RunSettings

_Settings = TypeVar("_Settings", bound=RunSettings)
# (first step, batch size) of each part after the first.
BatchSizeSteps = tuple[tuple[int, int], ...]


def parse(texts: list[str]) -> BatchSizeSteps:
    """Return the steps and batch sizes of texts such as "1000:128".

    Raises:
      UserError: a text has another form, or the steps do not increase.
    """
    parts = [text.split(":") for text in texts]
    if not all(len(part) == 2 and all(map(str.isdecimal, part)) for part in parts):
        parts = [["0", "0"]]
    pairs = tuple((int(step), int(size)) for step, size in parts)
    steps = [0, *(step for step, _ in pairs)]
    increasing = all(a < b for a, b in zip(steps, steps[1:], strict=False))
    if not increasing or not all(size for _, size in pairs):
        raise UserError(
            f"--batch_size_steps={','.join(texts)} is invalid. Give training steps and "
            "batch sizes, such as 1000:128,2000:256. The steps must increase."
        )
    return pairs


def parts_from(
    settings: _Settings, steps: BatchSizeSteps, step: int
) -> Iterator[_Settings]:
    """Yield the settings of each part of a run with one batch size.

    A part ends like a run, with a checkpoint and an evaluation. A part that ends at
    `step` is included, because a kill may have prevented its evaluation.

    Args:
      settings: `RunSettings` of the run.
      steps: first step and batch size of each part after the first.
      step: the current step of the run; parts that end before it are left out.
    """
    last = settings.last_step
    starts = [0, *(first for first, _ in steps)]
    sizes = [settings.loop.train_batch_size, *(size for _, size in steps)]
    for start, end, size in zip(starts, [*starts[1:], last], sizes, strict=True):
        end = min(end, last)
        if start < end and end >= min(step, last):
            loop = dataclasses.replace(
                settings.loop, train_batch_size=size, stop_at_step=end
            )
            yield dataclasses.replace(settings, loop=loop)
