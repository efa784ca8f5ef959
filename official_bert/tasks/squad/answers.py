"""Convert the model's logits to answers.

Follows `write_predictions` in google-research/bert `run_squad.py`, with one
difference: the original fails if no span of the context can be an answer in SQuAD 2.0.
Here the answer is then "".
"""

import collections
import dataclasses
import functools
import math
import operator
from collections.abc import Collection, Sequence

import numpy as np

from official_bert.errors import UserError
from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.files import SquadExample
from official_bert.tasks.squad.texts import WindowTexts
from official_bert.tokenization.full import FullTokenizer

# Null odds if no span can be an answer: larger than all differences of logits. It
# is also the initial value of the original's search for the smallest null score.
NO_CANDIDATE = 1000000.0

# The original's answer in SQuAD 1.1 if no span can be an answer.
NOTHING = "empty"


@dataclasses.dataclass(frozen=True)
class Decoding:
    """How to choose answers. The fields are the original's flags.

    Attributes:
      n_best_size: number of answers to list; also the number of starts and ends
        considered per window.
      max_answer_length: maximum number of tokens of an answer.
      version_2_with_negative: whether a question may have no answer.
      null_score_diff_threshold: if the null odds are above it, the answer is "".

    Raises:
      UserError: `n_best_size` or `max_answer_length` is below 1.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n_best_size", "max_answer_length"):
            if getattr(self, name) < 1:
                raise UserError(
                    f"{name} is {getattr(self, name)}, but it must be at least 1."
                )


@dataclasses.dataclass(frozen=True, slots=True)
class SquadAnswer:
    """A possible answer, or the "no answer" of SQuAD 2.0.

    `text` is the text that the original writes and scores: words of the context,
    joined by single spaces. The original searches the letters of the answer's tokens
    in the words they come from. The text may therefore begin or end inside a word. If
    letters occur twice in a word, it is their first occurrence. If the tokenizer
    dropped or added characters (lone accents, soft hyphens, [UNK]), the text is the
    complete words. If it did both, the text is shifted by a few characters.

    context[start:end] is the text to show to people. It contains exactly the
    characters of the tokens, with the context's whitespace. Except for whitespace and
    the cases above, both are equal.

    Attributes:
      text: str; "" for no answer.
      start: int; 0 for no answer.
      end: int; 0 for no answer.
      start_logit: start logit of the first token.
      end_logit: end logit of the last token.
      probability: softmax of the scores over the n best answers.
    """

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float
    probability: float

    @property
    def score(self) -> float:
        """The sum of the two logits, comparable between contexts."""
        return self.start_logit + self.end_logit


@dataclasses.dataclass(frozen=True)
class SquadPrediction:
    """The predicted answer to one question, and its alternatives.

    Attributes:
      qas_id: the question's id.
      answer: `SquadAnswer`, the predicted answer.
      nbest: tuple of `SquadAnswer` with different texts, the best first. In SQuAD
        2.0 it contains "no answer", in addition to the n best if necessary.
      best_non_null: `SquadAnswer`, the best one that is a part of the context; None
        if no span can be an answer.
      null_odds: score of "no answer" minus the score of `best_non_null`, or
        `NO_CANDIDATE`; None in SQuAD 1.1.
    """

    qas_id: str
    answer: SquadAnswer
    nbest: tuple[SquadAnswer, ...]
    best_non_null: SquadAnswer | None
    null_odds: float | None

    def answer_at(self, null_score_diff_threshold: float) -> SquadAnswer:
        """Return the `SquadAnswer` for another threshold (only SQuAD 2.0)."""
        assert self.null_odds is not None  # Always set in SQuAD 2.0.
        if self.best_non_null and self.null_odds <= null_score_diff_threshold:
            return self.best_non_null
        return next(each for each in self.nbest if not each.text)


def decode(
    examples: Sequence[SquadExample],
    features: Sequence[SquadFeatures],
    start_logits: np.ndarray | Sequence[np.ndarray],
    end_logits: np.ndarray | Sequence[np.ndarray],
    tokenizer: FullTokenizer,
    decoding: Decoding,
) -> list[SquadPrediction]:
    """Return the predicted answers to questions.

    Args:
      examples: list of E `SquadExample`.
      features: list of N `SquadFeatures` of these examples.
      start_logits: float array [N, S] or sequence of N arrays, each at least as
        long as its window. The choice of the n best starts and ends includes
        logits of padding, as in the original, where S = max_seq_length.
      end_logits: the same for the ends.
      tokenizer: `FullTokenizer` that made the features.
      decoding: `Decoding`.

    Returns:
      list of E `SquadPrediction`.

    Raises:
      UserError: a logit is not finite.
      ValueError: the numbers of logits, features or tokens do not match.
    """
    if not len(features) == len(start_logits) == len(end_logits):
        raise ValueError(
            f"There are {len(features)} windows, but {len(start_logits)} rows of start "
            f"logits and {len(end_logits)} rows of end logits."
        )
    windows = collections.defaultdict(list)
    for one, *logits in zip(features, start_logits, end_logits, strict=True):
        windows[one.example_index].append((one, *logits))
    texts = WindowTexts(tokenizer)
    return [
        _predict(example, windows[index], texts, decoding)
        for index, example in enumerate(examples)
    ]


def _checked(feature, logits):
    """Return logits as float64, the type of the original's sums and comparisons."""
    logits = np.asarray(logits, np.float64)
    if len(logits) < len(feature.input_ids):
        raise ValueError(
            f"Window {feature.unique_id} has {len(feature.input_ids)} tokens, but "
            f"{len(logits)} logits."
        )
    if not np.isfinite(logits[: len(feature.input_ids)]).all():
        raise UserError(
            f"The model's logits of window {feature.unique_id} are not finite. Its "
            "weights are damaged, or its training diverged. Use an earlier "
            "checkpoint."
        )
    return logits


def _predict(example, windows, texts, decoding):
    """Return the `SquadPrediction` of an example from its windows with logits."""
    windows = [
        (one, _checked(one, start), _checked(one, end)) for one, start, end in windows
    ]
    # The two logits of "no answer" come from the window with the lowest null score.
    pairs = [(float(start[0]), float(end[0])) for _, start, end in windows]
    null = min(pairs, key=sum, default=(0.0, 0.0))
    null_score = sum(null) if pairs else NO_CANDIDATE
    by_text = {}  # Text -> best candidate, best first.
    for window, start, end, *logits in _candidates(windows, null, decoding):
        text = texts.text(example, window, start, end) if window else ""
        if text not in by_text:
            span = texts.span(example, window, start, end) if window else (0, 0)
            by_text[text] = (text, *span, *logits)
            if len(by_text) == decoding.n_best_size:
                break
    if decoding.version_2_with_negative:
        by_text.setdefault("", ("", 0, 0, *null))
    if not by_text:
        by_text[NOTHING] = (NOTHING, 0, 0, 0.0, 0.0)
    nbest = _with_probabilities(by_text.values())
    best = next((each for each in nbest if each.end), None)
    if not decoding.version_2_with_negative:
        return SquadPrediction(example.qas_id, nbest[0], nbest, best, None)
    odds = null_score - best.start_logit - best.end_logit if best else NO_CANDIDATE
    prediction = SquadPrediction(example.qas_id, nbest[0], nbest, best, odds)
    answer = prediction.answer_at(decoding.null_score_diff_threshold)
    return dataclasses.replace(prediction, answer=answer)


def _candidates(windows, null, decoding):
    """Yield (`SquadFeatures`, start, end, start logit, end logit), best first.

    On equal scores, the earlier window comes first, then the better start, then the
    better end. "No answer", if allowed, follows all others with its score. Its
    window is None, and it has the logits of `null`.
    """
    features = [feature for feature, _, _ in windows]
    spans = [
        _spans_of_window(feature, start_logits, end_logits, decoding)
        for feature, start_logits, end_logits in windows
    ]
    if decoding.version_2_with_negative:
        features.append(None)
        spans.append(([0], [0], *([logit] for logit in null)))
    if not spans:
        return
    indexes = np.repeat(np.arange(len(spans)), [len(starts) for starts, *_ in spans])
    columns = map(np.concatenate, zip(*spans, strict=True))
    starts, ends, start_logits, end_logits = columns
    for row in np.argsort(-(start_logits + end_logits), kind="stable").tolist():
        yield (
            features[indexes[row]],
            int(starts[row]),
            int(ends[row]),
            float(start_logits[row]),
            float(end_logits[row]),
        )


def _spans_of_window(feature, start_logits, end_logits, decoding):
    """Return (starts, ends, start logits, end logits) of the spans to consider.

    These are all pairs of the n best starts and the n best ends that form an answer.
    Both tokens are in the context, the start has its maximal context, and the end is
    not before the start or too far after it.
    """
    size = len(feature.input_ids)
    starts = _best_indexes(start_logits, decoding.n_best_size)
    ends = _best_indexes(end_logits, decoding.n_best_size)
    starts, ends = starts[starts < size], ends[ends < size]
    # Only tokens of the context can have maximal context.
    starts = starts[feature.token_is_max_context[starts]]
    ends = ends[feature.token_to_orig_map[ends] >= 0]
    lengths = ends - starts[:, None] + 1
    rows, columns = np.nonzero((lengths >= 1) & (lengths <= decoding.max_answer_length))
    starts, ends = starts[rows], ends[columns]
    return starts, ends, start_logits[starts], end_logits[ends]


def _best_indexes(logits, count):
    """Return the indexes of the largest values, in descending order; stable on ties."""
    return np.argsort(-logits, kind="stable")[:count]


def _with_probabilities(
    candidates: Collection[tuple[str, int, int, float, float]],
) -> tuple[SquadAnswer, ...]:
    """Add the probabilities to candidates; return a tuple of `SquadAnswer`."""
    scores = [start_logit + end_logit for *_, start_logit, end_logit in candidates]
    best = max(scores)
    exponentials = [math.exp(score - best) for score in scores]
    # One by one, as in the original, because `sum` gives other last digits.
    total = functools.reduce(operator.add, exponentials)
    return tuple(
        SquadAnswer(*each, exponential / total)
        for each, exponential in zip(candidates, exponentials, strict=True)
    )
