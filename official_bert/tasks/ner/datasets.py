"""Read tagged sentences from TFDS: `conll2003`, and datasets like it.

A row is a sentence: a sequence of words, a sequence of tags (classes), and optional
further sequences such as parts of speech. TFDS keeps neither the documents nor the
order of the sentences.
"""

from collections.abc import Container

from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.tables.dataset_columns import CLASS, SEQUENCE, TEXT, kinds_of
from official_bert.tables.datasets import Dataset
from official_bert.tables.table_files import fail_for_rows
from official_bert.tasks.ner.conll import tagged_data
from official_bert.tasks.ner.sentences import NerData

_WORDS = ("tokens", "words")
_TAGS = ("ner", "ner_tags", "tags")


def read_sentences(
    dataset: Dataset, split: str, labels: Container[str] | None = None
) -> NerData:
    """Return a split, like a CoNLL file without documents.

    Args:
      dataset: `Dataset`.
      split: the name of the split.
      labels: allowed types, as in `NerData.labels`; None allows all.

    Returns:
      `NerData` with one document of unrelated sentences.

    Raises:
      UserError: the features of words and tags do not exist or are ambiguous. Rows
        have different numbers of words and tags, an empty word, an invalid tag or
        an unknown type. There are no words.
    """
    words, tags, others = _find_features(dataset)
    names = {name: dataset.features[name].feature.names for name in (*others, tags)}
    where = f"{dataset.name} ({split})"
    sentences, problems = [], []
    for number, row in enumerate(dataset.rows(split), 1):
        columns = [row[words]]
        for name, classes in names.items():
            columns.append([classes[each] for each in row[name]])
        problem = _what_is_wrong(columns, labels)
        if problem:
            problems.append((number, problem))
        elif row[words]:
            cells = zip(*columns, strict=True)
            sentences.append([(number, list(each)) for each in cells])
    if problems:
        fail_for_rows(where, problems, "choose another dataset or version")
    if not sentences:
        raise UserError(f"{where} has no words. Choose another dataset.")
    note = f"{where}: sentences are read one by one, because TFDS keeps no documents."
    return tagged_data(where, [sentences], True, [note])


def _find_features(dataset):
    """Return the names of the words, the tags, and the further columns (a list)."""
    kinds = kinds_of(dataset)
    texts = [name for name, kind in kinds.items() if kind == SEQUENCE + TEXT]
    classes = [name for name, kind in kinds.items() if kind == SEQUENCE + CLASS]
    words = [name for name in _WORDS if name in texts] or texts
    tags = [name for name in _TAGS if name in classes] or classes
    if len(words) != 1 or len(tags) != 1:
        listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise UserError(
            f"--dataset={dataset.name} must have one sequence of words and one "
            f"sequence of tags, as conll2003 does. It has {listed}. Choose another "
            "dataset."
        )
    return words[0], tags[0], [name for name in classes if name != tags[0]]


def _what_is_wrong(columns, labels):
    """Return the problem of a sentence, or None."""
    words, *_, tags = columns
    if any(len(column) != len(words) for column in columns):
        return f"has {len(words)} words and {len(tags)} tags"
    if any(not word.strip() for word in words):
        return "has an empty word"
    for tag in tags:
        try:
            letter, label = entities.split_tag(tag)
        except ValueError:
            return f"has {tag!r}, which is not a tag"
        if labels is not None and letter != entities.OUTSIDE and label not in labels:
            return f"has the tag {tag!r} of an unknown type"
    return None
