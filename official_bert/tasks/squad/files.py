"""SQuAD's files, versions 1.1 and 2.0: questions on paragraphs of articles.

The format is one JSON object, plain or gzipped (`.gz`):

    {"data": [{"title": …, "paragraphs": [{"context": …, "qas": [
        {"id": …, "question": …, "is_impossible": …,
         "answers": [{"text": …, "answer_start": …}, …]}, …]}, …]}, …]}

`title` may be missing, and so may `is_impossible` in version 1.1 and, where
nothing is trained or scored, `answers`.
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

# What separates words: fewer characters than `str.split()` takes.
WHITESPACE = " \t\r\n\u202f"

_MOST_OF_A_NAME = 60
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Articles:
    """What a file would hold, from another source.

    Attributes:
      name: where it is from, for messages.
      articles: the list "data" of the format.
    """

    name: str
    articles: list[dict[str, Any]]

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question on a context, with its answer where that is known.

    Examples on one context share its three attributes.

    Attributes:
      qas_id: the question's id.
      question_text: the question.
      doc_tokens: tuple of W str, the words of the context: what is between
        `WHITESPACE`.
      orig_answer_text: the answer as the file has it; "" if there is none,
        None if none was asked for.
      start_position: the number of the answer's first word; -1 if there is no
        answer, None if none was asked for.
      end_position: likewise, of its last word.
      is_impossible: whether the context does not answer the question; False
        where that is not known.
      context: the text itself.
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
    """Return the words of a context and where each begins.

    Returns:
      (words, offsets): tuples of W str and W int, see `SquadExample`.
    """
    words = list(re.finditer(f"[^{WHITESPACE}]+", context))
    return tuple(word[0] for word in words), tuple(word.start() for word in words)


def make_example(question: str, context: str, qas_id: str = "0") -> SquadExample:
    """Return a `SquadExample` to be answered, of a text at hand."""
    paragraph = _Paragraph(context, *split_words(context))
    return _example(_Question(qas_id, question, paragraph, {}, ""))


def read_examples(
    path: str | os.PathLike[str] | Articles,
    is_training: bool,
    version_2_with_negative: bool = False,
    flag: str = "--dev_file",
) -> list[SquadExample]:
    """Return the questions of a file, in order.

    In training, the first answer of each question is used; a warning counts the
    questions that have several. A question is left out, with a warning that counts,
    if its answer is not where the file says it is, or is empty. Follows
    `read_squad_examples` in google-research/bert `run_squad.py`, which keeps an
    empty answer, and fails at one that reaches beyond the context and at several.

    Args:
      path: the file, or its content.
      is_training: read the answers; each question must have one.
      version_2_with_negative: in training, whether questions may have no
        answer, as SQuAD 2.0's `is_impossible` says.
      flag: the flag the file came from, for messages.

    Returns:
      list of `SquadExample`, at least one.

    Raises:
      UserError: the file cannot be read, is no SQuAD file, lacks something
        (names article, paragraph and question), has an id twice (when not in
        training), no answer where it must have one, or no questions.
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
            "%s: %d of %d questions are left out, since their answer is not where "
            "the file says it is: %s.",
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
    """Return the answers that a file has, for `metrics.squad`.

    Args:
      path: the file, or its content.
      flag: the flag the file came from, for messages.

    Returns:
      dict of question id -> tuple of texts, none for a question without an
      answer; None if no question of the file has `answers`: it cannot be
      scored.

    Raises:
      UserError: see `read_examples`; or some questions have `answers` and
        others not.
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
    fields: dict  # Of the JSON.
    where: str  # For messages.


def _example(question, text=None, start=None, end=None, is_impossible=False):
    context, words, offsets = question.paragraph
    answer = text, start, end, is_impossible
    return SquadExample(
        question.qas_id, question.text, words, *answer, context, offsets
    )


def _get_answers(question, version_2_with_negative):
    """Return the answers of a question, a list of at least one."""
    answers = _get(question, "answers", list)
    if not answers:
        hint = ""
        if not version_2_with_negative:
            hint = ", or, if the file is SQuAD 2.0, give --version_2_with_negative"
        raise UserError(
            f"{question.where} has no answer; for training it must have one{hint}."
        )
    return answers


def _read_answer(question, answer):
    """Return (text, first word, last word) of one of a question's answers.

    None if the answer is not where the file says it is.
    """
    where = f"{question.where}, its answer"
    text = _get_from(answer, "text", str, where)
    start = _get_from(answer, "answer_start", int, where)
    context, words, offsets = question.paragraph
    last = start + len(text) - 1
    if not text.split() or not 0 <= start <= last < len(context):
        return None
    # The words at the answer's first and last character, or before these.
    first_word = bisect.bisect_right(offsets, start) - 1
    last_word = bisect.bisect_right(offsets, last) - 1
    # All of Unicode's whitespace, unlike that between words: an answer with
    # another kind of it is not found, and left out as in the original.
    span = " ".join(words[first_word : last_word + 1])
    if first_word < 0 or " ".join(text.split()) not in span:
        return None
    return text, first_word, last_word


def _read_questions(path, flag, unique):
    """Yield the `_Question`s of a file; see `read_examples` for the errors."""
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
                        f"{question.where} has the id of another question; give each "
                        "its own, since answers are told apart by it."
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
            f"{path} is no SQuAD file: line {error.lineno}, column {error.colno}: "
            f"{error.msg}; is it damaged, or cut off?"
        ) from error
    except RecursionError as error:
        raise UserError(f"{path} is no SQuAD file: it is nested too deeply.") from error
    except ValueError as error:
        raise UserError(f"{path} is no SQuAD file: {error}.") from error
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise UserError(
            f'{path} is no SQuAD file: it must hold one JSON object with a list "data" '
            "of articles."
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
    """Return the value of a key; `UserError` if it is missing or of another kind."""
    if not isinstance(fields, dict):
        raise UserError(f"{where} is no JSON object; is the file damaged?")
    if key not in fields:
        hint = "; is the file damaged?"
        if key == "is_impossible":
            hint = ", which SQuAD 2.0 has; is --version_2_with_negative meant?"
        raise UserError(f'{where} has no "{key}"{hint}')
    value = fields[key]
    # To Python, true is a number.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(
            f'{where}: "{key}" is {_shortened(json.dumps(value))}, which it cannot be; '
            "is the file damaged?"
        )
    if isinstance(value, str) and _SURROGATE.search(value):
        raise UserError(
            f'{where}: "{key}" holds half a character (a lone surrogate); mend it, '
            "since no file of answers could hold it."
        )
    return value


def _shortened(text):
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[:_MOST_OF_A_NAME]}…"
