"""Read and write the files of sentence-transformers.

Its directory is a Hugging Face directory with `modules.json`, which lists the
steps from a text to its vector, and one file per step. PyTorch and
sentence-transformers are not needed.
"""

import dataclasses
import json
import os

from official_bert import files
from official_bert.errors import UserError

MODULES_FILE = "modules.json"
SETTINGS_FILE = "sentence_bert_config.json"
VERSIONS_FILE = "config_sentence_transformers.json"
POOLING_FOLDER, NORMALIZE_FOLDER = "1_Pooling", "2_Normalize"
_PREFIX = "sentence_transformers.models."
# Pooling name in sentence-transformers -> our name.
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_MODES = (
    *_POOLINGS,
    "pooling_mode_max_tokens",
    "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
)
# Without such a file, sentence-transformers uses the model's limit.
DEFAULT_LENGTH = 512


@dataclasses.dataclass(frozen=True)
class SentenceSettings:
    """Settings for the vector of a text.

    Attributes:
      max_seq_length: maximum number of tokens, including `[CLS]` and `[SEP]`.
      pooling: "mean" or "cls".
      normalize: whether vectors have length 1.
    """

    max_seq_length: int
    pooling: str
    normalize: bool


def has_files(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is in the format of sentence-transformers."""
    return os.path.isfile(os.path.join(directory, MODULES_FILE))


def read(directory: str | os.PathLike[str]) -> SentenceSettings:
    """Return the settings of a sentence-transformers directory.

    Raises:
      UserError: a file is damaged, or a module or pooling is not supported.
    """
    path = os.path.join(directory, MODULES_FILE)
    try:
        modules = json.loads(files.read_text(path, "a list of modules"))
        kinds = [str(each["type"]).rpartition(".")[2] for each in modules]
        folders = [str(each["path"]) for each in modules]
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(
            f"{path} is damaged ({type(error).__name__}: {error}). Copy it from "
            "another copy of the model."
        ) from error
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise UserError(
            f"{path} lists the modules {', '.join(kinds)}. Only Transformer, "
            "Pooling and Normalize, in this order, are supported."
        )
    if folders[0]:
        raise UserError(
            f"{path}: the weights are in the folder {folders[0]}. Move its "
            f"files next to {MODULES_FILE} and set the Transformer's path to "
            '"".'
        )
    pooling = _read_pooling(os.path.join(directory, folders[1], "config.json"))
    return SentenceSettings(_read_length(directory), pooling, len(kinds) > 2)


def _read_length(directory):
    path = os.path.join(directory, SETTINGS_FILE)
    length = None
    if os.path.isfile(path):
        values = files.read_json(path, "settings of sentence-transformers")
        length = values.get("max_seq_length")
    if length is None:
        config = os.path.join(directory, "config.json")
        values = files.read_json(config, "a config")
        length = values.get("max_position_embeddings", DEFAULT_LENGTH)
    if type(length) is not int or length < 3:
        raise UserError(
            f"{path}: max_seq_length is {length!r}; it must be an integer above 2."
        )
    return length


def _read_pooling(path):
    values = files.read_json(path, "the pooling of sentence-transformers")
    modes = [mode for mode in _MODES if values.get(mode)]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise UserError(
            f"{path} requests {', '.join(modes) or 'no pooling'}. Only one of "
            f"{', '.join(_POOLINGS)} is supported."
        )
    return _POOLINGS[modes[0]]


def write(
    directory: str | os.PathLike[str], settings: SentenceSettings, width: int
) -> None:
    """Write the additional files that sentence-transformers reads.

    Args:
      directory: a Hugging Face directory.
      settings: `SentenceSettings`.
      width: size of a vector, H.

    Raises:
      UserError: sentence-transformers does not support the pooling.
    """
    modes = {ours: theirs for theirs, ours in _POOLINGS.items()}
    if settings.pooling not in modes:
        raise UserError(
            f"{directory}: sentence-transformers has no pooling "
            f"{settings.pooling!r}; it supports {' and '.join(modes)}."
        )
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * settings.normalize
    folders = ("", POOLING_FOLDER, NORMALIZE_FOLDER)
    modules = [
        {"idx": number, "name": str(number), "path": folder, "type": _PREFIX + kind}
        for number, (kind, folder) in enumerate(zip(kinds, folders))  # noqa: B905
    ]
    for folder in folders[1 : len(kinds)]:
        files.make_directory(os.path.join(directory, folder), "--to")
    pooling = {"word_embedding_dimension": width}
    pooling |= {mode: mode == modes[settings.pooling] for mode in _MODES[:4]}
    values = {"max_seq_length": settings.max_seq_length, "do_lower_case": False}
    versions = {"prompts": dict[str, str](), "default_prompt_name": None}
    for name, content in (
        (os.path.join(POOLING_FOLDER, "config.json"), pooling),
        (SETTINGS_FILE, values),
        (VERSIONS_FILE, {**versions, "similarity_fn_name": "cosine"}),
        (MODULES_FILE, modules),
    ):
        files.write_json(os.path.join(directory, name), content)
