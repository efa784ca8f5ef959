"""Texts of optimized programs: collectives, host operations, loops."""

import pytest

from official_bert.training.plans.hlo_text import (
    find_collectives,
    find_host_operations,
    loop_share,
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
    # 3 x 32 bytes in the loop; outside 2 x 32 operands and 16 + 4 of results.
    assert loop_share(LOOP, 4) == pytest.approx(96 / (96 + 84))
    assert loop_share(LOOP, 3) == 0
