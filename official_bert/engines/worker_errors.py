"""Errors of workers, as the text that comes back from a cluster."""

import re

# In a traceback, of this process or in the message about another one. A package
# that was sent to the workers is a folder within a zip file.
_OUR_CODE = re.compile(
    r'File ".*official_bert.(?:tokenization|corpus|data|engines).'
    r"(?!beam.runs|beam.pools|spark.session)"
)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_SENTENCE = re.compile(r"official_bert\.errors\.UserError: (.+)")


def sentence_in(text: str) -> str | None:
    """Return the message of the last `UserError` in a traceback, None without one."""
    sentences = _SENTENCE.findall(text)
    return sentences[-1] if sentences else None


def is_ours(text: str) -> bool:
    """Return whether code of this package is in a traceback."""
    return bool(_OUR_CODE.search(text))


def missing_package(text: str) -> str | None:
    """Return the package that a worker could not import, None without that error."""
    missing = _MISSING.search(text)
    return missing[1] if missing else None
