"""Plans: their arithmetic, their text, and one that the TPU's compiler makes."""

import importlib.util
import json

import pytest
from run_settings import FINE_TUNING, make

from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.fine_tuning.job import FineTuningSettings
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training import pretraining
from official_bert.training.plans import plan, program, report, tpu_compiler
from official_bert.training.plans.chips import parse_topology

SLICE = parse_topology("v5e:2x2")
COSTS = {
    "argument_bytes": 1.5e9,
    "temp_bytes": 2e9,
    "code_bytes": 0.1e9,
    "alias_bytes": 1.4e9,
    "flops": 2e12,
    "bytes_accessed": 61.5e9,
    "collectives": {"all-reduce": [3, 440_000_000]},
    "host": [],
    "compile_seconds": 9.0,
}


@pytest.fixture
def compiler(monkeypatch):
    """Let the compiler's process end with a (status, output, errors)."""

    def ends_with(status, output="", errors=""):
        monkeypatch.setattr(plan, "require_compiler", lambda: None)
        monkeypatch.setattr(plan, "_run_compiler", lambda *_: (status, output, errors))

    return ends_with


def test_roofline(compiler):
    compiler(0, "a line\n" + json.dumps(COSTS))
    made = plan.compile_plan(b"", SLICE, 4, "bfloat16")
    assert made.compiles and made.fits and not made.estimated
    assert made.hbm_gb == pytest.approx(3.6)
    assert made.compute_seconds == pytest.approx(2e12 / 197e12)
    assert made.memory_seconds == pytest.approx(61.5e9 / 0.82e12)
    assert (made.step_seconds, made.bound) == (made.memory_seconds, "memory")
    # In float32 the same products take six passes.
    slow = plan.compile_plan(b"", SLICE, 4, "float32")
    assert slow.compute_seconds == pytest.approx(6 * made.compute_seconds)


def test_what_does_not_fit(compiler):
    compiler(0, json.dumps(COSTS | {"temp_bytes": 14.2e9}))
    made = plan.compile_plan(b"", SLICE, 4, "bfloat16")
    assert made.hbm_gb == pytest.approx(15.8) and not made.fits
    text = report.screen(made, SLICE, "a model", 10, "--recompute")
    assert "15.80 of 15.7 GB: DOES NOT FIT" in text
    assert text.endswith("It fits with --recompute (compiled).")


def test_what_does_not_compile(compiler):
    compiler(1, "", "Traceback …\n\njax.errors.JaxError: RESOURCE_EXHAUSTED: 40G\n")
    made = plan.compile_plan(b"", SLICE, 4, "bfloat16")
    assert made.compiles is False and not made.fits
    assert "The step does not compile: jax.errors.JaxError: RESOURCE_EXHAUSTED" in (
        report.screen(made, SLICE, "a model", 10)
    )


def test_screen_and_json(compiler):
    compiler(0, json.dumps(COSTS))
    made = plan.compile_plan(b"", SLICE, 4, "bfloat16")
    text = report.screen(made, SLICE, "a model", 1_000_000)
    assert text.splitlines()[0] == (
        "a model, on 4 x TPU v5e (v5e:2x2): compiled by the TPU's compiler"
    )
    assert "75 ms, limited by memory" in text
    assert "all-reduce                  3, 440 MB" in text
    # 1e6 steps of 75 ms are 75,000 s, or 20.8 hours on each of 4 chips.
    assert "at least 0.87 days, 83.3 chip hours" in text
    found = json.loads(json.dumps(made.to_dict()))
    assert {
        *("topology", "chips", "compiles", "flops", "bytes_accessed", "temp_gb"),
        *("argument_gb", "hbm_gb", "step_seconds", "bound"),
    } <= set(found)


def test_without_the_compiler_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(plan, "PACKAGES", ("json", "no_such_package"))
    with pytest.raises(UserError, match=r"pip install 'official-bert\[plan\]'"):
        plan.require_compiler()


HLO = """
  %all-reduce-start.1 = (f32[30522,768]{1,0}, f32[]) all-reduce-start(%a), channel_id=1
  %ar = bf16[4,8]{1,0} all-reduce(%c), channel_id=2
  %done = f32[2] all-reduce-done(%all-reduce-start.1)
"""


def test_collectives_in_a_program():
    found = tpu_compiler.find_collectives(HLO)
    assert found == {"all-reduce": [2, 4 * (30522 * 768 + 1) + 2 * 32]}


def test_host_operations_in_a_program():
    assert tpu_compiler.find_host_operations(HLO) == []
    text = " %i = f32[] infeed(%t)\n %s = token[] send-done(%x)\n"
    text += ' custom-call(%x), custom_call_target="xla_python_cpu_callback"\n'
    assert tpu_compiler.find_host_operations(text) == [
        *("infeed", "send", "xla_python_cpu_callback")
    ]


CONFIG = BertConfig(
    vocab_size=64,
    hidden_size=128,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=256,
    max_position_embeddings=32,
)


def exported(num_replicas):
    values = FINE_TUNING | {"train_batch_size": 8 * num_replicas, "num_train_steps": 9}
    settings = make(FineTuningSettings, **values)
    return program.export_step(
        lambda: PretrainingModel(CONFIG),
        pretraining.make_objective(),
        settings,
        program.pretraining_features(8, 32, 4),
        num_replicas,
    )


def test_the_program_of_several_replicas_has_sums():
    assert b"all-reduce" not in exported(1)
    assert exported(4).count(b"all-reduce") > 10


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, plan.PACKAGES)),
    reason="the TPU's compiler (the extra `plan`) is not installed",
)
def test_the_compiler_of_a_tpu_takes_the_step():
    made = plan.compile_plan(exported(4), SLICE, 4, "float32")
    assert made.compiles and made.fits
    assert made.collectives["all-reduce"][0] <= 5
    # Weights and both moments of 64 x 128 word embeddings alone.
    assert made.argument_gb * 1e9 > 3 * 4 * 64 * 128


def test_seconds_and_days():
    found = [plan.duration(seconds) for seconds in (0.00193, 19.3, 86400, 40 * 86400)]
    assert found == ["1.93 ms", "19 s", "1 days", "40 days"]
