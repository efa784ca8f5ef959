"""The parts of a run whose batch size grows."""

import pytest
from run_settings import fine_tuning_settings

from official_bert.errors import UserError
from official_bert.training.recipes import batch_sizes


def parts(steps, step=0, **changes):
    """Return (last step, batch size) of each part."""
    settings = fine_tuning_settings(num_train_steps=100, train_batch_size=8, **changes)
    found = batch_sizes.parts_from(settings, steps, step)
    return [(part.last_step, part.loop.train_batch_size) for part in found]


def test_each_part_has_its_last_step_and_size():
    assert batch_sizes.parse(["10:16", "40:32"]) == ((10, 16), (40, 32))
    assert parts(((10, 16), (40, 32))) == [(10, 8), (40, 16), (100, 32)]
    assert parts(()) == [(100, 8)]


def test_a_resumed_run_begins_with_the_part_of_its_step():
    steps = ((10, 16), (40, 32))
    assert parts(steps, 9) == [(10, 8), (40, 16), (100, 32)]
    # A kill may have prevented the evaluation at the end of the first part.
    assert parts(steps, 10) == [(10, 8), (40, 16), (100, 32)]
    assert parts(steps, 11) == [(40, 16), (100, 32)]
    assert parts(steps, 100) == [(100, 32)]


def test_a_run_may_stop_in_any_part():
    steps = ((10, 16), (40, 32))
    assert parts(steps, stop_at_step=5) == [(5, 8)]
    assert parts(steps, stop_at_step=10) == [(10, 8)]
    assert parts(steps, stop_at_step=11) == [(10, 8), (11, 16)]
    assert parts(steps, 60, stop_at_step=11) == [(11, 16)]


@pytest.mark.parametrize("text", ["10", "10:", "a:8", "10:8,10:16", "0:8", "9:0"])
def test_an_invalid_list_is_refused(text):
    with pytest.raises(UserError, match="--batch_size_steps=.* is invalid"):
        batch_sizes.parse(text.split(","))
