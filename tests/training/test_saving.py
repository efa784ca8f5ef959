"""Checkpoints of a run: written, kept, restored and refused."""

import dataclasses
import json
import math
import os
import pathlib
import resource
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, names
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training import run_manifest, saving
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam, BertLamb

RUN = 77


def make(config=MINI_CONFIG, step=0, seed=0, scaled=False, kind=BertAdam):
    """Return a `State` with random variables."""
    keras.utils.set_random_seed(seed)
    model, optimizer = PretrainingModel(config), kind(0.1)
    optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(seed)
    for slot in optimizer.slots().values():
        for variable in slot:
            variable.assign(rng.random(variable.shape))
    optimizer.iterations.assign(step)
    guard = Guard(scaled)
    for variable in guard.variables().values():
        variable.assign(int(rng.integers(1, 100)))
    return saving.State(model, optimizer, guard)


def save(directory, state, keep=5):
    saving.save_state(str(directory), state, RUN, keep)


def numbers(state):
    named = state.weights_and_slots() | state.guard_variables()
    return {name: variable.numpy() for name, variable in named.items()}


def equal(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("kind", [BertAdam, BertLamb])
def test_what_is_restored_is_what_was_saved(tmp_path, kind):
    saved = make(step=7, seed=1, kind=kind)
    save(tmp_path, saved)
    other = make(seed=2, kind=kind)
    assert saving.restore_state(tmp_path, other) == 7
    assert other.step == 7
    equal(numbers(other), numbers(saved))


@pytest.mark.parametrize(
    ("now", "before"),
    [(True, False), slow(False, True), slow(False, False), (True, True)],
)
def test_a_loss_scale_is_that_of_a_run_that_scales(tmp_path, before, now):
    """A run that resumes in float16 begins with the first scale, not with 1."""
    saved = make(step=7, seed=1, scaled=before)
    save(tmp_path, saved)
    state = saving.State(make(seed=2).model, make(seed=2).optimizer, Guard(now))
    saving.restore_state(tmp_path, state)
    expected = Guard(now) if before != now else saved.guard
    for name in ("loss_scale", "good_updates"):
        assert getattr(state.guard, name) == getattr(expected, name)
    assert state.guard.skipped == saved.guard.skipped


def test_nothing_to_restore(tmp_path):
    state = make()
    before = numbers(state)
    assert saving.restore_state(tmp_path, state) == 0
    assert saving.restore_state(tmp_path / "none", state) == 0
    equal(numbers(state), before)


def test_names_are_the_original_s(tmp_path):
    """TensorFlow 1 finds weights, `adam_m` and `adam_v` of each, and the step."""
    state = make(step=3)
    save(tmp_path, state)
    prefix = tf.train.latest_checkpoint(str(tmp_path))
    assert prefix == str(tmp_path / "model.ckpt-3")
    expected = {"global_step": []}
    for variable in state.model.trainable_variables:
        for ending in ("", "/adam_m", "/adam_v"):
            expected[variable.path + ending] = list(variable.shape)
    found = dict(tf.train.list_variables(prefix))
    ours = {name for name in found if name.startswith("training/")}
    assert ours == {
        f"training/{name}" for name in ("run_id", "skipped", "skipped_in_row")
    }
    assert {name: found[name] for name in found.keys() - ours} == expected
    reader = tf.compat.v1.train.NewCheckpointReader(prefix)
    assert reader.get_tensor("global_step") == 3
    assert reader.get_tensor("global_step").dtype == np.int64
    name = state.model.trainable_variables[4].path
    np.testing.assert_array_equal(
        reader.get_tensor(f"{name}/adam_v"), state.optimizer.adam_v[4]
    )


def save_steps(directory, steps, keep=5):
    state = make()
    for step in steps:
        state.optimizer.iterations.assign(step)
        save(directory, state, keep)
    return state


def test_the_newest_are_kept(tmp_path):
    state = save_steps(tmp_path, (2, 4, 6, 8, 10, 12, 14))
    assert names.numbered_checkpoints(tmp_path) == [6, 8, 10, 12, 14]
    assert len(os.listdir(tmp_path)) == 2 * 5 + 1
    found = tf.train.get_checkpoint_state(str(tmp_path))
    assert found.model_checkpoint_path == str(tmp_path / "model.ckpt-14")
    assert len(found.all_model_checkpoint_paths) == 5
    assert saving.restore_state(tmp_path, state) == 14


def test_the_best_is_kept_besides(tmp_path):
    state = make()
    losses = {2: 3.0, 4: 1.0, 6: 2.0, 8: 1.0, 10: 1.5}
    for step, loss in losses.items():
        state.optimizer.iterations.assign(step)
        save(tmp_path, state, keep=2)
        saving.note_evaluation(tmp_path, step, loss)
    # Of two equal evaluations, the first stays the best.
    assert names.numbered_checkpoints(tmp_path) == [4, 8, 10]
    assert json.loads((tmp_path / "best_checkpoint.json").read_text()) == {
        "step": 4,
        "loss": 1.0,
    }
    state.optimizer.iterations.assign(12)
    save(tmp_path, state, keep=2)
    saving.note_evaluation(tmp_path, 12, 0.5)
    save(tmp_path, state, keep=2)
    assert names.numbered_checkpoints(tmp_path) == [10, 12]


def test_of_a_score_the_highest_is_the_best(tmp_path):
    state = make()
    for step, accuracy in {2: 0.5, 4: 0.7, 6: 0.6, 8: 0.7}.items():
        state.optimizer.iterations.assign(step)
        save(tmp_path, state, keep=1)
        saving.note_evaluation(tmp_path, step, accuracy, "accuracy")
    assert names.numbered_checkpoints(tmp_path) == [4, 8]
    assert json.loads((tmp_path / "best_checkpoint.json").read_text()) == {
        "step": 4,
        "accuracy": 0.7,
    }


@pytest.mark.parametrize("score", [math.inf, math.nan, None])
def test_what_is_no_number_is_not_the_best(tmp_path, score):
    save_steps(tmp_path, (2, 4))
    for step, accuracy in {2: score, 4: 0.5}.items():
        saving.note_evaluation(tmp_path, step, accuracy, "accuracy")
    noted = json.loads((tmp_path / "best_checkpoint.json").read_text())
    assert noted == {"step": 4, "accuracy": 0.5}


def test_a_best_checkpoint_that_is_gone_is_no_longer_the_best(tmp_path):
    state = save_steps(tmp_path, (2, 4))
    saving.note_evaluation(tmp_path, 2, 0.5)
    google.delete_checkpoint(str(tmp_path / "model.ckpt-2"))
    saving.note_evaluation(tmp_path, 4, 1.5)
    save(tmp_path, state, keep=1)
    assert json.loads((tmp_path / "best_checkpoint.json").read_text())["step"] == 4


def test_a_full_disk_costs_only_the_new_checkpoint(tmp_path):
    state = save_steps(tmp_path, [1])
    before = sorted(os.listdir(tmp_path))
    state.optimizer.iterations.assign(2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(UserError, match="model.ckpt-2"):
            save(tmp_path, state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(tmp_path)) == before
    assert saving.restore_state(tmp_path, make(seed=5)) == 1


def test_half_of_a_checkpoint_is_none(tmp_path):
    """After a kill between data and index, the run resumes from the one before."""
    state = save_steps(tmp_path, [1])
    before = sorted(os.listdir(tmp_path))
    (tmp_path / "model.ckpt-2.data-00000-of-00001").write_bytes(b"half")
    assert saving.restore_state(tmp_path, state) == 1
    google.remove_halves(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": 32}, ["[128, 16]", "[128, 32]"]),
        ({"num_hidden_layers": 2}, ["layer_1", "missing"]),
    ],
)
def test_another_model(tmp_path, change, words):
    save(tmp_path, make(step=3))
    state = make(dataclasses.replace(MINI_CONFIG, **change))
    before = numbers(state)
    with pytest.raises(UserError) as caught:
        saving.restore_state(tmp_path, state)
    for word in [str(tmp_path / "model.ckpt-3"), "different model", *words]:
        assert word in str(caught.value)
    equal(numbers(state), before)
    assert state.step == 0


def test_another_optimizer(tmp_path):
    save(tmp_path, make(step=3))
    with pytest.raises(UserError, match="lamb_m: missing"):
        saving.restore_state(tmp_path, make(kind=BertLamb))


def test_an_evaluation_does_not_ask_for_the_optimizer(tmp_path):
    saved = make(step=3, seed=1, kind=BertLamb)
    save(tmp_path, saved)
    state = make()
    before = {name: v.numpy() for name, v in state.slots().items()}
    assert saving.restore_state(tmp_path, state, weights_only=True) == state.step == 3
    found = {name: v.numpy() for name, v in state.weights().items()}
    equal(found, {name: v.numpy() for name, v in saved.weights().items()})
    equal({name: v.numpy() for name, v in state.slots().items()}, before)


def test_going_on_from_a_prefix(tmp_path):
    saved = make(step=7, seed=1)
    save(tmp_path, saved)
    state = make()
    assert saving.restore_prefix(str(tmp_path / "model.ckpt-7"), state) == 7
    equal(numbers(state), numbers(saved))
    truncate_data(str(tmp_path / "model.ckpt-7"))
    with pytest.raises(UserError, match="model.ckpt-7: cannot read.*truncated"):
        saving.restore_prefix(str(tmp_path / "model.ckpt-7"), state)


def test_a_model_is_no_run(tmp_path):
    weights = {v.path: v.numpy() for v in make().model.trainable_variables}
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), weights)
    with pytest.raises(UserError, match="no global_step.*use --model"):
        saving.restore_prefix(str(tmp_path / "bert_model.ckpt"), make())


def truncate_data(prefix):
    os.truncate(f"{prefix}.data-00000-of-00001", 50)


def truncate_index(prefix):
    os.truncate(f"{prefix}.index", 30)


def empty_index(prefix):
    os.truncate(f"{prefix}.index", 0)


def flip_a_bit(prefix):
    path = pathlib.Path(f"{prefix}.data-00000-of-00001")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose_data(prefix):
    os.remove(f"{prefix}.data-00000-of-00001")


DAMAGES = [truncate_data, truncate_index, empty_index, flip_a_bit, lose_data]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(tmp_path, damage, capsys):
    saved = make(step=1, seed=1)
    save(tmp_path, saved)
    save(tmp_path, make(step=3, seed=3))
    damage(tmp_path / "model.ckpt-3")
    state = make()
    assert saving.restore_state(tmp_path, state) == 1
    equal(numbers(state), numbers(saved))
    said = capsys.readouterr().out
    assert f"{tmp_path}/model.ckpt-3 is damaged. Resuming from model.ckpt-1." in said


def test_what_was_passed_over_is_set_aside(tmp_path):
    """Otherwise it would count as one of the newest, and a good one be deleted."""
    save_steps(tmp_path, (2, 4, 6))
    truncate_data(tmp_path / "model.ckpt-6")
    state = make()
    saving.set_aside_newer(tmp_path, saving.restore_state(tmp_path, state))
    saving.forget_old(tmp_path, keep=1)
    assert names.numbered_checkpoints(tmp_path) == [4]
    assert (tmp_path / "model.ckpt-6.index.damaged").exists()
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-4")


@pytest.mark.parametrize("damage", [DAMAGES[0], *map(slow, DAMAGES[1:])])
def test_a_run_whose_checkpoints_are_all_damaged_does_not_start_over(tmp_path, damage):
    save(tmp_path, make(step=3))
    damage(tmp_path / "model.ckpt-3")
    state = make()
    before = numbers(state)
    with pytest.raises(UserError, match="no checkpoint in .* can be read"):
        saving.restore_state(tmp_path, state)
    with pytest.raises(UserError, match="^--continue_from: no checkpoint"):
        saving.restore_state(tmp_path, state, flag="--continue_from")
    equal(numbers(state), before)


def test_a_checkpoint_of_another_run(tmp_path):
    save(tmp_path, make(step=3))
    assert saving.restore_state(tmp_path, make(), RUN) == 3
    with pytest.raises(UserError, match="belongs to another run"):
        saving.restore_state(tmp_path, make(), RUN + 1)


def test_a_worker_reads_what_the_chief_has_chosen(tmp_path):
    save_steps(tmp_path, (2, 4))
    assert saving.restore_state(tmp_path, make(), RUN, step=2) == 2
    with pytest.raises(UserError, match="no checkpoint in"):
        saving.restore_state(tmp_path, make(), RUN, step=6)


def test_a_run_of_the_original_goes_on(shared, tmp_path):
    """Its `model.ckpt-N` with Adam's moments continues at its step."""
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
    state = make(dataclasses.replace(config, hidden_act="gelu_erf"))
    model, optimizer = state.model, state.optimizer
    run_id = run_manifest.open_run(tmp_path, {"seed": 1})
    assert saving.restore_state(tmp_path, state, run_id) == step > 0
    moments = np.concatenate([v.numpy().ravel() for v in optimizer.adam_v])
    assert moments.any()
    for index, weight in enumerate(model.trainable_variables):
        for name, variable in (
            (weight.path, weight),
            (weight.path + "/adam_m", optimizer.adam_m[index]),
            (weight.path + "/adam_v", optimizer.adam_v[index]),
        ):
            np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name))
