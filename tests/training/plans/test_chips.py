"""Names of TPU slices and GPUs."""

import pytest

from official_bert.errors import UserError
from official_bert.training.plans.chips import GPUS, TPUS, parse_topology


@pytest.mark.parametrize(
    ("name", "chip", "num_chips", "compiler_name"),
    [
        ("v5e:4x4", TPUS["v5e"], 16, "v5e:4x4"),
        ("v4:2x2x1", TPUS["v4"], 4, "v4:2x2x1"),
        ("v4:4x4x4", TPUS["v4"], 64, "v4:4x4x4"),
        # The compiler's name is v5.
        ("v5p:2x2x1", TPUS["v5p"], 4, "v5:2x2x1"),
        ("V6E:2x2", TPUS["v6e"], 4, "v6e:2x2"),
        ("h100", GPUS["h100"], 1, None),
        ("8xa100", GPUS["a100"], 8, None),
    ],
)
def test_topologies(name, chip, num_chips, compiler_name):
    found = parse_topology(name)
    assert found.name == name
    assert (found.chip, found.num_chips) == (chip, num_chips)
    assert found.compiler_name == compiler_name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v5e", "give the 2 dimensions of the slice, for example v5e:4x4"),
        ("v5e:4", "give the 2 dimensions"),
        ("v5e:4x4x1", "give the 2 dimensions"),
        ("v4:2x2", "give the 3 dimensions of the slice, for example v4:2x2x1"),
        ("v5e:axb", "give the 2 dimensions"),
        ("v5e:16x16", "has 256 chips. Use 1 to 64"),
        ("v5e:0x4", "has 0 chips"),
        (
            "v5e:1x1",
            "Use even dimensions; to train on fewer of their chips, add --chips=1",
        ),
        (
            "v4:2x1x2",
            "Use even dimensions; to train on fewer of their chips, add --chips=4",
        ),
        ("v9", "is unknown. TPU slices: v4, v5e, v5p, v6e"),
        ("0xh100", "is unknown"),
        ("h100:2x2", "is unknown"),
        ("", "is unknown"),
    ],
)
def test_unknown_topologies(name, words):
    with pytest.raises(UserError) as caught:
        parse_topology(name)
    assert words in str(caught.value)


def test_rates_are_ordered_as_the_chips_are():
    """An error by a factor of 1000 would change the order."""
    for chip in [*TPUS.values(), *GPUS.values()]:
        assert 5e13 < chip.flops < 2e15
        assert chip.float32_flops < chip.flops
        assert 2e11 < chip.bandwidth < 1e13
        assert 1.5e10 < chip.memory < 2e11
        assert 1e10 < chip.interconnect < chip.bandwidth
