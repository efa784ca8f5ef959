"""A dev set split off the training examples, and how labels are distributed."""

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
_NONE = ""  # No label is called so.


def split_off_dev(
    examples: Sequence[Example], kind: str, seed: int, dev_fraction: float = 0.1
) -> tuple[list[Example], list[Example]]:
    """Divide examples into a training and a dev set.

    The split is a pure function of the arguments. Examples with the same text
    (or the same two) but for white space stay together on one side. Which texts
    go to the dev set is decided by a hash of each text and the seed, so new rows
    do not move the others about more than they must.

    The split is stratified: of each label the dev set gets its share, and at
    least one text if there are two or more, but never all. With several labels,
    the rarest of an example's labels counts. Numbers are not stratified.

    Args:
      examples: list of `Example`.
      kind: one of `labels.KINDS`.
      seed: int.
      dev_fraction: float between 0 and 1.

    Returns:
      (training list, dev list) of `Example`, both in the order of the file.

    Raises:
      UserError: the fraction is out of range, or no label has two texts.
    """
    if not 0 < dev_fraction < 1:
        raise UserError(
            f"The dev set's fraction is {dev_fraction}: choose one between 0 and 1."
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
            f"There are too few rows ({len(examples)}) to split off a dev set; give "
            "--dev_file, or add rows until a label has two texts."
        )
    sides: tuple[list[Example], list[Example]] = [], []
    for example in examples:
        sides[_texts(example) in in_dev].append(example)
    return sides


def _stratifier(examples, kind):
    """Return the function from an example to its stratum."""
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

    `sizes` is a dict from texts to the number of rows that have them.
    """

    def hashed(texts):
        return hashlib.sha256(json.dumps([seed, *texts]).encode()).digest()

    wanted = round(dev_fraction * sum(sizes.values()))
    chosen, num_rows = set(), 0
    in_order = sorted(sizes, key=hashed)
    for texts in in_order[:-1]:  # One text is left to train on.
        if num_rows + sizes[texts] <= wanted:
            chosen.add(texts)
            num_rows += sizes[texts]
    if not chosen and len(in_order) > 1:
        # The stratum is small, or every text in it is repeated too often.
        # Of equally frequent ones this is the first.
        chosen.add(min(in_order, key=sizes.get))
    return chosen


def _texts(example):
    """Return what makes examples the same: their texts but for white space."""
    texts = example.text_a, example.text_b or ""
    return tuple(" ".join(text.split()) for text in texts)


def count_shared_texts(examples: Iterable[Example], others: Iterable[Example]) -> int:
    """Return how many of the examples have a text, or pair, of the others."""
    texts = set(map(_texts, others))
    return sum(_texts(each) in texts for each in examples)


def class_balance(sets: Mapping[str, Iterable[Example]], labels: Labels) -> list[str]:
    """Return a table of how often each set has each label.

    Args:
      sets: dict from a name ("train") to a list of `Example`; those without a
        label are not counted.
      labels: `Labels`.

    Returns:
      list of str, lines: a header, a line for each label (30 at most) with its
      count and share of the set's rows, and a last line with the rows. With
      several labels the shares may add up to more or less than 100 %. For
      numbers, a line for each set: rows, mean, deviation, least and greatest.
    """
    by_set: dict[str, list[Any]] = {
        name: [each.label for each in examples if each.label is not None]
        for name, examples in sets.items()
    }
    if labels.kind == REGRESSION:
        header = ["label", "rows", "mean", "deviation", "min", "max"]
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
    """Return "90  45.0 %" for each set: occurrences of the names per row."""
    cells = []
    for key, count in counts.items():
        number = sum(count[name] for name in names)
        share = 100 * number / len(by_set[key]) if by_set[key] else 0
        cells.append(f"{number} {share:5.1f} %")
    return cells


def _summary(numbers):
    """Return the cells that describe a set of numbers, list of str."""
    if not numbers:
        return ["0", "", "", "", ""]
    mean, deviation = statistics.fmean(numbers), statistics.pstdev(numbers)
    values = mean, deviation, min(numbers), max(numbers)
    return [str(len(numbers)), *(f"{value:.4g}" for value in values)]


def _align(rows):
    """Return lines in which the columns stand below each other."""
    width, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    line = "  ".join([f"{{:<{width}}}", *(f"{{:>{each}}}" for each in widths)])
    return [line.format(*row).rstrip() for row in rows]
