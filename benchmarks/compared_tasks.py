"""The tasks of `fine_tuning.py`: their data, settings and scores.

Both sides get the same flags for them. The files that they read are rewritten
with the requested number of rows, and without content that one side cannot
read.
"""

import dataclasses
import functools
import glob
import json
import pathlib
import re
from collections.abc import Callable

from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.tables import table_files as tables
from official_bert.tasks.choice import files as choice_files
from official_bert.tasks.glue import tasks as glue_tasks
from official_bert.tasks.ner import conll as ner_conll
from official_bert.tasks.ner import files as ner_files
from official_bert.training.logs import eval_results

BLANK_LINES = re.compile(r"\n\s*\n")


@dataclasses.dataclass(frozen=True)
class ComparedTask:
    """A task, and the settings of both sides for it.

    Attributes:
      name: as in --tasks.
      script: our command in `run_scripts`.
      peer: PyTorch's script, a module of `benchmarks.peers`.
      scores: names of the scores, each from 0 to 1.
      sources: descriptions of its files; the first is the training set.
      prepare: function: (paths of the sources, output folder, maximum rows for
        training, and for evaluation; None for all) -> flags for the data.
      read_scores: function: our output directory -> dict of all scores.
      max_seq_length: maximum tokens of a sequence.
      train_batch_size: sequences per training step; for multiple choice,
        questions.
      learning_rate: the peak, after a tenth of the training steps as warm-up.
      num_train_epochs: passes over the training set.
      max_train_rows: maximum rows for training; None for all.
      flags: additional flags of both sides.
      our_flags: additional flags of our command.
    """

    name: str
    script: str
    peer: str
    scores: tuple[str, ...]
    sources: tuple[str, ...]
    prepare: Callable
    read_scores: Callable
    max_seq_length: int = 128
    train_batch_size: int = 32
    learning_rate: float = 5e-5
    num_train_epochs: float = 3.0
    max_train_rows: int | None = None
    flags: tuple[str, ...] = ()
    our_flags: tuple[str, ...] = ("--do_train", "--do_eval")

    def setting_flags(self):
        """Return the flags of both sides, except those for data and model."""
        names = "max_seq_length", "train_batch_size", "learning_rate"
        return [*self.flags, *(f"--{name}={getattr(self, name)}" for name in names)]


def find_task(name):
    """Return the `ComparedTask` with a name: one of `TASKS`, or a GLUE task.

    Raises:
      UserError: the task does not exist.
    """
    if name in TASKS:
        return TASKS[name]
    task = glue_tasks.find_task(name)
    return ComparedTask(
        name=task.name,
        script="run_classifier.py",
        peer="pytorch.glue",
        scores=tuple(task.metrics),
        sources=(f"the folder with {task.directory}",),
        prepare=functools.partial(_prepare_glue, task),
        read_scores=_read_eval_results,
        max_train_rows=12_000,
        flags=(f"--task_name={task.name}",),
    )


def cut_squad(text, most):
    """Return a SQuAD file with only its first questions."""
    content, left = json.loads(text), most
    articles = []
    for article in content["data"]:
        paragraphs = []
        for paragraph in article["paragraphs"]:
            questions = paragraph["qas"][:left]
            left -= len(questions)
            if questions:
                paragraphs.append(paragraph | {"qas": questions})
        if paragraphs:
            articles.append(article | {"paragraphs": paragraphs})
    return json.dumps(content | {"data": articles})


def cut_conll(text, most):
    """Return CoNLL columns with only their first sentences."""
    kept = []
    for block in BLANK_LINES.split(text.strip()):
        if not most:
            break
        # The row that begins a document is not a sentence.
        most -= not block.startswith(ner_conll.DOCUMENT_START)
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def _prepare_texts(names, cut, sources, folder, max_train_rows, max_dev_rows):
    """Write files truncated by `cut`; return their flags, with these names."""
    flags = []
    limits = [max_train_rows, *[max_dev_rows] * (len(names) - 1)]
    for name, source, most in zip(names, sources, limits, strict=True):
        text = tables.read_text(source, f"--{name}")
        suffix = pathlib.Path(source.removesuffix(".gz")).suffix
        target = folder / f"{name}{suffix}"
        target.write_text(text if most is None else cut(text, most), encoding="utf-8")
        flags.append(f"--{name}={target}")
    return flags


def _prepare_glue(task, sources, folder, max_train_rows, max_dev_rows):
    """Write the folder of a GLUE task; see `ComparedTask.prepare`."""
    header = 0 if task.layouts["train"].num_columns else 1
    for split, most in (("train", max_train_rows), ("dev", max_dev_rows)):
        name = task.layouts[split].files[0]
        lines = (pathlib.Path(sources[0]) / task.directory / name).read_bytes()
        lines = lines.split(b"\n")[: None if most is None else header + most]
        (folder / name).write_bytes(b"\n".join(lines))
    return [f"--data_dir={folder}"]


def _prepare_choices(sources, folder, max_train_rows, max_dev_rows):
    """Write JSON lines of multiple choice; see `ComparedTask.prepare`.

    A source may be a pattern for several files, which are joined. Questions
    without choices are left out, because some copies of ARC lost their choices.
    """
    flags = []
    for name, pattern, most in zip(
        ("train_file", "dev_file"), sources, (max_train_rows, max_dev_rows), strict=True
    ):
        examples = []
        for path in sorted(glob.glob(pattern)) or [pattern]:
            examples += choice_files.read_choices(path, leave_out_damaged=True)[0]
        lines = [
            json.dumps(
                {"question": one.context, "choices": one.choices, "label": one.label}
            )
            for one in examples[:most]
        ]
        target = folder / f"{name}.jsonl"
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        flags.append(f"--{name}={target}")
    return flags


def _read_eval_results(directory):
    """Return the values in `eval_results.txt`: name without "eval_" -> number."""
    found = eval_results.read(directory)
    return {name.removeprefix("eval_"): value for name, value in found.items()}


def _read_squad_results(directory):
    found = _read_eval_results(directory)
    return {name: value / 100 for name, value in found.items()}


def _read_ner_results(directory):
    """Return the scores on the dev set, and `test_f1` of the predicted tags."""
    path = pathlib.Path(directory) / "test_predictions.conll"
    documents = ner_files.read_ner_file(path).documents
    sentences = [sentence for document in documents for sentence in document]
    # The predicted tag follows the gold tag.
    known = [[columns[-1] for columns in one.columns] for one in sentences]
    scores = entities.score(known, [one.tags for one in sentences])
    return _read_eval_results(directory) | {"test_f1": scores.overall.f1}


# The paper's learning rate for SQuAD, with the original's batch for one GPU.
# The paper's batch of 32 would give few training steps on a part of the
# training set.
SQUAD_1 = ComparedTask(
    name="squad1",
    script="run_squad.py",
    peer="pytorch.squad",
    scores=("f1", "exact_match"),
    sources=("train-v1.1.json", "dev-v1.1.json"),
    prepare=functools.partial(
        _prepare_texts, ("train_file", "predict_file"), cut_squad
    ),
    read_scores=_read_squad_results,
    max_seq_length=384,
    train_batch_size=12,
    num_train_epochs=2.0,
    flags=("--doc_stride=128",),
    our_flags=("--do_train", "--do_predict"),
)
SQUAD_2 = dataclasses.replace(
    SQUAD_1,
    name="squad2",
    scores=("best_f1", "best_exact", "f1", "exact"),
    sources=("train-v2.0.json", "dev-v2.0.json"),
    flags=("--doc_stride=128", "--version_2_with_negative"),
)
CONLL = ComparedTask(
    name="conll",
    script="run_ner.py",
    peer="pytorch.ner",
    scores=("f1", "test_f1"),
    sources=("train.txt", "valid.txt", "test.txt"),
    prepare=functools.partial(
        _prepare_texts, ("train_file", "dev_file", "test_file"), cut_conll
    ),
    read_scores=_read_ner_results,
    our_flags=("--do_train", "--do_eval", "--do_predict"),
)
ARC = ComparedTask(
    name="arc",
    script="run_swag.py",
    peer="pytorch.choice",
    scores=("accuracy",),
    sources=("the training questions", "the dev questions"),
    prepare=_prepare_choices,
    read_scores=_read_eval_results,
    train_batch_size=16,
)
TASKS = {task.name: task for task in (SQUAD_1, SQUAD_2, CONLL, ARC)}


def check_sources(task, sources):
    """Raise `UserError` unless a task has one path per source."""
    if len(sources) != len(task.sources):
        raise UserError(
            f"--{task.name}_files has {len(sources)} files. Give "
            f"{len(task.sources)}, separated by commas: "
            f"{', '.join(task.sources)}."
        )
