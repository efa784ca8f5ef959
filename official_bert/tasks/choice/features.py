"""Convert multiple-choice examples to features: a pair of texts for each choice.

Legend: `B` examples per batch, `C` choices, `S` tokens per row.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from official_bert.tables.examples import Example
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.classifier.features import (
    Features,
    convert_examples,
    pad_features,
)
from official_bert.tokenization.full import FullTokenizer


def convert_choices(
    examples: Sequence[ChoiceExample], tokenizer: FullTokenizer, max_seq_length: int
) -> list[list[Features]]:
    """Return the features of examples, in order; warn about pairs that were cut.

    Each choice forms a pair with the context, `[CLS] context [SEP] choice [SEP]`. Long
    pairs are cut as in `classifier.features.convert_example`.

    Args:
      examples: list of N `ChoiceExample`.
      tokenizer: `FullTokenizer`.
      max_seq_length: maximum number of tokens per pair, including `[CLS]` and
        `[SEP]`; at least 3.

    Returns:
      list of N lists of `Features`, one per choice. Their `label_id` is the index of
      the correct choice, or None.

    Raises:
      UserError: `max_seq_length` is below 3.
    """
    pairs = [
        Example(example.guid, example.context, choice)
        for example in examples
        for choice in example.choices
    ]
    features = iter(convert_examples(pairs, tokenizer, max_seq_length))
    return [
        [
            one._replace(label_id=example.label)
            for one in itertools.islice(features, len(example.choices))
        ]
        for example in examples
    ]


def pad_choice_features(
    features: Sequence[Sequence[Features]], length: int, num_choices: int | None = None
) -> dict[str, np.ndarray]:
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B lists of `Features`, with labels either for all or for
        none.
      length: S, at least the number of tokens of the longest pair.
      num_choices: C, at least the largest number of choices; None for that number.

    Returns:
      dict of int32 arrays: [B, C, S] `input_ids`, `input_mask` and `segment_ids`, 0
      at padding; [B, C] `choice_mask`, 1 for existing choices; and, if the labels
      are known, [B] `label_ids`. Rows of missing choices are only padding, and
      their logits are undefined. `choice_mask` excludes them.

    Raises:
      ValueError: an example has more than `num_choices` choices.
    """
    sizes = np.array([len(choices) for choices in features])
    num_choices = num_choices or int(sizes.max())
    if sizes.max() > num_choices:
        raise ValueError(
            f"An example has {sizes.max()} choices, but num_choices is {num_choices}."
        )
    choice_mask = np.arange(num_choices) < sizes[:, np.newaxis]  # [B, C]
    rows = pad_features(list(itertools.chain.from_iterable(features)), length)
    rows.pop("label_ids", None)
    batch = {}
    for name, array in rows.items():
        batch[name] = np.zeros((*choice_mask.shape, length), np.int32)
        batch[name][choice_mask] = array
    batch["choice_mask"] = choice_mask.astype(np.int32)
    label_ids = [choices[0].label_id for choices in features]
    if None not in label_ids:
        batch["label_ids"] = np.array(label_ids, np.int32)
    return batch
