"""Show the progress of long work: a bar on a terminal, plain lines when piped."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10


@contextlib.contextmanager
def progress(
    total: float | None, description: str, unit: str, things: str | None = None
) -> Iterator[Callable[..., None]]:
    """Show progress, speed and remaining time of a piece of work.

    Args:
      total: number of units; None if unknown.
      description: the activity, "reading".
      unit: the unit of `total`, "B".
      things: a second kind of items, "documents", to show their speed.

    Yields:
      function to call with the number of units, and of things, just finished.
    """
    bar = tqdm(
        total=total,
        desc=description,
        unit=unit,
        unit_scale=True,
        disable=not sys.stderr.isatty(),
    )
    start = last = time.monotonic()
    done = num_things = 0

    def update(units, count=0):
        nonlocal done, num_things, last
        done += units
        num_things += count
        now = time.monotonic()
        speed = tqdm.format_sizeof(num_things / max(now - start, 0.001))
        rate = f"{speed} {things}/s" if things else None
        if not bar.disable:
            bar.set_postfix_str(rate or "", refresh=False)
            bar.update(units)
        elif now - last >= SECONDS_BETWEEN_LINES:
            last = now
            meter = tqdm.format_meter(
                done,
                total,  # type: ignore[arg-type] # It may be None, as in tqdm's docs.
                now - start,
                ncols=0,
                prefix=description,
                unit=unit,
                unit_scale=True,
                postfix=rate,
            )
            print(meter, file=sys.stderr, flush=True)

    with bar:
        yield update
