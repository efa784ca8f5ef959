"""Plans by the TPU compiler: the output of its process, and two real plans."""

import dataclasses
import importlib.util
import json

import pytest
from run_settings import FINE_TUNING, make
from workloads import SLICE, TINY, TOO_LARGE

from official_bert.errors import UserError
from official_bert.fine_tuning.job import FineTuningSettings
from official_bert.training.plans import compiled, hlo_text, program, tpu_compiler
from official_bert.training.plans.chips import GIBI, parse_topology
from official_bert.training.plans.workload import Workload

needs_compiler = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, compiled.PACKAGES)),
    reason="the TPU compiler (the extra `plan`) is not installed",
)
COSTS = {
    "argument_bytes": 1.5e9,
    "output_bytes": 1.6e9,
    "alias_bytes": 1.4e9,
    "temp_bytes": 2e9,
    "code_bytes": 0.1e9,
    "flops": 2e12,
    "bytes_accessed": 61.5e9,
    "text": "ENTRY %main () -> f32[110] {\n  %r = f32[110]{0} all-reduce(%x)\n}\n",
    "compile_seconds": 9.0,
}
TOO_MUCH = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO "
    "temporaries (35.07G) exceeds available HBM (15.75G)."
)


@pytest.fixture
def compiler(monkeypatch):
    """Let the compiler's process return a (status, output, errors)."""

    def ends_with(status, output="", errors=""):
        monkeypatch.setattr(compiled, "require_compiler", lambda: None)
        monkeypatch.setattr(
            compiled, "_run_compiler", lambda *_: (status, output, errors)
        )

    return ends_with


def test_numbers_of_the_compiler(compiler):
    compiler(0, "a line\n" + json.dumps(COSTS))
    made = compiled.compile_plan(b"", SLICE, 4, TINY)
    assert made.compiles and made.fits and made.host == []
    # Outputs that reuse the memory of arguments count once.
    assert made.argument_gb == pytest.approx(1.7)
    assert made.hbm_gb == pytest.approx(3.8)
    assert (made.flops, made.bytes_accessed) == (2e12, 61.5e9)
    assert made.collectives == {"all-reduce": [1, 440]}
    assert made.main_memory_bytes == 440


def test_the_compiler_counts_a_loop_once(compiler, monkeypatch):
    compiler(0, json.dumps(COSTS))
    monkeypatch.setattr(hlo_text, "loop_share", lambda text, count: 0.5)
    work = dataclasses.replace(TINY, micro_batch_size=2)
    made = compiled.compile_plan(b"", SLICE, 4, work)
    assert made.flops == 4 * 2e12
    # Half of the bytes are read four times.
    assert made.bytes_accessed == pytest.approx((0.5 + 4 * 0.5) * 61.5e9)


def test_host_operations_reach_the_plan(compiler):
    compiler(
        0,
        json.dumps(
            COSTS
            | {"text": "ENTRY %main () -> () {\n  %o = token[] outfeed(%x, %t)\n}"}
        ),
    )
    assert compiled.compile_plan(b"", SLICE, 4, TINY).host == ["outfeed"]


def test_memory_that_the_compiler_refuses(compiler):
    compiler(1, "", f"Traceback …\n\njax.errors.JaxRuntimeError: {TOO_MUCH}\n")
    made = compiled.compile_plan(b"", SLICE, 4, TOO_LARGE)
    assert made.compiles is False and not made.fits
    assert made.problem == f"jax.errors.JaxRuntimeError: {TOO_MUCH}"
    assert made.hbm_gb == pytest.approx(35.07 * GIBI / 1e9)
    # Weights and moments of 336 million weights.
    assert made.argument_gb == pytest.approx(12 * 0.336, rel=0.01)


@pytest.mark.parametrize(
    ("problem", "needed"),
    [
        (TOO_MUCH, 35.07 * 2**30),
        ("Used 512.0M of 256.0M hbm. Exceeded hbm capacity by 256.0M.", 2**29),
        ("INTERNAL: a bug (1.0G)", 0),
    ],
)
def test_memory_in_messages(problem, needed):
    assert compiled.needed_bytes(problem) == needed


def test_without_the_compiler_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(compiled, "PACKAGES", ("json", "no_such_package"))
    with pytest.raises(UserError, match=r"pip install 'official-bert\[plan\]'"):
        compiled.require_compiler()


TINY_RUN = program.pretraining_run(
    dataclasses.replace(
        TINY.config, vocab_size=64, num_hidden_layers=1, max_position_embeddings=32
    ),
    max_seq_length=32,
    max_predictions_per_seq=4,
)


def exported(num_replicas, **flags):
    sizes = {"train_batch_size": 8 * num_replicas, "num_train_steps": 9}
    settings = make(FineTuningSettings, **FINE_TUNING | sizes | flags)
    return program.export_run(TINY_RUN, settings, 8, num_replicas)


def test_the_program_of_several_replicas_has_sums():
    assert b"all-reduce" not in exported(1)
    assert exported(4).count(b"all-reduce") > 10


@needs_compiler
def test_the_compiler_of_a_tpu_takes_the_step():
    work = Workload(TINY_RUN.config, 8, 32, 4, "float32")
    made = compiled.compile_plan(exported(4), SLICE, 4, work)
    assert made.compiles and made.fits
    assert made.collectives["all-reduce"][0] <= 5
    assert made.host == []
    # Memory is for weights, both moments, and little else: results replace arguments.
    weights = 12 * work.num_weights
    assert weights < made.argument_gb * 1e9 < 1.5 * weights + 1e5


@needs_compiler
def test_micro_batches_do_the_same_work():
    work = Workload(TINY_RUN.config, 8, 32, 4, "float32")
    whole = compiled.compile_plan(exported(1), SLICE, 1, work)
    split = compiled.compile_plan(
        exported(1, micro_batch_size=2),
        SLICE,
        1,
        dataclasses.replace(work, micro_batch_size=2),
    )
    assert whole.flops < split.flops < 1.5 * whole.flops
    assert split.bytes_accessed > whole.bytes_accessed


# A module that reads from the host. TensorFlow's training steps contain no such read.
INFEED = """HloModule reads, entry_computation_layout={(f32[8]{0})->f32[8]{0}}
ENTRY main {
  x = f32[8]{0} parameter(0)
  t = token[] after-all()
  i = (f32[8]{0}, token[]) infeed(t)
  y = f32[8]{0} get-tuple-element(i), index=0
  ROOT z = f32[8]{0} add(x, y)
}
"""


@needs_compiler
def test_the_compiler_shows_what_the_host_does():
    program_ = tpu_compiler.parse_program(INFEED)
    made = compiled.compile_plan(program_, SLICE, 1, TINY)
    assert made.compiles, made.problem
    assert made.host == ["infeed"]


@needs_compiler
def test_a_v4_chip_is_one_device():
    """Its two cores share the memory, as in `chips.TPUS`."""
    slice_ = parse_topology("v4:2x2x1")
    made = compiled.compile_plan(exported(5), slice_, 5, TINY)
    assert made.problem == "ValueError: v4:2x2x1 has 4 devices"
