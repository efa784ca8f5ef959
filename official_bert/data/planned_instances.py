"""Training instances that can be made independently, in any order.

The pairs are those of `instances.draw_pairs`, but the draws are organized
differently than in `instances.create_instances_from_document`. There, one
stream of random numbers runs through the whole corpus. Here, every pass over a
document and every instance has its own stream. A plan comes first: it selects
the sentences of A, and whether B follows A or comes from a random position in
the corpus. A plan depends on the lengths in its document and on the number of
documents, never on the random text. A cluster can therefore make all plans,
join them with the texts that they need, and then finish each pair.

    plans = plan_document(starts, document, num_documents, pass_number, settings)
    tokens_a = tokens[starts[plan.start] : starts[plan.a_end]]
    first, last = sentences_of_b(starts of its document, plan)
    instance = finish(plan, tokens_a, tokens_b, settings, vocab)

`starts` is always the list of the token offsets where the sentences of a
document begin: n + 1 ascending numbers for n sentences. Sentence i is
`tokens[starts[i] : starts[i + 1]]`.
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
    """The plan of an instance.

    Attributes:
      pass_number: number of the pass over the corpus, from 0.
      document: number of the document in the corpus, from 0.
      number: number of the instance within pass and document.
      start: first sentence of A.
      a_end: the sentence after A.
      end: unless B is random, the sentence after B, which starts at `a_end`.
      is_random_next: whether B is labeled as random.
      room: wanted number of tokens for a random B.
      other: number of the document of a random B; `NEXT` if B is not random.
      fraction: share of that document's sentences before a random B, from 0 to
        1.
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
      starts: where the document's sentences begin; see the module docstring.
      document: its number, from 0 to `num_documents` - 1.
      num_documents: number of documents in the corpus.
      pass_number: from 0 to `dupe_factor` - 1.
      settings: `instances.InstanceSettings`.
    """
    rng = _rng(settings.random_seed, pass_number, document)
    plans: list[PairPlan] = []
    for pair in draw_pairs(starts, settings, num_documents, rng):
        other, fraction = NEXT, 0.0
        if pair.is_random_next:
            other = draw_other_document(document, num_documents, settings, rng)
            # The other document's length is unknown here.
            fraction = rng.random()
        number = len(plans)
        plans.append(PairPlan(pass_number, document, number, *pair, other, fraction))
    return plans


def sentences_of_b(starts: Sequence[int], plan: PairPlan) -> tuple[int, int]:
    """Return the sentences of `plan.other` that form B: (first, end).

    Args:
      starts: where that document's sentences begin.
      plan: `PairPlan` with a random B.
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
    """Truncate, join and mask one pair; return the `instances.TrainingInstance`.

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
    """Return a random generator seeded by numbers, the same on any machine."""
    text = "/".join(map(str, numbers)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))
