"""A run on disk: what is written, kept, restored and refused."""

import dataclasses
import os
import resource
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.checkpoints import google
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training import saving
from official_bert.training.optimizer import BertAdam


def make(config=MINI_CONFIG, step=0, seed=0):
    """Return (model, optimizer), every variable of them random."""
    keras.utils.set_random_seed(seed)
    model, optimizer = PretrainingModel(config), BertAdam(0.1)
    optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(seed)
    for variable in (*optimizer.adam_m, *optimizer.adam_v):
        variable.assign(rng.random(variable.shape))
    optimizer.iterations.assign(step)
    return model, optimizer


def state(model, optimizer):
    groups = (model.trainable_variables, optimizer.adam_m, optimizer.adam_v)
    return [[v.numpy() for v in group] for group in groups]


def equal(one, other):
    for group, other_group in zip(one, other, strict=True):
        for a, b in zip(group, other_group, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_restored_is_what_was_saved(tmp_path):
    saved = make(step=7, seed=1)
    saving.save_state(tmp_path, *saved)
    model, optimizer = make(seed=2)
    assert saving.restore_state(tmp_path, model, optimizer) == 7
    assert int(optimizer.iterations) == 7
    equal(state(model, optimizer), state(*saved))


def test_nothing_to_restore(tmp_path):
    model, optimizer = make()
    before = state(model, optimizer)
    assert saving.restore_state(tmp_path, model, optimizer) == 0
    assert saving.restore_state(tmp_path / "none", model, optimizer) == 0
    equal(state(model, optimizer), before)


def test_names_are_the_original_s(tmp_path):
    """Weights, `adam_m` and `adam_v` of each, and the step, for TensorFlow 1."""
    model, optimizer = make(step=3)
    saving.save_state(tmp_path, model, optimizer)
    prefix = tf.train.latest_checkpoint(str(tmp_path))
    assert prefix == str(tmp_path / "model.ckpt-3")
    expected = {"global_step": []}
    for variable in model.trainable_variables:
        for ending in ("", "/adam_m", "/adam_v"):
            expected[variable.path + ending] = list(variable.shape)
    assert dict(tf.train.list_variables(prefix)) == expected
    reader = tf.compat.v1.train.NewCheckpointReader(prefix)
    assert reader.get_tensor("global_step") == 3
    assert reader.get_tensor("global_step").dtype == np.int64
    name = model.trainable_variables[4].path
    np.testing.assert_array_equal(
        reader.get_tensor(f"{name}/adam_v"), optimizer.adam_v[4]
    )


def test_the_newest_five_are_kept(tmp_path):
    model, optimizer = make()
    for step in (2, 4, 6, 8, 10, 12, 14):
        optimizer.iterations.assign(step)
        saving.save_state(tmp_path, model, optimizer)
    assert google.numbered_checkpoints(tmp_path) == [6, 8, 10, 12, 14]
    assert len(os.listdir(tmp_path)) == 2 * 5 + 1
    found = tf.train.get_checkpoint_state(str(tmp_path))
    assert found.model_checkpoint_path == str(tmp_path / "model.ckpt-14")
    assert len(found.all_model_checkpoint_paths) == 5
    assert saving.restore_state(tmp_path, model, optimizer) == 14


def test_a_full_disk_costs_only_the_new_checkpoint(tmp_path):
    model, optimizer = make(step=1)
    saving.save_state(tmp_path, model, optimizer)
    before = sorted(os.listdir(tmp_path))
    optimizer.iterations.assign(2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(UserError, match="model.ckpt-2"):
            saving.save_state(tmp_path, model, optimizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(tmp_path)) == before
    assert saving.restore_state(tmp_path, *make(seed=5)) == 1


def test_half_of_a_checkpoint_is_none(tmp_path):
    """Killed between data and index: the run continues from the one before."""
    model, optimizer = make(step=1)
    saving.save_state(tmp_path, model, optimizer)
    (tmp_path / "model.ckpt-2.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "model.ckpt-2.tmp.99").mkdir()
    assert saving.restore_state(tmp_path, model, optimizer) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": 32}, ["[128, 16]", "[128, 32]"]),
        ({"num_hidden_layers": 2}, ["layer_1", "missing"]),
    ],
)
def test_another_model(tmp_path, change, words):
    saving.save_state(tmp_path, *make(step=3))
    model, optimizer = make(dataclasses.replace(MINI_CONFIG, **change))
    before = state(model, optimizer)
    with pytest.raises(UserError) as caught:
        saving.restore_state(tmp_path, model, optimizer)
    for word in ["--output_dir", str(tmp_path), "model.ckpt-3", *words]:
        assert word in str(caught.value)
    equal(state(model, optimizer), before)
    assert int(optimizer.iterations) == 0


def test_truncated_checkpoint(tmp_path):
    saving.save_state(tmp_path, *make(step=3))
    os.truncate(tmp_path / "model.ckpt-3.data-00000-of-00001", 50)
    with pytest.raises(UserError, match="model.ckpt-3: cannot read"):
        saving.restore_state(tmp_path, *make())


SETTINGS = {"bert_config": {"hidden_size": 16}, "learning_rate": 1e-4, "seed": 3}


def test_same_settings_continue(tmp_path):
    saving.check_settings(tmp_path, SETTINGS)
    saving.save_state(tmp_path, *make(step=1))
    saving.check_settings(tmp_path, dict(SETTINGS))


@pytest.mark.parametrize("name", list(SETTINGS))
def test_other_settings_are_refused(tmp_path, name):
    saving.check_settings(tmp_path, SETTINGS)
    saving.save_state(tmp_path, *make(step=1))
    before = (tmp_path / "training.json").read_bytes()
    with pytest.raises(UserError, match=f"--output_dir: .* a run with {name}"):
        saving.check_settings(tmp_path, {**SETTINGS, name: 5})
    assert (tmp_path / "training.json").read_bytes() == before


def test_long_lists_of_files_make_no_long_sentence(tmp_path):
    names = [f"{number}.tfrecord" for number in range(500)]
    saving.check_settings(tmp_path, {"input_files": names})
    saving.save_state(tmp_path, *make(step=1))
    with pytest.raises(UserError) as caught:
        saving.check_settings(tmp_path, {"input_files": names[1:]})
    assert "input_files ['0.tfrecord', " in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_run_that_never_saved_may_change(tmp_path):
    saving.check_settings(tmp_path, SETTINGS)
    saving.check_settings(tmp_path, {**SETTINGS, "seed": 4})
    saving.save_state(tmp_path, *make(step=1))
    saving.check_settings(tmp_path, {**SETTINGS, "seed": 4})


@pytest.mark.parametrize("trained_here", [True, False])
def test_a_model_without_its_run_is_not_overwritten(tmp_path, trained_here):
    if trained_here:
        saving.check_settings(tmp_path, SETTINGS)
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), {"a": np.ones(2)})
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UserError, match="holds a model .*choose another directory"):
        saving.check_settings(tmp_path, SETTINGS)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_run_of_the_original_goes_on(shared, tmp_path):
    """Its `model.ckpt-N`, with Adam's moments, is continued where it stands."""
    source = shared / "golden" / "modeling" / "tf1_checkpoint_L2_H4"
    reader = tf.train.load_checkpoint(str(source / "bert_model.ckpt"))
    step = int(reader.get_tensor("global_step"))
    for ending in google.ENDINGS:
        shutil.copy(f"{source}/bert_model.ckpt{ending}", tmp_path)
        os.rename(
            tmp_path / f"bert_model.ckpt{ending}",
            tmp_path / f"model.ckpt-{step}{ending}",
        )
    config = BertConfig.from_json_file(source / "bert_config.json")
    model, optimizer = make(config)
    saving.check_settings(tmp_path, {"seed": 1})
    assert saving.restore_state(tmp_path, model, optimizer) == step > 0
    moments = np.concatenate([v.numpy().ravel() for v in optimizer.adam_v])
    assert moments.any()
    for index, weight in enumerate(model.trainable_variables):
        for name, variable in (
            (weight.path, weight),
            (weight.path + "/adam_m", optimizer.adam_m[index]),
            (weight.path + "/adam_v", optimizer.adam_v[index]),
        ):
            np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name))
