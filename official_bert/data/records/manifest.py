"""`manifest.json`: what the record files beside it are made of.

One manifest describes all record files of its folder, so that several runs can
write into one: `{"format": 1, "files": {"train.tfrecord": {...}, ...}}`.
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
    """Return where the manifest of a record file is."""
    return os.path.join(os.path.dirname(files.absolute(record_path)), NAME)


def read_manifest(record_path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what the manifest says of a record file.

    Args:
      record_path: a TFRecord file.

    Returns:
      dict with `max_seq_length`, `max_predictions_per_seq`, `vocab_sha256`,
      `vocab_size`, `do_lower_case`, `do_whole_word_mask`, `num_records` and
      the other keys of `write_manifest`; None without a manifest or when it
      does not mention the file.

    Raises:
      UserError: the manifest is damaged, or the file has another size than
        when the manifest was written.
    """
    path = manifest_path(record_path)
    entry = _read_files(path).get(os.path.basename(record_path))
    if entry is None:
        return None
    size = files.size(record_path) if files.exists(record_path) else 0
    if size != entry.get("num_bytes"):
        raise UserError(
            f"{record_path} has {size} bytes where {path} says "
            f"{entry.get('num_bytes')}: the file was cut off or replaced; create "
            "it again, or delete its entry in the manifest."
        )
    return entry


def check_vocabulary(
    entries: Mapping[str, Mapping[str, Any] | None], vocab_file: str | os.PathLike[str]
) -> None:
    """Raise `UserError` if records were made with another vocabulary.

    Args:
      entries: dict, path of a record file -> its entry, see `read_manifest`; of
        files without one nothing is known.
      vocab_file: the vocabulary that they should be made with.
    """
    digest = files.sha256_of(vocab_file)
    for path, entry in entries.items():
        known = (entry or {}).get("vocab_sha256") or digest
        if known != digest:
            raise UserError(
                f"--vocab_file: {vocab_file} is not the vocabulary that {path} was "
                f"made with (SHA-256 {digest[:12]}…, and {known[:12]}… in its "
                f"{NAME}); give that one."
            )


def check_manifest(record_path: str | os.PathLike[str]) -> None:
    """Raise `UserError` if a file that is no manifest has a manifest's name."""
    _read_files(manifest_path(record_path))


def write_manifest(entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Add record files to the manifests of their folders.

    Args:
      entries: dict, path of a record file -> dict of what it holds. Earlier
        entries of the same name are replaced, others stay. The size of a file
        that is elsewhere is given as "num_bytes".
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
      counts: int [vocab_size], how often each id was the label of a masked token.

    Returns:
      (entropy in nats of the labels' unigram distribution, share of the most
      frequent label); (0.0, 0.0) where nothing is masked.
    """
    counts = np.asarray(counts, np.int64)
    if not counts.any():
        return 0.0, 0.0
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum()), float(shares.max())


def describe_labels(
    counts: Sequence[int] | np.ndarray, inv_vocab: Mapping[int, str]
) -> dict[str, Any]:
    """Describe the labels of masked tokens for a manifest.

    Args:
      counts: see `label_statistics`; a warning says so if all are 0.
      inv_vocab: dict, id -> token.

    Returns:
      dict with `unigram_entropy` and `most_frequent_token`, {"token", "share"}.
    """
    entropy, share = label_statistics(counts)
    if not share:
        logging.warning(
            "No record has a word to guess: every word has more pieces than may be "
            "masked; give a larger --max_predictions_per_seq, or leave out "
            "--do_whole_word_mask."
        )
    token = inv_vocab[int(np.argmax(counts))]
    return {
        "unigram_entropy": entropy,
        "most_frequent_token": {"token": token, "share": share},
    }


def _read_files(path):
    """Return the entries of a manifest by file name; none if it is not there."""
    if not files.exists(path):
        return {}
    manifest = files.read_json(path, "a manifest of record files")
    described = manifest.get("files")
    if manifest.get("format") != FORMAT or not isinstance(described, dict):
        raise UserError(
            f'{path} is not a manifest of record files ("format": {FORMAT}, '
            '"files": {…}): move it out of the way.'
        )
    return described


@contextlib.contextmanager
def _locked(folder):
    """Keep runs that write into the same folder from losing entries."""
    if files.is_remote(folder):  # An object store has no locks: one run at a time.
        yield
        return
    # Not `.lock`: a run whose output directory this is may hold that one.
    lock = filelock.FileLock(os.path.join(folder, ".manifest.lock"))
    with contextlib.suppress(OSError):  # A disk without locks: one run at a time.
        lock.acquire()
    try:
        yield
    finally:
        if lock.is_locked:
            # While it is held: a process that waits for it sees that the file is
            # gone, and makes another. Windows removes it at the release.
            with contextlib.suppress(OSError):
                os.remove(lock.lock_file)
            lock.release()
