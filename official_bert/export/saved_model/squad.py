"""A fine-tuned SQuAD model as a graph that takes raw text."""

from collections.abc import Mapping

import tensorflow as tf

from official_bert.export.saved_model import rows
from official_bert.export.saved_model.served_model import ServedModel
from official_bert.export.saved_model.texts import parts_of

_NEVER = -float("inf")


class ServedSquad(ServedModel):
    """Answers questions on contexts, like `SquadPredictor`."""

    what = "question answering"
    text_names = ("question", "context")

    def of_text(self, question: tf.Tensor, context: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answer questions on contexts, string [B] each.

        Returns:
          dict: `answer` string [B], "" for no answer; `start` and `end` int32
            [B], its
          range in characters of the context; `score` float32 [B]. For SQuAD 2.0
          also
          `null_score` float32 [B] and `is_impossible` bool [B], whether "no
          answer" was
          chosen.
        """
        number = tf.size(question)
        question_ids = self._tokenizer.ids(question)
        longest = self.task.max_query_length
        size = tf.minimum(rows.row_lengths(question_ids), longest)
        read = self._tokenizer(context)
        lengths = rows.row_lengths(read.ids)
        windows = rows.make_windows(
            lengths,
            self.task.max_seq_length - size - 3,
            tf.fill([number], self.task.doc_stride),
        )
        first = tf.gather(size, windows.rows) + 2
        inputs = self._layout.lay_out(
            rows.slice_rows(
                question_ids, tf.zeros_like(first), first - 2, windows.rows
            ),
            rows.slice_rows(read.ids, windows.starts, windows.lengths, windows.rows),
        )
        outputs = self._model(inputs)
        logits = [
            tf.cast(
                tf.where(inputs["input_mask"] > 0, outputs[f"{name}_logits"], _NEVER),
                tf.float64,
            )
            for name in ("start", "end")
        ]
        # Tokens that have their maximum context in this window.
        window, position = rows.best_positions(windows, lengths)
        at = tf.stack([window, tf.gather(first, window) + position], axis=1)
        shape = tf.shape(inputs["input_ids"])
        is_best = tf.scatter_nd(at, tf.ones_like(window), shape) > 0
        best = self._best_spans(logits, is_best, windows, first)
        chosen, scores = _best_windows(best[0], windows.rows, number)
        starts, ends = self._offsets(read, windows, first, chosen, best)
        span = {"start": starts, "end": ends, "score": scores}
        # The score of "no answer" is the lowest over all windows.
        nulls = logits[0][:, 0] + logits[1][:, 0]
        nulls = tf.math.unsorted_segment_min(nulls, windows.rows, number)
        return self._answers(context, span, nulls, lengths > 0)

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return the model's logits for rows, a dict of `INPUTS` int32 [B, S].

        Returns:
          dict: `start_logits` and `end_logits`, float32 [B, S].
        """
        return self._model(inputs)

    def _best_spans(self, logits, is_best, windows, first):
        """Return the best span of each window; see `squad_answers`.

        Returns:
          (scores float64 [W], -inf if no span is possible; first and last
          position of
          the span in the row, int32 [W]).
        """
        count = tf.minimum(self.task.decoding.n_best_size, tf.shape(is_best)[1])
        (start_logits, starts), (end_logits, ends) = (
            tf.math.top_k(values, count) for values in logits
        )
        may_start = tf.gather(is_best, starts, axis=1, batch_dims=1)
        last = (first + windows.lengths)[:, None]
        may_end = (ends >= first[:, None]) & (ends < last)
        length = ends[:, None, :] - starts[:, :, None] + 1
        possible = (length >= 1) & (length <= self.task.decoding.max_answer_length)
        possible &= may_start[:, :, None] & may_end[:, None, :]
        scores = start_logits[:, :, None] + end_logits[:, None, :]
        scores = tf.where(possible, scores, _NEVER)
        # Ties: the better start wins, then the better end.
        flat = tf.reshape(scores, [-1, count * count])
        pair = tf.argmax(flat, axis=1, output_type=tf.int32)
        return (
            tf.gather(flat, pair, axis=1, batch_dims=1),
            tf.gather(starts, pair // count, axis=1, batch_dims=1),
            tf.gather(ends, pair % count, axis=1, batch_dims=1),
        )

    def _offsets(self, read, windows, first, chosen, best):
        """Return (start, end) in characters of the best span of each question.

        If `chosen` is not a window, the values are undefined.
        """
        starts, ends = _covering(read)
        # The appended 0 makes gathering possible even without windows.
        row, window_start, first, start, end = (
            tf.gather(tf.concat([values, [0]], 0), chosen)
            for values in (windows.rows, windows.starts, first, *best[1:])
        )
        of_row = tf.gather(tf.cast(read.ids.row_starts(), tf.int32), row)
        origin = of_row + window_start - first
        starts, ends = (tf.concat([values, [0]], 0) for values in (starts, ends))
        last = tf.size(starts) - 1
        return (
            tf.gather(starts, tf.clip_by_value(origin + start, 0, last)),
            tf.gather(ends, tf.clip_by_value(origin + end, 0, last)),
        )

    def _answers(self, context, span, nulls, has_words):
        """Return the outputs; "no answer" must win by the threshold."""
        decoding = self.task.decoding
        exists = span["score"] > _NEVER
        null_answer = ~exists
        no_score = tf.zeros_like(span["score"])
        if decoding.version_2_with_negative:
            odds = nulls - span["score"]
            null_answer = ~exists | (odds > decoding.null_score_diff_threshold)
            no_score = nulls = tf.where(has_words, nulls, tf.zeros_like(nulls))
        start, end = (tf.where(null_answer, 0, span[name]) for name in ("start", "end"))
        outputs = {
            "answer": parts_of(context, tf.range(tf.size(context)), start, end),
            "start": start,
            "end": end,
            "score": tf.cast(
                tf.where(null_answer, no_score, span["score"]), tf.float32
            ),
        }
        if decoding.version_2_with_negative:
            outputs["null_score"] = tf.cast(nulls, tf.float32)
            outputs["is_impossible"] = null_answer
        return outputs


def _best_windows(scores, of_question, number):
    """Return the first of the best windows of each question, and its score.

    A question without a window gets the index after the last window, and -inf.
    """
    best = tf.math.unsorted_segment_max(scores, of_question, number)
    # TensorFlow returns the smallest number for empty segments.
    exists = best > tf.float64.min
    indices = tf.range(tf.size(scores))
    is_best = scores == tf.gather(best, of_question)
    indices = tf.where(is_best, indices, tf.size(scores))
    chosen = tf.math.unsorted_segment_min(indices, of_question, number)
    chosen = tf.where(exists, chosen, tf.size(scores))
    return chosen, tf.where(exists, best, _NEVER)


def _covering(read):
    """Return the offsets of all tokens, with starts and ends in ascending order.

    Reordered accents can break this order. A span must not lose the text of
    tokens between its first and last token.

    Returns:
      (starts, ends), int32 [tokens].
    """
    texts = tf.cast(read.ids.value_rowids(), tf.int64) * 2**32
    ends = texts + tf.cast(read.ends.values, tf.int64)
    # Negated and reversed, starts need the same operation as ends.
    starts = -(texts + tf.cast(read.starts.values, tf.int64))[::-1]
    return (
        -tf.cast(_rising(starts)[::-1] + texts, tf.int32),
        tf.cast(_rising(ends) - texts, tf.int32),
    )


def _rising(values):
    """Return the running maximum; few values are out of order, so few steps suffice."""
    return tf.while_loop(
        lambda values: tf.reduce_any(values[1:] < values[:-1]),
        lambda values: [
            tf.concat([values[:1], tf.maximum(values[1:], values[:-1])], 0)
        ],
        [values],
        shape_invariants=[tf.TensorShape([None])],
    )[0]
