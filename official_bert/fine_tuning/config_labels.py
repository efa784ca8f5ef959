"""The names of labels in a model's config, as Hugging Face's `config.json` has them.

`bert_config.json` keeps them too, so that they are not lost when a fine-tuned model is
converted, and a model of Hugging Face tells what it is for.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from official_bert.checkpoints.huggingface.config_json import LABELS
from official_bert.config import BertConfig

# What tells of a task; that of the model which a fine-tuning began with is left out.
_OF_A_TASK = ("architectures", "problem_type", *LABELS)


def config_with_labels(
    config: BertConfig, labels: Sequence[str] = (), **others: Any
) -> BertConfig:
    """Return a `BertConfig` that says what a model is for, and no more of another task.

    Args:
      config: `BertConfig`.
      labels: names in the order of their numbers; none if they have no names.
      **others: further keys and their values.
    """
    kept = {key: v for key, v in config.extra.items() if key not in _OF_A_TASK}
    if labels:
        others["id2label"] = {str(index): name for index, name in enumerate(labels)}
        others["label2id"] = {name: index for index, name in enumerate(labels)}
    return dataclasses.replace(config, extra=kept | others)


def labels_of(config: BertConfig) -> tuple[str, ...]:
    """Return the names that a `BertConfig` gives to labels; () if it gives none."""
    names = config.extra.get("id2label")
    if not isinstance(names, dict) or not all(map(str.isdecimal, names)):
        return ()
    return tuple(str(names[index]) for index in sorted(names, key=int))


def architecture_of(config: BertConfig) -> str | None:
    """Return the class of transformers that a `BertConfig` names, or None.

    It names one only if the weights do not tell, see `config_json.HEADS`.
    """
    stated = config.extra.get("architectures")
    return stated[0] if isinstance(stated, list) and stated else None
