"""A run with records and output in an object store, for which `ram://` stands.

tests/storage/store_torture.py kills such a run. It uses TensorFlow's Cloud Storage
client and a test server.
"""

import json
import secrets

import numpy as np
import pytest
import record_files
import tensorflow as tf
from killed_run import killed_at
from record_files import MINI_CONFIG
from test_pretraining import metrics, run

from official_bert import files, object_store
from official_bert.checkpoints import google, names
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import StoreError, UserError
from official_bert.training import saving
from official_bert.training.logs.run_log import RATES, RunLog, read_metrics

STEPS = 6


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """(local records, the same records in a store)."""
    folder = tmp_path_factory.mktemp("records")
    local = record_files.write_mini(folder, manifest=True)
    remote = f"ram://run-{secrets.token_hex(4)}/records"
    for path in folder.iterdir():
        files.copy(path, f"{remote}/{path.name}")
    opened = [open_record_set(p, MINI_CONFIG) for p in (local, f"{remote}/*.tfrecord")]
    return opened


@pytest.fixture(scope="module")
def whole(records, tmp_path_factory):
    return run(records[0], tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def continued(records):
    """A run that was killed after step 5, and whose last checkpoint lost a part."""
    directory = f"ram://run-{secrets.token_hex(4)}/output"
    killed_at(5, lambda: run(records[1], directory), pytest.MonkeyPatch)
    assert names.numbered_checkpoints(directory) == [2, 4]
    object_store.remove(f"{directory}/model.ckpt-4{google.ENDINGS[1]}")
    return run(records[1], directory)


def tensors(prefix):
    reader = google.open_checkpoint(str(prefix))
    wanted = set(reader.get_variable_to_shape_map()) - {saving.RUN_ID}
    return {name: reader.get_tensor(name) for name in wanted}


@pytest.mark.parametrize(
    "refusal",
    [
        StoreError("gs://bucket/run: the quota of the store is used up."),
        tf.errors.AbortedError(
            None, None, "Error executing an HTTP request: HTTP response code 429"
        ),
    ],
)
def test_after_a_refusal_the_log_asks_the_store_for_nothing(monkeypatch, refusal):
    """Each request takes minutes until the client gives it up."""
    directory = f"ram://run-{secrets.token_hex(4)}/output"
    with pytest.raises(type(refusal)), RunLog(directory, STEPS) as log:
        log.training(1, {"loss": 1.0, "sequences_per_second": 1.0})
        monkeypatch.setattr(object_store, "upload", lambda *_: pytest.fail("upload"))
        raise refusal


@pytest.mark.parametrize("prefix", [f"model.ckpt-{STEPS}", "bert_model.ckpt"])
def test_weights_and_moments_are_those_of_a_local_run(whole, continued, prefix):
    expected, found = tensors(whole / prefix), tensors(f"{continued}/{prefix}")
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_log_is_that_of_a_local_run(whole, continued):
    rows = read_metrics(continued)
    for row in rows:
        for name in RATES:
            row.pop(name, None)
    assert rows == metrics(whole)


def test_the_incomplete_checkpoint_was_set_aside(continued):
    kept = object_store.list_directory(continued)
    assert f"model.ckpt-4{names.PARTS}.damaged" in kept
    assert names.numbered_checkpoints(continued) == [2, 4, 6]


def test_no_claim_and_no_half_is_left(continued):
    left = object_store.list_directory(continued)
    assert not [name for name in left if name.startswith(".lease") or ".tmp" in name]


def test_a_checkpoint_that_cannot_be_read_now_is_not_damaged(records, monkeypatch):
    """The store may answer again later: nothing is set aside, no older step counts."""
    directory = f"ram://run-{secrets.token_hex(4)}/output"
    killed_at(5, lambda: run(records[1], directory), pytest.MonkeyPatch)
    before = object_store.list_directory(directory)
    with monkeypatch.context() as patch:
        opened = tf.compat.v1.train.NewCheckpointReader

        def refusing(prefix):
            if prefix.endswith("model.ckpt-4"):
                reason = "HTTP response code 403 with body '{}'"
                text = (
                    f"Error executing an HTTP request: {reason} when reading {prefix}"
                )
                raise tf.errors.DataLossError(None, None, text)
            return opened(prefix)

        patch.setattr(tf.compat.v1.train, "NewCheckpointReader", refusing)
        with pytest.raises(StoreError, match=r"model\.ckpt-4: permission is denied"):
            run(records[1], directory)
    after = object_store.list_directory(directory)
    assert {name for name in before if "ckpt" in name} <= set(after)
    assert not [name for name in after if name.endswith(".damaged")]
    assert names.numbered_checkpoints(directory) == [2, 4]


def test_a_refused_run_leaves_nothing(records):
    directory = f"ram://run-{secrets.token_hex(4)}/refused"
    with pytest.raises(UserError, match="train_batch_size"):
        run(records[1], directory, train_batch_size=10_000)
    assert object_store.list_directory(directory) == []


def test_its_lists_of_parts_name_the_bytes(continued):
    prefix = f"{continued}/model.ckpt-{STEPS}"
    described = json.loads(object_store.read(prefix + names.PARTS))
    for name, part in described["parts"].items():
        assert part["sha256"] == files.sha256_of(f"{continued}/{name}")
