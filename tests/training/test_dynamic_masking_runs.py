"""Runs on records without masks: killed and resumed, evaluated, refused."""

import dataclasses

import numpy as np
import pytest
import record_files
from killed_run import killed_at
from record_files import MINI_CONFIG
from test_pretraining import SETTINGS, metrics, run, tensors

from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError

STEPS = SETTINGS.optimization.num_train_steps


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return open_record_set(record_files.write_unmasked(folder), MINI_CONFIG)


@pytest.fixture(scope="module")
def whole(records, tmp_path_factory):
    """The output directory of an undisturbed run."""
    return run(records, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def continued(records, tmp_path_factory):
    """The output directory of the same run, killed after step 3 and resumed."""
    directory = tmp_path_factory.mktemp("continued")
    killed_at(3, lambda: run(records, directory), pytest.MonkeyPatch)
    assert [row["step"] for row in metrics(directory)][-1] == 3
    return run(records, directory)


@pytest.mark.slow
def test_continued_is_bit_for_bit_the_whole_run(whole, continued):
    ours = tensors(continued / f"model.ckpt-{STEPS}")
    theirs = tensors(whole / f"model.ckpt-{STEPS}")
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
    assert metrics(continued) == metrics(whole)


@pytest.mark.slow
def test_a_run_goes_on_with_its_masking_only(whole, records):
    rules = dataclasses.replace(records.format.masking, masked_lm_prob=0.3)
    other = dataclasses.replace(
        records, format=dataclasses.replace(records.format, masking=rules)
    )
    with pytest.raises(UserError, match="masking: masked_lm_prob 0.15, and now it is"):
        run(other, whole)


@pytest.mark.slow
def test_static_held_out_records_beside_unmasked_ones(records, tmp_path):
    folder = tmp_path / "static"
    folder.mkdir()
    static = open_record_set(record_files.write_mini(folder, True), MINI_CONFIG)
    out = run(records, tmp_path / "out", eval_set=static, num_train_steps=2)
    assert [row["step"] for row in metrics(out) if "eval_loss" in row] == [2]


def test_evaluations_of_one_model_agree(whole, records):
    """The masks of held-out data never change, not even with the run's seed."""
    last = [row for row in metrics(whole) if "eval_loss" in row][-1]
    run(records, whole, do_train=False, seed=SETTINGS.step.seed + 1)
    lines = (whole / "eval_results.txt").read_text().splitlines()
    found = dict(line.split(" = ") for line in lines)
    assert float(found["masked_lm_loss"]) == pytest.approx(
        last["eval_masked_lm_loss"], rel=1e-6
    )
