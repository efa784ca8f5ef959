"""Long work shows itself: a bar on a terminal, plain lines when piped."""

import contextlib
import sys
import time

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10


@contextlib.contextmanager
def progress(total, description, unit, things=None):
    """Show how far a piece of work is, how fast it goes and when it ends.

    Args:
      total: how many units there are; None when unknown.
      description: what is being done, "reading".
      unit: what is counted, "B".
      things: what else is counted, "documents", to show how fast they go.

    Yields:
      function to call with the number of units just done, and of the things.
    """
    out = sys.stderr
    if not out.isatty():
        yield _line_printer(total, description, unit, things, out)
        return
    with tqdm(
        total=total, desc=description, unit=unit, unit_scale=True, file=out
    ) as bar:
        rate = _rate_of(things)

        def update(units, count=0):
            if things:
                bar.set_postfix_str(rate(count), refresh=False)
            bar.update(units)

        yield update


def _rate_of(things):
    """Return a function that counts things and says how fast they go."""
    start, total = time.monotonic(), 0

    def rate(count):
        nonlocal total
        total += count
        seconds = max(time.monotonic() - start, 0.001)
        return f"{tqdm.format_sizeof(total / seconds)} {things}/s"

    return rate


def _line_printer(total, description, unit, things, out):
    start = last = time.monotonic()
    done = 0
    rate = _rate_of(things)

    def update(units, count=0):
        nonlocal done, last
        done += units
        things_done = rate(count)
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
                postfix=things_done if things else None,
            )
            print(meter, file=out, flush=True)

    return update
