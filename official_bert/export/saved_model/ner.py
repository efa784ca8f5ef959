"""A fine-tuned tagger as a graph that takes raw text."""

from collections.abc import Iterable, Mapping

import tensorflow as tf

from official_bert.constants import CORE_OPS
from official_bert.export.saved_model import rows
from official_bert.export.saved_model.served_model import ServedModel
from official_bert.export.saved_model.texts import parts_of, per_text
from official_bert.metrics import entities
from official_bert.tasks.ner import words as ner_words
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tokenization.graph_words import BasicWords
from official_bert.tokenization.wordpiece import UNKNOWN


class ServedTagger(ServedModel):
    """Finds entities in texts, like `NerPredictor`."""

    what = "entity tagger"

    def __init__(
        self,
        predictor: NerPredictor,
        lengths: Iterable[int],
        tokenizer_ops: str = CORE_OPS,
    ):
        """Hold the model of a `NerPredictor`; see `ServedModel`."""
        super().__init__(predictor, lengths, tokenizer_ops)
        self.labels = self.task.tags
        # As in `ner_sentences`, the words do not depend on the model's casing.
        self._words = BasicWords(do_lower_case=False)
        self._unknown = predictor.tokenizer.vocab[UNKNOWN]

    def of_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Find entities in texts, string [B].

        Returns:
          dict of arrays, padded with "" and -1 to the text with the most words
          or
          entities. W words: `words` and `tags`, string [B, W], `word_starts`
          and
          `word_ends`, int32 [B, W]. E entities: `entities` and `labels`, string
          [B, E],
          `starts` and `ends`, int32 [B, E]. Offsets count characters.
        """
        of_text, starts, ends = self._find_words(text)
        words = parts_of(text, of_text, starts, ends)
        tags = self._tags(words, of_text, tf.size(text))
        number = tf.size(text)
        outputs = {
            "words": per_text(words, of_text, number, ""),
            "tags": per_text(self._names_of(tags), of_text, number, ""),
            "word_starts": per_text(starts, of_text, number, -1),
            "word_ends": per_text(ends, of_text, number, -1),
        }
        return outputs | self._entities(text, tags, of_text, starts, ends)

    def of_tokens(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Tag rows of ids, a dict of `INPUTS` int32 [B, S].

        Returns:
          dict: `tags` string [B, S] and `logits` float32 [B, S, C].
        """
        logits = self._model(inputs)["logits"]
        tags = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {"tags": self._names_of(tags), "logits": logits}

    def _names_of(self, tags):
        return tf.gather(tf.constant(self.task.tags), tags)

    def _find_words(self, text):
        """Return (text index, start, end) of each word, int32 [words] each."""
        characters, word = self._words(text)
        spans = _spans(characters, word)
        if not self.task.words_as_columns:
            return spans
        begins = ~self._joins(text, characters, word, *spans)
        return _spans(
            characters, tf.gather(tf.cumsum(tf.cast(begins, tf.int32)) - 1, word)
        )

    def _joins(self, text, characters, word, of_text, starts, ends):
        """Return which words continue the word before them; see `ner_words`."""
        where = tf.range(tf.size(word))
        number = tf.size(starts)
        first = tf.math.unsorted_segment_min(where, word, number)
        last = tf.math.unsorted_segment_max(where, word, number)
        words = parts_of(text, of_text, starts, ends)
        touches = (starts == _before(ends, -1)) & (of_text == _before(of_text, -1))
        return ner_words.joins(
            touches,
            self._words.categories(tf.gather(characters.facts, first)),
            tf.gather(characters.code_points, first),
            tf.gather(characters.code_points, last),
            ends - starts,
            tf.reduce_any(words[:, tf.newaxis] == ner_words.CLITICS, axis=1),
            lambda points, marks: tf.reduce_any(
                points[:, tf.newaxis] == list(map(ord, marks)), axis=1
            ),
            lambda values: _before(values, False),
            lambda values: tf.concat([values, [False]], 0)[1:],
        )

    def _tags(self, words, of_text, number):
        """Return the tag number of each word, int32 [words]."""
        pieces = self._tokenizer.ids(words)
        # A word without tokens is read as unknown.
        is_empty = rows.row_lengths(pieces) == 0
        pieces = rows.with_token(pieces, is_empty, self._unknown)
        of_texts = rows.joined(pieces, of_text, number)
        lengths, per_text = rows.row_lengths(pieces), rows.row_lengths(of_texts)

        room = self.task.max_seq_length - 2
        stride = self.task.doc_stride or max(1, room // 2)
        windows = rows.make_windows(
            per_text, tf.fill([number], room), tf.fill([number], stride)
        )
        ids = rows.slice_rows(of_texts, windows.starts, windows.lengths, windows.rows)
        inputs = self._layout.lay_out(ids, rows.no_tokens(tf.size(windows.rows)))
        logits = self._model(inputs)["logits"]
        window, position = rows.best_positions(windows, per_text)
        first = tf.cumsum(lengths, exclusive=True)
        # Position 0 is [CLS].
        at = tf.stack(
            [tf.gather(window, first), tf.gather(position, first) + 1], axis=1
        )
        return tf.argmax(tf.gather_nd(logits, at), axis=-1, output_type=tf.int32)

    def _entities(self, text, tags, of_text, starts, ends):
        """Return the entities that the tags describe; see `of_text`."""
        task, number = self.task, tf.size(text)
        outside = task.tags.index(entities.OUTSIDE)
        is_first = of_text != _before(of_text, -1)
        before = tf.where(is_first, outside, _before(tags, outside))
        # For each pair of neighboring tags, whether an entity begins at the
        # second.
        begins = [
            any(span.start == 1 for span in entities.to_spans([first, second]))
            for first in task.tags
            for second in task.tags
        ]
        begins = tf.gather(tf.constant(begins), before * len(task.tags) + tags)
        entity = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        # Words before the first entity are assigned to it, even if no entity
        # exists.
        count = tf.reduce_sum(tf.cast(begins, tf.int32))
        behind = tf.math.unsorted_segment_max(
            tf.where(tags == outside, 0, ends),
            tf.maximum(entity, 0),
            tf.maximum(count, 1),
        )[:count]
        where = tf.where(begins)[:, 0]
        of_text, tags, starts = (
            tf.gather(values, where) for values in (of_text, tags, starts)
        )
        types = tf.constant([entities.split_tag(tag)[1] for tag in task.tags])
        return {
            "entities": per_text(
                parts_of(text, of_text, starts, behind), of_text, number, ""
            ),
            "labels": per_text(tf.gather(types, tags), of_text, number, ""),
            "starts": per_text(starts, of_text, number, -1),
            "ends": per_text(behind, of_text, number, -1),
        }


def _spans(characters, word):
    """Return (text index, start, end) of each word, int32 [words] each."""
    number = tf.reduce_max(tf.concat([[-1], word], 0)) + 1
    return (
        tf.math.unsorted_segment_min(characters.texts, word, number),
        tf.math.unsorted_segment_min(characters.starts, word, number),
        tf.math.unsorted_segment_max(characters.ends, word, number),
    )


def _before(values, first):
    """Return each value's predecessor, with `first` at the beginning."""
    return tf.concat([[first], values], 0)[:-1]
