"""Errors of an Apache Beam runner are assigned to the user or to this package."""

import pytest

from official_bert.engines.beam import runs as beam_runs
from official_bert.errors import UserError


def reason_of(path, code="raise ValueError('no')"):
    """Return the message for an error that was raised in a file of that name."""
    with pytest.raises(Exception) as raised:  # noqa: B017, PT011
        exec(compile(code, path, "exec"), {"UserError": UserError})
    return beam_runs._reason(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "engines/beam/steps.py",
        "corpus/readers.py",
        "data/masking.py",
        "tokenization/full.py",
    ],
)
def test_our_own_defects_are_not_blamed_on_the_options(name):
    assert reason_of(f"/checkout/official_bert/{name}") is None


@pytest.mark.parametrize(
    "path",
    [
        "/site-packages/apache_beam/pipeline.py",
        "/checkout/official_bert/engines/beam/runs.py",
    ],
)
def test_what_beam_raises_is_about_its_options(path):
    assert reason_of(path) == "--beam_options: Beam cannot run the pipeline: no"


def test_a_sentence_of_ours_stays_what_it_is():
    path = "/checkout/official_bert/engines/beam/steps.py"
    code = "raise UserError('No text. [while running Cut blocks]')"
    assert reason_of(path, code) == "No text."
