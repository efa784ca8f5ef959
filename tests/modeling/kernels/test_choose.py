"""The choice of kernels for a run."""

import pytest
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.kernels import choose, element_wise, packing, whole_program
from official_bert.modeling.kernels.interface import PLAIN

CONFIG = BertConfig(100, hidden_size=100, num_hidden_layers=10, num_attention_heads=2)


def chosen(precision="float32", num_tokens=1_000_000, skip_padding=True, xla=False):
    return choose.for_training(CONFIG, precision, num_tokens, skip_padding, xla)


def is_compiled(kernels):
    """Return whether XLA compiles the element-wise work of passes and optimizer."""
    return kernels.attention is element_wise.attention, kernels.compiles_update


def test_when_compiling_pays_off():
    assert is_compiled(chosen()) == (True, True)
    assert is_compiled(chosen(num_tokens=999_999)) == (False, False)
    assert is_compiled(chosen("bfloat16")) == (False, False)


def test_in_a_step_that_xla_compiles_only_the_update_is_compiled_by_itself():
    kernels = chosen(skip_padding=False, xla=True)
    assert is_compiled(kernels) == (False, True)
    assert kernels.attention is whole_program.attention


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_it_is_for_cpus_alone(kind, monkeypatch):
    devices = [tf.config.LogicalDevice("/device:CPU:0", "CPU")]
    devices.append(tf.config.LogicalDevice(f"/device:{kind}:0", kind))
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: devices)
    assert is_compiled(chosen()) == (False, False)


def test_packing():
    assert chosen().pack is packing.pack_in_groups
    assert chosen(num_tokens=1).pack is packing.pack_tokens
    assert chosen(skip_padding=False).pack is None


def test_training_has_hand_written_gradients():
    for name in ("gelu", "gelu_erf", "layer_norm", "cross_entropy"):
        used = getattr(chosen(num_tokens=1), name)
        assert used is getattr(choose.WITH_GRADIENTS, name)
        assert used is not getattr(PLAIN, name)
