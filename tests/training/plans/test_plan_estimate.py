"""Estimates: their arithmetic, compared with counts of the TPU compiler."""

import dataclasses
import json
import re

import pytest
from places import ROOT
from workloads import SLICE, TINY

from official_bert.config import BertConfig
from official_bert.training.plans import estimate, report
from official_bert.training.plans.chips import parse_topology
from official_bert.training.plans.workload import Workload

BASE = Workload(BertConfig.named("base"), 32, 128, 20, "bfloat16")


def test_weights():
    # The paper's 110 M and 340 M, with both heads.
    assert BASE.num_weights == 110_106_428
    assert dataclasses.replace(BASE, predictions_per_seq=0).num_weights == 109_482_240


def test_kept_by_hand():
    """12 layers of width 768, in units of H, for one token."""
    h, c = 768, 2
    # Inputs of five products and two LayerNorms; GELU's input, 4 H; 12 heads.
    assert estimate.kept_per_token(BASE) == c * (7 + 4) * h + 4 * 12
    # 12 x 128 probabilities are 2 H.
    plain = dataclasses.replace(BASE, is_compiled=False)
    assert estimate.kept_per_token(plain) == (c * (8 + 16 + 4) + 4 * (2 + 2)) * h


def test_memory_by_hand():
    weights, kept = BASE.num_weights, 32 * 128 * estimate.kept_per_token(BASE)
    logits = 32 * 20 * 30522 * 8
    assert estimate.argument_bytes(BASE) == 12 * weights
    # Gradients and the 16-bit copy; 12 layers and one more.
    assert estimate.temporary_bytes(BASE) == (4 + 2) * weights + 13 * kept + logits
    micro = dataclasses.replace(BASE, micro_batch_size=8)
    assert estimate.temporary_bytes(micro) == (
        (8 + 2) * weights + (13 * kept + logits) / 4
    )
    again = dataclasses.replace(BASE, recompute=True)
    inputs = 12 * 32 * 128 * 768 * 2
    assert estimate.temporary_bytes(again) == (
        (4 + 2) * weights + inputs + 2 * kept + logits
    )
    wide = dataclasses.replace(BASE, precision="float32")
    kept = 32 * 128 * estimate.kept_per_token(wide)
    assert estimate.temporary_bytes(wide) == 4 * weights + 13 * kept + logits


def test_recomputing_adds_a_third_of_the_operations():
    again = dataclasses.replace(BASE, recompute=True)
    ratio = estimate.operations(again) / estimate.operations(BASE)
    assert 1.25 < ratio < 4 / 3


def test_choices_are_sequences():
    work = dataclasses.replace(BASE, sequences_per_row=4, predictions_per_seq=0)
    four = dataclasses.replace(work, rows=128, sequences_per_row=1)
    assert estimate.operations(work) == estimate.operations(four)
    assert estimate.temporary_bytes(work) == estimate.temporary_bytes(four)


def test_plan():
    made = estimate.estimate(BASE, parse_topology("8xh100"), 8)
    assert made.estimated and made.compiles is None and made.fits
    assert made.collectives == {"all-reduce": [1, 4 * BASE.num_weights]}
    assert not estimate.estimate(BASE, parse_topology("h100"), 1).collectives


def compiled_rows():
    """Yield (name, `Workload`, the compiler's plan) of docs/accelerators.json."""
    path = ROOT / "docs" / "accelerators.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name, plan in found.items():
        sizes = re.search(r", (base|large), (\d+) x (\d+), (\w+), ours", name)
        # If memory is short, the compiler computes values again to save memory.
        if sizes and plan["compiles"] and plan["hbm_gb"] < 0.8 * plan["capacity_gb"]:
            model, batch, length, precision = sizes.groups()
            rows = int(batch) // plan["chips"]
            predictions = 20 if length == "128" else 77
            config = BertConfig.named(model)
            work = Workload(config, rows, int(length), predictions, precision)
            yield name, work, plan


@pytest.mark.parametrize("row", compiled_rows(), ids=lambda row: row[0])
def test_the_compiler_counts_about_the_same(row):
    _, work, plan = row
    assert estimate.operations(work) == pytest.approx(plan["flops"], rel=0.1)
    memory = estimate.argument_bytes(work) + estimate.temporary_bytes(work)
    assert memory / 1e9 == pytest.approx(plan["hbm_gb"], rel=0.3)
    # The compiler counts at least the minimum bytes, which are the estimate.
    assert estimate.transferred_bytes(work) < plan["bytes_accessed"]


LENGTHS = {128: (20, 900_000, ""), 512: (77, 100_000, "_512")}


def recipe(size, length, gpu):
    """Return (plan of 8 GPUs with 32 sequences each, GPU hours, text of the file)."""
    predictions, steps, suffix = LENGTHS[length]
    config = BertConfig.named(size)
    work = Workload(config, 32, length, predictions, "bfloat16")
    made = estimate.estimate(work, parse_topology(f"8x{gpu}"), 8)
    text = (ROOT / f"configs/{size}_8gpu{suffix}.flags").read_text()
    words = " ".join(text.replace("#", " ").split())
    return made, round(report.chip_hours(made, steps)), words


@pytest.mark.parametrize("size", ["base", "large"])
@pytest.mark.parametrize("length", LENGTHS)
def test_recipes_cite_the_estimates(size, length):
    a100, a100_hours, text = recipe(size, length, "a100")
    h100, h100_hours, _ = recipe(size, length, "h100")
    assert f"Memory {a100.hbm_gb:.2f} of {a100.capacity_gb:.1f} GB" in text
    times = [report.duration(made.step_seconds) for made in (a100, h100)]
    steps = LENGTHS[length][1]
    assert f"{times[0]} on A100, {times[1]} on H100; {steps:,} steps take" in text
    assert f"at least {a100_hours} and {h100_hours} GPU hours" in text


SLICES = {"base": ("v5e:4x4", "v5e_16"), "large": ("v4:4x4x4", "v4_64")}


def compiled(size, length):
    """Return (the compiler's plan of a recipe, its chip hours)."""
    plans = json.loads((ROOT / "docs" / "accelerators.json").read_text())
    name = f"pre-training, {SLICES[size][0]}, {size}, 256 x {length}, bfloat16, ours"
    seconds = plans[name]["step_seconds"] * LENGTHS[length][1]
    return plans[name], round(seconds / 3600 * plans[name]["chips"])


@pytest.mark.parametrize("size", SLICES)
@pytest.mark.parametrize("length", LENGTHS)
def test_recipes_cite_the_compiler(size, length):
    plan, hours = compiled(size, length)
    _, file = SLICES[size]
    _, steps, suffix = LENGTHS[length]
    text = (ROOT / f"configs/{size}_tpu_{file}{suffix}.flags").read_text()
    words = " ".join(text.replace("#", " ").split())
    assert f"HBM {plan['hbm_gb']:.2f} of {plan['capacity_gb']:.1f} GB" in words
    assert (
        f"is {report.duration(plan['step_seconds'])} (limit: {plan['bound']})" in words
    )
    assert f"{steps:,} steps take at least {hours} chip hours" in words


@pytest.mark.parametrize("size", ["base", "large"])
@pytest.mark.parametrize(("gpu", "name"), [("a100", "A100 80 GB"), ("h100", "H100")])
def test_the_table_of_costs(size, gpu, name):
    short, long = (recipe(size, length, gpu)[1] for length in LENGTHS)
    total = short + long
    slower = int(2.5 * total + 0.5)
    row = (
        f"| {size}, 8 × {name} (estimate) | {short} + {long} = {total} | {slower} | "
        f"{slower} × price |"
    )
    assert row in (ROOT / "docs/how_to/eight_gpus.md").read_text()


@pytest.mark.parametrize("size", SLICES)
def test_the_table_of_costs_on_tpus(size):
    short, long = (compiled(size, length)[1] for length in LENGTHS)
    total = short + long
    slower = int(2.5 * total + 0.5)
    row = (
        f"| {size}, TPU {SLICES[size][0]} (compiled) | {short} + {long} = {total} | "
        f"{slower} | {slower} × price |"
    )
    assert row in (ROOT / "docs/how_to/tpu.md").read_text()


def test_tiny_is_small():
    assert estimate.estimate(TINY, SLICE, 4).hbm_gb < 0.1
