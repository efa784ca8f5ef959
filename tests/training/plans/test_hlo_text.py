"""Texts of optimized programs: collectives, host operations, loops."""

import pytest

from official_bert.training.plans.hlo_text import (
    find_collectives,
    find_host_operations,
    loop_share,
    main_memory_bytes,
)

HLO = """
  %all-reduce-start.1 = (f32[30522,768]{1,0}, f32[]) all-reduce-start(%a), channel_id=1
  %ar = bf16[4,8]{1,0} all-reduce(%c), channel_id=2
  %done = f32[2] all-reduce-done(%all-reduce-start.1)
"""


def test_collectives_in_a_program():
    found = find_collectives(HLO)
    assert found == {"all-reduce": [2, 4 * (30522 * 768 + 1) + 2 * 32]}


def test_host_operations_in_a_program():
    assert find_host_operations(HLO) == []
    text = " %i = f32[] infeed(%t)\n %s = token[] send-done(%x)\n"
    text += ' custom-call(%x), custom_call_target="xla_python_cpu_callback"\n'
    assert find_host_operations(text) == [
        *("infeed", "send", "xla_python_cpu_callback")
    ]


LOOP = """HloModule step, entry_computation_layout={()->f32[8]{0}}

%body (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %one = f32[8]{0} constant({...})
  ROOT %sum = f32[8]{0:T(128)} add(%x, %one), metadata={op_name="f(%z)"}
}

%condition (y: f32[8]) -> pred[] {
  %limit = s32[] constant(4)
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main.1 (a: f32[8], b: (f32[8], s32[])) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %w = f32[8]{0} while(%a), condition=%condition, body=%body
  %two = (bf16[8]{0}, s32[]) fusion(%w, %a), kind=kLoop, calls=%fused
  ROOT %c = f32[8]{0} get-tuple-element(%two), index=0
}
"""


def test_share_of_a_loop():
    # 3 x 32 bytes in the loop; outside it 2 x 32 of operands and 16 + 4 of results.
    assert loop_share(LOOP, 4) == pytest.approx(96 / (96 + 84))
    assert loop_share(LOOP, 3) == 0


def test_memory_traffic_counts_a_loop_in_each_round():
    assert main_memory_bytes(LOOP, 4) == 84 + 4 * 96
    # Loops with another number of rounds are not loops over micro-batches.
    assert main_memory_bytes(LOOP) == 84


ON_CHIP = """
ENTRY %main (a: f32[100]) -> f32[100] {
  %a = f32[100]{0} parameter(0)
  %s = ((f32[100]{0}), f32[40]{0:S(1)}, s32[]{:S(2)}) slice-start(%a), slice={[0:40]}
  %b = f32[40]{0:S(1)} slice-done(%s)
  %c = (f32[100]{0:T(8)S(1)}, f32[100]{0}, u32[]{:S(2)}) copy-start(%a)
  %d = f32[100]{0:T(8)S(1)} copy-done(%c)
  %e = f32[100]{0:S(1)} fusion(%b, %d), kind=kLoop, calls=%fused
  ROOT %f = f32[100]{0} fusion(%e, %a), kind=kLoop, calls=%fused
}
"""


def test_memory_traffic_leaves_out_what_is_on_the_chip():
    """A slice is read once, a copy reads its operand, a fusion reads off-chip data."""
    assert main_memory_bytes(ON_CHIP) == 4 * (40 + 100 + (100 + 100))
