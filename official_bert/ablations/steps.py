"""Define the steps of an ablation as ordinary commands; run the missing ones.

`results.jsonl` records the result of each step.
"""

import dataclasses
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any

from official_bert import files
from official_bert.ablations.tables import TASKS, Row, Table
from official_bert.checkpoints import names
from official_bert.errors import UserError
from official_bert.training.logs import eval_results

FOLDER = "configs/ablations"
HELDOUT = "heldout"
RESULTS_FILE = "results.jsonl"
# File that a fine-tuning with several seeds writes.
SEEDS_FILE = "runs.json"
LOSS = "masked_lm_loss"


@dataclasses.dataclass(frozen=True)
class Study:
    """The settings that all models of an ablation share; flags of `run_ablation.py`.

    Attributes:
      output_dir: directory for all output.
      input_file: text files to pre-train on, comma-separated.
      eval_input_file: text files to evaluate on, comma-separated.
      vocab_file: the vocabulary.
      num_train_steps: training steps of each pre-training; None for those of the flag
        file.
      num_seeds: fine-tuning runs of each model on each task.
      data: dict: name of a task -> list of the flags that name its files. Other tasks
        are skipped.
    """

    output_dir: str
    input_file: str
    eval_input_file: str
    vocab_file: str
    num_train_steps: int | None
    num_seeds: int
    data: dict[str, list[str]]

    def path(self, *parts: str) -> str:
        """Return a path in the output directory."""
        return os.path.join(self.output_dir, *parts)


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of an ablation.

    Attributes:
      name: name of the step and of its folder or file in the output directory.
      script: the command, in `run_scripts`.
      arguments: list of str.
    """

    name: str
    script: str
    arguments: list[str]


def _step(name, script, flag_files, *arguments, **values):
    """Return a `Step` from flag files in `FOLDER`, arguments and values of flags."""
    flag_files = [f"--flagfile={FOLDER}/{each}.flags" for each in flag_files]
    own = [f"--{flag}={value}" for flag, value in values.items()]
    return Step(name, script, [*flag_files, *arguments, *own])


def records(study: Study, name: str) -> Step:
    """Return the step that creates the records of a flag file.

    Args:
      study: `Study`.
      name: name of a row's flag file, or `HELDOUT`. Held-out records are the same for
        all models, so that losses are comparable: every sentence pair is a true
        next-sentence pair, and tokens are masked 80/10/10.
    """
    text = study.eval_input_file if name == HELDOUT else study.input_file
    return _step(
        f"records/{name}",
        "create_pretraining_data.py",
        ["records", name],
        input_file=text,
        vocab_file=study.vocab_file,
        output_file=_record_file(study, name),
    )


def _record_file(study, name):
    return study.path("records", f"{name}.tfrecord")


def pretraining(study: Study, row: Row) -> Step:
    """Return the step that pre-trains a row's model."""
    number, steps = study.num_train_steps, {}
    if number:
        # One tenth is warm-up; about five checkpoints.
        steps = {
            "num_train_steps": number,
            "num_warmup_steps": number // 10,
            "save_checkpoints_steps": math.ceil(number / 5),
        }
    return _step(
        f"models/{row.model}",
        "run_pretraining.py",
        ["pretraining", row.model],
        input_file=_record_file(study, row.records),
        vocab_file=study.vocab_file,
        output_dir=study.path("models", row.model),
        **steps,
    )


def evaluation(study: Study, row: Row) -> Step:
    """Return the step that measures a model's held-out loss."""
    name = f"heldout/{row.model}"
    return _step(
        name,
        "run_pretraining.py",
        ["evaluation"],
        init_checkpoint=study.path("models", row.model),
        input_file=_record_file(study, HELDOUT),
        vocab_file=study.vocab_file,
        output_dir=study.path(name),
    )


def fine_tuning(study: Study, row: Row, task: str, step: int | None = None) -> Step:
    """Return the step that fine-tunes a row's model with several seeds.

    Args:
      study: `Study`.
      row: `Row`.
      task: name of one of `TASKS`.
      step: number of the checkpoint to start from; None for the finished model.
    """
    start, label = study.path("models", row.model), row.flags
    if step is not None:
        start = os.path.join(start, f"model.ckpt-{step}")
        label += f"_at_{step}"
    name = f"fine_tuned/{label}/{task}"
    return _step(
        name,
        TASKS[task].script,
        [task, row.flags],
        *study.data[task],
        init_checkpoint=start,
        seed=1,
        num_seeds=study.num_seeds,
        output_dir=study.path(name),
    )


def scores_of(study: Study, step: Step) -> dict[str, Any]:
    """Return the result of a finished step, as a dict for JSON.

    For a pre-training, it contains the `steps` of the checkpoints. For an evaluation,
    it contains the loss in nats. For a fine-tuning, it contains the score for each
    seed. For records, it is empty.

    Raises:
      UserError: the command was stopped before its end, without an error.
    """
    kind, folder = step.name.split("/")[0], study.path(step.name)
    stopped = UserError(
        f"{step.name} was stopped before its end. Run the same command again to "
        "resume it."
    )
    if kind == "models":
        if not os.path.exists(os.path.join(folder, f"{names.MODEL_PREFIX}.index")):
            raise stopped
        run = files.read_json(os.path.join(folder, "run.json"), "the record of a run")
        every = run["flags"]["save_checkpoints_steps"]
        numbers = names.numbered_checkpoints(folder)
        # Exclude the checkpoints at which it was stopped.
        regular = [each for each in numbers if each % every == 0 or each == numbers[-1]]
        return {"steps": regular}
    if kind == HELDOUT:
        return {LOSS: eval_results.read(folder)[LOSS]}
    if kind == "fine_tuned":
        metric = TASKS[step.name.split("/")[2]].metric
        if study.num_seeds == 1:
            # A single run has no file of seeds; its scores are those of its model.
            if not os.path.exists(os.path.join(folder, eval_results.FILE)):
                raise stopped
            return {metric: [eval_results.read(folder)[f"eval_{metric}"]]}
        rows = json.loads(files.read_text(os.path.join(folder, SEEDS_FILE), "scores"))
        if len(rows) < study.num_seeds:
            raise stopped
        return {metric: [row[metric] for row in rows]}
    return {}


class Journal:
    """The finished steps, one line of `results.jsonl` each.

    Args:
      study: `Study`.
      run_command: function: `Step` -> None; runs it to its end or raises.
      read_file: function: path of a flag file or a model's config -> its text.
    """

    def __init__(
        self,
        study: Study,
        run_command: Callable[[Step], None],
        read_file: Callable[[str], str],
    ):
        self._study, self._run, self._read_file = study, run_command, read_file
        self._path = study.path(RESULTS_FILE)
        self._done = {row["step"]: row for row in read_results(self._path)}

    def scores(self, step: Step) -> dict[str, Any]:
        """Return the result of a step, after running it if it is not finished.

        A step that was killed resumes from its last checkpoint.

        Raises:
          UserError: the step was finished with other flags.
        """
        made_with = self._made_with(step)
        done = self._done.get(step.name)
        if done is None:
            started = time.monotonic()
            self._run(step)
            done = {
                "step": step.name,
                "made_with": made_with,
                "seconds": round(time.monotonic() - started, 1),
                "scores": scores_of(self._study, step),
            }
            with open(self._path, "a", encoding="utf-8") as output:
                output.write(json.dumps(done) + "\n")
            self._done[step.name] = done
        elif done["made_with"] != made_with:
            raise UserError(
                f"--output_dir={self._study.output_dir} contains {step.name} made "
                "with other flags or flag files. Choose another directory."
            )
        return done["scores"]

    def _made_with(self, step):
        """Return the command, with the contents of its flag files and config."""
        made_with = [step.script]
        for argument in step.arguments:
            name, _, path = argument.partition("=")
            is_file = name == "--flagfile"
            for flag in self._read_file(path).splitlines() if is_file else [argument]:
                name, _, path = flag.partition("=")
                if name == "--bert_config_file":
                    flag = f"{name}={' '.join(self._read_file(path).split())}"
                if flag.startswith("--"):
                    made_with.append(flag)
        return made_with


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows of a `results.jsonl`, without a line that a kill cut off."""
    if not os.path.exists(path):
        return []
    lines = files.read_text(path, "the results of an ablation").splitlines(True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        files.write_text(path, "".join(lines))
    return [json.loads(line) for line in lines]


def run_table(table: Table, study: Study, journal: Journal) -> list[dict[str, Any]]:
    """Run all missing steps of a table.

    Args:
      table: `tables.Table`.
      study: `Study`.
      journal: `Journal`.

    Returns:
      A list with a dict for each row: `row`, the `Row`; `loss`, the held-out loss in
        nats; and `scores`, task -> {pre-training step: list with a score per seed}. A
        figure has scores of all checkpoints, a table those of the last step.
    """
    tasks = [task for task in table.tasks if task in study.data]
    if not tasks and table.over_steps:
        raise UserError(
            "A figure needs data of a task. Give --glue_data_dir for "
            f"{', '.join(table.tasks)}."
        )
    journal.scores(records(study, HELDOUT))
    results = []
    for row in table.rows:
        journal.scores(records(study, row.records))
        *before, last = journal.scores(pretraining(study, row))["steps"]
        loss = journal.scores(evaluation(study, row))[LOSS]
        scores: dict[str, dict[int, list[float]]] = {task: {} for task in tasks}
        for task in tasks:
            # None is the finished model, which other tables use too.
            for number in [*before, None] if table.over_steps else [None]:
                step = fine_tuning(study, row, task, number)
                (scores[task][number or last],) = journal.scores(step).values()
        results.append({"row": row, "loss": loss, "scores": scores})
    return results
