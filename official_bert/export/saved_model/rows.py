"""Rows of token ids as TensorFlow ops: cut, join, and lay out as model inputs.

The same as the Python code for single examples (`classifier_features`,
`squad_features`, `windows`), for a batch in a graph. Everything is int32.
"""

import dataclasses
from collections.abc import Iterable, Mapping

import tensorflow as tf


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """Token windows that cover rows; see `windows.make_spans`.

    Each attribute is [windows].

    Attributes:
      rows: index of the row of each window.
      starts: its first token.
      lengths: its number of tokens.
    """

    rows: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor


def slice_rows(
    rows: tf.RaggedTensor,
    starts: tf.Tensor,
    lengths: tf.Tensor,
    of_rows: tf.Tensor | None = None,
) -> tf.RaggedTensor:
    """Return tokens starts … starts + lengths - 1 of ragged rows [N, (tokens)].

    `starts` and `lengths` are [M]. `of_rows`, [M], are the indices of the rows
    to cut; None means each of the N rows once. The result is ragged [M,
    (lengths)].
    """
    row_starts = tf.cast(rows.row_starts(), tf.int32)
    if of_rows is not None:
        row_starts = tf.gather(row_starts, of_rows)
    positions = tf.ragged.range(row_starts + starts, row_starts + starts + lengths)
    return positions.with_values(tf.gather(rows.values, positions.values))


def no_tokens(number: tf.Tensor) -> tf.RaggedTensor:
    """Return ragged [number, (0)]: rows without tokens."""
    return tf.RaggedTensor.from_row_lengths(
        tf.zeros([0], tf.int32), tf.zeros([number], tf.int32)
    )


def row_lengths(rows: tf.RaggedTensor) -> tf.Tensor:
    """Return the number of tokens of each row, int32 [N]."""
    return tf.cast(rows.row_lengths(), tf.int32)


def truncate_pairs(
    ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor, room: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Truncate pairs, ragged [N, (tokens)] each, like `model_inputs.truncate_pair`.

    `room`, [N], is the maximum number of tokens of both together.
    """
    length_a, length_b = row_lengths(ids_a), row_lengths(ids_b)
    # The longer text loses tokens until both are equal; then the second loses
    # first.
    kept_a = tf.maximum((room + 1) // 2, room - length_b)
    kept_b = tf.maximum(room // 2, room - length_a)
    nothing = tf.zeros_like(room)
    return (
        slice_rows(ids_a, nothing, tf.minimum(length_a, kept_a)),
        slice_rows(ids_b, nothing, tf.minimum(length_b, kept_b)),
    )


def make_windows(num_tokens: tf.Tensor, room: tf.Tensor, stride: tf.Tensor) -> Windows:
    """Return the `Windows` over rows, like `windows.make_spans`.

    Args:
      num_tokens: int32 [N], of each row; 0 makes no window.
      room: int32 [N], maximum number of tokens of a window.
      stride: int32 [N], distance between starts of windows.
    """
    stride = tf.minimum(stride, room)
    more = tf.maximum(num_tokens - room + stride - 1, 0) // stride
    counts = tf.where(num_tokens > 0, 1 + more, 0)
    numbers = tf.ragged.range(counts)
    rows = tf.cast(numbers.value_rowids(), tf.int32)
    starts = numbers.values * tf.gather(stride, rows)
    lengths = tf.minimum(tf.gather(room, rows), tf.gather(num_tokens, rows) - starts)
    return Windows(rows, starts, lengths)


def best_positions(
    windows: Windows, num_tokens: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return for each token the window with its maximum context.

    See `windows.best_spans`.

    Args:
      windows: `Windows` that cover N rows.
      num_tokens: [N].

    Returns:
      (indices of windows, positions of tokens in them), [all rows' tokens].
    """
    inside = tf.ragged.range(windows.lengths)
    window, left = tf.cast(inside.value_rowids(), tf.int32), inside.values
    length = tf.gather(windows.lengths, window)
    context = tf.cast(tf.minimum(left, length - 1 - left), tf.float64)
    score = context + 0.01 * tf.cast(length, tf.float64)
    row_starts = tf.cumsum(num_tokens, exclusive=True)
    first = tf.gather(row_starts, windows.rows) + windows.starts
    token = tf.gather(first, window) + left
    number = tf.reduce_sum(num_tokens)
    best = tf.math.unsorted_segment_max(score, token, number)
    entries = tf.range(tf.size(token))
    # The first window wins a tie.
    entries = tf.where(score == tf.gather(best, token), entries, tf.size(token))
    chosen = tf.math.unsorted_segment_min(entries, token, number)
    return tf.gather(window, chosen), tf.gather(left, chosen)


class Layout(tf.Module):
    """Lays out rows of ids as `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    Rows are padded to the smallest allowed length that fits the longest row.
    This saves computation for padding and keeps the number of shapes small.
    """

    def __init__(self, vocab: Mapping[str, int], lengths: Iterable[int]):
        """Set the vocabulary and the ascending lengths; no row may exceed the last."""
        super().__init__()
        self._cls, self._sep = vocab["[CLS]"], vocab["[SEP]"]
        self.lengths = tuple(lengths)

    def lay_out(
        self, ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor
    ) -> dict[str, tf.Tensor]:
        """Return the model inputs for two ragged [N, (tokens)].

        A row without tokens in the second gets no second `[SEP]`.

        Returns:
          dict of [N, S] `input_ids`, `input_mask` and `segment_ids`.
        """
        length_a, length_b = row_lengths(ids_a), row_lengths(ids_b)
        first = length_a + 2
        total = first + length_b + tf.cast(length_b > 0, tf.int32)
        longest = tf.reduce_max(tf.concat([[0], total], 0))
        lengths = tf.constant(self.lengths)
        size = tf.gather(lengths, tf.searchsorted(lengths, [longest])[0])
        positions = tf.range(size)
        is_token = positions < total[:, None]
        is_second = is_token & (positions >= first[:, None])
        ends = (positions == first[:, None] - 1) | (positions == total[:, None] - 1)
        ids = tf.where(ends, self._sep, 0)
        ids = tf.where(positions == 0, self._cls, ids)
        ids += placed(ids_a, tf.ones_like(first), size)
        ids += placed(ids_b, first, size)
        return {
            "input_ids": ids,
            "input_mask": tf.cast(is_token, tf.int32),
            "segment_ids": tf.cast(is_second, tf.int32),
        }


def with_token(rows: tf.RaggedTensor, where: tf.Tensor, token: int) -> tf.RaggedTensor:
    """Return ragged rows [N, (tokens)] with a token appended to some rows.

    `where`, bool [N], selects these rows.
    """
    # Not `tf.concat` of ragged tensors: it transposes int32, for which oneDNN prints an
    # error on many processors.
    counts = tf.cast(where, rows.row_splits.dtype)
    lengths = rows.row_lengths() + counts
    shifts = tf.gather(tf.cumsum(counts, exclusive=True), rows.value_rowids())
    positions = tf.range(tf.size(rows.values), dtype=shifts.dtype) + shifts
    values = tf.fill([tf.reduce_sum(lengths)], tf.cast(token, rows.dtype))
    values = tf.tensor_scatter_nd_update(values, positions[:, None], rows.values)
    return tf.RaggedTensor.from_row_lengths(values, lengths)


def joined(
    parts: tf.RaggedTensor, of_row: tf.Tensor, number: tf.Tensor
) -> tf.RaggedTensor:
    """Return ragged rows [number, (tokens)] from ragged parts [P, (tokens)] in order.

    `of_row`, [P], ascending, is the row index of each part.
    """
    lengths = tf.math.unsorted_segment_sum(row_lengths(parts), of_row, number)
    return tf.RaggedTensor.from_row_lengths(parts.values, lengths)


def placed(rows: tf.RaggedTensor, starts: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Return int32 [N, size] with rows at the given start positions, else 0."""
    row = tf.cast(rows.value_rowids(), tf.int32)
    inside = tf.range(tf.size(row)) - tf.gather(
        tf.cast(rows.row_starts(), tf.int32), row
    )
    at = tf.stack([row, tf.gather(starts, row) + inside], axis=1)
    return tf.scatter_nd(at, rows.values, [rows.nrows(tf.int32), size])
