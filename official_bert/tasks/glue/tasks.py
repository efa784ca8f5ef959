"""The tasks of GLUE (Wang et al. 2018) and XNLI as a table.

Each entry describes the files, the labels and their order, the metrics and the
submission. Columns count from 0, or from the end if negative. The order of labels is
that of the original's processors, if they exist. Hugging Face numbers MNLI's labels
differently.
"""

import dataclasses

from official_bert.errors import UserError

# If a task has several metrics, the first one selects the best model.
ACCURACY = ("accuracy",)
F1_AND_ACCURACY = ("f1", "accuracy")
MATTHEWS = ("matthews_correlation",)
CORRELATIONS = ("pearson", "spearman")

TWO = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
THREE = ("contradiction", "entailment", "neutral")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The layout of one file of a task.

    Attributes:
      files: possible names in the task's folder, the preferred one first.
      text_a: column of the (first) text.
      text_b: column of the second text, or None.
      label: column of the label, or None if the file has no labels.
      num_columns: number of columns of a file without a header; else None.
      language: None, or the value of column 0 in the rows to read.
    """

    files: tuple[str, ...]
    text_a: int
    text_b: int | None = None
    label: int | None = None
    num_columns: int | None = None
    language: str | None = None


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task.

    Attributes:
      name: value of `--task_name`.
      directory: its folder in the GLUE folder.
      layouts: dict of split ("train", "dev", "test") -> `Layout`.
      labels: names of its classes, in the order of their numbers; empty if the
        label is a number (see `label_range`).
      metrics: names of its scores in `official_bert.metrics.glue`.
      submission: name of the file for the server; None if the server has none.
      label_range: lowest and highest label of a regression task, or None.
      aliases: other names of labels -> those in `labels`.
      companions: names of tasks whose sets a model of this task also predicts.
    """

    name: str
    directory: str
    layouts: dict[str, Layout]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    submission: str | None
    label_range: tuple[float, float] | None = None
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    companions: tuple[str, ...] = ()


# Microsoft's file, from which GLUE's train.tsv and dev.tsv are made. dev_ids.tsv
# lists the rows of the dev set.
MSR_TRAIN = "msr_paraphrase_train.txt"
MSR_TEST = "msr_paraphrase_test.txt"


def _layouts(train, test, dev_files=("dev.tsv",), test_files=("test.tsv",), more=()):
    """Return the layouts of a task with train.tsv, or another name from `more`.

    `train` and `test` are the fields of `Layout` after `files`. The dev set has the
    fields of `train`.
    """
    return {
        "train": Layout(("train.tsv", *more), *train),
        "dev": Layout(dev_files, *train),
        "test": Layout(test_files, *test),
    }


# Columns: number, two texts and label.
_NUMBERED_PAIRS = _layouts((1, 2, 3), (1, 2))

_ALL = (
    GlueTask(
        "cola", "CoLA", _layouts((3, None, 1, 4), (1,)), TWO, MATTHEWS, "CoLA.tsv"
    ),
    GlueTask(
        "sst-2",
        "SST-2",
        _layouts((0, None, 1), (1, None)),
        TWO,
        ACCURACY,
        "SST-2.tsv",
    ),
    GlueTask(
        "mrpc",
        "MRPC",
        _layouts(
            (3, 4, 0),
            (3, 4),
            ("dev.tsv", MSR_TRAIN),
            ("test.tsv", MSR_TEST),
            more=(MSR_TRAIN,),
        ),
        TWO,
        F1_AND_ACCURACY,
        "MRPC.tsv",
    ),
    GlueTask(
        "sts-b",
        "STS-B",
        _layouts((-3, -2, -1), (-2, -1)),
        (),
        CORRELATIONS,
        "STS-B.tsv",
        label_range=(0.0, 5.0),
    ),
    GlueTask(
        "qqp", "QQP", _layouts((3, 4, 5), (1, 2)), TWO, F1_AND_ACCURACY, "QQP.tsv"
    ),
    GlueTask(
        "mnli",
        "MNLI",
        _layouts((8, 9, -1), (8, 9), ("dev_matched.tsv",), ("test_matched.tsv",)),
        THREE,
        ACCURACY,
        "MNLI-m.tsv",
        companions=("mnli-mm", "ax"),
    ),
    GlueTask(
        "mnli-mm",
        "MNLI",
        _layouts((8, 9, -1), (8, 9), ("dev_mismatched.tsv",), ("test_mismatched.tsv",)),
        THREE,
        ACCURACY,
        "MNLI-mm.tsv",
    ),
    GlueTask(
        "ax",
        "diagnostic",
        # A model for it is trained on MNLI, so --data_dir may be the folder of MNLI.
        {"test": Layout(("diagnostic.tsv", "../diagnostic/diagnostic.tsv"), 1, 2)},
        THREE,
        MATTHEWS,
        "AX.tsv",
    ),
    GlueTask("qnli", "QNLI", _NUMBERED_PAIRS, ENTAILMENT, ACCURACY, "QNLI.tsv"),
    GlueTask("rte", "RTE", _NUMBERED_PAIRS, ENTAILMENT, ACCURACY, "RTE.tsv"),
    GlueTask("wnli", "WNLI", _NUMBERED_PAIRS, TWO, ACCURACY, "WNLI.tsv"),
    # Chinese, trained on the machine translation of MNLI: the original's setting.
    GlueTask(
        "xnli",
        "XNLI",
        {
            "train": Layout(
                ("multinli/multinli.train.zh.tsv", "multinli.train.zh.tsv"), 0, 1, 2
            ),
            "dev": Layout(("xnli.dev.tsv",), 6, 7, 1, language="zh"),
            "test": Layout(("xnli.test.tsv",), 6, 7, 1, language="zh"),
        },
        THREE,
        ACCURACY,
        None,
        aliases={"contradictory": "contradiction"},
    ),
)

TASKS = {task.name: task for task in _ALL}


def find_task(name: str) -> GlueTask:
    """Return the task with this `--task_name`, in upper or lower case.

    Hyphens may be missing or be underscores ("sst2", "MNLI_mm").

    Raises:
      UserError: the task does not exist. The message lists the tasks.
    """
    for task in _ALL:
        if _plain(task.name) == _plain(name):
            return task
    raise UserError(
        f"--task_name={name} does not exist. Choose one of {', '.join(TASKS)}."
    )


def _plain(name):
    return name.lower().replace("-", "").replace("_", "")
