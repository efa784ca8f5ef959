import time

import pytest

from official_bert.corpus.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He said: “Go.” Then he left.", ["He said: “Go.”", "Then he left."]),
        ("(It rained.) We stayed.", ["(It rained.)", "We stayed."]),
        ("Wait... what? No... Yes.", ["Wait... what?", "No...", "Yes."]),
        ("It cost 3.50 dollars. Cheap.", ["It cost 3.50 dollars.", "Cheap."]),
        (
            "Dr. Smith met J. R. Jones. They ate.",
            ["Dr. Smith met J. R. Jones.", "They ate."],
        ),
        (
            "See e.g. Paris or Rome, i.e. Italy.",
            ["See e.g. Paris or Rome, i.e. Italy."],
        ),
        ("It was I. You knew.", ["It was I.", "You knew."]),
        ("use of v. small letters", ["use of v. small letters"]),
        (
            "今天下雨。我们在家！好吗？「好。」他说。",
            ["今天下雨。", "我们在家！", "好吗？", "「好。」", "他说。"],
        ),
        ("यह घर है। वह जाता है।", ["यह घर है।", "वह जाता है।"]),
        ("two\n  lines \u3000 here.", ["two lines here."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_split_sentences(text, expected):
    assert split_sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("See " + "A" * 10**6 + " for it. Next one.", 2),
        ("." * 10**6 + "x", 1),
        ("A. " * 10**5 + "B", 1),
        ('."' * 10**5 + " End", 2),
    ],
)
def test_odd_text_takes_no_longer_than_other(text, count):
    """Unusual text, such as data URLs, takes linear time."""
    started = time.monotonic()
    assert len(split_sentences(text)) == count
    assert time.monotonic() - started < 20
