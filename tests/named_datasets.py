"""TFDS datasets without a network, from files that TFDS or this module reads.

Tests that import this module are skipped if tensorflow-datasets is not installed.
"""

import csv
from unittest import mock

import pytest

_WHY = "tensorflow-datasets is not installed: pip install 'official-bert[tfds]'"
tfds = pytest.importorskip("tensorflow_datasets", reason=_WHY)
pytest.importorskip("importlib_resources", reason=_WHY)

from official_bert.tables.dataset_opening import open_dataset  # noqa: E402
from official_bert.tables.datasets import parse_name  # noqa: E402


def prepare(name, data_dir, source):
    """Make TFDS's builder read local files as if it had downloaded them.

    Args:
      name: name of the dataset, with its config.
      data_dir: folder of the prepared dataset.
      source: the result of TFDS's downloads: a path, or a dict of paths.
    """
    manager = "tensorflow_datasets.core.download.DownloadManager"
    with (
        mock.patch(f"{manager}.download", lambda self, urls: source),
        mock.patch(f"{manager}.download_and_extract", lambda self, urls: source),
    ):
        tfds.builder(name, data_dir=data_dir).download_and_prepare()


def prepare_rows(name, data_dir, features, splits, **info):
    """Prepare a dataset of rows that the caller provides.

    Args:
      name: name of the dataset.
      data_dir: folder of the prepared dataset.
      features: dict of name -> feature.
      splits: dict of name -> list of rows.
      **info: further arguments of `DatasetInfo`.
    """

    def split_generators(self, manager):
        return {split: self._generate_examples(rows) for split, rows in splits.items()}

    members = {
        "VERSION": tfds.core.Version("1.0.0"),
        "_info": lambda self: tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features), **info
        ),
        "_split_generators": split_generators,
        "_generate_examples": lambda self, rows: enumerate(rows),
        "__module__": __name__,
    }
    class_name = "".join(part.capitalize() for part in name.split("_"))
    with tfds.core.registered.skip_registration():
        builder = type(class_name, (tfds.core.GeneratorBasedBuilder,), members)
    tfds.disable_progress_bar()
    builder(data_dir=data_dir).download_and_prepare()


def opened(name, data_dir):
    """Return the `Dataset` with this name."""
    return open_dataset(parse_name(name), data_dir)


def write_tsv(path, rows):
    """Write rows with tabs between cells, without quotes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(
            file, "excel-tab", quoting=csv.QUOTE_NONE, quotechar=None, escapechar=None
        )
        writer.writerows(rows)


SENTENCES = (
    'She said: "water is found in her years".',
    "Horse, the light!",
    "It is œuf – 好的 light.",
    "the the of 'in' is and",
    "\u00a0years of found water",
    "On light",
)
_HEADERS = {
    "CoLA": ["source", "label", "mark", "sentence"],
    "SST-2": ["sentence", "label"],
    "QQP": ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
    "STS-B": [*"abcdefg", "sentence1", "sentence2", "score"],
    "MNLI": [*"abcdefgh", "sentence1", "sentence2", "label1", "gold_label"],
    "QNLI": ["index", "question", "sentence", "label"],
    "RTE": ["index", "sentence1", "sentence2", "label"],
    "WNLI": ["index", "sentence1", "sentence2", "label"],
}
_TEXTS = ("sentence", "sentence1", "sentence2", "question", "question1", "question2")
_LABELS = {
    "STS-B": ("3.8", "0.000", "5.00", "4.75", "2.615", "1.25"),
    "MNLI": ("neutral", "contradiction", "entailment"),
    "QNLI": ("entailment", "not_entailment"),
    "RTE": ("not_entailment", "entailment"),
}


def write_glue(folder):
    """Write small files of all GLUE tasks, in the layout of GLUE."""
    for task, header in _HEADERS.items():
        halves = ("_matched", "_mismatched") if task == "MNLI" else ("",)
        for half in halves:
            write_tsv(folder / task / f"dev{half}.tsv", _rows(task, header, 1, True))
            write_tsv(folder / task / f"test{half}.tsv", _test_rows(task, header))
        write_tsv(folder / task / "train.tsv", _rows(task, header, 0, True))
    _write_mrpc(folder / "MRPC")
    rows = [[n, text, SENTENCES[n - 1]] for n, text in enumerate(SENTENCES)]
    header = ["index", "sentence1", "sentence2"]
    write_tsv(folder / "diagnostic" / "diagnostic.tsv", [header, *rows])


def _rows(task, header, shift, with_label):
    labels = _LABELS.get(task, ("1", "0"))
    rows = []
    for number in range(len(SENTENCES)):
        texts = iter(SENTENCES[number + shift :] + SENTENCES)
        row = [next(texts) if name in _TEXTS else f"{number}" for name in header]
        row[1 if task == "CoLA" else -1] = labels[(number + shift) % len(labels)]
        rows.append(row)
    # CoLA's files have no header.
    return rows if task == "CoLA" else [header, *rows]


def _test_rows(task, header):
    columns = ["index", *(name for name in header if name in _TEXTS)]
    if task in ("STS-B", "MNLI"):  # More columns, and none after the texts.
        columns = header[: header.index("sentence2") + 1]
    rows = _rows(task, header, 2, False)[task != "CoLA" :]
    places = [header.index(name) if name in header else 0 for name in columns]
    return [columns, *([row[place] for place in places] for row in rows)]


def _write_mrpc(folder):
    header = ["\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    rows = [
        [number % 2, number, number + 100, SENTENCES[number], SENTENCES[number - 1]]
        for number in range(len(SENTENCES))
    ]
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"):
        write_tsv(folder / name, [header, *rows])
    write_tsv(folder / "dev_ids.tsv", [row[1:3] for row in rows[4:]])


def mrpc_files(folder):
    """Return the files that TFDS downloads for MRPC."""
    return {
        "dev_ids": folder / "dev_ids.tsv",
        "train": folder / "msr_paraphrase_train.txt",
        "test": folder / "msr_paraphrase_test.txt",
    }


def prepare_glue(config, folder, data_dir):
    """Make TFDS read GLUE's files in a folder."""
    source = {
        "mrpc": mrpc_files(folder / "MRPC"),
        "ax": folder / "diagnostic" / "diagnostic.tsv",
    }
    prepare(f"glue/{config}", data_dir, source.get(config, folder))
