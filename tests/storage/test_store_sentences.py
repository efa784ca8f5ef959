"""Errors of TensorFlow's Cloud Storage client as sentences, without a store."""

import secrets

import pytest
import tensorflow as tf

from official_bert import files, lease, object_store
from official_bert.command_line import program
from official_bert.errors import StoreError, UserError

PATH = "gs://bucket/run/model.ckpt-5.index"
REQUEST = "Error executing an HTTP request: HTTP response code {} with body '{{}}'"
WHERE = f"\n\t when reading {PATH} [Op:IteratorGetNext]"

# (TensorFlow's error, status, words of the sentence, kind of `UserError`)
CASES = [
    (tf.errors.NotFoundError, 404, "check the bucket and the name", UserError),
    (tf.errors.PermissionDeniedError, 401, "asks for credentials: log in", StoreError),
    (tf.errors.PermissionDeniedError, 403, "check the access rights", StoreError),
    (tf.errors.FailedPreconditionError, 412, "at the same time", StoreError),
    (tf.errors.AbortedError, 429, "the quota of the store", StoreError),
    (tf.errors.UnavailableError, 503, "does not answer", StoreError),
    (tf.errors.AbortedError, 503, "does not answer", StoreError),
    (tf.errors.InternalError, 418, "the store refused it", StoreError),
]


def error(kind, status):
    return kind(None, None, REQUEST.format(status) + WHERE)


@pytest.mark.parametrize(("kind", "status", "words", "expected"), CASES)
def test_a_sentence_for_each_status(kind, status, words, expected):
    sentence = object_store.error_of(error(kind, status))
    assert type(sentence) is expected
    assert str(sentence).startswith(f"{PATH}: ") and words in str(sentence)
    assert str(sentence).endswith(f"(HTTP response code {status}).")
    assert "\n" not in str(sentence)


def test_the_path_that_is_known_comes_first():
    text = str(object_store.error_of(error(tf.errors.NotFoundError, 404), "gs://b/x"))
    assert text.startswith("gs://b/x: it does not exist")


@pytest.mark.parametrize(
    "other",
    [
        ValueError(REQUEST.format(404)),
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating a tensor"),
        tf.errors.UnavailableError(None, None, "failed to connect to all addresses"),
    ],
)
def test_other_errors_are_not_of_a_store(other):
    assert object_store.error_of(other) is None


def test_a_command_ends_with_the_sentence(capsys):
    def main():
        raise error(tf.errors.PermissionDeniedError, 403)

    assert program._guarded(main) == 1
    assert capsys.readouterr().err.startswith(f"error: {PATH}: permission is denied")


def refuse_reads(patch, ending):
    """Refuse to read all objects with this ending."""
    read = object_store.read

    def refusing(path):
        if ending in path:
            raise StoreError(f"{path}: permission is denied.")
        return read(path)

    patch.setattr(object_store, "read", refusing)


def test_a_claim_that_cannot_be_read_is_not_a_free_folder(monkeypatch):
    folder = f"ram://test-{secrets.token_hex(4)}/run"
    with lease.held(folder, "--output_dir"):
        refuse_reads(monkeypatch, ".lease-")
        with (
            pytest.raises(StoreError, match="permission is denied"),
            lease.held(folder, "--output_dir"),
        ):
            pytest.fail("Two processes hold it.")


def test_folders():
    folder = f"ram://test-{secrets.token_hex(4)}"
    assert not files.is_directory(f"{folder}/a")
    object_store.write(f"{folder}/a/b", b"1")
    assert files.is_directory(f"{folder}/a") and not files.is_directory(f"{folder}/a/b")
    assert files.normal(f"{folder}/a/") == f"{folder}/a"
    assert files.normal("a//b/") == "a/b"
