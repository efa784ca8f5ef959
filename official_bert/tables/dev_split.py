"""Split a dev set off the training examples, and count labels."""

import collections
import hashlib
import itertools
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tables.labels import MULTI_LABEL, REGRESSION, Labels

_MOST_LABELS_SHOWN = 30
_NONE = ""  # A label is never empty.


def split_off_dev(
    examples: Sequence[Example], kind: str, seed: int, dev_fraction: float = 0.1
) -> tuple[list[Example], list[Example]]:
    """Divide examples into a training set and a dev set.

    The result depends only on the arguments. Examples with the same text (or pair of
    texts), ignoring white space, stay together on one side. A hash of the text and
    the seed decides, so new rows move few of the others to the other side.

    The split is stratified. The dev set gets its share of each label: at least one
    text if there are two or more, but never all. With several labels, the rarest
    label of an example counts. Regression labels are not stratified.

    Args:
      examples: list of `Example`.
      kind: one of `labels.KINDS`.
      seed: int.
      dev_fraction: float between 0 and 1.

    Returns:
      (training list, dev list) of `Example`, both in the order of the file.

    Raises:
      UserError: the fraction is out of range, or every label has only one text.
    """
    if not 0 < dev_fraction < 1:
        raise UserError(
            f"The dev fraction is {dev_fraction}. Choose a number between 0 and 1."
        )
    groups = collections.defaultdict(list)
    for example in examples:
        groups[_texts(example)].append(example)
    strata: dict[Any, dict[tuple[str, ...], int]] = collections.defaultdict(dict)
    stratum_of = _stratifier(examples, kind)
    for texts, group in groups.items():
        strata[stratum_of(group[0])][texts] = len(group)
    in_dev = set()
    for sizes in strata.values():
        in_dev |= _choose_texts(sizes, seed, dev_fraction)
    if not in_dev:
        raise UserError(
            f"{len(examples)} rows are too few to split off a dev set. Give "
            "--dev_file, or add rows until at least one label has two texts."
        )
    sides: tuple[list[Example], list[Example]] = [], []
    for example in examples:
        sides[_texts(example) in in_dev].append(example)
    return sides


def _stratifier(examples, kind):
    """Return the function that maps an example to its stratum."""
    if kind == REGRESSION:
        return lambda example: None
    if kind != MULTI_LABEL:
        return lambda example: example.label
    counts = collections.Counter(name for each in examples for name in each.label)
    return lambda each: min(
        each.label, key=lambda name: (counts[name], name), default=None
    )


def _choose_texts(sizes, seed, dev_fraction):
    """Return the texts of a stratum that go to the dev set.

    `sizes` maps texts to the number of rows with these texts.
    """

    def hashed(texts):
        return hashlib.sha256(json.dumps([seed, *texts]).encode()).digest()

    wanted = round(dev_fraction * sum(sizes.values()))
    chosen, num_rows = set(), 0
    in_order = sorted(sizes, key=hashed)
    for texts in in_order[:-1]:  # At least one text stays in the training set.
        if num_rows + sizes[texts] <= wanted:
            chosen.add(texts)
            num_rows += sizes[texts]
    if not chosen and len(in_order) > 1:
        # The stratum is small, or each of its texts is in too many rows. Choose the
        # text with the fewest rows; on a tie, the first one in hash order.
        chosen.add(min(in_order, key=sizes.get))
    return chosen


def _texts(example):
    """Return an example's texts with normalized white space, to compare examples."""
    texts = example.text_a, example.text_b or ""
    return tuple(" ".join(text.split()) for text in texts)


def count_shared_texts(examples: Iterable[Example], others: Iterable[Example]) -> int:
    """Return the number of examples whose text (or pair) is also in `others`."""
    texts = set(map(_texts, others))
    return sum(_texts(each) in texts for each in examples)


def class_balance(sets: Mapping[str, Iterable[Example]], labels: Labels) -> list[str]:
    """Return a table with the number of rows per label in each set.

    Args:
      sets: dict from a name ("train") to a list of `Example`. Examples without a
        label are not counted.
      labels: `Labels`.

    Returns:
      list of str, lines: a header, a line for each label (at most 30) with its
      count and its share of the set's rows, and a last line with the number of
      rows. With several labels the shares may not add up to 100 %. For
      regression, a line for each set: rows, mean, standard deviation, minimum and
      maximum.
    """
    by_set: dict[str, list[Any]] = {
        name: [each.label for each in examples if each.label is not None]
        for name, examples in sets.items()
    }
    if labels.kind == REGRESSION:
        header = ["label", "rows", "mean", "std dev", "min", "max"]
        rows = [[name, *_summary(numbers)] for name, numbers in by_set.items()]
        return _align([header, *rows])
    counts = {}
    for name, known in by_set.items():
        if labels.kind == MULTI_LABEL:
            listed = (names or [_NONE] for names in known)
            known = [*itertools.chain.from_iterable(listed)]
        counts[name] = collections.Counter(known)
    shown, rest = labels.names[:_MOST_LABELS_SHOWN], labels.names[_MOST_LABELS_SHOWN:]
    rows = [["label", *by_set]]
    for label in shown:
        name = " ".join(label.split())
        name = name if len(name) <= 40 else name[:39] + "…"
        rows.append([name, *_shares(counts, by_set, [label])])
    if rest:
        rows.append([f"({len(rest)} more)", *_shares(counts, by_set, rest)])
    if any(count[_NONE] for count in counts.values()):
        rows.append(["(none)", *_shares(counts, by_set, [_NONE])])
    rows.append(["rows", *(str(len(known)) for known in by_set.values())])
    return _align(rows)


def _shares(counts, by_set, names):
    """Return "90  45.0 %" for each set: count of these labels, and count per row."""
    cells = []
    for key, count in counts.items():
        number = sum(count[name] for name in names)
        share = 100 * number / len(by_set[key]) if by_set[key] else 0
        cells.append(f"{number} {share:5.1f} %")
    return cells


def _summary(numbers):
    """Return the statistics of a set of numbers as cells, list of str."""
    if not numbers:
        return ["0", "", "", "", ""]
    mean, deviation = statistics.fmean(numbers), statistics.pstdev(numbers)
    values = mean, deviation, min(numbers), max(numbers)
    return [str(len(numbers)), *(f"{value:.4g}" for value in values)]


def _align(rows):
    """Return lines in which the columns are aligned."""
    width, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    line = "  ".join([f"{{:<{width}}}", *(f"{{:>{each}}}" for each in widths)])
    return [line.format(*row).rstrip() for row in rows]
