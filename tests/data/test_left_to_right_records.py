"""Records for ablations: next tokens as labels, and pairs without random texts."""

import dataclasses

import numpy as np
import pytest
import record_files
from record_files import MINI_CONFIG, mini_records, stacked, unmasked

from official_bert.data.records.manifest import write_manifest
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError


def shortened(record, count):
    """Return an unmasked record with `count` fewer tokens and more padding."""
    record = unmasked(record)
    for name in ("input_ids", "input_mask", "segment_ids"):
        record[name] = record[name][: 32 - count] + [0] * count
    return record


PLAIN = [shortened(record, n % 7) for n, record in enumerate(mini_records())]
CAUSAL = dataclasses.replace(MINI_CONFIG, causal_attention=True)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    path = record_files.write(folder / "0.tfrecord", PLAIN)
    made_with = record_files.unmasked_manifest(next_sentence_prediction=False)
    write_manifest({path: made_with})
    return path


def test_every_next_token_is_to_be_guessed(records):
    found = open_record_set(records, CAUSAL)
    assert found.max_predictions_per_seq == 31 and found.format.masking is None
    (batch,) = found.evaluation_batches(len(PLAIN), 1)
    batch = {name: value.numpy() for name, value in batch.items()}
    plain = stacked(PLAIN)
    np.testing.assert_array_equal(batch["input_ids"], plain["input_ids"])
    used = plain["input_mask"].sum(axis=1)
    np.testing.assert_array_equal(batch["masked_lm_positions"], [range(31)] * len(used))
    real = batch["masked_lm_weights"] == 1
    np.testing.assert_array_equal(batch["masked_lm_weights"].sum(axis=1), used - 1)
    for row, count in enumerate(used):
        assert real[row, : count - 1].all()
        labels = batch["masked_lm_ids"][row, : count - 1]
        np.testing.assert_array_equal(labels, plain["input_ids"][row, 1:count])
    assert len(set(used)) > 1


def test_masked_records_are_refused(tmp_path):
    masked = record_files.write_mini(tmp_path, manifest=True)
    with pytest.raises(UserError, match="needs unmasked records. .* --masking=dynamic"):
        open_record_set(masked, CAUSAL)


def test_a_trainer_and_its_records_agree_on_next_sentences(records, tmp_path):
    found = open_record_set(records, MINI_CONFIG)
    found.check_next_sentence_prediction(False)
    with pytest.raises(
        UserError, match="was created with --nonext_sentence_prediction"
    ):
        found.check_next_sentence_prediction(True)
    # Records of the original do not state this.
    open_record_set(
        record_files.write_mini(tmp_path), MINI_CONFIG
    ).check_next_sentence_prediction(False)
