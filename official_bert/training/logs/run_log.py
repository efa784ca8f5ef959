"""The logs of a run: progress bar or lines, JSON lines, TensorBoard events."""

import datetime
import importlib.util
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from tqdm import tqdm

from official_bert import files, object_store
from official_bert.errors import StoreError
from official_bert.training.logs.line_files import open_lines
from official_bert.training.reports import WEIGHT, describe, weighted_means

if TYPE_CHECKING:
    import tensorflow as tf

METRICS_FILE = "metrics.jsonl"
# Fields of a row that depend on time. They differ between runs with equal results.
RATES = ("sequences_per_second", "model_flops_per_second", "mfu")


class Meter:
    """Averages the reports of the steps between two log lines.

    Args:
      peak_flops: peak operations per second of the devices; None if unknown.
    """

    def __init__(self, peak_flops: float | None = None) -> None:
        self._peak_flops = peak_flops
        self._reports: list[Mapping[str, tf.Tensor]] = []
        self._flops = 0.0
        self._started = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Exclude time that was not spent on training steps."""
        self._started += seconds

    def add(self, report: Mapping[str, "tf.Tensor"], flops: float = 0.0) -> None:
        """Store the report of a call; its tensors are read later, in `means`.

        Args:
          report: dict of scalars of one step, or of arrays [N] of N steps.
          flops: model FLOPs of these steps; 0 if unknown.
        """
        self._reports.append(report)
        self._flops += flops

    def means(self, batch_size: int) -> dict[str, float]:
        """Return the mean of each term since the last call, and start again.

        Args:
          batch_size: sequences per step.

        Returns:
          dict as from `weighted_means`, with `loss`, the sum of all `…_loss`, and the
          `RATES`: `sequences_per_second` of wall time; `model_flops_per_second` of
          all devices and its share of their peak, `mfu`, if they are known.
        """
        reports = _read(self._reports)
        row = weighted_means(reports)
        if all(report.get("skipped_in_row") for report in reports):
            # All steps were skipped, so their sums have no means.
            row |= {name: math.nan for name in row if name + WEIGHT in reports[0]}
        losses = [value for name, value in row.items() if name.endswith("_loss")]
        elapsed = time.monotonic() - self._started
        rates = {"sequences_per_second": len(reports) * batch_size / elapsed}
        if self._flops:
            rates["model_flops_per_second"] = self._flops / elapsed
            if self._peak_flops:
                rates["mfu"] = self._flops / elapsed / self._peak_flops
        self._reports, self._flops, self._started = [], 0.0, time.monotonic()
        return {"loss": sum(losses), **row, **rates}


def _read(reports):
    """Return the reports of calls as one dict of floats per step.

    Each name is read from the devices once, not once per step.
    """
    import tensorflow as tf

    columns = {}
    for name, value in reports[0].items():
        values = [report[name] for report in reports]
        together = tf.concat if value.shape.rank else tf.stack
        columns[name] = together(values, axis=0).numpy().tolist()
    steps = zip(*columns.values(), strict=True)
    return [dict(zip(columns, map(float, numbers), strict=True)) for numbers in steps]


class RunLog:
    """Writes the rows of a run.

    Rows go to `metrics.jsonl`, to TensorBoard event files if TensorBoard is installed,
    and to the terminal.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        total_steps: int,
        first_step: int = 0,
        writes: bool = True,
        describe: Callable[[dict[str, float]], str] = describe,
    ):
        """Open the logs and drop rows after `first_step`, which are from lost steps.

        Args:
          directory: the run's output directory.
          total_steps: the number of the last step.
          first_step: the step at which the run starts or resumes.
          writes: False for all workers except one: they write no rows.
          describe: function: row of means -> text of a log line.
        """
        self._describe = describe
        self._writes = writes
        if writes:
            rows = [row for row in read_metrics(directory) if row["step"] <= first_step]
            path = os.path.join(directory, METRICS_FILE)
            self._metrics = open_lines(path, [json.dumps(row) for row in rows])
        self._events = None
        if writes and importlib.util.find_spec("tensorboard") is not None:
            import tensorflow as tf

            folder = os.path.join(directory, "events")
            # A flush uploads all of a remote file again, and the next step waits.
            rarely = {"max_queue": 100_000, "flush_millis": 30_000}
            self._events = tf.summary.create_file_writer(
                folder, **(rarely if files.is_remote(directory) else {})
            )
        self._started, self._first = time.monotonic(), first_step
        self._total = total_steps
        self._bar = None
        if writes and sys.stderr.isatty():
            self._bar = tqdm(
                total=total_steps, initial=first_step, unit="step", dynamic_ncols=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if self._bar is not None:
            self._bar.close()
        # A store that refused a request refuses these, too, after minutes of retries.
        # The rows since the last checkpoint belong to steps that a resumed run repeats.
        if error and isinstance(object_store.error_of(error), StoreError):
            return
        if self._writes:
            self._metrics.sync()
        if self._events is not None:
            self._events.close()

    def step(self, count: int = 1) -> None:
        """Move the progress bar by `count` steps."""
        if self._bar is not None:
            self._bar.update(count)

    def training(self, step: int, row: dict[str, float]) -> None:
        """Log the means of the steps since the last call."""
        if not self._writes:
            return
        self._write({"step": step, **row})
        text = f"{self._describe(row)}  {describe_rates(row)}"
        if row.get("skipped_updates"):
            text += f"  {row['skipped_updates']:.0f} steps skipped"
        if self._bar is not None:
            self._bar.set_postfix_str(text)
            return
        elapsed, done = time.monotonic() - self._started, step - self._first
        left = datetime.timedelta(seconds=int(elapsed / done * (self._total - step)))
        print(f"step {step}/{self._total}  {text}  ETA {left}", flush=True)

    def evaluation(self, step: int, row: dict[str, float]) -> None:
        """Log an evaluation; its names get the prefix `eval_`."""
        if not self._writes:
            return
        self._write({"step": step, **{f"eval_{name}": v for name, v in row.items()}})
        self.say(f"step {step}  held-out: {self._describe(row)}")

    def sync(self) -> None:
        """Write the rows so far to disk, so that they survive a power failure."""
        if self._writes:
            self._metrics.sync()
        if self._events is not None:
            self._events.flush()

    def say(self, text: str) -> None:
        """Print a line without breaking the progress bar."""
        if self._bar is not None:
            self._bar.write(text)
        else:
            print(text, flush=True)

    def _write(self, row):
        # JSON cannot represent NaN and infinity.
        plain = {k: v if math.isfinite(v) else None for k, v in row.items()}
        self._metrics.add(json.dumps(plain))
        if self._events is not None:
            import tensorflow as tf

            with self._events.as_default():
                for name, value in row.items():
                    tf.summary.scalar(name, value, step=row["step"])


def describe_rates(row: Mapping[str, float]) -> str:
    """Return the `RATES` of a row as text for a log line."""
    text = f"{row['sequences_per_second']:.0f} seq/s"
    if "model_flops_per_second" in row:
        rate, prefix = row["model_flops_per_second"] / 1e6, "M"
        for larger in "GTPE":
            if rate >= 999.5:  # This would be printed as 1000.
                rate, prefix = rate / 1000, larger
        text += f"  {rate:.3g} {prefix}FLOP/s"
    return text + (f"  MFU {row['mfu']:.1%}" if "mfu" in row else "")


def read_metrics(directory: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows of a run's `metrics.jsonl`, without an incomplete last line."""
    path = os.path.join(directory, METRICS_FILE)
    rows = []
    if files.exists(path):
        with files.opened(path) as lines:
            for line in lines:
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    break
    return rows
