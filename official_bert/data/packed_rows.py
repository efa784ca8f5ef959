"""Pack several short sequences into each row of a batch (Krell et al., 2021).

A row has S positions, and most sequences are shorter. XLA and TPUs compile one
shape, so they cannot skip the padding; packing fills it with other sequences.
Attention is block-diagonal, and positions restart in each sequence. The losses
therefore equal those of the same sequences in separate rows.

Packing depends only on the lengths of the records in a chunk. Each chunk can
therefore be packed separately, and fills the same rows in each epoch.
"""

import bisect
import dataclasses

import numpy as np
import tensorflow as tf

from official_bert.data import dynamic_masking, record_parsing
from official_bert.data.record_parsing import RecordFormat
from official_bert.data.records.chunks import chunk_records
from official_bert.data.records.index import RecordIndex

# As in the paper; more sequences per row fill it only slightly better.
MAX_SEQUENCES = 3

# Marks a missing sequence in a row. Real records are never empty.
NO_RECORD = b""

# Features of a packed batch, per token, masked token and sequence.
OF_TOKENS = ("input_ids", "segment_ids", "sequence_numbers", "position_ids")
OF_MASKED_WORDS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
OF_SEQUENCES = ("pooled_positions", "next_sentence_labels", "next_sentence_weights")

# Number of chunks whose lengths are read in parallel.
_READERS = 4


@dataclasses.dataclass(frozen=True)
class RowPacking:
    """Settings for records that share rows.

    Attributes:
      format: `RecordFormat`.
      max_seq_length: S, positions of a row.
      max_predictions: P, masked tokens of a row.
      max_sequences: N, maximum number of records in a row.
    """

    format: RecordFormat
    max_seq_length: int
    max_predictions: int
    max_sequences: int = MAX_SEQUENCES

    def group(self, *columns: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Arrange the records of a chunk in rows.

        Args:
          *columns: [R] each, from `chunks.chunk_records`.

        Returns:
          the same columns, [rows, N] each. `NO_RECORD` fills rows with
          fewer records.
        """
        numbers = tf.numpy_function(
            self.share_rows, self.sizes(columns[0]), tf.int64, stateful=False
        )
        numbers = tf.ensure_shape(numbers, [None, self.max_sequences])
        return tuple(
            tf.where(
                numbers >= 0,
                tf.gather(column, tf.maximum(numbers, 0)),
                tf.zeros([], column.dtype),
            )
            for column in columns
        )

    def sizes(self, serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the numbers of tokens and masked tokens of records, int32 [R] each.

        Args:
          serialized: string [R]. For records that are masked later, the number
            of masked tokens is an upper bound.
        """
        spec = self.format.spec
        names = [n for n in ("input_mask", "masked_lm_weights") if n in spec]
        parsed = tf.io.parse_example(serialized, {name: spec[name] for name in names})
        lengths = _lengths(parsed["input_mask"])
        if self.format.left_to_right:
            return lengths, lengths - 1
        if self.format.masking is not None:
            return lengths, dynamic_masking.count_to_predict(
                lengths, self.format.masking
            )
        masked = parsed["masked_lm_weights"] > 0
        return lengths, tf.math.count_nonzero(masked, axis=1, dtype=tf.int32)

    def share_rows(self, lengths: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Choose the records of each row (best-fit decreasing).

        Longer records come first. Each joins the fullest row with room for its
        tokens, its masked tokens and one more sequence.

        Args:
          lengths: int [R], tokens of each record.
          predictions: int [R], masked tokens of each record.

        Returns:
          int64 [rows, N], record numbers of each row, then -1.
        """
        rows: list[list[int]] = []
        masked: list[int] = []
        # (free positions, row) of all rows that may accept another record.
        free: list[tuple[int, int]] = []
        sizes = list(zip(lengths.tolist(), predictions.tolist(), strict=True))
        for record in np.argsort(-lengths, kind="stable").tolist():
            length, words = sizes[record]
            for at in range(bisect.bisect_left(free, (length, 0)), len(free)):
                if masked[free[at][1]] + words <= self.max_predictions:
                    room, row = free.pop(at)
                    break
            else:
                room, row = self.max_seq_length, len(rows)
                rows.append([])
                masked.append(0)
            rows[row].append(record)
            masked[row] += words
            if len(rows[row]) < self.max_sequences and room > length:
                bisect.insort(free, (room - length, row))
        numbers = np.full([len(rows), self.max_sequences], -1, np.int64)
        for row, records in enumerate(rows):
            numbers[row, : len(records)] = records
        return numbers

    def join(
        self, features: dict[str, tf.Tensor], held: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Write sequences one after another into rows.

        Args:
          features: dict of the features of masked records, [R, …], in row
            order.
          held: bool [B, N], true where a row has a record; R values are true.

        Returns:
          dict of features with static shapes. Tokens, int32 [B, S]:
          `input_ids`,
          `segment_ids`; `sequence_numbers`, 1 to N in each row and 0 for padding; and
          `position_ids`, from 0 in each sequence. Masked tokens, [B, P]: int32
          `masked_lm_positions` within the row and `masked_lm_ids`, float32
          `masked_lm_weights`. Sequences, [B, N]: int32 `pooled_positions`, of
          `[CLS]`,
          or of the last token in a left-to-right model; int32
          `next_sentence_labels`;
          float32 `next_sentence_weights`, 0.0 for a missing sequence.
        """
        ids = features["input_ids"]
        indices = tf.where(held)  # [R, 2]
        slots = tf.cast(indices[:, 1:], tf.int32)  # [R, 1]
        lengths = _lengths(features["input_mask"])

        def at_slots(values):  # [R] -> [B, N]
            return tf.scatter_nd(indices, values, tf.shape(held, tf.int64))

        def in_rows(values, kept, width):
            """Join the kept values of [R, …]; pad each row with 0."""
            counts = tf.reduce_sum(tf.cast(kept, tf.int64), axis=1)
            row_lengths = tf.reduce_sum(at_slots(counts), axis=1)
            ragged = tf.RaggedTensor.from_row_lengths(
                tf.boolean_mask(values, kept), row_lengths, validate=False
            )
            return ragged.to_tensor(shape=[held.shape[0], width])

        slot_lengths = at_slots(lengths)  # [B, N]
        starts = tf.cumsum(slot_lengths, axis=1, exclusive=True)
        places = tf.zeros_like(ids) + tf.range(tf.shape(ids)[1])
        tokens = {
            "input_ids": ids,
            "segment_ids": features["segment_ids"],
            "sequence_numbers": (slots + 1) * features["input_mask"],
            "position_ids": places,
        }
        masked = {name: features[name] for name in OF_MASKED_WORDS}
        masked["masked_lm_positions"] += tf.boolean_mask(starts, held)[:, tf.newaxis]
        last = slot_lengths - 1 if self.format.left_to_right else 0
        width, most = self.max_seq_length, self.max_predictions
        inside = places < lengths[:, tf.newaxis]
        real = features["masked_lm_weights"] > 0
        return {
            **{name: in_rows(x, inside, width) for name, x in tokens.items()},
            **{name: in_rows(x, real, most) for name, x in masked.items()},
            "pooled_positions": tf.where(held, starts + last, 0),
            "next_sentence_labels": at_slots(features["next_sentence_labels"][:, 0]),
            "next_sentence_weights": tf.cast(held, tf.float32),
        }


def zeros(
    num_rows: int,
    max_seq_length: int,
    max_predictions: int,
    max_sequences: int = MAX_SEQUENCES,
) -> dict[str, tf.Tensor]:
    """Return a batch of zeros with the shapes of `RowPacking.join`, for planning.

    Args:
      num_rows: B.
      max_seq_length: S.
      max_predictions: P.
      max_sequences: N.
    """
    widths = (
        *((name, max_seq_length) for name in OF_TOKENS),
        *((name, max_predictions) for name in OF_MASKED_WORDS),
        *((name, max_sequences) for name in OF_SEQUENCES),
    )
    return {
        name: tf.zeros([num_rows, width], tf.float32 if "weights" in name else tf.int32)
        for name, width in widths
    }


def _lengths(input_mask):
    """Return the number of tokens of each row, int32 [R], at least 1."""
    ends = tf.cast(input_mask != 0, tf.int32) * (tf.range(input_mask.shape[1]) + 1)
    return tf.maximum(tf.reduce_max(ends, axis=1), 1)


def count_rows(index: RecordIndex, packing: RowPacking) -> tuple[np.ndarray, int]:
    """Read the lengths of all records, and count the rows that they fill.

    Args:
      index: `RecordIndex`.
      packing: `RowPacking`.

    Returns:
      (rows of each chunk, int64 [chunks]; tokens of all records).

    Raises:
      UserError: a record is damaged, or has another format.
    """

    def chunk_sizes(chunk):
        return chunk_records(index, chunk).map(
            lambda serialized, *_: (chunk, *packing.sizes(serialized))
        )

    sizes = tf.data.Dataset.range(len(index.count)).interleave(
        chunk_sizes, cycle_length=_READERS, num_parallel_calls=_READERS
    )
    rows, tokens = np.zeros_like(index.count), 0
    try:
        for chunk, lengths, predictions in sizes.as_numpy_iterator():
            rows[chunk] = len(packing.share_rows(lengths, predictions))
            tokens += int(lengths.sum())
    except tf.errors.OpError as error:
        user_error = record_parsing.user_error(error, index, packing.format)
        raise user_error or error from error
    return rows, tokens
