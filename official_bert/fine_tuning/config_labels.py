"""Names of labels in a model's config, as in Hugging Face's `config.json`.

`bert_config.json` keeps them too. A fine-tuned model therefore keeps its labels when
it is converted, and a Hugging Face model describes its task.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from official_bert.checkpoints.huggingface.config_json import LABELS
from official_bert.config import BertConfig

# Keys that describe a task. Keys of the initial model's task are removed.
_OF_A_TASK = ("architectures", "problem_type", *LABELS)


def config_with_labels(
    config: BertConfig, labels: Sequence[str] = (), **others: Any
) -> BertConfig:
    """Return a `BertConfig` with the labels of a new task, without those of an old one.

    Args:
      config: `BertConfig`.
      labels: names in the order of their numbers; empty if they have no names.
      **others: further keys and their values.
    """
    kept = {key: v for key, v in config.extra.items() if key not in _OF_A_TASK}
    if labels:
        others["id2label"] = {str(index): name for index, name in enumerate(labels)}
        others["label2id"] = {name: index for index, name in enumerate(labels)}
    return dataclasses.replace(config, extra=kept | others)


def labels_of(config: BertConfig) -> tuple[str, ...]:
    """Return the label names in a `BertConfig`; () if it has none."""
    names = config.extra.get("id2label")
    if not isinstance(names, dict) or not all(map(str.isdecimal, names)):
        return ()
    return tuple(str(names[index]) for index in sorted(names, key=int))


def architecture_of(config: BertConfig) -> str | None:
    """Return the transformers class that a `BertConfig` names, or None.

    It is only needed if the weights do not determine the task, see
    `config_json.HEADS`.
    """
    stated = config.extra.get("architectures")
    return stated[0] if isinstance(stated, list) and stated else None
