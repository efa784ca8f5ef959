"""Documents in, training instances out: the original's, draw for draw."""

import dataclasses
import itertools
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

    input_ids: list
    num_segment_a: int
    masked_lm_positions: list | None
    masked_lm_ids: list | None
    is_random_next: bool
    continues_word: list | None = None

    def labels(self):
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

    def __post_init__(self):
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

    def always_follows(self, num_documents):
        """Tell whether no B is random, in a corpus of so many documents."""
        is_alone = self.next_sentence_fix and num_documents == 1
        return is_alone or not self.next_sentence_prediction


def _require(holds, name, settings, wanted):
    if not holds:
        raise UserError(f"--{name} is {getattr(settings, name)}: it must be {wanted}.")


def create_instances_from_document(documents, document_index, settings, vocab, rng):
    """Yield the instances of one pass over one document.

    Follows `create_instances_from_document` in google-research/bert
    `create_pretraining_data.py`: the same draws in the same order.

    Args:
      documents: list of documents, each a list of sentences, each a list of
        token ids (with `masking.CONTINUES` in whole-word mode).
      document_index: which of them.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`.

    Yields:
      `TrainingInstance`.
    """
    document = documents[document_index]
    target_seq_length = draw_target_length(settings, rng)
    start = 0
    while start < len(document):
        # A chunk is whole sentences, and A and B meet between two of them. A document
        # cut at arbitrary positions would give the next-sentence task away: a B that
        # begins within a sentence, or a word, has to continue A.
        end = _chunk_end(document, start, target_seq_length)
        a_end = start + 1
        if end - start >= 2:
            a_end = start + rng.randint(1, end - start - 1)
        tokens_a = _join(document[start:a_end])
        # A chunk of one sentence has no second half to be the next one.
        # Nothing is drawn for it, so more than half of the pairs are random.
        is_random_next = end - start == 1 or rng.random() < 0.5
        if is_random_next and settings.always_follows(len(documents)):
            is_random_next = False
            end = _chunk_end(document, a_end, target_seq_length - len(tokens_a))
            if a_end == end:
                return
        if is_random_next:
            tokens_b = _random_text(
                documents,
                document_index,
                target_seq_length - len(tokens_a),
                settings.next_sentence_fix,
                rng,
            )
            # The sentences that B left unused go into the next chunk.
            start = a_end
        else:
            tokens_b = _join(document[a_end:end])
            start = end
        yield make_instance(tokens_a, tokens_b, is_random_next, settings, vocab, rng)


def draw_target_length(settings, rng):
    """Draw the length that the chunks of one document pass aim at.

    Most fill the sequence: what is left of it is padding, computed for nothing. Short
    ones, now and then, bring pre-training nearer to fine-tuning, where inputs have any
    length. The target is rough, since chunks end with a sentence; `max_seq_length` is
    the hard limit.
    """
    max_num_tokens = settings.max_seq_length - 3
    if rng.random() < settings.short_seq_prob:
        return rng.randint(2, max_num_tokens)
    return max_num_tokens


def _chunk_end(document, start, target_length):
    """Return the end of the fewest sentences from `start` that reach a length."""
    length = 0
    for end in range(start, len(document)):
        length += len(document[end])
        if length >= target_length:
            return end + 1
    return len(document)


def _join(sentences):
    return list(itertools.chain.from_iterable(sentences))


def _random_text(documents, document_index, target_length, keep_drawing, rng):
    """Return sentences from a random place of a random other document.

    After ten draws of the same document the original takes it and still calls
    the text random; `keep_drawing` goes on until it is another.
    """
    for attempt in itertools.count(1):
        index = rng.randint(0, len(documents) - 1)
        if index != document_index or (attempt >= 10 and not keep_drawing):
            break
    document = documents[index]
    start = rng.randint(0, len(document) - 1)
    return _join(document[start : _chunk_end(document, start, target_length)])


def make_instance(tokens_a, tokens_b, is_random_next, settings, vocab, rng):
    """Cut and join one pair, and mask it unless masking is dynamic.

    Args:
      tokens_a: list of int, ids (with `masking.CONTINUES` in whole-word mode).
      tokens_b: list of int likewise.
      is_random_next: bool, the label.
      settings: `InstanceSettings`.
      vocab: `masking.MaskingIds`.
      rng: `random.Random`; draws for each token cut, then, with static
        masking, for the masks.

    Returns:
      `TrainingInstance`.
    """
    max_num_tokens = settings.max_seq_length - 3
    tokens_a, tokens_b = truncate_seq_pair(tokens_a, tokens_b, max_num_tokens, rng)
    tokens = [vocab.cls_id, *tokens_a, vocab.sep_id, *tokens_b, vocab.sep_id]
    num_segment_a = len(tokens_a) + 2
    if settings.masking == "dynamic":
        return _unmasked(tokens, num_segment_a, is_random_next, settings)
    candidates = list(range(1, len(tokens) - 1))
    del candidates[num_segment_a - 2]
    num_to_predict = masking.count_to_predict(
        len(tokens), settings.masked_lm_prob, settings.max_predictions_per_seq
    )
    mask = masking.mask_words if settings.do_whole_word_mask else masking.mask_tokens
    mix = settings.masking_mix
    positions, labels = mask(tokens, candidates, num_to_predict, vocab, rng, mix)
    return TrainingInstance(tokens, num_segment_a, positions, labels, is_random_next)


def _unmasked(tokens, num_segment_a, is_random_next, settings):
    """Return the instance of a pair that is masked when it is read."""
    continues = None
    if settings.do_whole_word_mask:
        continues = [int(token > masking.ID_BITS) for token in tokens]
        tokens = [token & masking.ID_BITS for token in tokens]
    return TrainingInstance(
        tokens, num_segment_a, None, None, is_random_next, continues
    )


def truncate_seq_pair(tokens_a, tokens_b, max_num_tokens, rng):
    """Cut the longer list at a random end until both fit.

    Follows `truncate_seq_pair` in google-research/bert
    `create_pretraining_data.py`. Cutting at either end avoids that sentences
    always begin with the first word of a line.

    Args:
      tokens_a: list.
      tokens_b: list; it is the one cut when both are as long.
      max_num_tokens: most tokens of both together.
      rng: `random.Random`; one draw for every token cut.

    Returns:
      the two lists, cut.
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
