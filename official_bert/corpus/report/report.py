"""The report on the text of a build: counts, frequent lines, histograms, warnings.

`OUTPUT.report.txt` contains the printed text, and `OUTPUT.report.png` the
lengths of sequences and documents; OUTPUT is the first output file. The report
depends only on the documents and the settings, not on the distribution of work
over processes.
"""

import collections
import itertools
import os
import textwrap
import types
import unicodedata
from typing import Any, NamedTuple

from official_bert import files
from official_bert.corpus import readers
from official_bert.corpus.report import figure
from official_bert.corpus.report.statistics import COUNTED, CorpusStatistics
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.wordpiece import CONTINUATION, UNKNOWN

WIDTH = 88
# The number of different lines in a large corpus is an estimate with a standard
# error of 0.4 %. Smaller shares of repeated lines than this are not
# significant.
NOISE = 0.01
# The count of a line that occurs this often in the sample is accurate to a
# quarter.
ENOUGH = 16
LISTED = 5
# Maximum number of characters shown of a word.
WORD_SHOWN = 30
# Name, key of the number, remark (shown unless the number is 0).
COUNTS = (
    ("documents", "documents", "of {document_lines} lines, {document_tokens} tokens"),
    ("lines", "lines", "of {line_tokens} tokens"),
    ("tokens", "tokens", ""),
    ("unknown tokens", "unknown_tokens", "{unknown_share} of the tokens"),
    ("repeated lines", "repeated", "{repeated_remark} of the lines"),
    ("one-line documents", "one_line_documents", "{one_line_share} of the documents"),
    ("cut documents", "cut_documents", ""),
    ("lines without tokens", "lines_without_tokens", "{no_tokens_share} of the lines"),
    (
        "too long lines",
        "long_lines",
        "{long_share} of the lines; {cut_share} of the tokens are truncated",
    ),
    ("sequences", "sequences", "of {max_seq_length} positions, {padding} padding"),
)
# These lines are omitted if the number is 0.
OPTIONAL = ("one_line_documents", "cut_documents", "lines_without_tokens", "long_lines")

FEW_DOCUMENTS = 100
# Average tokens per line; sentences in newspapers and books have 20 to 30.
LONG_LINES = 80
# Condition of a warning (docs/how_to/data.md explains the reasons), and its text.
WARNINGS = (
    (
        lambda n: n.documents == 1,
        "There is only one document, so random next sentences cannot come from "
        "another text, and next sentence prediction learns little. Put a blank "
        "line between documents.",
    ),
    (
        lambda n: n.documents != 1 and n.documents < FEW_DOCUMENTS,
        "There are only {documents} documents, so the random next sentences "
        "come from few texts. If the text has more documents, put a blank line "
        "between them.",
    ),
    (
        lambda n: n.documents != 1 and n.one_line_documents >= 0.2 * n.documents,
        "{one_line_share} of the documents ({one_line_documents:,} of "
        "{documents:,}) have one line, so no sentence follows it: all their "
        "pairs are random. Check for a blank line after every line, and for "
        "lines that are paragraphs (--input_format=raw).",
    ),
    (
        lambda n: (
            n.repeated_lines >= 0.05 * n.lines
            or n.most_repeated >= max(3, 0.01 * n.lines)
        ),
        "Of {lines:,} lines {about}{repeated_lines:,} ({repeated_share}) "
        "repeat another line. The model memorizes these, its loss may stop "
        "falling, and held-out text may occur in the training text. To keep "
        "each line once: awk '!NF || !seen[$0]++' text.txt > once.txt",
    ),
    (
        lambda n: n.unknown_tokens >= 0.01 * n.tokens,
        "{unknown_share} of the tokens ({unknown_tokens:,} of {tokens:,}) are "
        "[UNK]{most_unknown}; the model cannot distinguish them. Check that "
        "the vocabulary and --do_lower_case fit this text. train_vocab.py "
        "makes a vocabulary from it.",
    ),
    (
        lambda n: n.tokens >= LONG_LINES * n.lines and not n.tokens_too_many,
        "Lines have {line_tokens} tokens on average, more than sentences have. "
        "If lines are paragraphs, use --input_format=raw to split them.",
    ),
    (
        lambda n: n.tokens_too_many and n.tokens_too_many >= 0.01 * n.tokens,
        "{long_lines:,} lines have more tokens than a sequence of "
        "{max_seq_length} can hold; {cut_share} of all tokens are truncated "
        "and never seen. If lines are paragraphs, use --input_format=raw to "
        "split them into sentences.",
    ),
    (
        lambda n: n.cut_documents,
        "{cut_documents:,} documents were larger than a block and were split. "
        "Check that there is a blank line between documents.",
    ),
    (
        lambda n: n.padding_share >= 0.25,
        "{padding} of all positions are padding, which XLA and TPUs compute "
        "like text. Padding comes from documents shorter than --max_seq_length "
        "and from --short_seq_prob. run_pretraining.py --pack fills it.",
    ),
)


class Frequent(NamedTuple):
    """A line, word or character that occurs often.

    Attributes:
      text: str, quoted and printable.
      count: int.
      exact: whether the count is exact, not an estimate.
    """

    text: str
    count: int  # type: ignore[assignment] # `tuple.count` is not needed.
    exact: bool


def write_report(
    statistics: CorpusStatistics,
    tokenizer: FullTokenizer,
    output_file: str | os.PathLike[str],
) -> None:
    """Print the report and write it next to a file.

    Args:
      statistics: `CorpusStatistics` of the complete corpus.
      tokenizer: `FullTokenizer` used for its tokens.
      output_file: the first record file; the report's files begin with its name.
    """
    text = "\n".join(report_lines(statistics, tokenizer)) + "\n"
    files.write_text(f"{output_file}{readers.REPORT}", text)
    picture = f"{output_file}.report.png"
    if not figure.draw(statistics, picture):
        picture = "none, because matplotlib is not installed"
    print(f"{text}Figure of the lengths: {picture}", flush=True)


def summary(statistics: CorpusStatistics) -> dict[str, Any]:
    """Return the report's numbers, a dict for the manifest.

    Args:
      statistics: `CorpusStatistics`.

    Returns:
      dict with the names of its `counts`, "sequences", "padding_share",
      "repeated_lines" (the number of removable lines) and "repeated_lines_exact",
      False for an estimate.
    """
    counts, sample = statistics.counts, statistics.different_lines
    sequences = statistics.sequence_lengths
    positions = sequences.total() * statistics.max_seq_length
    used = sum(length * count for length, count in sequences.items())
    repeated = max(0, counts["lines"] - (len(sample.counts) << sample.level))
    return {
        **{name: counts[name] for name in COUNTED},
        "repeated_lines": _rounded(repeated) if sample.level else repeated,
        "repeated_lines_exact": sample.level == 0,
        "sequences": sequences.total(),
        "padding_share": 1 - used / positions if positions else 0.0,
    }


def report_lines(statistics: CorpusStatistics, tokenizer: FullTokenizer) -> list[str]:
    """Return the report as a list of lines.

    Args:
      statistics: `CorpusStatistics`.
      tokenizer: `FullTokenizer` used for its tokens.
    """
    lines = frequent_lines(statistics)
    words, characters = unknown_words(statistics, tokenizer)
    numbers = {
        **_with_shares(summary(statistics)),
        "max_seq_length": statistics.max_seq_length,
        "most_repeated": max((line.count for line in lines), default=0),
        "most_unknown": f", most often {words[0].text}" if words else "",
    }
    held = types.SimpleNamespace(**numbers)
    warnings = [text.format(**numbers) for holds, text in WARNINGS if holds(held)]
    side_by_side = itertools.zip_longest(
        _bars("Tokens of a sequence", statistics.sequence_bins(8)),
        _bars("Tokens of a document", statistics.document_bins()),
        fillvalue="",
    )
    return [
        "Corpus report",
        "",
        *_count_table(numbers),
        *_listed("Most frequent lines", lines),
        *_listed("Most frequent unknown words", words),
        *_listed("Characters missing in the vocabulary", characters),
        "",
        *(f"{one:<42}  {other}".rstrip() for one, other in side_by_side),
        "",
        f"Warnings: {len(warnings) or 'none'}",
        *itertools.chain.from_iterable(
            textwrap.wrap(
                warning,
                WIDTH,
                initial_indent=f"  {number}. ",
                subsequent_indent="     ",
                break_on_hyphens=False,
            )
            for number, warning in enumerate(warnings, 1)
        ),
    ]


def frequent_lines(statistics: CorpusStatistics) -> list[Frequent]:
    """Return the most frequent lines, a list of `Frequent`."""
    counted, sample = statistics.different_lines, statistics.any_lines
    hits: collections.Counter[int] = collections.Counter()
    texts: dict[int, str] = {}
    for position, (line_hash, text) in sample.values.items():
        hits[line_hash] += sample.counts[position]
        texts[line_hash] = text
    scale = statistics.counts["lines"] / max(1, hits.total())
    lines = []
    for line_hash, hit in hits.items():
        text = _quote(texts[line_hash])
        if line_hash in counted.counts:
            lines.append(Frequent(text, counted.counts[line_hash], True))
        elif hit >= ENOUGH:
            lines.append(Frequent(text, _rounded(hit * scale), False))
    return _most([line for line in lines if line.count > 1])


def unknown_words(
    statistics: CorpusStatistics, tokenizer: FullTokenizer
) -> tuple[list[Frequent], list[Frequent]]:
    """Return words and characters that became `[UNK]`, from the sampled lines.

    Args:
      statistics: `CorpusStatistics`.
      tokenizer: `FullTokenizer` used for the tokens.

    Returns:
      (words, characters that the vocabulary lacks): lists of `Frequent`, the most
      frequent first; the second one is empty if both are the same.
    """
    words: collections.Counter[str] = collections.Counter()
    characters: collections.Counter[str] = collections.Counter()
    vocab = tokenizer.vocab
    sample = statistics.lines_with_unknown
    for position, (_, text) in sample.values.items():
        tokens, offsets = tokenizer.tokenize_with_offsets(text)
        for token, (start, end) in zip(tokens, offsets, strict=True):
            if token == UNKNOWN:
                words[text[start:end]] += sample.counts[position]
    for word, count in words.items():
        for character in set(word):
            # Test whether any token of the vocabulary is this character.
            forms = tokenizer.basic_tokenizer.tokenize(character)
            if any(f not in vocab and CONTINUATION + f not in vocab for f in forms):
                characters[character] += count
    scale = statistics.counts["unknown_tokens"] / max(1, words.total())
    exact = scale == 1
    listed, lacking = (
        _most(
            Frequent(_named(text), count if exact else _rounded(count * scale), exact)
            for text, count in counter.items()
        )
        for counter in (words, characters)
    )
    return listed, [] if lacking == listed else lacking


def _most(items):
    return sorted(items, key=lambda item: (-item.count, item.text))[:LISTED]


def _with_shares(numbers):
    """Return the numbers of `summary`, with derived values as texts."""
    documents, lines, tokens = (numbers[n] for n in ("documents", "lines", "tokens"))
    repeated, exact = numbers["repeated_lines"], numbers["repeated_lines_exact"]
    share = _percent(repeated, lines)
    is_few = not exact and repeated <= NOISE * lines
    return {
        **numbers,
        "line_tokens": _mean(tokens, lines),
        "document_tokens": _mean(tokens, documents),
        "document_lines": _mean(lines, documents),
        "one_line_share": _percent(numbers["one_line_documents"], documents),
        "repeated": "few" if is_few else repeated if exact else f"~{repeated:,}",
        "repeated_share": share,
        "repeated_remark": f"under {100 * NOISE:.0f} %"
        if is_few
        else f"{'' if exact else 'about '}{share}",
        "about": "" if exact else "about ",
        "unknown_share": _percent(numbers["unknown_tokens"], tokens),
        "cut_share": _percent(numbers["tokens_too_many"], tokens),
        "no_tokens_share": _percent(numbers["lines_without_tokens"], lines),
        "long_share": _percent(numbers["long_lines"], lines),
        "padding": f"{100 * numbers['padding_share']:.0f} %",
    }


def _count_table(numbers):
    table = []
    for name, key, remark in COUNTS:
        number = numbers[key]
        if number or key not in OPTIONAL:
            text = f"{number:,}" if isinstance(number, int) else number
            table.append((name, text, remark.format(**numbers) if number else ""))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        f"  {name:{widths[0]}}  {number:>{widths[1]}}  {remark}".rstrip()
        for name, number, remark in table
    ]


def _listed(title, items):
    if not items:
        return []
    numbers = [f"{'' if item.exact else '~'}{item.count:,}" for item in items]
    width = max(map(len, numbers))
    lines = zip(numbers, items, strict=True)
    return ["", f"{title}:", *(f"  {n:>{width}}  {item.text}" for n, item in lines)]


def _bars(title, bins):
    """Return a title and one line per (low, high, count)."""
    names = [f"{low:,}-{high:,}" for low, high, _ in bins]
    width = max(map(len, names), default=0)
    counts = [count for *_, count in bins]
    total, most = sum(counts), max(counts, default=0)
    lines = [title]
    for name, count in zip(names, counts, strict=True):
        share = f"{100 * count / total:.1f} %" if total else ""
        bar = "#" * -(-16 * count // most) if most else ""
        lines.append(f"  {name:>{width}}  {share:>7} {bar}")
    return lines


def _quote(text):
    """Return a text in quotes, on one line."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return f'"{shown}"'


def _named(word):
    """Return a word in quotes; for a single character, add its name."""
    if len(word) > WORD_SHOWN:
        word = f"{word[:WORD_SHOWN]}…"
    if len(word) > 1:
        return _quote(word)
    return f"{_quote(word)} U+{ord(word):04X} {unicodedata.name(word, '')}".rstrip()


def _mean(number, count):
    mean = number / max(1, count)
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"


def _percent(part, total):
    """Return a share in percent, with two digits."""
    percent = 100 * part / max(1, total)
    if percent >= 9.95 or not percent:
        return f"{percent:.0f} %"
    return f"{percent:.2g} %" if percent >= 0.001 else "under 0.001 %"


def _rounded(number):
    """Return a number rounded to two digits."""
    return int(float(f"{number:.2g}"))
