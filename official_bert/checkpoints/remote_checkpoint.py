"""Checkpoints in an object store: uploaded, and valid with their list of parts.

An object store has no rename, which makes a local checkpoint appear at once. The last
object of a checkpoint is `<prefix>.parts.json`: the sizes and SHA-256 of the others.
Without it, or with a part of another size, the checkpoint is incomplete. TensorFlow
compares the checksum of each tensor when it reads it.
"""

import os
from collections.abc import Sequence

from official_bert import files, object_store
from official_bert.checkpoints import names
from official_bert.errors import UserError


def upload(local: str, prefix: str, endings: Sequence[str]) -> None:
    """Upload a checkpoint, the list of its parts last.

    A checkpoint of that name is removed first, its list of parts first.

    Args:
      local: prefix of the local files.
      prefix: of the remote ones.
      endings: of the names of the files.
    """
    object_store.remove(prefix + names.PARTS)
    parts = {}
    for ending in endings:
        object_store.upload(local + ending, prefix + ending)
        size, digest = os.path.getsize(local + ending), files.sha256_of(local + ending)
        parts[os.path.basename(prefix) + ending] = {"bytes": size, "sha256": digest}
    files.write_json(prefix + names.PARTS, {"format": 1, "parts": parts})


def check(prefix: str) -> None:
    """Raise `UserError` if a remote checkpoint of a run is incomplete.

    Checkpoints without a list of parts, such as released models, are not checked.
    """
    path = prefix + names.PARTS
    if not files.is_remote(prefix) or not files.exists(path):
        return
    described = files.read_json(path, "the list of parts of a checkpoint")
    for name, part in described.get("parts", {}).items():
        part_path = os.path.join(os.path.dirname(prefix), name)
        size = files.size(part_path) if files.exists(part_path) else None
        if size != part.get("bytes"):
            what = "is missing" if size is None else f"has {size} bytes"
            raise UserError(
                f"{prefix} is incomplete: {part_path} {what}, and {path} says "
                f"{part.get('bytes')} bytes. Give another checkpoint."
            )
