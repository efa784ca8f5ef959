"""What is in a corpus and what is odd about it, told at the end of a build.

`OUTPUT.report.txt` has what is printed and `OUTPUT.report.png` the lengths of
sequences and documents, for the first output file. What is said depends on the
documents and the settings alone, not on who counted which of them.
"""

import textwrap

from official_bert import files
from official_bert.corpus import readers
from official_bert.corpus.report import facts as corpus_facts
from official_bert.corpus.report import picture as corpus_picture
from official_bert.corpus.report.statistics import CorpusStatistics

__all__ = ["CorpusStatistics", "report_lines", "summary", "write_report"]

WIDTH = 88
# Shares above which something is worth a warning.
REPEATED_LINES = 0.05
ONE_REPEATED_LINE = 0.01
UNKNOWN_TOKENS = 0.01
ONE_LINE_DOCUMENTS = 0.2
TOKENS_TOO_MANY = 0.01
# Tokens of a line on average; sentences of newspapers and books have 20 to 30.
LONG_LINES = 80
PADDING = 0.25
FEW_DOCUMENTS = 100


def write_report(statistics, tokenizer, output_file):
    """Print the report and write it beside a file.

    Args:
      statistics: `CorpusStatistics` of the whole corpus.
      tokenizer: `FullTokenizer` that made its tokens.
      output_file: the first record file; the report's files begin with its name.
    """
    text = "\n".join(report_lines(statistics, tokenizer)) + "\n"
    files.write_text(f"{output_file}{readers.REPORT}", text)
    picture = f"{output_file}.report.png"
    drawn = corpus_picture.draw(statistics, picture)
    where = picture if drawn else "none, matplotlib is missing"
    print(f"{text}Picture of the lengths: {where}", flush=True)


def summary(statistics):
    """Return the report's numbers, a dict for the manifest."""
    return corpus_facts.numbers(statistics)


def report_lines(statistics, tokenizer):
    """Return the report as a list of lines.

    Args:
      statistics: `CorpusStatistics`.
      tokenizer: `FullTokenizer` that made its tokens.
    """
    facts = corpus_facts.numbers(statistics)
    lines_seen = corpus_facts.repeated_lines(statistics)
    unknown = corpus_facts.unknown_words(statistics, tokenizer)
    rows = _count_rows(facts, statistics.max_seq_length)
    width = max(len(name) for name, _, _ in rows)
    number_width = max(len(number) for _, number, _ in rows)
    lines = ["Corpus report", ""]
    lines += [f"  {a:{width}}  {b:>{number_width}}  {c}".rstrip() for a, b, c in rows]
    lines += _listed("Lines that occur most often", lines_seen)
    lines += _listed("Words most often unknown", unknown.words)
    lines += _listed("Characters that the vocabulary lacks", unknown.characters)
    lines += ["", *_histograms(statistics), ""]
    warnings = _warnings(facts, lines_seen, unknown, statistics.max_seq_length)
    lines += [f"Warnings: {len(warnings) or 'none'}"]
    for number, warning in enumerate(warnings, 1):
        lines += textwrap.wrap(
            warning,
            WIDTH,
            initial_indent=f"  {number}. ",
            subsequent_indent="     ",
            break_on_hyphens=False,
        )
    return lines


def _count_rows(facts, max_seq_length):
    """Return (name, number, remark) of what is counted."""
    documents, lines, tokens = facts["documents"], facts["lines"], facts["tokens"]
    rows = [
        (
            "documents",
            f"{documents:,}",
            f"of {_mean(lines, documents)} lines, {_mean(tokens, documents)} tokens",
        ),
        ("lines", f"{lines:,}", f"of {_mean(tokens, lines)} tokens"),
        ("tokens", f"{tokens:,}", ""),
        _part("unknown tokens", facts["unknown_tokens"], tokens, "of the tokens"),
        ("repeated lines", *_repeated(facts)),
    ]
    if facts["one_line_documents"]:
        number = facts["one_line_documents"]
        rows.append(_part("one-line documents", number, documents, "of the documents"))
    if facts["cut_documents"]:
        rows.append(("cut documents", f"{facts['cut_documents']:,}", ""))
    if facts["lines_without_tokens"]:
        number = facts["lines_without_tokens"]
        rows.append(_part("lines without tokens", number, lines, "of the lines"))
    if facts["long_lines"]:
        row = _part("too long lines", facts["long_lines"], lines, "of the lines; ")
        beyond = _percent(facts["tokens_too_many"], tokens)
        rows.append((*row[:2], f"{row[2]}{beyond} of the tokens are cut off"))
    padding = f"{facts['padding_share']:.0%}".replace("%", " %")
    rows.append(
        (
            "sequences",
            f"{facts['sequences']:,}",
            f"of {max_seq_length} places, {padding} of them padding",
        )
    )
    return rows


def _part(name, number, whole, what):
    return name, f"{number:,}", f"{_percent(number, whole)} {what}" if number else ""


def _repeated(facts):
    """Return the number of repeated lines and a remark on it."""
    number, lines = facts["repeated_lines"], facts["lines"]
    if facts["repeated_lines_exact"]:
        return f"{number:,}", f"{_percent(number, lines)} of the lines" * (number > 0)
    if number <= corpus_facts.NOISE * lines:
        return "few", f"under {corpus_facts.NOISE:.0%}".replace("%", " % of the lines")
    return f"~{number:,}", f"about {_percent(number, lines)} of the lines"


def _listed(title, found):
    if not found:
        return []
    width = max(len(_number(item)) for item in found)
    return ["", f"{title}:"] + [f"  {_number(i):>{width}}  {i.text}" for i in found]


def _number(item):
    return f"{'' if item.exact else '~'}{item.count:,}"


def _histograms(statistics):
    """Return both histograms side by side, as lines."""
    left = _bars("Tokens of a sequence", corpus_facts.sequence_bins(statistics))
    right = _bars("Tokens of a document", corpus_facts.document_bins(statistics))
    length = max(len(left), len(right))
    left += [""] * (length - len(left))
    right += [""] * (length - len(right))
    pairs = zip(left, right, strict=True)
    return [f"{one:<42}  {other}".rstrip() for one, other in pairs]


def _bars(title, bins):
    """Return a title and one line per (low, high, count)."""
    names = [f"{low:,}-{high:,}" for low, high, _ in bins]
    width = max(map(len, names), default=0)
    total, most = (f([count for *_, count in bins] or [0]) for f in (sum, max))
    lines = [title]
    for name, (*_, count) in zip(names, bins, strict=True):
        share = f"{100 * count / total:.1f} %" if total else ""
        bar = "#" * -(-16 * count // most) if most else ""
        lines.append(f"  {name:>{width}}  {share:>7} {bar}")
    return lines


def _warnings(facts, lines_seen, unknown, max_seq_length):
    """Return what the user should know, a list of sentences."""
    found = [
        _warn_of_documents(facts),
        _warn_of_one_line_documents(facts),
        _warn_of_repeated_lines(facts, lines_seen),
        _warn_of_unknown_tokens(facts, unknown),
        _warn_of_long_lines(facts, max_seq_length),
        _warn_of_cut_documents(facts),
        _warn_of_padding(facts),
    ]
    return [warning for warning in found if warning]


def _warn_of_documents(facts):
    number = facts["documents"]
    if number == 1:
        return (
            "There is one document, so no other text to draw a random next sentence "
            "from, and next sentence prediction has little to learn. Put a blank line "
            "between documents."
        )
    if number < FEW_DOCUMENTS:
        return (
            f"There are only {number} documents: the random next sentences come from "
            "few texts. If there are more, put a blank line between them."
        )
    return None


def _warn_of_one_line_documents(facts):
    number, documents = facts["one_line_documents"], facts["documents"]
    if number < ONE_LINE_DOCUMENTS * documents or documents == 1:
        return None
    return (
        f"{_percent(number, documents)} of the documents ({number:,} of "
        f"{documents:,}) are one line, which no next sentence follows: all their "
        "pairs are random ones. Is there a blank line after every line, or are lines "
        "paragraphs (--input_format=raw)?"
    )


def _warn_of_repeated_lines(facts, lines_seen):
    number, lines = facts["repeated_lines"], facts["lines"]
    most = max((item.count for item in lines_seen), default=0)
    if number < REPEATED_LINES * lines and most < max(3, ONE_REPEATED_LINE * lines):
        return None
    about = "" if facts["repeated_lines_exact"] else "about "
    return (
        f"Of {lines:,} lines {about}{number:,} ({_percent(number, lines)}) repeat "
        "another one. A model learns these by heart, its loss "
        "may be stuck, and held-out text may be in the training text. To keep each "
        "line once: awk '!NF || !seen[$0]++' text.txt > once.txt"
    )


def _warn_of_unknown_tokens(facts, unknown):
    number, tokens = facts["unknown_tokens"], facts["tokens"]
    if number < UNKNOWN_TOKENS * tokens:
        return None
    most = f", most often {unknown.words[0].text}" if unknown.words else ""
    return (
        f"{_percent(number, tokens)} of the tokens ({number:,} of {tokens:,}) are "
        f"[UNK]{most}: a model cannot tell them apart. "
        "Are the vocabulary and --do_lower_case those of this text? train_vocab.py "
        "makes a vocabulary of it."
    )


def _warn_of_long_lines(facts, max_seq_length):
    beyond, tokens = facts["tokens_too_many"], facts["tokens"]
    if tokens >= LONG_LINES * facts["lines"] and not beyond:
        return (
            f"Lines have {_mean(tokens, facts['lines'])} tokens on average, more than "
            "sentences do. Are they paragraphs? --input_format=raw splits them."
        )
    if beyond < TOKENS_TOO_MANY * tokens:
        return None
    return (
        f"{facts['long_lines']:,} lines have more tokens than a sequence of "
        f"{max_seq_length} holds; {_percent(beyond, tokens)} of all tokens are cut "
        "off and never seen. Are lines paragraphs? --input_format=raw splits them "
        "into sentences."
    )


def _warn_of_cut_documents(facts):
    number = facts["cut_documents"]
    return number and (
        f"{number:,} documents were larger than a block and became several: is there "
        "a blank line between documents?"
    )


def _warn_of_padding(facts):
    if facts["padding_share"] < PADDING:
        return None
    return (
        f"{facts['padding_share']:.0%}".replace("%", " %")
        + " of all places are padding, which XLA and TPUs compute like text. It comes "
        "from documents shorter than --max_seq_length and from --short_seq_prob."
    )


def _mean(number, count):
    mean = number / max(1, count)
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"


def _percent(part, whole):
    """Return a share in percent, to two digits."""
    percent = 100 * part / max(1, whole)
    if percent >= 9.95 or not percent:
        return f"{percent:.0f} %"
    return f"{percent:.2g} %" if percent >= 0.001 else "under 0.001 %"
