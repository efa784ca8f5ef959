"""Runs with newer recipes: killed, resumed, extended and evaluated."""

import dataclasses
import signal

import numpy as np
import pretraining_runs
import pytest
import record_files
from killed_run import assert_same_bytes, killed_at
from marks import slow
from record_files import MINI_CONFIG
from test_pretraining import STEPS, metrics, run, tensors

from official_bert.config import BertConfig
from official_bert.data.dynamic_masking import MaskingRate
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError
from official_bert.training import loop, saving

EXTENDED = {"learning_rate_schedule": "constant_decay", "num_decay_steps": 2}
RECIPES = [
    EXTENDED,
    {"optimizer": "muon"},
    {"optimizer": "lamb"},
    {"batch_size_steps": ((3, 32),)},
    {"masking": MaskingRate(0.4, 0.1, STEPS)},
    {"dropout": False},
    {"initializer": "fan_in"},
]
NAMES = ["constant_decay", "muon", "lamb", "batch_size_steps", "masking"]
NAMES += ["dropout", "initializer"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return open_record_set(record_files.write_unmasked(folder), MINI_CONFIG)


def train(records, directory, masking=None, **changes):
    train_set = records.masked_at(masking) if masking else records
    return run(train_set, directory, eval_set=records, **changes)


@pytest.fixture(scope="module")
def plain(records, tmp_path_factory):
    return train(records, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("recipe", [*RECIPES[:2], *map(slow, RECIPES[2:])], ids=NAMES)
def test_a_killed_run_ends_like_an_undisturbed_one(records, tmp_path, plain, recipe):
    whole = train(records, tmp_path / "whole", **recipe)
    killed = tmp_path / "killed"
    killed_at(5, lambda: train(records, killed, **recipe), pytest.MonkeyPatch)
    train(records, killed, **recipe)
    last = f"model.ckpt-{STEPS}"
    ours, theirs = tensors(killed / last), tensors(whole / last)
    assert_same_bytes(ours, theirs)
    assert metrics(killed) == metrics(whole)
    name = "bert/embeddings/word_embeddings"
    assert not np.array_equal(theirs[name], tensors(plain / last)[name])
    with pytest.raises(UserError, match="holds a run with"):
        train(records, killed)


def test_a_run_is_extended_from_before_its_decay(records, tmp_path):
    whole = train(records, tmp_path / "whole", **EXTENDED, num_train_steps=8)
    short = train(records, tmp_path / "short", **EXTENDED)
    before = f"{short}/model.ckpt-4"
    longer = tmp_path / "longer"
    train(records, longer, **EXTENDED, num_train_steps=8, continue_from=before)
    ours, theirs = (tensors(path / "model.ckpt-8") for path in (longer, whole))
    assert_same_bytes(ours, theirs)


def test_the_batch_size_grows_after_its_step(records, tmp_path, monkeypatch):
    sizes = []
    means = loop.Meter.means

    def noted(self, batch_size):
        sizes.append(batch_size)
        return means(self, batch_size)

    monkeypatch.setattr(loop.Meter, "means", noted)
    found = train(records, tmp_path / "run", batch_size_steps=((3, 32),))
    assert sizes == [16, 16, 16, 32, 32, 32]
    rows = [row["step"] for row in metrics(found) if "eval_loss" in row]
    assert rows == [2, 3, 4, 6]


def test_a_signal_at_the_end_of_a_batch_size_stops_the_run(
    records, tmp_path, monkeypatch
):
    save = saving.save_state

    def interrupted(directory, state, *arguments):
        save(directory, state, *arguments)
        if state.step == 3:
            signal.raise_signal(signal.SIGTERM)

    changes = {"batch_size_steps": ((3, 32),), "do_eval": False}
    with monkeypatch.context() as patch:
        patch.setattr(saving, "save_state", interrupted)
        stopped = train(records, tmp_path / "stopped", **changes)
    last = f"model.ckpt-{STEPS}"
    assert not (stopped / f"{last}.index").exists()
    train(records, stopped, **changes)
    whole = train(records, tmp_path / "whole", **changes)
    assert_same_bytes(tensors(stopped / last), tensors(whole / last))


def test_the_model_keeps_its_dropout_for_fine_tuning(records, tmp_path):
    found = train(records, tmp_path / "run", dropout=False, num_train_steps=2)
    saved = BertConfig.from_json_file(found / "bert_config.json")
    assert saved == MINI_CONFIG and saved.hidden_dropout_prob == 0.1


def test_a_masked_model_continues_from_a_causal_one(records, tmp_path):
    """One schedule: the second run counts the steps of both."""
    causal = dataclasses.replace(MINI_CONFIG, causal_attention=True)
    path = ",".join(records.index.files)
    left_to_right = open_record_set(path, causal)
    first = run(left_to_right, tmp_path / "first", causal, stop_at_step=4)
    second, changes = tmp_path / "second", {"continue_from": str(first)}
    killed_at(5, lambda: run(records, second, **changes), pytest.MonkeyPatch)
    run(records, second, **changes)
    whole = run(records, tmp_path / "whole", **changes)
    last = f"model.ckpt-{STEPS}"
    assert_same_bytes(tensors(second / last), tensors(whole / last))
    assert [row["step"] for row in metrics(whole) if "loss" in row] == [5, 6]
    # The learning rate continues, and Adam keeps its moments.
    rates = [
        row["learning_rate"]
        for each in (first, whole)
        for row in metrics(each)
        if "loss" in row
    ]
    assert rates == pytest.approx(
        [0, 2.5e-3, *(5e-3 * (1 - k / 6) for k in (2, 3, 4, 5))]
    )
    assert not BertConfig.from_json_file(whole / "bert_config.json").causal_attention


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["lamb", "muon"])
def test_the_command_trains_on_two_devices(tmp_path, optimizer):
    inputs = pretraining_runs.write_inputs(tmp_path)
    (tmp_path / "unmasked").mkdir()
    flags = inputs | {
        "input_file": record_files.write_unmasked(tmp_path / "unmasked"),
        "dev_file": inputs["input_file"],
        "do_eval": True,
        "num_devices": 2,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "num_decay_steps": 1,
        "learning_rate_schedule": "constant_decay",
        "batch_size_steps": "2:20",
        "masked_lm_prob": "0.4:0.1",
        "dropout": False,
        "initializer": "residual",
        "iterations_per_loop": 1,
        "optimizer": optimizer,
    }
    for devices in (1, 2):
        out = tmp_path / f"out{devices}"
        pretraining_runs.run(flags | {"output_dir": out, "num_devices": devices})
    # Without dropout, the split over devices changes only the rounding.
    ours, theirs = (tensors(tmp_path / f"out{n}/model.ckpt-4") for n in (1, 2))
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-2, atol=2e-4)
