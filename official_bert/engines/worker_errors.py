"""Find errors of workers in the text that a cluster returns."""

import re

# Matches tracebacks of this process or of another one in a message. A package
# that was sent to workers is a folder in a zip file.
_OUR_CODE = re.compile(
    r'File ".*official_bert.(?:tokenization|corpus|data|engines).'
    r"(?!beam.runs|beam.pools|spark.session)"
)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_SENTENCE = re.compile(r"official_bert\.errors\.UserError: (.+)")


def sentence_in(text: str) -> str | None:
    """Return the message of the last `UserError` in a traceback, or None."""
    sentences = _SENTENCE.findall(text)
    return sentences[-1] if sentences else None


def is_ours(text: str) -> bool:
    """Return whether code of this package is in a traceback."""
    return bool(_OUR_CODE.search(text))


def missing_package(text: str) -> str | None:
    """Return the package that a worker could not import, or None."""
    missing = _MISSING.search(text)
    return missing[1] if missing else None
