"""Find a model by its path or name, and download it if necessary."""

import os
import re

from official_bert.checkpoints import archive
from official_bert.checkpoints.hub import (
    hugging_face,
    kaggle,
    links,
    names,
    object_store,
)
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError

# Endings that only file names have.
_FILE = re.compile(
    r"\.(ckpt(-\d+)?|index|safetensors|h5|bin|json|txt|tflite|zip|tgz|gz|tar)$"
)
_REPOSITORY = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([\w./-]+))?")
HUGGING_FACE_SCHEME = "hf://"
LINKS = ("https://", "http://")


def find_model(name: str | os.PathLike[str]) -> LocalModel:
    """Return the local model for a path or name.

    An existing path takes precedence. Later calls use the cache without network
    requests; for object stores they request only the state of the files.

    Args:
      name: a path; a name in `names.MODELS`; `owner/name` at Hugging Face, also
        as `hf://owner/name@revision`; `kaggle://owner/model/keras/variation`; a
        link to a zip file; or an object store address.

    Returns:
      `LocalModel`. A missing local path is returned unchanged; the checkpoint
      reader then reports the missing file.

    Raises:
      UserError: the name is unknown, or the model cannot be downloaded.
    """
    name = os.fspath(name)
    if os.path.exists(name) or os.path.exists(f"{name}.index"):
        return LocalModel(name, name)
    if "://" in name:
        return _find_address(name)
    known = names.BY_NAME.get(name.partition("@")[0])
    if known:
        return _find_known(name, known)
    match = _REPOSITORY.fullmatch(name)
    if match is None or _looks_local(name):
        return LocalModel(name, name)
    return hugging_face.find(name, match[1], match[2] or "main", _hint(name))


def _find_address(name):
    scheme, _, rest = name.partition("://")
    if name.startswith(HUGGING_FACE_SCHEME):
        match = _REPOSITORY.fullmatch(rest.rstrip("/"))
        if match is None:
            raise UserError(
                f"{name} is not a Hugging Face address. Use hf://owner/name or "
                "hf://owner/name@revision."
            )
        return hugging_face.find(name, match[1], match[2] or "main", _hint(match[1]))
    if name.startswith(kaggle.SCHEME):
        return kaggle.find(name, rest.rstrip("/"))
    if name.startswith(LINKS):
        if not name.partition("?")[0].endswith(archive.ENDINGS):
            raise UserError(
                f"{name} is not a link to a {', '.join(archive.ENDINGS)} file. "
                "Give a link to an archive with one model."
            )
        return links.find(name, name)
    return object_store.find(name, name)


def _find_known(name, known):
    revision = name.partition("@")[2]
    if known.source == names.HUGGING_FACE:
        return hugging_face.find(name, known.location, revision or "main")
    if revision:
        raise UserError(
            f"{name}: only Hugging Face models have revisions. Remove @{revision}."
        )
    if known.source == names.KAGGLE:
        return kaggle.find(name, known.location)
    return links.find(name, known.location)


def _looks_local(name):
    """Return whether a missing path looks like a local path, not a model name."""
    if name.startswith(("/", ".", "~")) or _FILE.search(name):
        return True
    path = name.partition("@")[0]
    if "/" in path:
        return path.count("/") > 1 or os.path.isdir(os.path.dirname(path))
    # Hugging Face names without an owner contain a hyphen.
    return "-" not in path and not names.nearest(path)


def _hint(name):
    """Return a sentence with similar names, followed by a space."""
    similar = names.nearest(name.partition("@")[0])
    if not similar:
        return ""
    return f"Did you mean {' or '.join(similar)}? "
