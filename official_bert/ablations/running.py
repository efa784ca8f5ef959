"""Make the steps of an ablation that are missing; keep what each came to."""

import json
import os
import time

from official_bert import files
from official_bert.ablations import steps
from official_bert.errors import UserError

RESULTS_FILE = "results.jsonl"


class Journal:
    """The steps that are done, a line of `results.jsonl` for each.

    Args:
      study: `steps.Study`.
      run_command: function: `steps.Step` -> None; runs it to its end or raises.
      read_file: function: path of a flag file or a model's config -> its text.
    """

    def __init__(self, study, run_command, read_file):
        self._study, self._run, self._read_file = study, run_command, read_file
        self._path = study.path(RESULTS_FILE)
        self._done = {row["step"]: row for row in read_results(self._path)}

    def scores(self, step):
        """Return what a step came to, after running it if it is not done.

        A step that was killed in the middle goes on where its command stands.

        Raises:
          UserError: it is done, but with other flags.
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
                "scores": steps.scores_of(self._study, step),
            }
            with open(self._path, "a", encoding="utf-8") as output:
                output.write(json.dumps(done) + "\n")
            self._done[step.name] = done
        elif done["made_with"] != made_with:
            raise UserError(
                f"--output_dir: {step.name} in {self._study.output_dir} was made with "
                "other flags or flag files; choose another directory."
            )
        return done["scores"]

    def _made_with(self, step):
        """Return the command, with what its flag files and its config say."""
        arguments = []
        for argument in step.arguments:
            name, _, path = argument.partition("=")
            is_file = name == "--flagfile"
            arguments += self._read_file(path).splitlines() if is_file else [argument]
        made_with = [step.script]
        for flag in arguments:
            name, _, path = flag.partition("=")
            if name == "--bert_config_file":
                flag = f"{name}={' '.join(self._read_file(path).split())}"
            if flag.startswith("--"):
                made_with.append(flag)
        return made_with


def read_results(path):
    """Return the rows of a `results.jsonl`; a line that a kill cut off is left out."""
    if not os.path.exists(path):
        return []
    lines = files.read_text(path, "the results of an ablation").splitlines(True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        files.write_text(path, "".join(lines))
    return [json.loads(line) for line in lines]


def run_table(table, study, journal):
    """Run all of a table that is missing.

    Args:
      table: `tables.Table`.
      study: `steps.Study`.
      journal: `Journal`.

    Returns:
      list with a dict for each row: `row`, the `Row`; `loss`, held-out, in nats; and
      `scores`, task -> {step of pre-training: a score for each seed}, of the
      checkpoints for a figure and else of the last step.
    """
    tasks = [task for task in table.tasks if task in study.data]
    if not tasks and table.over_steps:
        raise UserError(
            "A figure needs the data of a task: give --glue_data_dir for "
            f"{', '.join(table.tasks)}."
        )
    journal.scores(steps.heldout(study))
    results = []
    for row in table.rows:
        journal.scores(steps.records(study, row))
        *before, last = journal.scores(steps.pretraining(study, row))["steps"]
        loss = journal.scores(steps.evaluation(study, row))[steps.LOSS]
        scores = {task: {} for task in tasks}
        for task in tasks:
            # None is the finished model, which other tables have too.
            for number in [*before, None] if table.over_steps else [None]:
                step = steps.fine_tuning(study, row, task, number)
                (scores[task][number or last],) = journal.scores(step).values()
        results.append({"row": row, "loss": loss, "scores": scores})
    return results
