"""Score the entities in tagged sentences.

A tag is "O" (outside), or a letter, a hyphen and the type of the entity: "B-PER",
"I-PER". The letter says which word of the entity this is. The type may contain
hyphens. Without a type the tag is only the letter ("B", "I"). The schemes:

* IOB1: an entity begins with I. It begins with B if an entity of the same type ends
  directly before it.
* IOB2 (or BIO): every entity begins with B and continues with I.
* BIOES: as IOB2, but an entity ends with E, and an entity of one word is S. L and U
  are read as E and S (BILOU).

Scores, and the entities of sentences with malformed tags, equal those of
`conlleval`, the script of the CoNLL shared tasks. One difference: `conlleval` does
not have S, and an entity continues from E to a B of the same type. Here the entity
ends at E, as in the successors of `conlleval`.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

IOB1, IOB2, BIOES = "IOB1", "IOB2", "BIOES"
SCHEMES = (IOB1, IOB2, BIOES)
OUTSIDE = "O"
# Letter of a tag -> letter that the code uses.
_LETTERS = dict(zip("OBIESLU", "OBIESES", strict=True))


class Entity(NamedTuple):
    """An entity of type `label`: the words start … end - 1 of a sentence."""

    start: int
    end: int
    label: str


@functools.cache
def split_tag(tag: str) -> tuple[str, str]:
    """Return the (letter, type) of a tag: one of "OBIES", and "" for no type.

    Raises:
      ValueError: the string is not a tag.
    """
    letter, hyphen, label = tag.partition("-")
    if letter not in _LETTERS or (hyphen and (letter == OUTSIDE or not label)):
        raise ValueError(
            f"{tag!r} is not a tag. Tags look like O, B-PER or I-PER (in BIOES also "
            "E-PER, S-PER)."
        )
    return _LETTERS[letter], label


def to_spans(tags: Iterable[str]) -> list[Entity]:
    """Return the entities of a sentence, as `conlleval` does.

    An entity begins at B and S, at I and E after O, E or S, and if the type
    changes. Follows `startOfChunk` and `endOfChunk` of `conlleval`.

    Args:
      tags: sequence of str, of any scheme. A malformed sequence is not an error.

    Returns:
      list of `Entity` in their order. They do not overlap.

    Raises:
      ValueError: a string is not a tag.
    """
    spans, start = [], None
    before, label_before = OUTSIDE, ""
    for position, tag in enumerate([*tags, OUTSIDE]):
        letter, label = split_tag(tag)
        is_new = letter in "BS" or before in "OES" or label != label_before
        if start is not None and (is_new or letter == OUTSIDE):
            spans.append(Entity(start, position, label_before))
            start = None
        if letter != OUTSIDE and is_new:
            start = position
        before, label_before = letter, label
    return spans


def to_tags(
    spans: Iterable[tuple[int, int, str]], num_words: int, scheme: str = IOB2
) -> list[str]:
    """Return the tags of a sentence.

    Args:
      spans: iterable of `Entity`, or of (start, end, label), in any order.
      num_words: number of words of the sentence.
      scheme: one of `SCHEMES`.

    Returns:
      list of `num_words` str.

    Raises:
      ValueError: the scheme does not exist; or spans overlap, are empty, or
        extend beyond the sentence.
    """
    if scheme not in SCHEMES:
        raise ValueError(
            f"Unknown scheme {scheme!r}. Choose one of {', '.join(SCHEMES)}."
        )
    tags, end_before, label_before = [OUTSIDE] * num_words, 0, None
    for start, end, label in sorted(spans):
        if not end_before <= start < end <= num_words:
            raise ValueError(
                f"The entity {label!r} of words {start} to {end} is empty, overlaps "
                f"another one, or extends beyond the sentence of {num_words} words."
            )
        touches = start == end_before and label == label_before
        if scheme == BIOES:
            letters = "S" if end - start == 1 else "B" + "I" * (end - start - 2) + "E"
        else:
            first = "B" if scheme == IOB2 or touches else "I"
            letters = first + "I" * (end - start - 1)
        suffix = f"-{label}" if label else ""
        tags[start:end] = [letter + suffix for letter in letters]
        end_before, label_before = end, label
    return tags


def convert_tags(tags: Sequence[str], scheme: str) -> list[str]:
    """Convert the tags of a sentence to another scheme; see `to_spans`."""
    return to_tags(to_spans(tags), len(tags), scheme)


@dataclasses.dataclass(frozen=True)
class Score:
    """Counts of entities: in the data, predicted, and predicted correctly.

    A prediction is correct if both borders and the type are correct. Precision,
    recall and F1 are from 0 to 1, and 0 if they are not defined.
    """

    num_gold: int
    num_predicted: int
    num_correct: int

    @property
    def precision(self) -> float:
        """The fraction of the predicted entities that are correct."""
        return self.num_correct / self.num_predicted if self.num_predicted else 0.0

    @property
    def recall(self) -> float:
        """The fraction of the gold entities that were predicted correctly."""
        return self.num_correct / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.num_gold + self.num_predicted
        return 2 * self.num_correct / total if total else 0.0


@dataclasses.dataclass(frozen=True)
class EntityScores:
    """The scores of tagged sentences.

    Attributes:
      overall: `Score` over all entities (micro average).
      types: dict of type -> `Score`, sorted, of all gold and predicted types.
      num_words: words of all sentences.
      num_right_words: words whose predicted tag equals the gold tag.
    """

    overall: Score
    types: dict[str, Score]
    num_words: int
    num_right_words: int

    @property
    def accuracy(self) -> float:
        """The fraction of the words with the correct tag; 0 without words."""
        return self.num_right_words / self.num_words if self.num_words else 0.0


def score(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> EntityScores:
    """Return the `EntityScores` of predicted tags.

    An entity never continues in the next sentence. `gold` and `predicted` may use any
    scheme, even different ones. With different schemes the accuracy of words means
    little, because it compares the tags without conversion.

    Args:
      gold: sequence of N sentences, each a sequence of tags.
      predicted: sequence of N sentences, each as long as the one of `gold`.

    Raises:
      ValueError: the numbers of sentences or words differ, or a string is not a tag.
    """
    if len(gold) != len(predicted):
        raise ValueError(
            f"`gold` has {len(gold)} sentences, but `predicted` has {len(predicted)}. "
            "Give one list of tags for each sentence."
        )
    # Entities of the data, predicted entities, and entities that are both.
    counters: list[collections.Counter[str]] = [collections.Counter() for _ in range(3)]
    num_words = num_right_words = 0
    for number, pair in enumerate(zip(gold, predicted, strict=True)):
        lengths = tuple(map(len, pair))
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"Sentence {number} (counted from 0) has {lengths[0]} words, but "
                f"{lengths[1]} predicted tags."
            )
        num_words += lengths[0]
        num_right_words += sum(a == b for a, b in zip(*pair, strict=True))
        right, predictions = map(to_spans, pair)
        both = set(right) & set(predictions)
        for counter, spans in zip(counters, (right, predictions, both), strict=True):
            counter.update(entity.label for entity in spans)
    types = {
        label: Score(*(counter[label] for counter in counters))
        for label in sorted(counters[0] | counters[1])
    }
    overall = Score(*(counter.total() for counter in counters))
    return EntityScores(overall, types, num_words, num_right_words)


def conlleval_table(scores: EntityScores) -> str:
    """Return the scores as text in the format of `conlleval`, several lines.

    Args:
      scores: `EntityScores`.
    """
    overall = scores.overall
    table = (
        f"processed {scores.num_words} tokens with {overall.num_gold} phrases; "
        f"found: {overall.num_predicted} phrases; correct: {overall.num_correct}.\n"
    )
    if scores.num_words:
        accuracy = 100 * scores.num_right_words / scores.num_words
        table += f"accuracy: {accuracy:6.2f}%; {_row(overall)}\n"
    for label, of_type in scores.types.items():
        table += f"{label:>17}: {_row(of_type)}  {of_type.num_predicted}\n"
    return table


def _row(counts):
    """Return the percentages of a row, computed and rounded as in `conlleval`."""
    correct = counts.num_correct
    precision = 100 * correct / counts.num_predicted if correct else 0.0
    recall = 100 * correct / counts.num_gold if correct else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
