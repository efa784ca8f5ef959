"""Read SQuAD from TFDS: `squad/v1.1`, `squad/v2.0`, and datasets like them."""

from typing import Any

from official_bert.errors import UserError
from official_bert.tables.datasets import Dataset
from official_bert.tasks.squad.files import Articles

_NEEDED = ("id", "context", "question", "answers")
_IS_IMPOSSIBLE = "is_impossible"


def has_impossible_questions(dataset: Dataset) -> bool:
    """Return whether a dataset marks questions without an answer, as SQuAD 2.0 does."""
    return _IS_IMPOSSIBLE in dataset.features


def read_articles(dataset: Dataset, split: str) -> Articles:
    """Return a split in the format of SQuAD's files.

    Questions about one context become one paragraph. Paragraphs with the same title
    become one article. Both keep the order of their first appearance in TFDS, which
    differs from SQuAD's files.

    Args:
      dataset: `Dataset`.
      split: the name of the split.

    Raises:
      UserError: the dataset lacks a feature of SQuAD; or see `Dataset.rows`.
    """
    missing = [name for name in _NEEDED if name not in dataset.features]
    if missing:
        raise UserError(
            f"--dataset={dataset.name} lacks the SQuAD features {', '.join(missing)}. "
            f"It has only {', '.join(dataset.features)}. Choose squad/v1.1, squad/v2.0 "
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
    """Convert a row of the dataset to a question in SQuAD's format."""
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
