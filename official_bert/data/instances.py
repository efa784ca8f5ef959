"""Documents in, training instances out: the original's, draw for draw."""

import bisect
import dataclasses
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from official_bert.data import masking
from official_bert.data.masking import MaskingMix
from official_bert.errors import UserError


class TrainingInstance(NamedTuple):
    """One sequence pair, with its masks where they are static.

    Attributes:
      input_ids: list of int, `[CLS] A [SEP] B [SEP]`, after static masking.
      num_segment_a: how many of them belong to segment 0.
      masked_lm_positions: rising positions of the masked tokens; None with
        dynamic masking, which is done when the record is read.
      masked_lm_ids: what these tokens were; None likewise.
      is_random_next: whether B is labelled a random one.
      continues_word: list of int, 1 for a token that continues the word before
        it; None but with dynamic masking of whole words.
    """

    input_ids: list[int]
    num_segment_a: int
    masked_lm_positions: list[int] | None
    masked_lm_ids: list[int] | None
    is_random_next: bool
    continues_word: list[int] | None = None

    def labels(self) -> list[int]:
        """Return the ids that are to be guessed, or with dynamic masking may be."""
        if self.masked_lm_ids is not None:
            return self.masked_lm_ids
        second = self.num_segment_a - 1  # The first `[SEP]`.
        return self.input_ids[1:second] + self.input_ids[second + 1 : -1]


# How the words to guess are chosen: once, with the record, or whenever it is read.
MASKINGS = ("static", "dynamic")


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """How instances are made; names and defaults are the original's flags.

    Attributes:
      max_seq_length: S, tokens of a sequence with `[CLS]` and two `[SEP]`.
      max_predictions_per_seq: P, most masked tokens of a sequence.
      dupe_factor: passes over the corpus, each with other masks.
      masked_lm_prob: share of tokens to mask.
      short_seq_prob: share of document passes with shorter sequences.
      random_seed: seed of every draw.
      do_whole_word_mask: mask whole words.
      next_sentence_fix: never label a text from the same document "random".
      masking: one of `MASKINGS`.
      masking_mix: `MaskingMix`, what the words to guess are seen as.
      next_sentence_prediction: whether half of the pairs are random. If not, B is
        always what follows A (Table 5, "No NSP").
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    dupe_factor: int = 10
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    random_seed: int = 12345
    do_whole_word_mask: bool = False
    next_sentence_fix: bool = False
    masking: str = "static"
    masking_mix: MaskingMix = MaskingMix()
    next_sentence_prediction: bool = True

    def __post_init__(self) -> None:
        _require(self.max_seq_length >= 5, "max_seq_length", self, "at least 5")
        _require(self.dupe_factor >= 1, "dupe_factor", self, "at least 1")
        _require(0 < self.masked_lm_prob < 1, "masked_lm_prob", self, "between 0 and 1")
        _require(0 <= self.short_seq_prob <= 1, "short_seq_prob", self, "from 0 to 1")
        _require(self.masking in MASKINGS, "masking", self, "static or dynamic")
        most = self.max_seq_length - 3
        _require(
            1 <= self.max_predictions_per_seq <= most,
            "max_predictions_per_seq",
            self,
            f"from 1 to {most}, the tokens that a sequence of max_seq_length "
            f"{self.max_seq_length} has beside [CLS] and two [SEP]",
        )

    def always_follows(self, num_documents: int) -> bool:
        """Tell whether no B is random, in a corpus of so many documents."""
        is_alone = self.next_sentence_fix and num_documents == 1
        return is_alone or not self.next_sentence_prediction


def _require(holds, name, settings, wanted):
    if not holds:
        raise UserError(f"--{name} is {getattr(settings, name)}: it must be {wanted}.")


class Pair(NamedTuple):
    """Which sentences of a document a pair is made of.

    Attributes:
      start: A is the sentences from here …
      a_end: … to here.
      end: B is the sentences from `a_end` to here, unless it is random.
      is_random_next: whether B is a random text.
      room: number of tokens that a random B should have.
    """

    start: int
    a_end: int
    end: int
    is_random_next: bool
    room: int


def create_instances_from_document(
    documents: Sequence[Sequence[Sequence[int]]],
    document_index: int,
    settings: InstanceSettings,
    vocab: masking.MaskingIds,
    rng: random.Random,
) -> Iterator[TrainingInstance]:
    """Yield the `TrainingInstance`s of one pass over one document.

    Follows `create_instances_from_document` in google-research/bert
    `create_pretraining_data.py`: the same draws in the same order.

    Args:
      documents: list of documents, each a list of sentences, each a list of
        token ids (with `masking.CONTINUES` in whole-word mode).
      document_index: which of them.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`.
    """
    document = documents[document_index]
    # Between two pairs, `rng` draws the random text and the masks of the first.
    for pair in draw_pairs(_starts_of(document), settings, len(documents), rng):
        tokens_a = _join(document[pair.start : pair.a_end])
        if pair.is_random_next:
            other = draw_other_document(document_index, len(documents), settings, rng)
            first = rng.randint(0, len(documents[other]) - 1)
            # Each sentence has at least one token, so that no more can be needed.
            sentences = documents[other][first : first + max(1, pair.room)]
            end = chunk_end(_starts_of(sentences), 0, pair.room)
            tokens_b = _join(sentences[:end])
        else:
            tokens_b = _join(document[pair.a_end : pair.end])
        yield make_instance(
            tokens_a, tokens_b, pair.is_random_next, settings, vocab, rng
        )


def draw_pairs(
    starts: Sequence[int],
    settings: InstanceSettings,
    num_documents: int,
    rng: random.Random,
) -> Iterator[Pair]:
    """Yield the `Pair`s of one pass over one document.

    Segments consist of complete sentences. If a document were one long list of
    tokens, cut at an arbitrary position, both sides of the cut would often belong
    to one sentence: next sentence prediction would be too easy then, since half a
    sentence and its rest are recognized without knowing what follows what.

    Args:
      starts: list of int, where the document's sentences begin, and its end: n + 1
        rising numbers for n sentences.
      settings: `InstanceSettings`.
      num_documents: number of documents in the corpus.
      rng: `random.Random`; the caller may draw from it between two pairs.
    """
    target_seq_length = draw_target_length(settings, rng)
    always_follows = settings.always_follows(num_documents)
    start = 0
    while start < len(starts) - 1:
        # A chunk has the fewest sentences that reach the target: it is a goal, and
        # `max_seq_length` the limit, to which `make_instance` cuts.
        end = chunk_end(starts, start, target_seq_length)
        a_end = start + 1
        if end - start >= 2:
            a_end = start + rng.randint(1, end - start - 1)
        room = target_seq_length - (starts[a_end] - starts[start])
        # A chunk of one sentence has no second half to be the next one.
        # Nothing is drawn for it, so more than half of the pairs are random.
        is_random_next = end - start == 1 or rng.random() < 0.5
        if is_random_next and always_follows:
            is_random_next = False
            end = chunk_end(starts, a_end, room)
            if a_end == end:
                return
        yield Pair(start, a_end, end, is_random_next, room)
        # The sentences that a random B replaced begin the next chunk: no text is lost.
        start = a_end if is_random_next else end


def draw_target_length(settings: InstanceSettings, rng: random.Random) -> int:
    """Draw the length that the chunks of one document pass aim at.

    Mostly it is all that fits: a shorter sequence is padded, and its padding costs
    as much as text. Some passes make shorter sequences, since fine-tuning has
    inputs of any length, and a model should have seen such before. The target is
    rough, since chunks end with a sentence; `max_seq_length` is the hard limit.
    """
    max_num_tokens = settings.max_seq_length - 3
    if rng.random() < settings.short_seq_prob:
        return rng.randint(2, max_num_tokens)
    return max_num_tokens


def chunk_end(starts: Sequence[int], start: int, target_length: int) -> int:
    """Return the end of the fewest sentences from `start` that reach a length."""
    end = bisect.bisect_left(starts, starts[start] + target_length, start + 1)
    return min(end, len(starts) - 1)


def draw_other_document(
    document: int, num_documents: int, settings: InstanceSettings, rng: random.Random
) -> int:
    """Draw the number of another document, for a random B.

    After ten draws of the same document the original takes it and still calls
    the text random; `next_sentence_fix` draws until it is another one.
    """
    attempt = 0
    while True:
        attempt += 1
        other = rng.randint(0, num_documents - 1)
        if other != document or (attempt >= 10 and not settings.next_sentence_fix):
            return other


def _starts_of(sentences):
    return list(itertools.accumulate(map(len, sentences), initial=0))


def _join(sentences):
    return list(itertools.chain.from_iterable(sentences))


def make_instance(
    tokens_a: list[int],
    tokens_b: list[int],
    is_random_next: bool,
    settings: InstanceSettings,
    vocab: masking.MaskingIds,
    rng: random.Random,
) -> TrainingInstance:
    """Return the `TrainingInstance` of a pair: cut, joined, masked if masks are static.

    Args:
      tokens_a: list of int, ids (with `masking.CONTINUES` in whole-word mode).
      tokens_b: list of int likewise.
      is_random_next: bool, the label.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`; draws for each token cut, then, with static
        masking, for the masks.
    """
    max_num_tokens = settings.max_seq_length - 3
    tokens_a, tokens_b = truncate_seq_pair(tokens_a, tokens_b, max_num_tokens, rng)
    tokens = [vocab.cls_id, *tokens_a, vocab.sep_id, *tokens_b, vocab.sep_id]
    num_segment_a = len(tokens_a) + 2
    if settings.masking == "dynamic":
        continues = None
        if settings.do_whole_word_mask:
            continues = [int(token > masking.ID_BITS) for token in tokens]
            tokens = [token & masking.ID_BITS for token in tokens]
        return TrainingInstance(
            tokens, num_segment_a, None, None, is_random_next, continues
        )
    candidates = list(range(1, len(tokens) - 1))
    del candidates[num_segment_a - 2]
    num_to_predict = masking.count_to_predict(
        len(tokens), settings.masked_lm_prob, settings.max_predictions_per_seq
    )
    mask = masking.mask_words if settings.do_whole_word_mask else masking.mask_tokens
    mix = settings.masking_mix
    positions, labels = mask(tokens, candidates, num_to_predict, vocab, rng, mix)
    return TrainingInstance(tokens, num_segment_a, positions, labels, is_random_next)


def truncate_seq_pair(
    tokens_a: list[int], tokens_b: list[int], max_num_tokens: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Return both lists, the longer one cut at a random end until they fit.

    Follows `truncate_seq_pair` in google-research/bert
    `create_pretraining_data.py`. Cutting at either end avoids that sentences
    always begin with the first word of a line.

    Args:
      tokens_a: list.
      tokens_b: list; it is the one cut when both are as long.
      max_num_tokens: most tokens of both together.
      rng: `random.Random`; one draw for every token cut.
    """
    starts, lengths = [0, 0], [len(tokens_a), len(tokens_b)]
    for _ in range(sum(lengths) - max_num_tokens):
        longer = 0 if lengths[0] > lengths[1] else 1
        lengths[longer] -= 1
        if rng.random() < 0.5:
            starts[longer] += 1
    return (
        tokens_a[starts[0] : starts[0] + lengths[0]],
        tokens_b[starts[1] : starts[1] + lengths[1]],
    )
