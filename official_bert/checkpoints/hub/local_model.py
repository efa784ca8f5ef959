"""`LocalModel`: a model on this machine's disk, and its source."""

import dataclasses
import os
import re

LOCAL = "local path"
# Folders of the caches of huggingface_hub and kagglehub, whose own names are those of a
# revision or a version.
_SNAPSHOT = re.compile(r"models--([^/]+)/snapshots/([0-9a-f]{40})$")
_VERSION = re.compile(r"/models/([^/]+/[^/]+/[^/]+/[^/]+/\d+)$")


@dataclasses.dataclass(frozen=True)
class LocalModel:
    """A model that `find.find_model` found.

    Attributes:
      name: the path or name that the user gave.
      path: of the directory or file to read.
      source: an address, or `LOCAL`.
      revision: commit, version or ETag; None if it has none.
      files: downloaded files, relative to `path`.
    """

    name: str
    path: str
    source: str = LOCAL
    revision: str | None = None
    files: tuple[str, ...] = ()


def name_in_cache(path: str | os.PathLike[str]) -> str | None:
    """Return the name of a model in the cache of Hugging Face or Kaggle.

    It is `owner/name@commit` or `owner/model/framework/variation/version`; None if the
    path is not in such a cache.
    """
    path = os.path.abspath(path).replace(os.sep, "/")
    if match := _SNAPSHOT.search(path):
        return f"{match[1].replace('--', '/')}@{match[2]}"
    match = _VERSION.search(path)
    return match[1] if match else None
