"""The JSON files that figures and tables show."""

import dataclasses
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
YARDSTICK = ROOT / "docs" / "yardstick.json"
# The yardstick on an AMD EPYC: with all of its instructions, and with AVX2 at most.
YARDSTICK_EPYC = ROOT / "docs" / "yardstick_epyc.json"
YARDSTICK_AVX2 = ROOT / "docs" / "yardstick_avx2.json"
ACCELERATORS = ROOT / "docs" / "accelerators.json"
ABLATIONS = BENCHMARKS / "ablation_runs.jsonl"
FINE_TUNING = BENCHMARKS / "fine_tuning_runs.jsonl"
FINE_TUNING_SHORT = BENCHMARKS / "fine_tuning_runs_short.jsonl"
FINE_TUNING_ONE_EPOCH = BENCHMARKS / "fine_tuning_runs_one_epoch.jsonl"
RECIPES = BENCHMARKS / "recipe_runs.jsonl"
DISTILLATION = BENCHMARKS / "distillation_runs.jsonl"
RESULTS = BENCHMARKS / "results"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One file of `benchmarks/results`.

    Attributes:
      about: one line about the measurement.
      commands: list of shell commands, one string each.
      machine: text.
      seed: number or text.
      tables: dict of name -> `{"columns": ..., "rows": ...}`.
    """

    about: str
    commands: list
    machine: str
    seed: int | str
    tables: dict

    def rows(self, table):
        """Return the rows of a table, each a dict of column -> value."""
        columns = self.tables[table]["columns"]
        return [
            dict(zip(columns, row, strict=True)) for row in self.tables[table]["rows"]
        ]


def all_files():
    """Return the paths of all files that figures and tables read."""
    runs = [ABLATIONS, FINE_TUNING, FINE_TUNING_SHORT, FINE_TUNING_ONE_EPOCH]
    runs += [RECIPES, DISTILLATION]
    speed = [YARDSTICK, YARDSTICK_EPYC, YARDSTICK_AVX2]
    return [*speed, ACCELERATORS, *runs, *sorted(RESULTS.glob("*.json"))]


def experiment(name):
    """Return the `Experiment` with this file name."""
    return Experiment(**read(RESULTS / f"{name}.json"))


def read(path):
    """Return the content of a JSON file; of JSON lines, a list of objects."""
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)
