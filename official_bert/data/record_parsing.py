"""Parse serialized records to features, and report invalid records."""

import dataclasses
import re

import tensorflow as tf

from official_bert.data import dynamic_masking
from official_bert.data.records.examples import compression_of
from official_bert.data.records.index import RecordIndex
from official_bert.errors import UserError

# The limit of each feature's numbers, in words.
LIMITED_BY = {
    "input_ids": "the model's vocab_size",
    "masked_lm_ids": "the model's vocab_size",
    "segment_ids": "the model's type_vocab_size",
    "masked_lm_positions": "max_seq_length",
    "next_sentence_labels": "the number of labels",
}


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """The format of the records of one data set.

    Attributes:
      spec: name in the record -> `tf.io.FixedLenFeature`.
      names: name in the record -> the original's name, if they differ.
      limits: the original's name -> first number that is too large.
      masking: `dynamic_masking.MaskingRules` for unmasked records, else None.
      left_to_right: whether records stay unmasked and every next token is
        predicted; `masking` is then None.
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
    """Parse serialized records, and check their numbers against the model's limits.

    Args:
      columns: (records, string [R]; file index of each record, int64 [R];
        number in the file, int64 [R]).
      paths: the files' paths.
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
    """Assert 0 <= values < limit, [B, …]; the message names the record."""
    wrong = (values < 0) | (values >= limit)
    row = tf.argmax(tf.cast(tf.reduce_any(wrong, axis=1), tf.int32))
    place = tf.argmax(tf.cast(wrong[row], tf.int32))
    path = tf.gather(tf.constant(paths), file[row])
    message = tf.strings.format(
        "{} record {}: " + name + " is {}, but " + LIMITED_BY[name] + " is "
        f"{limit}. "
        "Create "
        "the "
        "records "
        "again "
        "for "
        "this "
        "model.",
        (path, number[row], values[row, place]),
    )
    return tf.debugging.Assert(~tf.reduce_any(wrong), [message], summarize=-1)


def user_error(
    error: tf.errors.OpError, index: RecordIndex, record_format: RecordFormat
) -> UserError | None:
    """Return a pipeline error as a `UserError`; None if the data is valid.

    Args:
      error: a `tf.errors.OpError`.
      index: `RecordIndex` of the files.
      record_format: the files' `RecordFormat`.
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
            return UserError(
                f"{path}: record {good} is damaged. Create the file again."
            )
        except tf.errors.InvalidArgumentError:
            lengths = {
                record_format.names.get(name, name): feature.shape[0]
                for name, feature in record_format.spec.items()
            }
            return UserError(
                f"{path}: record {good} is not a pre-training record with "
                f"features of these lengths: {lengths}. Create the file again."
            )
    return None
