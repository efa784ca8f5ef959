"""Serialized records to features, and what is said of bad ones."""

import dataclasses
import re

import tensorflow as tf

from official_bert.data import dynamic_masking
from official_bert.data.records.examples import compression_of
from official_bert.data.records.index import RecordIndex
from official_bert.errors import UserError

# What each feature's numbers must be below, in words.
LIMITED_BY = {
    "input_ids": "the model's vocab_size",
    "masked_lm_ids": "the model's vocab_size",
    "segment_ids": "the model's type_vocab_size",
    "masked_lm_positions": "max_seq_length",
    "next_sentence_labels": "the number of labels",
}


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """How the records of one data set are read.

    Attributes:
      spec: name in the record -> `tf.io.FixedLenFeature`.
      names: name in the record -> the original's name, where they differ.
      limits: the original's name -> number that is too large for it.
      masking: `dynamic_masking.MaskingRules` of unmasked records, else None.
      left_to_right: whether unmasked records stay so, and every next token is to be
        guessed; there is no `masking` then.
    """

    spec: dict[str, tf.io.FixedLenFeature]
    names: dict[str, str]
    limits: dict[str, int]
    masking: dynamic_masking.MaskingRules | None = None
    left_to_right: bool = False


def parse(
    columns: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    paths: tuple[str, ...],
    record_format: RecordFormat,
) -> dict[str, tf.Tensor]:
    """Parse serialized records, and check that a model can read their numbers.

    Args:
      columns: (the records, string [R]; the index of each one's file, int64 [R]; its
        number in the file, int64 [R]).
      paths: of the files.
      record_format: `RecordFormat`.

    Returns:
      dict, the original's name -> int32 or float32 [R, …].
    """
    serialized, file, number = columns
    parsed = tf.io.parse_example(serialized, record_format.spec)
    features = {
        record_format.names.get(name, name): tf.cast(
            value, tf.float32 if value.dtype.is_floating else tf.int32
        )
        for name, value in parsed.items()
    }
    checks = [
        _check_below(limit, features[name], name, paths, file, number)
        for name, limit in record_format.limits.items()
    ]
    with tf.control_dependencies(checks):
        return tf.nest.map_structure(tf.identity, features)


def _check_below(limit, values, name, paths, file, number):
    """Assert 0 <= values < limit, [B, …]; the message finds the record."""
    wrong = (values < 0) | (values >= limit)
    row = tf.argmax(tf.cast(tf.reduce_any(wrong, axis=1), tf.int32))
    place = tf.argmax(tf.cast(wrong[row], tf.int32))
    path = tf.gather(tf.constant(paths), file[row])
    message = tf.strings.format(
        "{} record {}: " + name + " holds {}, but " + LIMITED_BY[name] + f" is {limit};"
        " create the records anew, for this model.",
        (path, number[row], values[row, place]),
    )
    return tf.debugging.Assert(~tf.reduce_any(wrong), [message], summarize=-1)


def user_error(
    error: tf.errors.OpError, index: RecordIndex, record_format: RecordFormat
) -> UserError | None:
    """Return what the pipeline raised as a `UserError`; None if the data is all right.

    Args:
      error: a `tf.errors.OpError`.
      index: `RecordIndex` of the files that were read.
      record_format: `RecordFormat` they were read with.
    """
    checked = re.search(r"assertion failed: \[(.* record .*)\]", error.message)
    if checked:
        return UserError(checked.group(1).replace("\\", "").replace('"', ""))
    unpacking = re.search(r"UserError: (.*)", error.message)
    if unpacking:
        return UserError(unpacking.group(1))
    if isinstance(error, tf.errors.DataLossError) or "ParseExample" in error.message:
        return _find_bad_record(index, record_format)
    return None


def _find_bad_record(index, record_format):
    """Read the files record by record until one cannot be read or parsed."""
    for path in index.files:
        good = 0
        try:
            for record in tf.data.TFRecordDataset(path, compression_of(path)):
                tf.io.parse_single_example(record, record_format.spec)
                good += 1
        except tf.errors.DataLossError:
            return UserError(f"{path}: record {good} is damaged; make the file again.")
        except tf.errors.InvalidArgumentError:
            lengths = {
                record_format.names.get(name, name): feature.shape[0]
                for name, feature in record_format.spec.items()
            }
            return UserError(
                f"{path}: record {good} does not hold the features of a "
                f"pre-training record of these lengths: {lengths}."
            )
    return None
