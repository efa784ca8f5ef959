"""The steps of an ablation, each an ordinary command, and what each comes to."""

import dataclasses
import json
import math
import os

from official_bert import files
from official_bert.ablations.tables import TASKS
from official_bert.checkpoints import names
from official_bert.errors import UserError
from official_bert.training.logs import eval_results

FOLDER = "configs/ablations"
HELDOUT = "heldout"
# What a fine-tuning with several seeds leaves.
SEEDS_FILE = "runs.json"
LOSS = "masked_lm_loss"


@dataclasses.dataclass(frozen=True)
class Study:
    """What all models of an ablation have in common; flags of `run_ablation.py`.

    Attributes:
      output_dir: where everything goes.
      input_file: text files to pre-train on, comma-separated.
      eval_input_file: text files to evaluate on, likewise.
      vocab_file: the vocabulary.
      num_train_steps: updates of each pre-training; None for those of the flag file.
      num_seeds: fine-tunings of each model on each task.
      data: dict, name of a task -> list of the flags that name its files; other
        tasks are left out.
    """

    output_dir: str
    input_file: str
    eval_input_file: str
    vocab_file: str
    num_train_steps: int | None
    num_seeds: int
    data: dict[str, list[str]]

    def path(self, *parts):
        """Return a path in the output directory."""
        return os.path.join(self.output_dir, *parts)


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of an ablation.

    Attributes:
      name: also that of its folder or file in the output directory.
      script: the command, in `run_scripts`.
      arguments: list of str.
    """

    name: str
    script: str
    arguments: list[str]


def flag_file(name):
    """Return the path of a flag file, from the project's root."""
    return f"{FOLDER}/{name}.flags"


def _given(*flag_files):
    return [f"--flagfile={flag_file(name)}" for name in flag_files]


def heldout(study):
    """Return the step that makes the held-out records, the same for all models.

    Every pair goes on where it begins and 80/10/10 of the words to guess are
    masked, whatever a model was trained on, so that losses compare.
    """
    return _records(study, HELDOUT, study.eval_input_file, HELDOUT)


def records(study, row):
    """Return the step that makes a row's training records."""
    return _records(study, row.records, study.input_file, row.records)


def _records(study, name, text, row_flags):
    return Step(
        f"records/{name}",
        "create_pretraining_data.py",
        [
            *_given("records", row_flags),
            f"--input_file={text}",
            f"--vocab_file={study.vocab_file}",
            f"--output_file={_record_file(study, name)}",
        ],
    )


def _record_file(study, name):
    return study.path("records", f"{name}.tfrecord")


def pretraining(study, row):
    """Return the step that pre-trains a row's model."""
    number, arguments = study.num_train_steps, []
    if number:
        # Warm-up a tenth of it, and about five checkpoints.
        arguments = [
            f"--num_train_steps={number}",
            f"--num_warmup_steps={number // 10}",
            f"--save_checkpoints_steps={math.ceil(number / 5)}",
        ]
    return Step(
        f"models/{row.model}",
        "run_pretraining.py",
        [
            *_given("pretraining", row.model),
            f"--input_file={_record_file(study, row.records)}",
            f"--vocab_file={study.vocab_file}",
            f"--output_dir={study.path('models', row.model)}",
            *arguments,
        ],
    )


def evaluation(study, row):
    """Return the step that takes a model's held-out loss."""
    name = f"heldout/{row.model}"
    return Step(
        name,
        "run_pretraining.py",
        [
            *_given("evaluation"),
            f"--init_checkpoint={study.path('models', row.model)}",
            f"--input_file={_record_file(study, HELDOUT)}",
            f"--vocab_file={study.vocab_file}",
            f"--output_dir={study.path(name)}",
        ],
    )


def fine_tuning(study, row, task, step=None):
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
    arguments = [
        *_given(task, row.flags),
        *study.data[task],
        f"--init_checkpoint={start}",
        "--seed=1",
        f"--num_seeds={study.num_seeds}",
        f"--output_dir={study.path(name)}",
    ]
    return Step(name, TASKS[task].script, arguments)


def scores_of(study, step):
    """Return what a step that is done came to, a dict fit for JSON.

    Of a pre-training these are the `steps` of its checkpoints, of an evaluation the
    loss in nats, of a fine-tuning the task's score for each seed; of records nothing.

    Raises:
      UserError: the command was stopped before its end, which is no error of its own.
    """
    kind, folder = step.name.split("/")[0], study.path(step.name)
    if kind == "models":
        model = os.path.join(folder, f"{names.MODEL_PREFIX}.index")
        if not os.path.exists(model):
            raise _stopped(step)
        return {"steps": _regular_checkpoints(folder)}
    if kind == HELDOUT:
        return {LOSS: eval_results.read(folder)[LOSS]}
    if kind == "fine_tuned":
        metric = TASKS[step.name.split("/")[2]].metric
        text = files.read_text(os.path.join(folder, SEEDS_FILE), "scores")
        rows = json.loads(text)
        if len(rows) < study.num_seeds:
            raise _stopped(step)
        return {metric: [row[metric] for row in rows]}
    return {}


def _regular_checkpoints(folder):
    """Return the steps of a run's checkpoints, but for those where it was stopped."""
    run = files.read_json(os.path.join(folder, "run.json"), "what a run was told")
    every = run["flags"]["save_checkpoints_steps"]
    found = names.numbered_checkpoints(folder)
    return [step for step in found if step % every == 0 or step == found[-1]]


def _stopped(step):
    return UserError(
        f"{step.name} was stopped before its end; the same command goes on with it."
    )
