"""`LocalModel`: a model on the local disk, and its source."""

import dataclasses
import os
import re

LOCAL = "local path"
# Folders in the caches of huggingface_hub and kagglehub. Their last part is a
# revision or a version, not the model's name.
_SNAPSHOT = re.compile(r"models--([^/]+)/snapshots/([0-9a-f]{40})$")
_VERSION = re.compile(r"/models/([^/]+/[^/]+/[^/]+/[^/]+/\d+)$")


@dataclasses.dataclass(frozen=True)
class LocalModel:
    """A model returned by `find.find_model`.

    Attributes:
      name: the path or name that the user gave.
      path: the directory or file to read.
      source: an address, or `LOCAL`.
      revision: commit, version or ETag, or None.
      files: the downloaded files, relative to `path`.
    """

    name: str
    path: str
    source: str = LOCAL
    revision: str | None = None
    files: tuple[str, ...] = ()


def name_in_cache(path: str | os.PathLike[str]) -> str | None:
    """Return the name of a model in the cache of Hugging Face or Kaggle.

    The name is `owner/name@commit` or
    `owner/model/framework/variation/version`. Return None for paths outside
    these caches.
    """
    path = os.path.abspath(path).replace(os.sep, "/")
    if match := _SNAPSHOT.search(path):
        return f"{match[1].replace('--', '/')}@{match[2]}"
    match = _VERSION.search(path)
    return match[1] if match else None
