"""Training instances that can be made apart from each other, in any order.

The rules are those of `instances.create_instances_from_document`; the draws
are arranged otherwise. There, one stream of random numbers runs through the
whole corpus. Here every pass over a document has a stream of its own, and so
has every instance. What is drawn first is a plan: which sentences are A, and
whether B is what follows or comes from a random place of the corpus. It
depends on the document's own lengths and on the number of documents, never on
the random text, so that a cluster can make all plans, bring them together
with the texts they ask for, and finish each pair where the two meet.

    plans = plan_document(starts, document, num_documents, pass_number, settings)
    tokens_a = tokens[starts[plan.start] : starts[plan.a_end]]
    first, last = sentences_of_b(starts of its document, plan)
    instance = finish(plan, tokens_a, tokens_b, settings, vocab)

Everywhere `starts` is where the sentences of a document begin: list of int, of
n + 1 rising numbers for n sentences, so that i is `tokens[starts[i] :
starts[i + 1]]`.
"""

import bisect
import hashlib
import itertools
import random
from typing import NamedTuple

from official_bert.data.instances import draw_target_length, make_instance

NEXT = -1


class PairPlan(NamedTuple):
    """What one instance will be made of.

    Attributes:
      pass_number: of the pass over the corpus, from 0.
      document: number of the document in the corpus, from 0.
      number: of the instance within the two.
      start: A is the document's sentences from here …
      a_end: … to here.
      end: B is those from `a_end` to here, unless it is random.
      is_random_next: whether B is labelled a random text.
      other: number of the document that a random B is from; `NEXT` if none.
      place: where in it B begins, from 0 to 1.
      room: tokens that a random B should have.
    """

    pass_number: int
    document: int
    number: int
    start: int
    a_end: int
    end: int
    is_random_next: bool
    other: int
    place: float
    room: int


def plan_document(starts, document, num_documents, pass_number, settings):
    """Plan the instances of one pass over one document.

    Follows `create_instances_from_document` in google-research/bert
    `create_pretraining_data.py`, as `instances` does.

    Args:
      starts: where the document's sentences begin, see the module.
      document: its number, from 0 to `num_documents` - 1.
      num_documents: how many the corpus has.
      pass_number: from 0 to `dupe_factor` - 1.
      settings: `instances.InstanceSettings`.

    Returns:
      list of `PairPlan`.
    """
    rng = _rng(settings.random_seed, pass_number, document)
    target_seq_length = draw_target_length(settings, rng)
    always_follows = settings.always_follows(num_documents)
    plans, start, num_sentences = [], 0, len(starts) - 1
    while start < num_sentences:
        end = chunk_end(starts, start, target_seq_length)
        a_end = start + 1
        if end - start >= 2:
            a_end = start + rng.randint(1, end - start - 1)
        room = target_seq_length - (starts[a_end] - starts[start])
        # A chunk of one sentence has no second half to be the next one.
        is_random_next = end - start == 1 or rng.random() < 0.5
        other, place = NEXT, 0.0
        if is_random_next and always_follows:
            is_random_next = False
            end = chunk_end(starts, a_end, room)
            if a_end == end:
                break
        if is_random_next:
            other = _draw_other(document, num_documents, settings, rng)
            place = rng.random()
        plans.append(
            PairPlan(
                pass_number,
                document,
                len(plans),
                start,
                a_end,
                end,
                is_random_next,
                other,
                place,
                room,
            )
        )
        # The sentences that a random B left unused go into the next chunk.
        start = a_end if is_random_next else end
    return plans


def chunk_end(starts, start, target_length):
    """Return the end of the fewest sentences from `start` that reach a length."""
    end = bisect.bisect_left(starts, starts[start] + target_length, start + 1)
    return min(end, len(starts) - 1)


def sentences_of_b(starts, plan):
    """Return which sentences of the document `plan.other` are B.

    Args:
      starts: where that document's sentences begin.
      plan: `PairPlan` whose B is random.

    Returns:
      (first, end).
    """
    first = int(plan.place * (len(starts) - 1))
    return first, chunk_end(starts, first, plan.room)


def finish(plan, tokens_a, tokens_b, settings, vocab):
    """Cut, join and mask one pair.

    Args:
      plan: `PairPlan`.
      tokens_a: list of int.
      tokens_b: list of int.
      settings: `instances.InstanceSettings`.
      vocab: `masking.MaskingIds`.

    Returns:
      `instances.TrainingInstance`.
    """
    rng = _rng(settings.random_seed, plan.pass_number, plan.document, plan.number)
    return make_instance(tokens_a, tokens_b, plan.is_random_next, settings, vocab, rng)


def _draw_other(document, num_documents, settings, rng):
    """Draw another document; after ten tries of the same one it is taken.

    `next_sentence_fix` goes on until it is another.
    """
    for attempt in itertools.count(1):
        other = rng.randint(0, num_documents - 1)
        if other != document or (attempt >= 10 and not settings.next_sentence_fix):
            return other


def _rng(*numbers):
    """Return the random numbers that belong to some numbers, on any machine."""
    text = "/".join(map(str, numbers)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))
