"""Fine-tuning runs with the switches of docs/recipes.md, killed and resumed."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from killed_run import assert_same_bytes, killed_at
from marks import slow
from run_settings import start_of
from test_classifier import CONFIG, START, run

from official_bert.checkpoints import any_format
from official_bert.errors import UserError

SHORT = {"num_train_steps": 20, "save_checkpoints_steps": 10, "keep_checkpoint_max": 3}
SWITCHES = [
    {"average_last": 0.6, "layer_decay": 0.5, "reinit_layers": 1},
    {"optimizer": "muon"},
    {"optimizer": "lamb"},
]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return tiny_model.write(tmp_path_factory.mktemp("start") / "model")


def tensors(directory):
    with any_format.opened(directory) as checkpoint:
        return checkpoint.tensors()


@pytest.mark.parametrize(
    "switches",
    [SWITCHES[0], *map(slow, SWITCHES[1:])],
    ids=["stable", "muon", "lamb"],
)
def test_a_killed_run_ends_like_an_undisturbed_one(tmp_path, start, switches):
    changes = {**SHORT, **switches, "iterations_per_loop": 5}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    row = run(whole, start, **changes)
    killed_at(15, lambda: run(killed, start, **changes), pytest.MonkeyPatch)
    assert run(killed, start, **changes) == row
    assert_same_bytes(tensors(killed), tensors(whole))
    with pytest.raises(UserError, match="holds a run with"):
        run(killed, start, **SHORT, iterations_per_loop=5)


def test_the_model_and_its_scores_are_those_of_the_average(tmp_path, start):
    row = run(tmp_path, start, **SHORT, average_last=1.0)
    reader = tf.train.load_checkpoint(f"{tmp_path}/model.ckpt-{row['global_step']}")
    for name, value in tensors(tmp_path).items():
        offset = reader.get_tensor(f"{name}/average_offset")
        average = reader.get_tensor(name) + offset
        np.testing.assert_array_equal(value, average, err_msg=name)
        assert not np.array_equal(value, reader.get_tensor(name)), name
    # Evaluating the written model gives the scores of the run.
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    scores = {r["step"]: r["eval_accuracy"] for r in rows if "eval_accuracy" in r}
    assert scores[row["global_step"]] == row["accuracy"]


def test_reinitialized_layers_do_not_come_from_the_checkpoint(tmp_path, start, capsys):
    changes = {"num_train_steps": 1, "learning_rate": 1e-9, "num_warmup_steps": 0}
    run(tmp_path / "run", start, dev=None, reinit_layers=1, **changes)
    line = "Re-initialized (--reinit_layers): layer_0, pooler."
    assert line in capsys.readouterr().out.splitlines()
    found, given = tensors(tmp_path / "run"), tensors(start)
    for name, value in found.items():
        if name.startswith("output_"):
            continue
        new = name.startswith(("bert/pooler/", "bert/encoder/layer_0/"))
        assert np.allclose(value, given[name], atol=1e-6) != new, name


def test_a_model_has_only_so_many_layers(tmp_path, start):
    with pytest.raises(UserError, match="Give at most 1, the number"):
        run(tmp_path, start, reinit_layers=2)


def test_without_dropout_a_killed_run_is_that_of_a_config_without(tmp_path, start):
    """Only the written config differs: it keeps its rates."""
    changes = {**SHORT, "iterations_per_loop": 5}
    own = dataclasses.replace(START, dropout=False)
    without, killed = tmp_path / "without", tmp_path / "killed"
    row = run(without, start, begin=start_of(CONFIG.without_dropout()), **changes)
    killed_at(15, lambda: run(killed, start, begin=own, **changes), pytest.MonkeyPatch)
    with pytest.raises(UserError, match="holds a run with dropout False"):
        run(killed, start, **changes)
    assert run(killed, start, begin=own, **changes) == row
    assert_same_bytes(tensors(killed), tensors(without))
    written = json.loads((killed / "bert_config.json").read_text())
    assert written["hidden_dropout_prob"] == CONFIG.hidden_dropout_prob > 0
