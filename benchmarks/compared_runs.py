"""Records of runs that are compared, as JSON lines: write, read and summarize them."""

import json
import os
import statistics

from official_bert.training.logs.run_log import read_metrics


def read(path):
    """Return the records of a file, a list of dicts; [] without the file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def run_missing(path, key, make_run):
    """Make a run and append its line, unless it exists.

    Args:
      path: JSON lines file.
      key: dict that identifies the run.
      make_run: function without arguments: makes the run, and returns a dict.
    """
    if any(record | key == record for record in read(path)):
        return
    record = key | make_run()
    with open(path, "a", encoding="utf-8") as output:
        output.write(json.dumps(record) + "\n")
    print(record, flush=True)


def training_time(output_dir):
    """Return (steps, seconds, batch size) of the training of a finished run of ours."""
    with open(os.path.join(output_dir, "run.json"), encoding="utf-8") as text:
        batch_size = json.load(text)["flags"]["train_batch_size"]
    metrics = [one for one in read_metrics(output_dir) if "sequences_per_second" in one]
    steps = [one["step"] for one in metrics]
    seconds = sum(
        (step - before) * batch_size / one["sequences_per_second"]
        for before, step, one in zip([0, *steps], steps, metrics, strict=False)
    )
    return steps[-1], seconds, batch_size


def mean_and_deviation(scores):
    """Return the mean and the standard deviation of one or more scores as text."""
    mean = f"{statistics.fmean(scores):.1f}"
    if len(scores) == 1:
        return f"{mean} (1 seed)"
    return f"{mean} ± {statistics.stdev(scores):.1f} ({len(scores)} seeds)"


def apart(ours, theirs):
    """Return the difference of the means in pooled standard deviations."""
    if min(len(ours), len(theirs)) < 2:
        return "-"
    freedom = len(ours) + len(theirs) - 2
    squares = [
        statistics.variance(scores) * (len(scores) - 1) for scores in (ours, theirs)
    ]
    pooled = (sum(squares) / freedom) ** 0.5
    if not pooled:
        return "-"
    return f"{(statistics.fmean(ours) - statistics.fmean(theirs)) / pooled:+.2f} sd"


def ratios(records, ours, theirs):
    """Return ours / theirs for alternating runs with the same seed."""
    rates = {
        (one["who"], one["seed"]): one["rate"] for one in records if one.get("rate")
    }
    return [
        rate / rates[theirs, seed]
        for (who, seed), rate in rates.items()
        if who == ours and (theirs, seed) in rates
    ]
