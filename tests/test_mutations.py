"""The changes of `mutations.py` can be made: `make mutations` makes them."""

import mutations
import pytest
from places import ROOT


@pytest.mark.parametrize("one", mutations.BREAKS, ids=lambda one: one.what)
def test_what_is_broken_is_there_once(one):
    text = (ROOT / "official_bert" / one.file).read_text("utf-8")
    assert text.count(one.right) == 1
    assert all((ROOT / "tests" / name).exists() for name in one.tests.split())
