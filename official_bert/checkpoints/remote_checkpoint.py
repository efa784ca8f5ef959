"""Checkpoints in an object store, valid only with their list of parts.

Local checkpoints appear at once through a rename, which object stores lack.
Here the last object of a checkpoint is `<prefix>.parts.json`, with the sizes
and SHA-256 digests of the others. Without it, or if a part has another size,
the checkpoint is incomplete. TensorFlow verifies each tensor's checksum on
reading.
"""

import os
from collections.abc import Sequence

from official_bert import files, object_store
from official_bert.checkpoints import names
from official_bert.errors import UserError


def upload(local: str, prefix: str, endings: Sequence[str]) -> None:
    """Upload a checkpoint, the list of its parts last.

    An existing checkpoint of this name loses its list of parts first.

    Args:
      local: prefix of the local files.
      prefix: prefix of the remote files.
      endings: the endings of the file names.
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
    described = files.read_json(path, "a checkpoint's list of parts")
    for name, part in described.get("parts", {}).items():
        part_path = os.path.join(os.path.dirname(prefix), name)
        size = files.size(part_path) if files.exists(part_path) else None
        if size != part.get("bytes"):
            what = "is missing" if size is None else f"has {size} bytes"
            raise UserError(
                f"{prefix} is incomplete: {part_path} {what}, but {path} "
                f"requires {part.get('bytes')} bytes. Give another checkpoint."
            )
