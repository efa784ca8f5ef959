"""Multiple choice as features: a pair of texts for each choice.

Legend: `B` examples of a batch, `C` choices, `S` tokens of a row.
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
    """Return the features of examples, in order; warn of the pairs it cut.

    Each choice is read beside the context, `[CLS] context [SEP] choice [SEP]`,
    and cut as a pair of `classifier.features.convert_example`.

    Args:
      examples: list of N `ChoiceExample`.
      tokenizer: `FullTokenizer`.
      max_seq_length: tokens of a pair at most, `[CLS]` and `[SEP]` among them;
        at least 3.

    Returns:
      list of N lists of `Features`, as many as the example has choices. The
      `label_id` of each is the place of the right choice, or None.

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
      features: sequence of B lists of `Features`; all of them have a label, or
        none.
      length: S, at least as many tokens as the longest has.
      num_choices: C, at least as many as any example has; None for that.

    Returns:
      dict of int32 arrays: [B, C, S] `input_ids`, `input_mask` and
      `segment_ids`, 0 where nothing stands; [B, C] `choice_mask`, 1 for choices
      that there are; and, where the labels are known, [B] `label_ids`. The rows
      of choices that there are not are padding from end to end; their logits
      mean nothing and are left to `choice_mask`.

    Raises:
      ValueError: an example has more than `num_choices`.
    """
    sizes = np.array([len(choices) for choices in features])
    num_choices = num_choices or int(sizes.max())
    if sizes.max() > num_choices:
        raise ValueError(f"There is an example of {sizes.max()} choices.")
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
