"""Recomputing blocks takes time, saves memory, and changes nothing else."""

import dataclasses
import json
import os
import pathlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates
import warm_python
from marks import slow
from places import ROOT

from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training.precision import computing_in

CONFIG = dataclasses.replace(updates.CONFIG, num_hidden_layers=2)
SCRIPT = pathlib.Path(__file__).parent / "recompute_memory.py"


def make_model(recompute, precision="float32"):
    """Return a model whose weights do not depend on the arguments."""
    keras.utils.set_random_seed(0)
    with computing_in(precision):
        return PretrainingModel(CONFIG, recompute)


def in_training(model, seed=(3, 4096), graph=True):
    """Return [loss, *gradients] with the dropout masks of a seed."""

    def of_batch(features):
        given = tf.constant(seed, tf.int64)
        return updates.loss_and_gradients(
            model, features, training=True, dropout_seed=given
        )

    function = tf.function(of_batch, autograph=False) if graph else of_batch
    loss, gradients = function(updates.batch(rows=4))
    return [loss, *gradients]


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
def test_loss_and_gradients_are_the_same(graph):
    plain, recomputed = (in_training(make_model(r), graph=graph) for r in (False, True))
    assert updates.largest_difference(plain, recomputed) < 1e-6
    # Both computations therefore use the same masks. Other masks change the result.
    others = in_training(make_model(True), seed=(3, 8192), graph=graph)
    assert updates.largest_difference(others, plain) > 1e-2


@pytest.mark.parametrize("precision", ["bfloat16", slow("float16")])
def test_half_precision_is_that_of_the_first_computation(precision):
    """Keras chooses a layer's precision when the layer is called."""
    plain, recomputed = (
        in_training(make_model(r, precision), graph=False) for r in (False, True)
    )
    assert updates.largest_difference(plain, recomputed) < 1e-4
    assert updates.largest_difference(plain, in_training(make_model(False))) > 1e-4


def test_evaluation_is_the_same():
    features = updates.batch(rows=4)
    plain, recomputed = (make_model(r)(features) for r in (False, True))
    for name, value in plain.items():
        np.testing.assert_allclose(recomputed[name], value, atol=1e-6)


@pytest.mark.parametrize("kind", [BertEncoder, PretrainingModel])
@pytest.mark.parametrize("recompute", [True, False])
def test_the_config_of_a_layer_tells_it(kind, recompute):
    layer = kind(CONFIG, recompute)
    assert layer.get_config()["recompute"] is recompute
    again = kind.from_config(layer.get_config())
    encoder = again if kind is BertEncoder else again.bert
    assert encoder.recompute is recompute
    assert encoder.encoder.recompute is recompute
    assert again.get_config() == layer.get_config()


def test_it_is_off_by_default():
    assert not BertEncoder(CONFIG).recompute
    assert not PretrainingModel(CONFIG).bert.recompute


def test_attention_maps_are_not_returned():
    encoder = BertEncoder(CONFIG, recompute=True)
    outputs = encoder(updates.batch(rows=2), output_attention_probs=True)
    assert outputs["attention_probs"] == [None, None]


@pytest.mark.slow
def test_a_users_own_model_trains_and_reloads(tmp_path):
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = {n: keras.Input((32,), dtype="int32", name=n) for n in names}
    encoder = BertEncoder(CONFIG, recompute=True)
    pooled = encoder(inputs)["pooled_output"]
    model = keras.Model(inputs, keras.layers.Dense(1)(pooled))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    features = {name: updates.batch()[name] for name in names}
    kernels = [v for v in encoder.trainable_variables if "kernel" in v.path]
    before = [kernel.numpy() for kernel in kernels]
    model.fit(features, np.ones([8, 1]), epochs=1, verbose=0)
    for kernel, old in zip(kernels, before, strict=True):
        assert np.abs(kernel.numpy() - old).max() > 1e-5, kernel.path

    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_layer("bert").encoder.recompute
    np.testing.assert_array_equal(again(features), model(features))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_is_saved():
    done = warm_python.run([SCRIPT], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-2000:]
    grown = json.loads(done.stdout.splitlines()[-1])
    print(grown)
    assert grown["plain"] > 100
    assert grown["recomputed"] < 0.5 * grown["plain"]
