"""Read the records of one chunk of a `RecordIndex` within `tf.data`."""

import functools

import tensorflow as tf

from official_bert.data.records import index as record_index
from official_bert.data.records.index import RecordIndex


def chunk_records(index: RecordIndex, chunk: tf.Tensor) -> tf.data.Dataset:
    """Return one chunk as one batch: records, file numbers, record numbers.

    Reading single records through tf.data would take longer than parsing.
    """
    file = tf.constant(index.file_of)[chunk]
    if index.skip is not None:
        # TensorFlow cannot seek in a compressed file.
        read = functools.partial(record_index.read_chunk, index)
        records = tf.numpy_function(read, [chunk], tf.string, stateful=False)
        batch = tf.data.Dataset.from_tensors(tf.ensure_shape(records, [None]))
    else:
        path, offset = tf.constant(index.files)[file], tf.constant(index.offset)[chunk]
        records = _TFRecordsFrom(path, offset)
        batch = records.take(tf.constant(index.count)[chunk]).batch(record_index.CHUNK)

    def with_place(records):
        numbers = tf.constant(index.first)[chunk] + tf.range(tf.size(records, tf.int64))
        return records, tf.fill(tf.shape(records), file), numbers

    return batch.map(with_place)


class _TFRecordsFrom(tf.data.Dataset):
    """The records of one file, starting at a byte offset."""

    def __init__(self, path, offset):
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=tf.reshape(path, [1]),
            compression_type="",
            buffer_size=256 * 1024,
            byte_offsets=tf.reshape(offset, [1]),
        )
        super().__init__(variant)

    def _inputs(self):
        return []

    @property
    def element_spec(self):
        return tf.TensorSpec([], tf.string)
