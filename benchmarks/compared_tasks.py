"""The tasks of `fine_tuning.py`: their data, settings and scores.

Both sides get the same flags for them. The files they read are written anew: with as
many rows as are asked for, and what one side could not read left out.
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
    """A task, and how both sides are trained on it.

    Attributes:
      name: as in --tasks.
      script: our command, of `run_scripts`.
      peer: PyTorch's script, a module of `benchmarks.peers`.
      scores: names of the scores, each from 0 to 1.
      sources: what its files are, for people; the first is trained on.
      prepare: function: (paths of the sources, folder for what is written, rows
        to train on at most, and to evaluate on; None for all) -> flags that
        name the data.
      read_scores: function: our output directory -> dict of all scores.
      max_seq_length: tokens of a sequence at most.
      train_batch_size: sequences of an update; of multiple choice, questions.
      learning_rate: the highest, behind a tenth of the updates as warm-up.
      num_train_epochs: passes over the training set.
      max_train_rows: rows to train on at most; None for all.
      flags: further flags of both sides.
      our_flags: further flags of our command.
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
        """Return the flags of both sides that do not name data or the model."""
        names = "max_seq_length", "train_batch_size", "learning_rate"
        return [*self.flags, *(f"--{name}={getattr(self, name)}" for name in names)]


def find_task(name):
    """Return the `ComparedTask` of a name: one of `TASKS`, or a task of GLUE.

    Raises:
      UserError: there is none.
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
    """Return a SQuAD file with its first questions alone."""
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
    """Return CoNLL columns with their first sentences alone."""
    kept = []
    for block in BLANK_LINES.split(text.strip()):
        if not most:
            break
        # The row that begins a document is no sentence.
        most -= not block.startswith(ner_conll.DOCUMENT_START)
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def _prepare_texts(names, cut, sources, folder, max_train_rows, max_dev_rows):
    """Write files cut by `cut`; return their flags, which have these names."""
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
    """Write a folder of a task of GLUE; see `ComparedTask.prepare`."""
    header = 0 if task.layouts["train"].num_columns else 1
    for split, most in (("train", max_train_rows), ("dev", max_dev_rows)):
        name = task.layouts[split].files[0]
        lines = (pathlib.Path(sources[0]) / task.directory / name).read_bytes()
        lines = lines.split(b"\n")[: None if most is None else header + most]
        (folder / name).write_bytes(b"\n".join(lines))
    return [f"--data_dir={folder}"]


def _prepare_choices(sources, folder, max_train_rows, max_dev_rows):
    """Write JSON lines of multiple choice; see `ComparedTask.prepare`.

    A source may be a pattern of several files, whose questions follow each other.
    Questions without choices are left out: there are copies of ARC that lost some.
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
    """Return what `eval_results.txt` says: name, without "eval_", -> number."""
    found = eval_results.read(directory)
    return {name.removeprefix("eval_"): value for name, value in found.items()}


def _read_squad_results(directory):
    found = _read_eval_results(directory)
    return {name: value / 100 for name, value in found.items()}


def _read_ner_results(directory):
    """Return the scores on the dev set, and `test_f1` of the tags predicted."""
    path = pathlib.Path(directory) / "test_predictions.conll"
    documents = ner_files.read_ner_file(path).documents
    sentences = [sentence for document in documents for sentence in document]
    # The predicted tag stands behind the known one.
    known = [[columns[-1] for columns in one.columns] for one in sentences]
    scores = entities.score(known, [one.tags for one in sentences])
    return _read_eval_results(directory) | {"test_f1": scores.overall.f1}


# The paper's rate for SQuAD, with the original's batch for one GPU: its 32 would
# make few updates of a part of the training set.
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
    """Raise `UserError` unless a task has as many paths as it has sources."""
    if len(sources) != len(task.sources):
        raise UserError(
            f"--{task.name}_files names {len(sources)} files; give "
            f"{len(task.sources)}, with commas between them: {', '.join(task.sources)}."
        )
