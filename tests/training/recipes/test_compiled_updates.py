"""XLA compiles the weight updates of all optimizers, as it does on GPUs."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.training.optimizer import BertLamb
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.recipes.muon import BertMuon
from official_bert.training.recipes.stable_adam import StableAdam
from official_bert.training.step import StepSettings, make_train_step

OPTIMIZERS = {
    "lamb": lambda: BertLamb(1e-2),
    "muon": lambda: BertMuon(1e-2),
    "stable": lambda: StableAdam(1e-2, 0.5, first_averaged=1),
}


def train(name, compiled):
    """Return name -> array of weights and slots after three training steps."""
    optimizer = OPTIMIZERS[name]()
    state = updates.make_state(updates.WITHOUT_DROPOUT, optimizer=optimizer)
    step = make_train_step(
        tf.distribute.get_strategy(),
        state.model,
        state.optimizer,
        state.guard,
        PRETRAINING,
        StepSettings(seed=1),
        dataclasses.replace(WITH_GRADIENTS, compiles_update=compiled),
    )
    for first in (0, 8, 0):
        step(updates.batch(first=first))
    return updates.numbers(state)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_update_is_the_plain_one(name):
    plain, compiled = train(name, False), train(name, True)
    assert set(plain) == set(compiled)
    for weight, value in plain.items():
        np.testing.assert_allclose(
            compiled[weight], value, rtol=1e-2, atol=1e-4, err_msg=weight
        )
