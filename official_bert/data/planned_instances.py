"""Training instances that can be made apart from each other, in any order.

The pairs are those of `instances.draw_pairs`; the draws are arranged otherwise
than in `instances.create_instances_from_document`. There, one stream of random
numbers runs through the whole corpus. Here every pass over a document has a stream
of its own, and so has every instance. What is drawn first is a plan: which
sentences are A, and whether B is what follows or comes from a random place of the
corpus. It depends on the document's own lengths and on the number of documents,
never on the random text, so that a cluster can make all plans, bring them together
with the texts they ask for, and finish each pair where the two meet.

    plans = plan_document(starts, document, num_documents, pass_number, settings)
    tokens_a = tokens[starts[plan.start] : starts[plan.a_end]]
    first, last = sentences_of_b(starts of its document, plan)
    instance = finish(plan, tokens_a, tokens_b, settings, vocab)

Everywhere `starts` is where the sentences of a document begin: list of int, of
n + 1 rising numbers for n sentences, so that i is `tokens[starts[i] :
starts[i + 1]]`.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import NamedTuple

from official_bert.data.instances import (
    InstanceSettings,
    TrainingInstance,
    chunk_end,
    draw_other_document,
    draw_pairs,
    make_instance,
)
from official_bert.data.masking import MaskingIds

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
      room: number of tokens that a random B should have.
      other: number of the document that a random B is from; `NEXT` if none.
      fraction: of its sentences, those before a random B, from 0 to 1.
    """

    pass_number: int
    document: int
    number: int
    start: int
    a_end: int
    end: int
    is_random_next: bool
    room: int
    other: int
    fraction: float


def plan_document(
    starts: Sequence[int],
    document: int,
    num_documents: int,
    pass_number: int,
    settings: InstanceSettings,
) -> list[PairPlan]:
    """Return the `PairPlan`s of one pass over one document, a list.

    Args:
      starts: where the document's sentences begin, see the module.
      document: its number, from 0 to `num_documents` - 1.
      num_documents: how many the corpus has.
      pass_number: from 0 to `dupe_factor` - 1.
      settings: `instances.InstanceSettings`.
    """
    rng = _rng(settings.random_seed, pass_number, document)
    plans: list[PairPlan] = []
    for pair in draw_pairs(starts, settings, num_documents, rng):
        other, fraction = NEXT, 0.0
        if pair.is_random_next:
            other = draw_other_document(document, num_documents, settings, rng)
            # The other document's length is not known here.
            fraction = rng.random()
        number = len(plans)
        plans.append(PairPlan(pass_number, document, number, *pair, other, fraction))
    return plans


def sentences_of_b(starts: Sequence[int], plan: PairPlan) -> tuple[int, int]:
    """Return which sentences of the document `plan.other` are B: (first, end).

    Args:
      starts: where that document's sentences begin.
      plan: `PairPlan` whose B is random.
    """
    first = int(plan.fraction * (len(starts) - 1))
    return first, chunk_end(starts, first, plan.room)


def finish(
    plan: PairPlan,
    tokens_a: list[int],
    tokens_b: list[int],
    settings: InstanceSettings,
    vocab: MaskingIds,
) -> TrainingInstance:
    """Cut, join and mask one pair; return the `instances.TrainingInstance`.

    Args:
      plan: `PairPlan`.
      tokens_a: list of int.
      tokens_b: list of int.
      settings: `instances.InstanceSettings`.
      vocab: `masking.MaskingIds`.
    """
    rng = _rng(settings.random_seed, plan.pass_number, plan.document, plan.number)
    return make_instance(tokens_a, tokens_b, plan.is_random_next, settings, vocab, rng)


def _rng(*numbers):
    """Return the random numbers that belong to some numbers, on any machine."""
    text = "/".join(map(str, numbers)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))
