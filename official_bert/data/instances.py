"""Convert documents to training instances, with the original's draws."""

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
    """A sequence pair, with its masks if they are static.

    Attributes:
      input_ids: list of int, `[CLS] A [SEP] B [SEP]`, after static masking.
      num_segment_a: the number of ids in segment 0.
      masked_lm_positions: ascending positions of the masked tokens; None with
        dynamic masking, which happens when the record is read.
      masked_lm_ids: original ids of these tokens; None with dynamic masking.
      is_random_next: whether B is labeled as random.
      continues_word: list of int, 1 for a token that continues the word before
        it; None except with dynamic masking of whole words.
    """

    input_ids: list[int]
    num_segment_a: int
    masked_lm_positions: list[int] | None
    masked_lm_ids: list[int] | None
    is_random_next: bool
    continues_word: list[int] | None = None

    def labels(self) -> list[int]:
        """Return the label ids; with dynamic masking, all possible label ids."""
        if self.masked_lm_ids is not None:
            return self.masked_lm_ids
        second = self.num_segment_a - 1  # The first `[SEP]`.
        return self.input_ids[1:second] + self.input_ids[second + 1 : -1]


# When tokens are masked: once, with the record, or each time it is read.
MASKINGS = ("static", "dynamic")


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """Settings for making instances; names and defaults are the original's flags.

    Attributes:
      max_seq_length: S, tokens of a sequence, including `[CLS]` and two
        `[SEP]`.
      max_predictions_per_seq: P, maximum number of masked tokens in a sequence.
      dupe_factor: passes over the corpus, each with other masks.
      masked_lm_prob: share of tokens to mask.
      short_seq_prob: share of document passes with shorter sequences.
      random_seed: seed of every draw.
      do_whole_word_mask: mask whole words.
      next_sentence_fix: never label a text from the same document as random.
      masking: one of `MASKINGS`.
      masking_mix: `MaskingMix`, the input tokens at masked positions.
      next_sentence_prediction: whether half of the pairs are random. If not, B
        always follows A (Table 5, "No NSP").
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
            f"from 1 to {most}, the tokens of a sequence with max_seq_length "
            f"{self.max_seq_length} without [CLS] and two [SEP]",
        )

    def always_follows(self, num_documents: int) -> bool:
        """Return whether B is never random, in a corpus of this many documents."""
        is_alone = self.next_sentence_fix and num_documents == 1
        return is_alone or not self.next_sentence_prediction


def _require(holds, name, settings, wanted):
    if not holds:
        raise UserError(f"--{name} is {getattr(settings, name)}; it must be {wanted}.")


class Pair(NamedTuple):
    """The sentences of a document that form a pair.

    Attributes:
      start: first sentence of A.
      a_end: the sentence after A.
      end: unless B is random, the sentence after B, which starts at `a_end`.
      is_random_next: whether B is a random text.
      room: wanted number of tokens for a random B.
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
    `create_pretraining_data.py`: it makes the same draws in the same order.

    Args:
      documents: list of documents, each a list of sentences, each a list of
        token ids (with `masking.CONTINUES` in whole-word mode).
      document_index: index of the document.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`.
    """
    document = documents[document_index]
    # Between two pairs, `rng` draws the random text and the masks of the first
    # pair.
    for pair in draw_pairs(_starts_of(document), settings, len(documents), rng):
        tokens_a = _join(document[pair.start : pair.a_end])
        if pair.is_random_next:
            other = draw_other_document(document_index, len(documents), settings, rng)
            first = rng.randint(0, len(documents[other]) - 1)
            # Each sentence has at least one token, so more are never needed.
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

    Segments consist of complete sentences. If documents were cut at arbitrary
    positions, both sides of a cut would often belong to one sentence. Next
    sentence prediction would then be too easy, because half a sentence and its
    rest are easy to match.

    Args:
      starts: list of int, where the document's sentences begin, and its end: n
        + 1 ascending numbers for n sentences.
      settings: `InstanceSettings`.
      num_documents: number of documents in the corpus.
      rng: `random.Random`; the caller may draw from it between two pairs.
    """
    target_seq_length = draw_target_length(settings, rng)
    always_follows = settings.always_follows(num_documents)
    start = 0
    while start < len(starts) - 1:
        # A chunk has the fewest sentences that reach the target length. The
        # target is a goal; `make_instance` truncates to the limit,
        # `max_seq_length`.
        end = chunk_end(starts, start, target_seq_length)
        a_end = start + 1
        if end - start >= 2:
            a_end = start + rng.randint(1, end - start - 1)
        room = target_seq_length - (starts[a_end] - starts[start])
        # A chunk of one sentence has no second half, so its B is always random.
        # Nothing is drawn for it, so more than half of the pairs are random.
        is_random_next = end - start == 1 or rng.random() < 0.5
        if is_random_next and always_follows:
            is_random_next = False
            end = chunk_end(starts, a_end, room)
            if a_end == end:
                return
        yield Pair(start, a_end, end, is_random_next, room)
        # The sentences that a random B replaced begin the next chunk, so no
        # text is lost.
        start = a_end if is_random_next else end


def draw_target_length(settings: InstanceSettings, rng: random.Random) -> int:
    """Draw the target length for the chunks of one document pass.

    Usually it is the maximum, because padding costs as much as text. Some
    passes make shorter sequences, because fine-tuning has inputs of any length.
    The target is approximate, since chunks end with a sentence;
    `max_seq_length` is the hard limit.
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

    After ten draws of the same document, the original accepts it and still
    labels the text as random. `next_sentence_fix` draws until another document
    appears.
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
    """Return the `TrainingInstance` of a pair: truncated, joined, maybe masked.

    Args:
      tokens_a: list of int, ids (with `masking.CONTINUES` in whole-word mode).
      tokens_b: list of int, ids in the same form.
      is_random_next: bool, the label.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`; draws once for each removed token, then, with static
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
    """Return both lists, truncating the longer one at random ends until they fit.

    Follows `truncate_seq_pair` in google-research/bert
    `create_pretraining_data.py`. Removing at either end avoids sequences that
    always begin with the first word of a line.

    Args:
      tokens_a: list.
      tokens_b: list; if both have the same length, this one is shortened.
      max_num_tokens: maximum number of tokens of both together.
      rng: `random.Random`; one draw per removed token.
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
