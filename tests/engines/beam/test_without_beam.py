"""Apache Beam is an extra: without it one sentence says what to do."""

import sys

import pytest

from official_bert.engines.beam import runs as beam_runs
from official_bert.engines.beam import steps as beam_steps
from official_bert.errors import UserError


def test_without_beam_the_command_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(
        UserError, match=r"not installed: pip install 'official-bert\[beam\]'"
    ):
        beam_runs.make_options("--runner=DirectRunner")


def test_pieces_are_found_by_place_and_by_number():
    """`piece_of` inverts the rule by which `shards` divides the pairs."""
    for num_pairs in (1, 5, 12, 1000):
        for num_pieces in (1, 3, 7, 40):
            layout = beam_steps.Layout({}, 1, num_pairs, num_pieces)
            found = [layout.piece_of(place) for place in range(num_pairs)]
            for piece in range(num_pieces):
                first, end = layout.first_pair(piece), layout.first_pair(piece + 1)
                assert found.count(piece) == end - first
                assert set(found[first:end]) <= {piece}
