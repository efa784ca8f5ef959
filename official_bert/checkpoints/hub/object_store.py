"""Models in object stores: `gs://` and all other schemes of `tf.io.gfile`.

The files are copied into Keras' model folder. Later calls copy only files whose
size or modification time has changed.
"""

import os
import pathlib
import re

from official_bert import files
from official_bert.checkpoints import archive
from official_bert.checkpoints.hub import storage, wanted_files
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError

# Records of each copied file its size and modification time in the store.
STATES_FILE = "download.json"


def find(name: str, address: str) -> LocalModel:
    """Return the `LocalModel` of an address; copy the files that have changed.

    Args:
      name: the name used in messages.
      address: a directory, a checkpoint prefix, an archive or a weights file.

    Raises:
      UserError: the address does not exist or cannot be read, or the scheme is
        unknown.
    """
    import filelock
    import tensorflow as tf

    scheme = address.partition("://")[0]
    schemes = tf.io.gfile.get_registered_schemes()
    if scheme not in schemes:
        known = ", ".join(f"{each}://" for each in sorted(schemes) if each)
        raise UserError(
            f"{name}: TensorFlow cannot read {scheme}:// on this machine. "
            f"Supported schemes: {known}."
        )
    address = address.rstrip("/")
    try:
        remote, names, last = _files_of(address)
    except tf.errors.OpError as error:
        raise UserError(_unreadable(name, error)) from error
    if not names:
        raise UserError(
            f"{name} does not contain a model. Give a directory with a config, "
            "a vocabulary and weights, or a checkpoint prefix."
        )
    target = os.path.join(
        storage.models_folder(), re.sub(r"[^\w.-]+", "_", remote.replace("://", "_"))
    )
    storage.make_folder(target)
    with filelock.FileLock(f"{target}.lock"):
        try:
            _copy_changed(name, remote, names, target)
            if not last:
                _remove_gone(names, target)
        except tf.errors.OpError as error:
            raise UserError(_unreadable(name, error)) from error
    return LocalModel(name, os.path.join(target, last), address, None, tuple(names))


def _unreadable(name, error):
    reason = str(error.message).strip().partition("\n")[0]
    return (
        f"Cannot read {name}: {reason}. Check the address and the credentials "
        "(for gs://: gcloud auth application-default login)."
    )


def _files_of(address):
    """Return (directory, files to copy, the last part of the address to read)."""
    import tensorflow as tf

    gfile = tf.io.gfile
    directory, _, last = address.rpartition("/")
    # Some stores report every name prefix as a directory.
    is_prefix = gfile.exists(f"{address}.index")
    if gfile.isdir(address) and not is_prefix:
        return address, wanted_files.choose(_listed(address)), ""
    if last.endswith(archive.ENDINGS):
        return directory, [last] if gfile.exists(address) else [], last
    if not gfile.isdir(directory):
        # `stat` raises the reason, which `isdir` does not.
        gfile.stat(address)
    listing = _listed(directory)
    last = last.removesuffix(".index")
    weights = [
        each for each in listing if each == last or each.startswith((f"{last}.data-",))
    ]
    if f"{last}.index" in listing:
        weights.append(f"{last}.index")
    sides = [each for each in wanted_files.SIDE_FILES if each in listing]
    return directory, sides + weights if weights else [], last


def _listed(directory):
    """Return the relative names of all files below a directory."""
    import tensorflow as tf

    return {
        f"{folder}/{each}".removeprefix(f"{directory}/").lstrip("/")
        for folder, _, found in tf.io.gfile.walk(directory)
        for each in found
    }


def _copy_changed(name, remote, names, target):
    """Copy files that are missing in the target or have changed in the store."""
    import tensorflow as tf

    states_path = os.path.join(target, STATES_FILE)
    before = {}
    if os.path.exists(states_path):
        before = files.read_json(states_path, "the states of copied files")
    states = {}
    for each in names:
        found = tf.io.gfile.stat(f"{remote}/{each}")
        states[each] = [found.length, found.mtime_nsec]
    changed = [
        each
        for each in names
        if before.get(each) != states[each]
        or not os.path.exists(os.path.join(target, each))
    ]
    needed = sum(states[each][0] for each in changed)
    storage.check_space(target, needed, name, "KERAS_HOME")
    for each in changed:
        path = os.path.join(target, each)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with files.atomic_path(path) as temporary:
            tf.io.gfile.copy(f"{remote}/{each}", temporary, overwrite=True)
    if changed:
        files.write_json(states_path, before | states)


def _remove_gone(names, target):
    """Remove copies whose files no longer exist in the store."""
    states_path = os.path.join(target, STATES_FILE)
    states = files.read_json(states_path, "the states of copied files")
    gone = {*states} - {*names}
    for each in gone:
        pathlib.Path(target, each).unlink(missing_ok=True)
    if gone:
        files.write_json(states_path, {each: states[each] for each in names})
