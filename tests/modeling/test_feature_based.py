"""The BiLSTM on a frozen encoder: its inputs, its layers, and its trained weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from marks import slow
from record_files import MINI_CONFIG

from official_bert.checkpoints import names
from official_bert.checkpoints.initialize import load_weights
from official_bert.constants import FEATURE_LAYERS, IGNORED
from official_bert.modeling import feature_based
from official_bert.modeling.feature_based import FeatureBasedModel, LayerMix
from official_bert.modeling.token_classification import token_terms
from official_bert.training import saving
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam, decays
from official_bert.training.saving import State
from official_bert.training.step import Objective, StepSettings, make_train_step

WIDTH = 5
CONFIG = {**MINI_CONFIG.to_dict(), "num_hidden_layers": 5, "initializer_range": 0.3}
SMALL = {**CONFIG, "num_hidden_layers": 1}
IDS = np.array([[2, 6, 3, 5, 7, 3], [2, 9, 3, 0, 0, 0]], np.int32)
FEATURES = {
    "input_ids": IDS,
    "input_mask": (IDS > 0).astype(np.int32),
    "segment_ids": np.zeros_like(IDS),
}
LABELS = np.array([[-1, 2, 0, 1, -1, -1], [-1, 0, -1, -1, -1, -1]], np.int32)
CELLS = [
    f"bilstm_{number}/{direction}_lstm/lstm_cell/{weight}"
    for number in range(2)
    for direction in ("forward", "backward")
    for weight in ("kernel", "recurrent_kernel", "bias")
]


@pytest.fixture(scope="module", autouse=True)
def narrow():
    """Make the BiLSTM narrow, because most tests do not need 384 units."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_based, "WIDTH", WIDTH)
        yield


def make(kind="weighted_sum_all", config=SMALL, seed=0):
    """Return a model in which the weights of all layers affect the result."""
    keras.utils.set_random_seed(seed)
    model = FeatureBasedModel(config, 3, kind)
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.5, size=variable.shape))
    return model


def numbers(model):
    return {names.google_name(v): v.numpy() for v in model.weights}


@pytest.fixture(scope="module")
def encoded():
    """Outputs of an encoder with five layers, as numpy arrays."""
    keras.utils.set_random_seed(0)
    model = FeatureBasedModel(CONFIG, 3, "last")
    return tf.nest.map_structure(np.asarray, dict(model.bert(FEATURES)))


def softmax(values):
    exponents = np.exp(values - np.max(values))
    return exponents / exponents.sum()


def mixed(kind, encoded, weight=None):
    """Return the combination of an encoder's outputs, by its definition."""
    hidden = encoded["all_encoder_layers"]
    if kind.startswith("weighted_sum"):
        chosen = hidden[-4:] if kind.endswith("four") else hidden
        return sum(s * x for s, x in zip(softmax(weight), chosen, strict=True))
    return {
        "embeddings": encoded["embedding_output"],
        "second_to_last": hidden[-2] if len(hidden) > 1 else None,
        "last": hidden[-1],
        "concat_last_four": np.concatenate(hidden[-4:], axis=-1),
    }[kind]


@pytest.mark.parametrize("kind", FEATURE_LAYERS)
def test_mix(encoded, kind):
    mix = LayerMix(kind, 5)
    mix.build()
    weight = None
    if kind.startswith("weighted_sum"):
        weight = np.array([0.5, -1, 2, 0, 1])[-mix.weight.shape[0] :]
        mix.weight.assign(weight)
        assert len(weight) == (4 if kind.endswith("four") else 5)
    else:
        assert not mix.weights
    found = mix(tf.nest.map_structure(tf.constant, encoded))
    expected = mixed(kind, encoded, weight)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert expected.shape == (2, 6, 64 if kind == "concat_last_four" else 16)
    assert len(encoded["all_encoder_layers"]) == 5


@pytest.mark.parametrize("kind", ["weighted_sum_last_four", "weighted_sum_all"])
def test_a_weighted_sum_begins_as_the_mean(encoded, kind):
    mix = LayerMix(kind, 5)
    mix.build()
    chosen = encoded["all_encoder_layers"][1 if kind.endswith("four") else 0 :]
    np.testing.assert_allclose(mix(encoded), np.mean(chosen, axis=0), atol=1e-5)


def test_the_layer_before_the_only_one_is_the_embeddings():
    model = make("second_to_last")
    encoded = model.bert(FEATURES)
    np.testing.assert_array_equal(model.mix(encoded), encoded["embedding_output"])


@pytest.mark.parametrize("layers", [slow(1), 2, slow(3), 4])
@pytest.mark.parametrize("kind", ["weighted_sum_last_four", "concat_last_four"])
def test_the_last_four_of_fewer_layers(kind, layers):
    """An encoder with fewer than four layers uses all of them."""
    model = make(kind, {**CONFIG, "num_hidden_layers": layers})
    encoded = tf.nest.map_structure(np.asarray, dict(model.bert(FEATURES)))
    weight = numbers(model).get("mix/weight")
    found = model.mix(encoded)
    np.testing.assert_allclose(found, mixed(kind, encoded, weight), atol=1e-5)
    assert model(FEATURES)["logits"].shape == (2, 6, 3)


def test_names_and_shapes():
    """Every model of a process has the same names."""
    shapes = {
        "mix/weight": (1,),
        **{name: None for name in CELLS},
        "output_weights": (3, 2 * WIDTH),
        "output_bias": (3,),
    }
    for number in range(2):
        for direction in ("forward", "backward"):
            cell = f"bilstm_{number}/{direction}_lstm/lstm_cell"
            inputs = 2 * WIDTH if number else 16
            shapes[f"{cell}/kernel"] = (inputs, 4 * WIDTH)
            shapes[f"{cell}/recurrent_kernel"] = (WIDTH, 4 * WIDTH)
            shapes[f"{cell}/bias"] = (4 * WIDTH,)
    for _ in range(2):
        found = {n: v.shape for n, v in numbers(make()).items()}
        others = {n: s for n, s in found.items() if not n.startswith("bert/")}
        assert others == shapes
        assert len(found) == len(make().weights)


def test_the_width_of_the_paper(monkeypatch):
    """768 dimensions for both directions together."""
    monkeypatch.setattr(feature_based, "WIDTH", 384)
    model = FeatureBasedModel(SMALL, 3, "last")
    assert numbers(model)["output_weights"].shape == (3, 768)
    assert len(model.bilstm) == 2
    assert model(FEATURES)["logits"].shape == (2, 6, 3)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def lstm(x, kernel, recurrent_kernel, bias):
    """Return the outputs of an LSTM for one sequence [T, H]."""
    state = output = np.zeros(len(recurrent_kernel))
    outputs = []
    for each in x:
        gates = each @ kernel + output @ recurrent_kernel + bias
        add, keep, new, show = np.split(gates, 4)
        state = sigmoid(keep) * state + sigmoid(add) * np.tanh(new)
        output = sigmoid(show) * np.tanh(state)
        outputs.append(output)
    return np.array(outputs)


def bilstm(x, values, number):
    def one_way(x, direction):
        cell = f"bilstm_{number}/{direction}_lstm/lstm_cell"
        parts = ("kernel", "recurrent_kernel", "bias")
        return lstm(x, *(values[f"{cell}/{part}"] for part in parts))

    backward = one_way(x[::-1], "backward")[::-1]
    return np.concatenate([one_way(x, "forward"), backward], axis=-1)


def test_logits_by_hand():
    """Two layers read only the real tokens, in both directions."""
    model = make("last")
    values = {name: v.astype(np.float64) for name, v in numbers(model).items()}
    tokens = model.bert(FEATURES)["sequence_output"].numpy().astype(np.float64)
    found = model(FEATURES)["logits"].numpy()
    for row, length in enumerate((6, 3)):
        x = bilstm(bilstm(tokens[row, :length], values, 0), values, 1)
        expected = x @ values["output_weights"].T + values["output_bias"]
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-4)


def padded(features, length):
    return {
        name: np.pad(value, [(0, 0), (0, length - value.shape[1])])
        for name, value in features.items()
    }


@pytest.mark.parametrize(
    ("kind", "compiled"),
    [
        ("embeddings", False),
        slow("embeddings", True),
        slow("weighted_sum_all", False),
        ("weighted_sum_all", True),
    ],
)
def test_padding_changes_nothing(kind, compiled):
    model = make(kind)
    run = tf.function(model) if compiled else model
    expected = run(FEATURES)["logits"].numpy()
    found = run(padded(FEATURES, 17))["logits"].numpy()
    for row, length in enumerate((6, 3)):
        alone = {
            name: value[row : row + 1, :length] for name, value in FEATURES.items()
        }
        single = run(alone)["logits"].numpy()[0]
        for logits in (expected, found):
            np.testing.assert_allclose(logits[row, :length], single, atol=1e-5)


def test_tokens_see_both_sides():
    """Only the BiLSTM does this: the embeddings do not depend on neighbors."""
    model = make("embeddings")
    other = {**FEATURES, "input_ids": np.where(np.arange(6) == 2, 11, IDS)}
    difference = model(FEATURES)["logits"] - model(other)["logits"]
    assert (np.abs(difference[0]).max(axis=-1) > 1e-6).all()


def test_nothing_is_dropped():
    model = make()
    seed = tf.constant([1, 0], tf.int64)
    trained = model(FEATURES, training=True, dropout_seed=seed)["logits"]
    np.testing.assert_allclose(trained, model(FEATURES)["logits"], atol=1e-6)


def test_what_is_trained_and_what_is_decayed():
    model = make()
    trained = {names.google_name(v) for v in model.trainable_variables}
    assert trained == {"mix/weight", *CELLS, "output_weights", "output_bias"}
    decayed = {names.google_name(v) for v in model.trainable_variables if decays(v)}
    assert trained - decayed == {n for n in trained if n.endswith("bias")}
    with tf.GradientTape() as tape:
        loss, _ = token_terms(model(FEATURES), {"label_ids": LABELS})["token_loss"]
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
        # A single layer has the whole sum, whatever its weight.
        assert gradient.numpy().any() or variable.path == "mix/weight", variable.path


def weights(features):
    scored = tf.cast(features["label_ids"] != IGNORED, tf.float32)
    return {"token_loss": tf.reduce_sum(scored)}


def make_state(config, seed=0):
    model = make(config=config, seed=seed)
    optimizer = BertAdam(0.1, weight_decay_rate=0.5)
    optimizer.build(model.trainable_variables)
    return State(model, optimizer, Guard(scaled=False))


def test_updates_leave_the_encoder_bit_for_bit(tmp_path):
    state = make_state({**CONFIG, "num_hidden_layers": 2})
    step = make_train_step(
        tf.distribute.get_strategy(),
        state.model,
        state.optimizer,
        state.guard,
        Objective({"token_loss": 0.0}, weights, token_terms),
        StepSettings(seed=1),
    )
    before = numbers(state.model)
    features = {k: tf.constant(v) for k, v in FEATURES.items()}
    for _ in range(3):
        step({**features, "label_ids": tf.constant(LABELS)})
    after = numbers(state.model)
    same = {n for n in before if before[n].tobytes() == after[n].tobytes()}
    encoder = {name for name in before if name.startswith("bert/")}
    assert same == encoder and len(encoder) > 30

    saving.save_state(str(tmp_path), state, 1, 1)
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-3"))
    written = set(reader.get_variable_to_shape_map())
    assert written >= set(after)
    assert not any(n.startswith("bert/") and "adam" in n for n in written)
    assert {f"{name}/adam_v" for name in set(after) - encoder} <= written
    for name, value in after.items():
        assert reader.get_tensor(name).tobytes() == value.tobytes(), name

    other = make_state({**CONFIG, "num_hidden_layers": 2}, seed=1)
    assert saving.restore_state(str(tmp_path), other) == 3
    for name, value in numbers(other.model).items():
        assert value.tobytes() == after[name].tobytes(), name


def test_it_begins_with_a_checkpoint_s_encoder(tmp_path):
    tensors = tiny_model.tensors()
    model = make("last")
    # The checkpoint's classifier has another width.
    report = load_weights(model, tiny_model.write(tmp_path / "model"))
    assert set(report.new) == {*CELLS, "output_weights", "output_bias"}
    for name, value in numbers(model).items():
        if name.startswith("bert/"):
            np.testing.assert_array_equal(value, tensors[name])


def test_there_and_back_as_a_keras_model(tmp_path):
    model = make("weighted_sum_last_four")
    config = model.get_config()
    assert (config["num_outputs"], config["kind"]) == (3, "weighted_sum_last_four")
    again = FeatureBasedModel.from_config(config)
    assert again.get_config() == config and again.config == model.config
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(FEATURES)["logits"], model(FEATURES)["logits"])
    assert [v.path for v in loaded.trainable_variables] == [
        v.path for v in model.trainable_variables
    ]
