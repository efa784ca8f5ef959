"""`plan_training.py` from the command line."""

import importlib.util
import json

import pytest
import warm_python
from places import ROOT

from official_bert.training.plans import compiled

SCRIPT = ROOT / "run_scripts" / "plan_training.py"
HAS_COMPILER = all(map(importlib.util.find_spec, compiled.PACKAGES))


def plan(flags, status=0):
    done = warm_python.run([SCRIPT, *flags.split()], cwd=ROOT)
    assert done.returncode == status, done.stderr
    return done


@pytest.mark.parametrize(
    ("flags", "what", "rows"),
    [
        (
            "--flagfile=configs/base.flags --topology=8xh100",
            "configs/bert_base.json: 256 x 128, float32, on 8 x H100 SXM (8xh100)",
            ["900,000 steps", "all-reduce                  1, 440 MB"],
        ),
        (
            "--flagfile=configs/glue/mrpc.flags --topology=t4 "
            "--num_train_examples=3668",
            "configs/bert_base.json: 32 x 128, float32, on 1 x T4 (t4)",
            ["343 steps", "per run; --grid makes several"],
        ),
        (
            "--flagfile=configs/squad1.flags --topology=a100 --micro_batch_size=8 "
            "--recompute --precision=bfloat16",
            "32 x 384 in micro-batches of 8, bfloat16, recomputed, on 1 x A100",
            ["1,000 steps", "Give --num_train_examples"],
        ),
        (
            "--flagfile=configs/swag.flags --topology=l4 --command=run_swag",
            "configs/bert_base.json: 16 x 4 x 128, float32, on 1 x L4 (l4)",
            ["1,000 steps"],
        ),
        (
            "--flagfile=configs/base_512.flags --topology=8xh100",
            "256 x 512",
            ["counted from the first step of --continue_from"],
        ),
        (
            "--flagfile=configs/base.flags --topology=8xh100 "
            "--batch_size_steps=1000:512,2000:1024",
            "configs/bert_base.json: 1024 x 128",
            ["if every batch had 1024 sequences; some have fewer"],
        ),
    ],
)
def test_estimates(flags, what, rows):
    first, *rest = plan(flags).stdout.splitlines()
    assert what in first and first.endswith(": an estimate")
    text = "\n".join(rest)
    assert "fits" in text and "limited by" in text
    for row in rows:
        assert row in text


def test_a_plan_counts_the_tokens_of_the_highest_masking_rate():
    flags = "--flagfile=configs/base.flags --topology=8xh100 --json"
    plain, wider, same = (
        json.loads(plan(f"{flags} {more}").stdout)["flops"]
        for more in ("", "--masked_lm_prob=0.15:0.4", "--masked_lm_prob=0.15625")
    )
    # 20 of 128 tokens are 0.15625.
    assert plain == same < wider


def test_json_with_a_remedy():
    done = plan("--flagfile=configs/large_512.flags --topology=8xt4 --json")
    found = json.loads(done.stdout)
    assert {
        *("topology", "chips", "compiles", "flops", "bytes_accessed", "temp_gb"),
        *("argument_gb", "hbm_gb", "step_seconds", "bound", "days", "chip_hours"),
    } <= set(found)
    assert not found["fits"] and found["estimated"]
    assert found["remedy"].startswith("--micro_batch_size=")
    assert found["remedy_plan"]["fits"]
    assert f"Trying {found['remedy']}." in done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--flagfile=configs/base.flags", "Give --topology"),
        ("--flagfile=configs/base.flags --topology=v9", "--topology=v9 is unknown"),
        ("--topology=h100", "Give --bert_config_file"),
        (
            "--flagfile=configs/base.flags --topology=h100 --chips=2",
            "--chips=2, but h100 has only 1 chips",
        ),
        (
            "--flagfile=configs/base.flags --topology=t4 --precision=bfloat16",
            "T4 do not support bfloat16. Use --precision=float16",
        ),
        # The error messages of the training itself.
        (
            "--flagfile=configs/base.flags --topology=8xh100 --micro_batch_size=7",
            "--micro_batch_size=7 does not divide the 32 sequences",
        ),
        (
            "--flagfile=configs/base.flags --topology=8xh100 --train_batch_size=4",
            "--train_batch_size=4 is less than one sequence for each of 8 devices",
        ),
        (
            "--flagfile=configs/base.flags --topology=h100 --max_seq_length=1024",
            "--max_seq_length=1024 is too long: the model reads at most 512 tokens",
        ),
    ],
)
def test_refused(flags, words):
    done = plan(flags, status=1)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert words in done.stderr


def test_flags_that_do_not_say_whose_they_are():
    done = plan("--flagfile=configs/conll.flags --topology=t4", status=2)
    assert "--command=run_ner" in done.stderr


@pytest.mark.skipif(HAS_COMPILER, reason="the TPU's compiler is installed")
def test_without_the_compiler():
    done = plan("--flagfile=configs/tiny.flags --topology=v5e:2x2", status=1)
    assert "pip install 'official-bert[plan]'" in done.stderr


@pytest.mark.skipif(
    not HAS_COMPILER,
    reason="the TPU's compiler (the extra `plan`) is not installed",
)
def test_a_plan_by_the_compiler():
    done = plan("--flagfile=configs/tiny.flags --topology=v5e:2x2 --json")
    found = json.loads(done.stdout)
    assert found["compiles"] and found["fits"] and not found["estimated"]
    assert found["host"] == []
    assert found["collectives"]["all-reduce"][1] > 4 * 4e6
    assert "Tracing" in done.stderr
