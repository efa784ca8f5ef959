"""Training instances as TFRecords, under the original's feature names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from official_bert import files, object_store
from official_bert.data.records.tfrecord import is_packed
from official_bert.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

# Features of a record: name -> (name of its length, or 1; its dtype).
FEATURES: dict[str, tuple[str | int, str]] = {
    "input_ids": ("max_seq_length", "int64"),
    "input_mask": ("max_seq_length", "int64"),
    "segment_ids": ("max_seq_length", "int64"),
    "masked_lm_positions": ("max_predictions_per_seq", "int64"),
    "masked_lm_ids": ("max_predictions_per_seq", "int64"),
    "masked_lm_weights": ("max_predictions_per_seq", "float32"),
    "next_sentence_labels": (1, "int64"),
}

# Features that unmasked records lack, and the feature that they have instead
# for whole words: 1 for a token that continues the word before it.
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
CONTINUES_WORD = "continues_word"

# TensorFlow Model Garden uses other names for two features.
MODEL_GARDEN_NAMES = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}


def feature_spec(
    max_seq_length: int,
    max_predictions_per_seq: int | None,
    names: Mapping[str, str] | None = None,
) -> "dict[str, tf.io.FixedLenFeature]":
    """Return the feature spec of our records for `tf.io.parse_example`.

    Args:
      max_seq_length: S.
      max_predictions_per_seq: P; not used for unmasked records.
      names: our name -> name in the file, as from `infer_lengths`; default: the
        original's names.

    Returns:
      dict, name in the file -> `tf.io.FixedLenFeature` of shape [S], [P] or
      [1],
      int64, except the float32 `masked_lm_weights`.
    """
    import tensorflow as tf

    lengths: dict[str | int, int | None] = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
    }
    described = FEATURES | {CONTINUES_WORD: ("max_seq_length", "int64")}
    spec = {}
    for ours, theirs in (names or {name: name for name in FEATURES}).items():
        length, dtype = described[ours]
        shape = [lengths.get(length, length)]
        spec[theirs] = tf.io.FixedLenFeature(shape, tf.as_dtype(dtype))
    return spec


def infer_lengths(record_path: str) -> dict[str, Any]:
    """Return lengths and feature names from the first record of a file.

    Args:
      record_path: a TFRecord file, written by us, the original or Model Garden.

    Returns:
      dict with `max_seq_length`; `max_predictions_per_seq`, None for
      unmasked records; and `names`, the dict for `feature_spec`.

    Raises:
      UserError: the file is unreadable, empty, truncated, or in another format.
    """
    first = next(read_examples(record_path), None)
    if first is None:
        raise UserError(f"{record_path} contains no records. Create it again.")
    names = _names_in(first, record_path)

    def length_of(name):
        return len(feature_values(first.features.feature[names[name]]))

    is_masked = MASKED[0] in names
    return {
        "max_seq_length": length_of("input_ids"),
        "max_predictions_per_seq": length_of(MASKED[0]) if is_masked else None,
        "names": names,
    }


def compression_of(record_path: str) -> str:
    """Return TensorFlow's name for the compression of a file with this name."""
    return "GZIP" if is_packed(record_path) else ""


def read_examples(record_path: str) -> "Iterator[tf.train.Example]":
    """Yield the `tf.train.Example`s of a TFRecord file.

    Raises:
      UserError: the file cannot be read, is truncated, or has another format;
        the message names the record.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    if files.is_directory(record_path):
        raise UserError(f"{record_path} is a directory. Give a TFRecord file.")
    count = 0
    try:
        dataset = tf.data.TFRecordDataset(record_path, compression_of(record_path))
        for record in dataset.as_numpy_iterator():
            yield tf.train.Example.FromString(record)
            count += 1
    except DecodeError as error:
        raise UserError(
            f"{record_path}: record {count} is not a tf.train.Example. Give "
            "files that create_pretraining_data.py wrote."
        ) from error
    except tf.errors.NotFoundError as error:
        raise UserError(f"{record_path} does not exist.") from error
    except tf.errors.DataLossError as error:
        what = (
            "is truncated or damaged"
            if count
            else "is not a TFRecord file, or is damaged"
        )
        raise UserError(
            f"{record_path} {what} at record {count}. Create it again."
        ) from error
    except tf.errors.OpError as error:
        raise object_store.error_of(error, record_path) or UserError(
            f"Cannot read {record_path}: {error.message}."
        ) from error


def _names_in(example, record_path):
    """Return our name -> name in the file, for the features that it should have."""
    present = example.features.feature
    wanted = list(FEATURES)
    if not any(name in present for name in MASKED):
        wanted = [name for name in FEATURES if name not in MASKED]
        wanted += [CONTINUES_WORD] if CONTINUES_WORD in present else []
    names = {}
    for name in wanted:
        other = MODEL_GARDEN_NAMES.get(name, name)
        names[name] = other if name not in present and other in present else name
    missing = [name for name in names.values() if name not in present]
    if missing:
        raise UserError(
            f"{record_path}: the first record has no {', '.join(missing)} (it "
            f"has {', '.join(sorted(present)) or 'nothing'}). Give files that "
            "create_pretraining_data.py wrote."
        )
    return names


def feature_values(feature: "tf.train.Feature") -> Sequence[int] | Sequence[float]:
    """Return the numbers of a `tf.train.Feature`, integers or floats."""
    return feature.int64_list.value or feature.float_list.value
