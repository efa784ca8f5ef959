"""From the model's logits to answers.

Follows `write_predictions` in google-research/bert `run_squad.py`, except that no
question makes it fail: where SQuAD 2.0 is answered and no span of the context can be
an answer, the answer is "".
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

# The null odds where nothing can be an answer: more than any logits reach. It
# is also the original's first value in its search for the smallest null score.
NO_CANDIDATE = 1000000.0

# What the original answers under SQuAD 1.1 where nothing can be an answer.
NOTHING = "empty"


@dataclasses.dataclass(frozen=True)
class Decoding:
    """How answers are chosen; the original's flags.

    Attributes:
      n_best_size: how many answers to list; also how many starts and ends of
        each window are looked at.
      max_answer_length: of an answer, in tokens.
      version_2_with_negative: whether a question may have no answer.
      null_score_diff_threshold: with null odds above it, the answer is "".

    Raises:
      UserError: one of the first two is below 1.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n_best_size", "max_answer_length"):
            if getattr(self, name) < 1:
                raise UserError(
                    f"{name} is {getattr(self, name)}: it must be at least 1."
                )


@dataclasses.dataclass(frozen=True, slots=True)
class SquadAnswer:
    """One answer that is possible, or the "no answer" of SQuAD 2.0.

    `text` is what the original writes and scores: words of the context, joined by
    single spaces. The original finds it by searching for the answer's tokens, as
    letters, in the words they come from. So it may begin or end inside a word; it
    is whole words where the tokenizer dropped or added characters (lone accents,
    soft hyphens, [UNK]), a few characters off where it did both; and of letters
    that occur twice in a word it is the first.

    context[start:end] is what to show to people: exactly the characters that the
    tokens were made from, with the context's own whitespace. Apart from whitespace
    and the cases above the two are equal.

    Attributes:
      text: str; "" for no answer.
      start: int; 0, as `end`, for no answer.
      end: int.
      start_logit: of the answer's first token.
      end_logit: of its last token.
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
        """Sum of the two logits, comparable between contexts."""
        return self.start_logit + self.end_logit


@dataclasses.dataclass(frozen=True)
class SquadPrediction:
    """What is answered to one question.

    Attributes:
      qas_id: the question's id.
      answer: `SquadAnswer`, the one that is given.
      nbest: tuple of `SquadAnswer` with different texts, the best first. Under
        SQuAD 2.0 "no answer" is one of them, and may be one too many.
      best_non_null: `SquadAnswer`, the best one that is a part of the context;
        None if there is none.
      null_odds: the score of "no answer" less that of `best_non_null`, or
        `NO_CANDIDATE`; None under SQuAD 1.1.
    """

    qas_id: str
    answer: SquadAnswer
    nbest: tuple[SquadAnswer, ...]
    best_non_null: SquadAnswer | None
    null_odds: float | None

    def answer_at(self, null_score_diff_threshold: float) -> SquadAnswer:
        """Return the `SquadAnswer` that another threshold gives; SQuAD 2.0."""
        assert self.null_odds is not None  # Those of SQuAD 2.0 never are.
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
    """Return what is answered to each question.

    Args:
      examples: list of E `SquadExample`.
      features: list of N `SquadFeatures` of these examples.
      start_logits: float array [N, S] or sequence of N arrays, each at least as
        long as its window. Logits of padding take part in the choice of the n best
        starts and ends, as in the original, which has S = max_seq_length.
      end_logits: likewise.
      tokenizer: `FullTokenizer` that made the features.
      decoding: `Decoding`.

    Returns:
      list of E `SquadPrediction`.

    Raises:
      UserError: a logit is not finite.
      ValueError: there are not as many logits as features and tokens.
    """
    if not len(features) == len(start_logits) == len(end_logits):
        raise ValueError(
            f"{len(features)} windows have {len(start_logits)} rows of start logits "
            f"and {len(end_logits)} of end logits."
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
    """Return logits as float64, in which the original adds and compares."""
    logits = np.asarray(logits, np.float64)
    if len(logits) < len(feature.input_ids):
        raise ValueError(
            f"Window {feature.unique_id} has {len(feature.input_ids)} tokens, but "
            f"{len(logits)} logits."
        )
    if not np.isfinite(logits[: len(feature.input_ids)]).all():
        raise UserError(
            f"The model's logits of window {feature.unique_id} are not finite: its "
            "weights are damaged, or its training went astray; take an earlier "
            "checkpoint."
        )
    return logits


def _predict(example, windows, texts, decoding):
    """Return the `SquadPrediction` of an example, whose windows have their logits."""
    windows = [
        (one, _checked(one, start), _checked(one, end)) for one, start, end in windows
    ]
    # The two logits of "no answer": those of the window with the lowest score.
    pairs = [(float(start[0]), float(end[0])) for _, start, end in windows]
    null = min(pairs, key=sum, default=(0.0, 0.0))
    null_score = sum(null) if pairs else NO_CANDIDATE
    by_text = {}  # By their texts, the best first.
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

    Of equal scores the earlier window, then the better start, then the better
    end is first. "No answer", where it is allowed, comes after all others of
    its score, with None for the window and its logits.
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

    Each start among the n best with each end among the n best, if they make an
    answer: both in the context, the start with its maximal context, the end
    not before the start nor too far behind.
    """
    size = len(feature.input_ids)
    starts = _best_indexes(start_logits, decoding.n_best_size)
    ends = _best_indexes(end_logits, decoding.n_best_size)
    starts, ends = starts[starts < size], ends[ends < size]
    # Tokens of the context alone can have maximal context.
    starts = starts[feature.token_is_max_context[starts]]
    ends = ends[feature.token_to_orig_map[ends] >= 0]
    lengths = ends - starts[:, None] + 1
    rows, columns = np.nonzero((lengths >= 1) & (lengths <= decoding.max_answer_length))
    starts, ends = starts[rows], ends[columns]
    return starts, ends, start_logits[starts], end_logits[ends]


def _best_indexes(logits, count):
    """Return the indexes of the largest values, the largest first; ties in order."""
    return np.argsort(-logits, kind="stable")[:count]


def _with_probabilities(
    candidates: Collection[tuple[str, int, int, float, float]],
) -> tuple[SquadAnswer, ...]:
    """Return the tuple of `SquadAnswer`s of tuples that lack the probability."""
    scores = [start_logit + end_logit for *_, start_logit, end_logit in candidates]
    best = max(scores)
    exponentials = [math.exp(score - best) for score in scores]
    # Added one by one, as in the original; `sum` would give other last digits.
    total = functools.reduce(operator.add, exponentials)
    return tuple(
        SquadAnswer(*each, exponential / total)
        for each, exponential in zip(candidates, exponentials, strict=True)
    )
