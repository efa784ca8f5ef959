"""Define the paper's ablation tables: rows, scored tasks, and the paper's numbers.

A row is a flag file of `configs/ablations`. It is passed to every command of its run:
records, pre-training, fine-tuning.
"""

import dataclasses
from collections.abc import Collection

from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class Task:
    """A fine-tuning task.

    Attributes:
      script: the command.
      metric: the score that the table shows.
      title: heading of its column.
    """

    script: str
    metric: str
    title: str


# Name of the task and of its flag file -> how it is run.
TASKS = {
    "sst-2": Task("run_classifier.py", "accuracy", "SST-2 accuracy"),
    "sts-b": Task("run_classifier.py", "pearson", "STS-B Pearson"),
    "conll": Task("run_ner.py", "f1", "CoNLL F1"),
    "conll_features": Task("run_ner.py", "f1", "CoNLL F1, feature-based"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One model of a table.

    Attributes:
      label: name of the row in the table.
      flags: name of its flag file, without ".flags".
      paper: the paper's numbers, in the order of the table's `paper_columns`; () if the
        paper has no such row.
      records_of: the row whose records it is pre-trained on.
      model_of: the row whose pre-trained model it fine-tunes.
    """

    label: str
    flags: str
    paper: tuple[float, ...] = ()
    records_of: str | None = None
    model_of: str | None = None

    @property
    def records(self) -> str:
        """Return the name of the flag file that its records are created with."""
        return self.records_of or self.flags

    @property
    def model(self) -> str:
        """Return the name of the flag file that its model is pre-trained with."""
        return self.model_of or self.flags


@dataclasses.dataclass(frozen=True)
class Table:
    """One table or figure.

    Attributes:
      title: one-line title.
      rows: tuple of `Row`.
      tasks: names of `TASKS`, scored if their data is given.
      paper_columns: names of the numbers in `Row.paper`.
      paper_rows: tuple of (label, numbers of `paper_columns`) of rows that only the
        paper has.
      over_steps: whether models are fine-tuned from each checkpoint of the
        pre-training, and drawn over its steps.
    """

    title: str
    rows: tuple[Row, ...]
    tasks: tuple[str, ...] = ("sst-2", "sts-b", "conll")
    paper_columns: tuple[str, ...] = ()
    paper_rows: tuple[tuple[str, tuple[float, ...]], ...] = ()
    over_steps: bool = False


NO_NSP = Row("No NSP", "table5_no_nsp", (83.9, 84.9, 86.5, 92.6, 87.9))
LEFT_TO_RIGHT = Row(
    "LTR & No NSP",
    "table5_ltr_no_nsp",
    (82.1, 84.3, 77.5, 92.1, 77.8),
    records_of=NO_NSP.flags,
)


def _mix(text, *paper):
    return Row(text, f"table8_{text.replace('/', '_')}", paper)


TABLES = {
    "table5": Table(
        "Table 5: pre-training tasks",
        (
            Row("BERT", "bert", (84.4, 88.4, 86.7, 92.7, 88.5)),
            NO_NSP,
            LEFT_TO_RIGHT,
            Row(
                "LTR & No NSP + BiLSTM",
                "table5_ltr_no_nsp_bilstm",
                (82.1, 84.1, 75.7, 91.6, 84.9),
                records_of=NO_NSP.flags,
                model_of=LEFT_TO_RIGHT.flags,
            ),
        ),
        paper_columns=("MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD F1"),
    ),
    "table6": Table(
        "Table 6: model size, at equal data",
        (
            Row("2 layers, 64 wide", "table6_micro", records_of="bert"),
            Row("2 layers, 128 wide", "bert"),
            Row("4 layers, 128 wide", "table6_deep", records_of="bert"),
            Row("4 layers, 256 wide", "table6_mini", records_of="bert"),
        ),
        paper_columns=("perplexity", "MNLI-m", "MRPC", "SST-2"),
        paper_rows=(
            ("3 layers, 768 wide, 12 heads", (5.84, 77.9, 79.8, 88.4)),
            ("6 layers, 768 wide, 3 heads", (5.24, 80.6, 82.2, 90.7)),
            ("6 layers, 768 wide, 12 heads", (4.68, 81.9, 84.8, 91.3)),
            ("12 layers, 768 wide, 12 heads", (3.99, 84.4, 86.7, 92.9)),
            ("12 layers, 1024 wide, 16 heads", (3.54, 85.7, 86.9, 93.3)),
            ("24 layers, 1024 wide, 16 heads", (3.23, 86.6, 87.8, 93.7)),
        ),
    ),
    "table8": Table(
        "Table 8: masking mixes, in percent [MASK] / same / random",
        (
            Row("80/10/10", "bert", (84.2, 95.4, 94.9)),
            _mix("100/0/0", 84.3, 94.9, 94.0),
            _mix("80/0/20", 84.1, 95.2, 94.6),
            _mix("80/20/0", 84.4, 95.2, 94.7),
            _mix("0/20/80", 83.7, 94.8, 94.6),
            _mix("0/0/100", 83.6, 94.9, 94.6),
        ),
        tasks=("sst-2", "conll", "conll_features"),
        paper_columns=("MNLI", "NER", "NER, feature-based"),
    ),
    "figure5": Table(
        "Figure 5: scores after different numbers of pre-training steps",
        (dataclasses.replace(NO_NSP, label="masked LM"), LEFT_TO_RIGHT),
        over_steps=True,
    ),
    "whole_words": Table(
        "Whole-word masking compared with masking of single tokens",
        (Row("single tokens", "bert"), Row("whole words", "whole_word_masking")),
    ),
}


def find_table(name: str, row_names: Collection[str] = ()) -> Table:
    """Return the `Table` with this name, with all rows or those of some flag files.

    Raises:
      UserError: no such table or row exists.
    """
    if name not in TABLES:
        raise UserError(f"{name!r} is not a table. Choose from {', '.join(TABLES)}.")
    table = TABLES[name]
    flag_files = [row.flags for row in table.rows]
    for row_name in row_names:
        if row_name not in flag_files:
            raise UserError(
                f"--rows: {name} has no row {row_name!r}. Choose from "
                f"{', '.join(flag_files)}."
            )
    rows = [row for row in table.rows if not row_names or row.flags in row_names]
    return dataclasses.replace(table, rows=tuple(rows))
