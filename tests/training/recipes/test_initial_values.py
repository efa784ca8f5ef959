"""The standard deviations of the initial weights."""

import dataclasses
import math

import keras
import pytest
from record_files import MINI_CONFIG

from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training.recipes import initial_values

CONFIG = dataclasses.replace(MINI_CONFIG, num_hidden_layers=2, hidden_size=64)


def ratios(variant):
    """Return name -> factor of the variant for each weight."""
    values = []
    for name in (initial_values.ORIGINAL, variant):
        keras.utils.set_random_seed(1)
        model = PretrainingModel(CONFIG)
        initial_values.apply(model, CONFIG, name)
        values.append({v.path: v.numpy() for v in model.trainable_variables})
    return {
        name: float(values[1][name].std() / value.std())
        for name, value in values[0].items()
        if value.std()
    }


def test_residual_changes_only_kernels_before_residual_sums():
    found = ratios(initial_values.RESIDUAL)
    changed = {name for name, ratio in found.items() if ratio != pytest.approx(1)}
    assert changed == {
        f"bert/encoder/layer_{layer}/{part}output/dense/kernel"
        for layer in (0, 1)
        for part in ("", "attention/")
    }
    assert {round(found[name], 6) for name in changed} == {0.5}  # 1 / √(2 · 2)


def test_fan_in_has_the_deviation_of_its_inputs():
    found = ratios(initial_values.FAN_IN)
    for name, ratio in found.items():
        inputs = None
        if "/encoder/" in name:
            inputs = 24 if name.endswith("_0/output/dense/kernel") else 64
            inputs = 24 if name.endswith("_1/output/dense/kernel") else inputs
            if "attention/output" in name:
                inputs = 64
        expected = 1 / (math.sqrt(inputs) * 0.02) if inputs else 1.0
        assert ratio == pytest.approx(expected, rel=1e-5), name


def test_the_original_values_do_not_change():
    assert set(ratios(initial_values.ORIGINAL).values()) == {1.0}
