"""Runs on packed rows: killed and resumed, evaluated, refused."""

import pytest
import record_files
import tensorflow as tf
from killed_run import assert_same_bytes, killed_at
from record_files import MINI_CONFIG
from test_pretraining import SETTINGS, metrics, run, tensors

from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError
from official_bert.modeling.kernels import packing
from official_bert.training import pretraining

STEPS = SETTINGS.optimization.num_train_steps
COUNT = 60


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "short.tfrecord"
    record_files.write(path, record_files.short(COUNT))
    return open_record_set(str(path), MINI_CONFIG)


@pytest.fixture(scope="module")
def records(unpacked):
    return unpacked.packed()


@pytest.fixture(scope="module")
def whole(records, unpacked, tmp_path_factory):
    """The output directory of an undisturbed run."""
    return run(records, tmp_path_factory.mktemp("whole"), eval_set=unpacked)


@pytest.mark.slow
def test_continued_is_bit_for_bit_the_whole_run(records, whole, tmp_path):
    """Evaluating the training records gives the same result as an unpacked run."""
    killed_at(3, lambda: run(records, tmp_path), pytest.MonkeyPatch)
    assert [row["step"] for row in metrics(tmp_path)][-1] == 3
    run(records, tmp_path)
    last = f"model.ckpt-{STEPS}"
    assert_same_bytes(tensors(tmp_path / last), tensors(whole / last))
    assert metrics(tmp_path) == metrics(whole)


def test_a_batch_counts_rows(records):
    """The first batch has more sequences than rows; all count in the loss."""
    size = SETTINGS.loop.train_batch_size
    (batch,) = records.training_batches(size, SETTINGS.step.seed, 0).take(1)
    sequences = float(tf.reduce_sum(batch["next_sentence_weights"]))
    assert sequences > 1.2 * size
    weights = pretraining.PRETRAINING.weights(batch)
    assert float(weights["next_sentence_loss"]) == sequences


def test_a_run_goes_on_with_its_packing_only(whole, unpacked):
    with pytest.raises(UserError, match="sequences_per_row 3, and now it is None"):
        run(unpacked, whole)


@pytest.mark.slow
def test_a_run_without_packing_does_not_begin_to_pack(records, unpacked, tmp_path):
    run(unpacked, tmp_path, num_train_steps=2, do_eval=False)
    with pytest.raises(UserError, match="sequences_per_row None, and now it is 3"):
        run(records, tmp_path, num_train_steps=2, do_eval=False)


@pytest.mark.slow
def test_padding_is_not_skipped(records, unpacked, tmp_path, monkeypatch):
    """Packed rows have little padding, and static shapes."""

    def refuse(mask):
        raise AssertionError("Padding was skipped.")

    monkeypatch.setattr(packing, "pack_tokens", refuse)
    run(records, tmp_path, num_train_steps=1, do_eval=False)
    with pytest.raises(AssertionError, match="Padding was skipped"):
        run(unpacked, tmp_path / "unpacked", num_train_steps=1, do_eval=False)
