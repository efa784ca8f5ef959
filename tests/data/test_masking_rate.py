"""The masking rate of training, as a function of the step."""

import dataclasses

import numpy as np
import pytest
import record_files
from record_files import MINI_CONFIG

from official_bert.data.dynamic_masking import MaskingRate
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return open_record_set(record_files.write_unmasked(folder), MINI_CONFIG)


def batches(records, rate, count=3, first=0, size=8):
    masked = records.masked_at(MaskingRate.parse(rate, 4))
    found = masked.training_batches(size, 7, first).take(count)
    return list(found.as_numpy_iterator())


def shares(batch):
    """Return the masked tokens of each row, and those that the rate 0.4 gives."""
    used = batch["input_mask"].sum(axis=1)
    return batch["masked_lm_weights"].sum(axis=1), np.round(used * 0.4)


def test_the_rate_is_linear_in_the_step():
    rate = MaskingRate.parse("0.30:0.15", 10)
    assert [round(float(rate.at(step)), 12) for step in (0, 1, 5, 10, 99)] == [
        *(0.3, 0.285, 0.225, 0.15, 0.15)
    ]
    assert rate.highest == 0.3 and str(rate) == "0.3:0.15"
    assert MaskingRate.parse("0.15:0.30", 10).highest == 0.3
    assert MaskingRate.parse("0.4", 10).at(3) == 0.4


def test_rows_have_room_for_the_masks_of_a_high_rate(records):
    assert records.max_predictions_per_seq == 5
    (batch,) = batches(records, "0.4", 1)
    assert batch["masked_lm_positions"].shape == (8, 13)
    masked, expected = shares(batch)
    np.testing.assert_array_equal(masked, expected)
    assert masked.max() > 5


def test_a_decreasing_rate_masks_fewer_tokens(records):
    found = [shares(batch) for batch in batches(records, "0.4:0.1", 5)]
    ratio = [masked.sum() / (expected.sum() / 0.4) for masked, expected in found]
    np.testing.assert_allclose(ratio, [0.4, 0.325, 0.25, 0.175, 0.1], atol=0.02)


def test_a_batch_is_a_function_of_its_number(records):
    whole, later = batches(records, "0.4:0.1"), batches(records, "0.4:0.1", 1, 2)
    for name, value in later[0].items():
        np.testing.assert_array_equal(value, whole[2][name], err_msg=name)


def test_the_rate_of_the_records_gives_the_same_batches(records):
    """The flag alone changes nothing, except for the room for masks."""
    plain = next(records.training_batches(8, 7, 0).as_numpy_iterator())
    wide = dataclasses.replace(records.masked_at(MaskingRate(0.15, 0.15, 4)))
    found = next(wide.training_batches(8, 7, 0).as_numpy_iterator())
    for name in ("input_ids", "masked_lm_positions", "masked_lm_ids"):
        np.testing.assert_array_equal(found[name], plain[name], err_msg=name)


def test_evaluations_keep_the_rate_of_the_records(records):
    masked = records.masked_at(MaskingRate.parse("0.4", 4))
    ours, plain = (
        list(each.evaluation_batches(8, 2).as_numpy_iterator())
        for each in (masked, records)
    )
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(one["input_ids"], other["input_ids"])
        assert one["masked_lm_ids"].shape == (8, 5)


def test_packed_rows_have_room_for_every_mask(records):
    packed = records.masked_at(MaskingRate.parse("0.4:0.2", 4)).packed()
    batch = next(packed.training_batches(4, 7, 0).as_numpy_iterator())
    assert batch["masked_lm_ids"].shape == (4, 13)
    assert batch["masked_lm_weights"].sum() > 4 * 5


@pytest.mark.parametrize("text", ["", "0", "1", "40", "0.3:", "0.1:0.2:0.3", "nan"])
def test_an_invalid_rate_is_refused(text):
    with pytest.raises(UserError, match="--masked_lm_prob=.* is invalid"):
        MaskingRate.parse(text, 4)


def test_stored_masks_have_no_other_rate(tmp_path):
    records = open_record_set(record_files.write_mini(tmp_path, True), MINI_CONFIG)
    with pytest.raises(UserError, match="--masking=dynamic"):
        records.masked_at(MaskingRate(0.4, 0.4, 4))
