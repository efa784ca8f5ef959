"""Long work shows itself: a bar on a terminal, plain lines when piped."""

import contextlib
import sys
import time

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10


@contextlib.contextmanager
def progress(total, description, unit):
    """Show how far a piece of work is, how fast it goes and when it ends.

    Args:
      total: how many units there are; None when unknown.
      description: what is being done, "reading".
      unit: what is counted, "B".

    Yields:
      function to call with the number of units just done.
    """
    out = sys.stderr
    if not out.isatty():
        yield _line_printer(total, description, unit, out)
        return
    with tqdm(
        total=total, desc=description, unit=unit, unit_scale=True, file=out
    ) as bar:
        yield bar.update


def _line_printer(total, description, unit, out):
    start = last = time.monotonic()
    done = 0

    def update(units):
        nonlocal done, last
        done += units
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            meter = tqdm.format_meter(
                done,
                total,
                now - start,
                ncols=0,
                prefix=description,
                unit=unit,
                unit_scale=True,
            )
            print(meter, file=out, flush=True)

    return update
