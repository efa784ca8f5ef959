"""Models in object stores: `gs://` and every other scheme of `tf.io.gfile`.

Their files are copied into Keras' folder of models. A later call copies those again
whose size or time of change is another.
"""

import os
import pathlib
import re

from official_bert import files
from official_bert.checkpoints import archive
from official_bert.checkpoints.hub import storage, wanted_files
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError

# What a copy remembers: file -> its size and time of change in the store.
STATES_FILE = "download.json"


def find(name: str, address: str) -> LocalModel:
    """Return the `LocalModel` of an address; copy what has changed there.

    Args:
      name: the name that messages use.
      address: of a directory, a checkpoint prefix, an archive or a file of weights.

    Raises:
      UserError: it does not exist or cannot be read, or the scheme is unknown.
    """
    import filelock
    import tensorflow as tf

    scheme = address.partition("://")[0]
    schemes = tf.io.gfile.get_registered_schemes()
    if scheme not in schemes:
        known = ", ".join(f"{each}://" for each in sorted(schemes) if each)
        raise UserError(
            f"{name}: {scheme}:// is not a scheme that TensorFlow reads here. Known "
            f"are {known}."
        )
    address = address.rstrip("/")
    try:
        remote, names, last = _files_of(address)
    except tf.errors.OpError as error:
        raise UserError(_unreadable(name, error)) from error
    if not names:
        raise UserError(
            f"{name} does not hold a model. Give a directory with a config, a "
            "vocabulary and weights, or the prefix of a checkpoint."
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
        f"{name} cannot be read: {reason}. Check the address and the credentials "
        "(gcloud auth application-default login for gs://)."
    )


def _files_of(address):
    """Return (directory, its files to copy, what of them the address names)."""
    import tensorflow as tf

    gfile = tf.io.gfile
    directory, _, last = address.rpartition("/")
    # Some stores call every prefix of a name a directory.
    is_prefix = gfile.exists(f"{address}.index")
    if gfile.isdir(address) and not is_prefix:
        return address, wanted_files.choose(_listed(address)), ""
    if last.endswith(archive.ENDINGS):
        return directory, [last] if gfile.exists(address) else [], last
    if not gfile.isdir(directory):
        # It raises the reason, which `isdir` does not.
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
    """Return the names of the files in a directory and its folders."""
    import tensorflow as tf

    return {
        f"{folder}/{each}".removeprefix(f"{directory}/").lstrip("/")
        for folder, _, found in tf.io.gfile.walk(directory)
        for each in found
    }


def _copy_changed(name, remote, names, target):
    """Copy the files that the target lacks or has in another state."""
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
    """Remove the copies of files that the store's directory does not have now."""
    states_path = os.path.join(target, STATES_FILE)
    states = files.read_json(states_path, "the states of copied files")
    gone = {*states} - {*names}
    for each in gone:
        pathlib.Path(target, each).unlink(missing_ok=True)
    if gone:
        files.write_json(states_path, {each: states[each] for each in names})
