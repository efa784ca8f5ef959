"""Choose the files of a model that this package reads, from a list of names.

A repository often has the same weights in five formats; one is enough.
"""

import os
import re
from collections.abc import Collection

from official_bert import files
from official_bert.checkpoints import names
from official_bert.checkpoints.huggingface import weight_files

# Config, vocabulary, casing and task, in the formats of `any_format.opened`.
CONFIGS = ("config.json", "bert_config.json")
VOCABULARIES = ("vocab.txt", "tokenizer.json", "assets/tokenizer/vocabulary.txt")
SIDE_FILES = (
    *CONFIGS,
    *VOCABULARIES,
    "tokenizer_config.json",
    "task.json",
    "params.yaml",
)
# KerasHub's weights, with the shards that `model.weights.json` lists.
PRESET_WEIGHTS = ("model.weights.h5", "model.weights.json")
PRESET_EXTRAS = ("task.weights.h5", "other_weights.safetensors")
_PRESET_SHARD = re.compile(r"model_\d+\.weights\.h5$")
_SHARD = r"{}-\d+-of-\d+\.{}$"
_NUMBERED = re.compile(r"(model\.ckpt-(\d+))\.index$")


def choose(listing: Collection[str]) -> list[str]:
    """Return the files to read, weights last; an empty list without weights.

    A model downloaded in this order is complete when its last file exists.

    Args:
      listing: names of all files, with "/" between folders.
    """
    weights = _choose_weights(sorted(listing))
    return [name for name in SIDE_FILES if name in listing and weights] + weights


def _choose_weights(listing):
    for name in weight_files.FILES:
        if name in listing:
            return [*_shards(name, listing), name]
    for name in PRESET_WEIGHTS:
        if name in listing:
            extras = [extra for extra in PRESET_EXTRAS if extra in listing]
            shards = filter(_PRESET_SHARD.match, listing if "json" in name else ())
            return [*extras, *shards, name]
    return _choose_checkpoint(listing)


def _shards(name, listing):
    """Return the shards listed by a Hugging Face weight index."""
    if not name.endswith(".index.json"):
        return []
    stem, ending = name.removesuffix(".index.json").split(".")
    shard = re.compile(_SHARD.format(stem, ending))
    return list(filter(shard.match, listing))


def _choose_checkpoint(listing):
    """Return the files of the checkpoint that `google.find_prefix` would choose."""
    numbered = [match for name in listing if (match := _NUMBERED.match(name))]
    others = [name for name in listing if name.endswith(".index")]
    if f"{names.MODEL_PREFIX}.index" in listing:
        prefix = names.MODEL_PREFIX
    elif numbered:
        prefix = max(numbered, key=lambda match: int(match[2]))[1]
    elif others:
        return [n for n in listing if re.search(r"\.data-\d+-of-\d+$", n)] + others
    else:
        return []
    data = [name for name in listing if name.startswith(f"{prefix}.data-")]
    return [*data, f"{prefix}.index"]


def listed(directory: str | os.PathLike[str]) -> set[str]:
    """Return the names of the files in a directory, in the form of `choose`."""
    return {
        os.path.relpath(os.path.join(folder, name), directory).replace(os.sep, "/")
        for folder, _, found in os.walk(directory, followlinks=True)
        for name in found
    }


def find_complete(directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the files of a model in a directory; () if a necessary file is missing.

    Other programs may have downloaded some files, in another order.
    """
    listing = listed(directory)
    chosen = choose(listing)
    if not chosen or not listing & {*CONFIGS} or not listing & {*VOCABULARIES}:
        return ()
    index = chosen[-1]
    if index.endswith(".index.json"):
        path = os.path.join(directory, index)
        shards = files.read_json(path, "an index of weights").get("weight_map") or {}
        if not {*shards.values()} <= listing:
            return ()
    return tuple(chosen)
