"""Prose out of docstrings: the sentences, without code, tables and markup."""

import re

from official_bert.corpus.sentences import split_sentences

# A list item or a parameter: what stands before its text, which is dropped.
_ITEM = re.compile(
    r"(?:[-*•+–]|\(?\d{1,2}[.)]|#\.|:\w+[^:]*:|\*{0,2}[`\"']{0,2}[\w.*, /-]{1,40}"
    r"[`\"']{0,2}(?: ?\([^)]*\))? ?:)(?:\s+|$)"
)
_HEADING_RULE = re.compile(r"([=\-~^*#\"'+.`])\1{2,}$")
_FENCE = re.compile(r"(```|~~~)")
_DIRECTIVE = re.compile(r"\.\. [\w-]+::")
_LABEL = re.compile(
    r"(?:Notes?|Warnings?|Tips?|Caution|Returns|Yields|Raises|TODO\S*):\s"
)

# Markup -> what a reader sees of it.
_MARKUP = [
    (re.compile(r"!?\[([^\]\[]+)\]\([^)\s]*\)"), r"\1"),  # [text](address)
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{0,2}"), r"\1"),  # `text <address>`_
    (re.compile(r":[\w:+-]+:`~?(?:[^`]*\.)?!?([^`.]+)`"), r"\1"),  # :class:`~a.B`
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}(\S|\S.*?\S)\*{1,2}(?![\w*])"), r"\1"),
    (re.compile(r"\s?\[\w{1,12}\]_"), ""),  # [1]_
]

_SHORTEST, _LONGEST = 5, 60  # Words of a sentence.
_PROSE_SHARE = 0.85
_PLAIN_WORD = re.compile(r"[(\"“‘']*[A-Za-z]+(?:['’-][A-Za-z]+)*[)\"”’',.;:!?]*$")
_SENTENCE = re.compile(r"[\"“]?[A-Z].*[a-z)\"”’][.!?][\"”)]?$")
_NOT_PROSE = re.compile(
    r"[=<>{}\\|^~#@$%\[\]]|::|--|\.\.|//|\w\([^)]|\w\.\w+\.|\s[.,;:]\s"
)


def prose_sentences(docstring):
    """Return the sentences of a docstring that read as plain English.

    Kept are complete sentences of 5 to 60 words, of which at least 85 % are
    ordinary words: they begin with a capital, end with a full stop and hold
    no code. The names of parameters before their descriptions are dropped.

    Args:
      docstring: str, with the common indentation already removed.

    Returns:
      list of str.
    """
    found = []
    for paragraph in _paragraphs(docstring):
        for sentence in split_sentences(_without_markup(paragraph)):
            if is_prose(sentence):
                found.append(sentence)
    return found


def is_prose(sentence):
    """Tell whether a sentence is complete and of ordinary words."""
    words = sentence.split()
    if not _SHORTEST <= len(words) <= _LONGEST:
        return False
    if not _SENTENCE.match(sentence) or _NOT_PROSE.search(sentence):
        return False
    plain = sum(1 for word in words if _PLAIN_WORD.match(word))
    return plain >= _PROSE_SHARE * len(words)


def _paragraphs(docstring):
    """Yield paragraphs, list items and parameter descriptions, each one line."""
    lines, last_indent = [], 0
    for line in _text_lines(docstring):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(text)
        # A line further in than the one before goes on with it (a hanging
        # indent); one further out, an item or a blank line begins anew.
        if lines and (not text or item or indent < last_indent):
            yield " ".join(lines)
            lines = []
        if item:
            text = text[item.end() :]
        if text:
            lines.append(text)
            last_indent = indent
    if lines:
        yield " ".join(lines)


def _text_lines(docstring):
    """Yield the lines that may be prose; a blank one for each dropped part."""
    fenced = doctest = False
    for line in docstring.expandtabs().split("\n"):
        text = line.strip()
        if _FENCE.match(text):
            fenced = not fenced
            yield ""
        elif fenced:
            continue
        elif text.startswith((">>>", "$ ", "% ")):
            doctest = True
            yield ""
        elif not text:
            doctest = False
            yield ""
        elif doctest or _HEADING_RULE.match(text) or _DIRECTIVE.match(text):
            yield ""
        else:
            yield line


def _without_markup(text):
    text = _LABEL.sub("", text)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text
