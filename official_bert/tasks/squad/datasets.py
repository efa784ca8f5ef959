"""SQuAD from a dataset of TFDS: `squad/v1.1`, `squad/v2.0` and those built alike."""

from typing import Any

from official_bert.errors import UserError
from official_bert.tables.datasets import Dataset
from official_bert.tasks.squad.files import Articles

_NEEDED = ("id", "context", "question", "answers")
_IS_IMPOSSIBLE = "is_impossible"


def has_impossible_questions(dataset: Dataset) -> bool:
    """Return whether a dataset says which questions have no answer, as SQuAD 2.0."""
    return _IS_IMPOSSIBLE in dataset.features


def read_articles(dataset: Dataset, split: str) -> Articles:
    """Return a split in the format of SQuAD's files.

    Questions on one context become one paragraph, and paragraphs with one title one
    article. Both are in the order in which TFDS has them first, which is not that of
    SQuAD's files.

    Args:
      dataset: `Dataset`.
      split: the name of the split.

    Raises:
      UserError: the dataset lacks a feature of SQuAD; or see `Dataset.rows`.
    """
    missing = [name for name in _NEEDED if name not in dataset.features]
    if missing:
        raise UserError(
            f"--dataset={dataset.name} has no feature {', '.join(missing)}, as SQuAD "
            f"has, only {', '.join(dataset.features)}. Choose squad/v1.1, squad/v2.0 "
            "or a dataset with the same features."
        )
    titles: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in dataset.rows(split):
        paragraphs = titles.setdefault(row.get("title", ""), {})
        paragraphs.setdefault(row["context"], []).append(_question(row))
    articles = [
        {
            "title": title,
            "paragraphs": [
                {"context": context, "qas": questions}
                for context, questions in paragraphs.items()
            ],
        }
        for title, paragraphs in titles.items()
    ]
    return Articles(f"{dataset.name} ({split})", articles)


def _question(row):
    """Return a row of the dataset as SQuAD's files have a question."""
    answers = row["answers"]
    question = {
        "id": row["id"],
        "question": row["question"],
        "answers": [
            {"text": text, "answer_start": start}
            for text, start in zip(
                answers["text"], answers["answer_start"], strict=True
            )
        ],
    }
    if _IS_IMPOSSIBLE in row:
        question[_IS_IMPOSSIBLE] = row[_IS_IMPOSSIBLE]
    return question
