"""The tasks of GLUE (Wang et al. 2018) and XNLI: one row of a table each.

What their files look like, which labels they have in which order, how they are
scored and what the GLUE server wants to be sent. Columns count from 0, from
the end if negative. The orders of the labels are those of the original's
processors, where it has one; Hugging Face numbers MNLI's differently.
"""

import dataclasses

from official_bert.errors import UserError

# Where a task's scores are of two kinds, the first decides what is best.
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
      files: names it may have in the task's folder, the best one first.
      text_a: column of the (first) text.
      text_b: column of the second text, or None.
      label: column of the label, or None where it is not told.
      num_columns: None where the first row is a header, and says it.
      language: None, or what column 0 must say for a row to be read.
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
      name: what `--task_name` says.
      directory: its folder among those of GLUE.
      layouts: dict of split ("train", "dev", "test") -> `Layout`.
      labels: names of its classes, in the order of their numbers; none where
        the label is a number (see `label_range`).
      metrics: names of its scores in `official_bert.metrics.glue`.
      submission: name of the file for the server; None where it takes none.
      label_range: lowest and highest label of a regression task, or None.
      aliases: other names of labels -> those in `labels`.
      companions: names of tasks whose sets a model of this one is asked too.
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


# Microsoft's own files, which GLUE's train.tsv and dev.tsv are made from: the
# rows that dev_ids.tsv names are the dev set.
MSR_TRAIN = "msr_paraphrase_train.txt"
MSR_TEST = "msr_paraphrase_test.txt"


def _layouts(train, test, dev_files=("dev.tsv",), test_files=("test.tsv",), more=()):
    """Return the layouts of a task with train.tsv, or one of `more` in its place.

    `train` and `test` are fields of `Layout` after the files; a dev set has those of
    `train`.
    """
    return {
        "train": Layout(("train.tsv", *more), *train),
        "dev": Layout(dev_files, *train),
        "test": Layout(test_files, *test),
    }


# Number, two texts and label.
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
        # Whoever predicts it has trained on MNLI, and may have named its folder.
        {"test": Layout(("diagnostic.tsv", "../diagnostic/diagnostic.tsv"), 1, 2)},
        THREE,
        MATTHEWS,
        "AX.tsv",
    ),
    GlueTask("qnli", "QNLI", _NUMBERED_PAIRS, ENTAILMENT, ACCURACY, "QNLI.tsv"),
    GlueTask("rte", "RTE", _NUMBERED_PAIRS, ENTAILMENT, ACCURACY, "RTE.tsv"),
    GlueTask("wnli", "WNLI", _NUMBERED_PAIRS, TWO, ACCURACY, "WNLI.tsv"),
    # Chinese, trained on MNLI as it was translated: the original's setting.
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
    """Return the task of a `--task_name`, in whatever case it is written.

    Hyphens may be missing or underscores ("sst2", "MNLI_mm").

    Raises:
      UserError: there is no such task; lists those there are.
    """
    for task in _ALL:
        if _plain(task.name) == _plain(name):
            return task
    raise UserError(f"--task_name: no task {name!r}; choose from {', '.join(TASKS)}.")


def _plain(name):
    return name.lower().replace("-", "").replace("_", "")
