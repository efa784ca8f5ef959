"""`manifest.json`: the description of the record files in its folder.

One manifest describes all record files of a folder, so that several runs can
write there: `{"format": 1, "files": {"train.tfrecord": {...}, ...}}`.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import filelock
import numpy as np
from absl import logging

from official_bert import files
from official_bert.errors import UserError

NAME = "manifest.json"
FORMAT = 1


def manifest_path(record_path: str | os.PathLike[str]) -> str:
    """Return the path of a record file's manifest."""
    return os.path.join(os.path.dirname(files.absolute(record_path)), NAME)


def read_manifest(record_path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return a record file's entry in the manifest.

    Args:
      record_path: a TFRecord file.

    Returns:
      dict with `max_seq_length`, `max_predictions_per_seq`, `vocab_sha256`,
      `vocab_size`, `do_lower_case`, `do_whole_word_mask`, `num_records` and
      the other keys of `write_manifest`; None without a manifest or
      without an entry.

    Raises:
      UserError: the manifest is damaged, or states another size for the file.
    """
    path = manifest_path(record_path)
    entry = _read_files(path).get(os.path.basename(record_path))
    if entry is None:
        return None
    size = files.size(record_path) if files.exists(record_path) else 0
    if size != entry.get("num_bytes"):
        raise UserError(
            f"{record_path} has {size} bytes, but {path} states "
            f"{entry.get('num_bytes')}. The file was truncated or replaced. "
            "Create it again, or delete its entry in the manifest."
        )
    return entry


def check_vocabulary(
    entries: Mapping[str, Mapping[str, Any] | None], vocab_file: str | os.PathLike[str]
) -> None:
    """Raise `UserError` if records were made with another vocabulary.

    Args:
      entries: dict, path of a record file -> its entry, see `read_manifest`;
        files without an entry are not checked.
      vocab_file: the expected vocabulary.
    """
    digest = files.sha256_of(vocab_file)
    for path, entry in entries.items():
        known = (entry or {}).get("vocab_sha256") or digest
        if known != digest:
            raise UserError(
                f"--vocab_file: {vocab_file} is not the vocabulary of {path} "
                f"(SHA-256 {digest[:12]}…, but {known[:12]}… in its {NAME}). "
                "Give the vocabulary that created the records."
            )


def check_manifest(record_path: str | os.PathLike[str]) -> None:
    """Raise `UserError` if a file named like a manifest is not a manifest."""
    _read_files(manifest_path(record_path))


def write_manifest(entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Add record files to the manifests of their folders.

    Args:
      entries: dict, path of a record file -> its description. It replaces an
        earlier entry of the same name; other entries stay. "num_bytes" states
        the size of a file that is not at its path yet.
    """
    by_manifest: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record_path, entry in entries.items():
        if "num_bytes" not in entry:
            entry = {**entry, "num_bytes": files.size(record_path)}
        own = by_manifest.setdefault(manifest_path(record_path), {})
        own[os.path.basename(record_path)] = entry
    for path, own in by_manifest.items():
        with _locked(os.path.dirname(path)):
            described = dict(sorted({**_read_files(path), **own}.items()))
            files.write_json(path, {"format": FORMAT, "files": described})


def label_statistics(counts: Sequence[int] | np.ndarray) -> tuple[float, float]:
    """Return the loss and the accuracy of the best model without context.

    Args:
      counts: int [vocab_size], number of masked tokens with each id as label.

    Returns:
      (entropy in nats of the labels' unigram distribution, share of the most
      frequent label); (0.0, 0.0) if nothing is masked.
    """
    counts = np.asarray(counts, np.int64)
    if not counts.any():
        return 0.0, 0.0
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum()), float(shares.max())


def describe_labels(
    counts: Sequence[int] | np.ndarray, inv_vocab: Mapping[int, str]
) -> dict[str, Any]:
    """Return a manifest's description of the labels of masked tokens.

    Args:
      counts: see `label_statistics`; logs a warning if all are 0.
      inv_vocab: dict, id -> token.

    Returns:
      dict with `unigram_entropy` and `most_frequent_token`, {"token", "share"}.
    """
    entropy, share = label_statistics(counts)
    if not share:
        logging.warning(
            "No record has a masked word, because every word has more tokens "
            "than may be masked. Raise --max_predictions_per_seq, or remove "
            "--do_whole_word_mask."
        )
    token = inv_vocab[int(np.argmax(counts))]
    return {
        "unigram_entropy": entropy,
        "most_frequent_token": {"token": token, "share": share},
    }


def _read_files(path):
    """Return the entries of a manifest by file name; {} if it does not exist."""
    if not files.exists(path):
        return {}
    manifest = files.read_json(path, "a manifest of record files")
    described = manifest.get("files")
    if manifest.get("format") != FORMAT or not isinstance(described, dict):
        raise UserError(
            f'{path} is not a manifest of record files ("format": {FORMAT}, '
            '"files": {…}). Move or rename it.'
        )
    return described


@contextlib.contextmanager
def _locked(folder):
    """Prevent runs that write into the same folder from losing entries."""
    if files.is_remote(
        folder
    ):  # Object stores have no locks, so run one job at a time there.
        yield
        return
    # Not `.lock`: a run with this output directory may hold that lock.
    lock = filelock.FileLock(os.path.join(folder, ".manifest.lock"))
    with contextlib.suppress(
        OSError
    ):  # If the disk has no locks, run one job at a time there.
        lock.acquire()
    try:
        yield
    finally:
        if lock.is_locked:
            # Remove the file while the lock is held: a waiting process then
            # notices that the file is gone and creates a new one. Windows
            # removes it at release.
            with contextlib.suppress(OSError):
                os.remove(lock.lock_file)
            lock.release()
