"""Read SQuAD's files, versions 1.1 and 2.0: questions about paragraphs of articles.

The format is one JSON object, plain or gzipped (`.gz`):

    {"data": [{"title": …, "paragraphs": [{"context": …, "qas": [
        {"id": …, "question": …, "is_impossible": …,
         "answers": [{"text": …, "answer_start": …}, …]}, …]}, …]}, …]}

`title` is optional. `is_impossible` is optional in version 1.1. `answers` is optional
without training and scoring.
"""

import bisect
import dataclasses
import json
import os
import re
from typing import Any, NamedTuple

from absl import logging

from official_bert.errors import UserError, list_some
from official_bert.tables.table_files import read_text

# Characters that separate words: fewer than in `str.split()`.
WHITESPACE = " \t\r\n\u202f"

_MOST_OF_A_NAME = 60
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Articles:
    """The content of a SQuAD file, from another source.

    Attributes:
      name: name of the source, for messages.
      articles: the list "data" of the format.
    """

    name: str
    articles: list[dict[str, Any]]

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question about a context, with its answer if it is known.

    Examples with the same context share its three attributes.

    Attributes:
      qas_id: the question's id.
      question_text: the question.
      doc_tokens: tuple of W str, the words of the context, which are separated by
        `WHITESPACE`.
      orig_answer_text: the answer as in the file; "" if there is no answer; None
        if answers were not read.
      start_position: the number of the answer's first word; -1 if there is no
        answer; None if answers were not read.
      end_position: the same for the answer's last word.
      is_impossible: whether the context does not answer the question; False if
        unknown.
      context: the context as in the file.
      doc_offsets: tuple of W int: word i is context[doc_offsets[i] :
        doc_offsets[i] + len(doc_tokens[i])].
    """

    qas_id: str
    question_text: str
    doc_tokens: tuple[str, ...]
    orig_answer_text: str | None
    start_position: int | None
    end_position: int | None
    is_impossible: bool
    context: str
    doc_offsets: tuple[int, ...]


def split_words(context: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words of a context and the offsets at which they begin.

    Returns:
      (words, offsets): tuples of W str and W int, see `SquadExample`.
    """
    words = list(re.finditer(f"[^{WHITESPACE}]+", context))
    return tuple(word[0] for word in words), tuple(word.start() for word in words)


def make_example(question: str, context: str, qas_id: str = "0") -> SquadExample:
    """Return a `SquadExample` without an answer, for a prediction."""
    paragraph = _Paragraph(context, *split_words(context))
    return _example(_Question(qas_id, question, paragraph, {}, ""))


def read_examples(
    path: str | os.PathLike[str] | Articles,
    is_training: bool,
    version_2_with_negative: bool = False,
    flag: str = "--dev_file",
) -> list[SquadExample]:
    """Return the questions of a file, in order.

    Training uses the first answer of each question; a warning counts questions with
    several answers. A question is left out, and a warning counts it, if its answer is
    empty or not at the given position. Follows `read_squad_examples` in
    google-research/bert `run_squad.py`. The original keeps empty answers. It fails at
    answers that extend beyond the context, and at several answers.

    Args:
      path: the file, or its content.
      is_training: whether to read the answers; each question must have one.
      version_2_with_negative: in training, whether questions may have no answer, as
        marked by SQuAD 2.0's `is_impossible`.
      flag: the flag that named the file, for messages.

    Returns:
      list of `SquadExample`, at least one.

    Raises:
      UserError: the file cannot be read, is not a SQuAD file, or has no questions. A
        value or a required answer is missing; the message names article, paragraph
        and question. Two questions have the same id (except in training).
    """
    examples, misplaced, num_several = [], [], 0
    for question in _read_questions(path, flag, unique=not is_training):
        if not is_training:
            examples.append(_example(question))
        elif version_2_with_negative and _get(question, "is_impossible", bool):
            examples.append(_example(question, "", -1, -1, is_impossible=True))
        else:
            answers = _get_answers(question, version_2_with_negative)
            num_several += len(answers) > 1
            answer = _read_answer(question, answers[0])
            if answer:
                examples.append(_example(question, *answer))
            else:
                misplaced.append(question.qas_id)
    if num_several:
        logging.warning(
            "%s: %d of %d questions have several answers. The first one of each is "
            "used for training.",
            path,
            num_several,
            len(misplaced) + len(examples),
        )
    if misplaced:
        logging.warning(
            "%s: %d of %d questions are left out, because their answers are not at "
            "the given positions: %s.",
            path,
            len(misplaced),
            len(misplaced) + len(examples),
            list_some(misplaced),
        )
    if not examples:
        raise UserError(f"{path} has no questions{' to train on' * is_training}.")
    return examples


def read_gold_answers(
    path: str | os.PathLike[str] | Articles, flag: str = "--dev_file"
) -> dict[str, tuple[str, ...]] | None:
    """Return the answers in a file, for `metrics.squad`.

    Args:
      path: the file, or its content.
      flag: the flag that named the file, for messages.

    Returns:
      dict of question id -> tuple of texts, empty for a question without an answer.
      None if no question of the file has `answers`, so the file cannot be scored.

    Raises:
      UserError: see `read_examples`; or only some of the questions have `answers`.
    """
    questions = list(_read_questions(path, flag, unique=True))
    if questions and not any("answers" in each.fields for each in questions):
        return None
    return {
        each.qas_id: tuple(
            _get_from(answer, "text", str, f"{each.where}, an answer")
            for answer in _get(each, "answers", list)
        )
        for each in questions
    }


class _Paragraph(NamedTuple):
    context: str
    words: tuple[str, ...]
    offsets: tuple[int, ...]


class _Question(NamedTuple):
    qas_id: str
    text: str
    paragraph: _Paragraph
    fields: dict  # The JSON object.
    where: str  # For messages.


def _example(question, text=None, start=None, end=None, is_impossible=False):
    context, words, offsets = question.paragraph
    answer = text, start, end, is_impossible
    return SquadExample(
        question.qas_id, question.text, words, *answer, context, offsets
    )


def _get_answers(question, version_2_with_negative):
    """Return the answers of a question, a list with at least one item."""
    answers = _get(question, "answers", list)
    if not answers:
        hint = ""
        if not version_2_with_negative:
            hint = ". For SQuAD 2.0, add --version_2_with_negative"
        raise UserError(
            f"{question.where} has no answer, but training needs one{hint}."
        )
    return answers


def _read_answer(question, answer):
    """Return (text, first word, last word) of one of a question's answers.

    None if the answer is not at the position in the file.
    """
    where = f"{question.where}, its answer"
    text = _get_from(answer, "text", str, where)
    start = _get_from(answer, "answer_start", int, where)
    context, words, offsets = question.paragraph
    last = start + len(text) - 1
    if not text.split() or not 0 <= start <= last < len(context):
        return None
    # The words that contain, or precede, the answer's first and last character.
    first_word = bisect.bisect_right(offsets, start) - 1
    last_word = bisect.bisect_right(offsets, last) - 1
    # Splits at all Unicode whitespace, in contrast to `split_words`. An answer with
    # other whitespace is therefore left out, as in the original.
    span = " ".join(words[first_word : last_word + 1])
    if first_word < 0 or " ".join(text.split()) not in span:
        return None
    return text, first_word, last_word


def _read_questions(path, flag, unique):
    """Yield the `_Question`s of a file; see `read_examples` for errors."""
    seen = set()
    for number, article in enumerate(_read_articles(path, flag), 1):
        where = f"{path}: article {number}"
        if isinstance(article, dict) and isinstance(article.get("title"), str):
            where += f" ({_shortened(article['title'])})"
        paragraphs = _get_from(article, "paragraphs", list, where)
        for paragraph_number, fields in enumerate(paragraphs, 1):
            part = f"{where}, paragraph {paragraph_number}"
            context = _get_from(fields, "context", str, part)
            paragraph = _Paragraph(context, *split_words(context))
            for qa_number, qa in enumerate(_get_from(fields, "qas", list, part), 1):
                question = _question(qa, paragraph, f"{part}, question {qa_number}")
                if unique and question.qas_id in seen:
                    raise UserError(
                        f"{question.where} has the id of another question. Give each "
                        "question its own id: predictions are stored by id."
                    )
                seen.add(question.qas_id)
                yield question


def _read_articles(path, flag):
    if isinstance(path, Articles):
        return path.articles
    text = read_text(str(path), flag)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path} is not a SQuAD file: line {error.lineno}, column {error.colno}: "
            f"{error.msg}. Check whether it is damaged or truncated."
        ) from error
    except RecursionError as error:
        raise UserError(
            f"{path} is not a SQuAD file: its JSON is nested too deeply."
        ) from error
    except ValueError as error:
        raise UserError(f"{path} is not a SQuAD file: {error}.") from error
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise UserError(
            f"{path} is not a SQuAD file. It must contain one JSON object with a list "
            '"data" of articles.'
        )
    return content["data"]


def _question(fields, paragraph, where):
    qas_id = _get_from(fields, "id", str | int, where)
    where = f"{where} (id {_shortened(str(qas_id))})"
    text = _get_from(fields, "question", str, where)
    return _Question(str(qas_id), text, paragraph, fields, where)


def _get(question, key, kind):
    return _get_from(question.fields, key, kind, question.where)


def _get_from(fields, key, kind, where):
    """Return the value of a key; raise `UserError` if it is missing or invalid."""
    if not isinstance(fields, dict):
        raise UserError(f"{where} is not a JSON object. The file may be damaged.")
    if key not in fields:
        hint = ". The file may be damaged."
        if key == "is_impossible":
            hint = ", which SQuAD 2.0 has. Remove --version_2_with_negative for 1.1."
        raise UserError(f'{where} has no "{key}"{hint}')
    value = fields[key]
    # In Python, bool is a subclass of int.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(
            f'{where}: "{key}" is {_shortened(json.dumps(value))}, which is not valid. '
            "The file may be damaged."
        )
    if isinstance(value, str) and _SURROGATE.search(value):
        raise UserError(
            f'{where}: "{key}" contains a lone surrogate (half a character). Correct '
            "it, because answers with it cannot be written."
        )
    return value


def _shortened(text):
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[:_MOST_OF_A_NAME]}…"
