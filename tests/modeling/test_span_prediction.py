"""The question-answering model: names, logits, loss, and an unchanged pooler."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG

from official_bert.checkpoints import any_format, initialize, model_directory, names
from official_bert.modeling.span_prediction import SpanModel, span_terms
from official_bert.tasks.squad import training as squad
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam, decays
from official_bert.training.saving import State, save_state
from official_bert.training.step import StepSettings, make_train_step

IDS = np.array([[2, 6, 3, 5, 7, 3], [2, 9, 3, 8, 0, 0]], np.int32)
FEATURES = {
    "input_ids": IDS,
    "input_mask": (IDS > 0).astype(np.int32),
    "segment_ids": np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 0, 0]], np.int32),
}
POSITIONS = {
    "start_positions": np.array([3, 0], np.int32),
    "end_positions": np.array([4, 0], np.int32),
}
POOLER = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
HEAD = {
    "cls/squad/output_weights": (2, MINI_CONFIG.hidden_size),
    "cls/squad/output_bias": (2,),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model.write(tmp_path_factory.mktemp("models") / "fine_tuned")


@pytest.fixture(scope="module")
def model(folder):
    model = SpanModel(MINI_CONFIG)
    report = initialize.load_weights(model, folder)
    assert not report.new
    return model


def values_of(model):
    return {names.google_name(v): v.numpy() for v in model.weights}


def test_the_head_has_the_original_s_names(model):
    shapes = {names.google_name(v): tuple(v.shape) for v in model.weights}
    others = {name for name in shapes if not name.startswith("bert/")}
    assert others == set(HEAD)
    assert {name: shapes[name] for name in HEAD} == HEAD
    assert {v.path for v in model.weights} == set(shapes)


def test_it_is_read_from_a_checkpoint(model):
    """The pooler is read too."""
    tensors = tiny_model.tensors()
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, tensors[name], name)


def test_a_new_head_is_random_weights_and_no_bias():
    config = dataclasses.replace(MINI_CONFIG, hidden_size=512)
    new = values_of(SpanModel(config))
    assert not new["cls/squad/output_bias"].any()
    weights = new["cls/squad/output_weights"]
    # Normal with standard deviation 0.02, truncated at two standard deviations.
    assert 0.015 < weights.std() < 0.02 and abs(weights).max() <= 0.04


def test_logits(model):
    """The first column is the start. Padding has logits like any other position."""
    tokens = model.bert(FEATURES)["sequence_output"].numpy()
    tensors = tiny_model.tensors()
    weights, bias = (tensors[name] for name in HEAD)
    expected = tokens @ weights.T + bias
    found = model(FEATURES)
    assert set(found) == {"start_logits", "end_logits"}
    for number, name in enumerate(("start_logits", "end_logits")):
        assert found[name].shape == (2, 6) and found[name].dtype == tf.float32
        np.testing.assert_allclose(found[name], expected[..., number], atol=1e-5)


def test_answers_of_training_do_not_matter_to_the_logits(model):
    np.testing.assert_array_equal(
        model({**FEATURES, **POSITIONS})["end_logits"], model(FEATURES)["end_logits"]
    )


def test_there_is_no_dropout_before_the_scores():
    config = {**MINI_CONFIG.to_dict(), "hidden_dropout_prob": 0.0}
    config["attention_probs_dropout_prob"] = 0.0
    model = SpanModel(config)
    seed = tf.constant([1, 0], tf.int64)
    training = model(FEATURES, training=True, dropout_seed=seed)
    for name, value in model(FEATURES).items():
        np.testing.assert_allclose(training[name], value, atol=1e-6)


def test_dropout_is_a_function_of_its_seed(model):
    def run(number):
        seed = tf.constant([1, number], tf.int64)
        return model(FEATURES, training=True, dropout_seed=seed)["start_logits"].numpy()

    np.testing.assert_array_equal(run(0), run(0))
    assert (run(0) != run(1024)).all()


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def test_loss():
    """The loss covers all positions, so one more position of padding increases it."""
    start = np.array([[1.0, 3.0, 0.5, 9.0], [4.0, 0.0, 1.0, -1.0]], np.float32)
    end = np.array([[0.0, 1.0, 2.0, -2.0], [0.1, 0.2, 0.3, 0.0]], np.float32)
    labels = {
        "start_positions": np.array([1, 0], np.int32),
        "end_positions": np.array([2, 3], np.int32),
    }
    logits = {"start_logits": tf.constant(start), "end_logits": tf.constant(end)}
    terms = span_terms(logits, labels)
    of_start = -log_softmax(start)[[0, 1], [1, 0]]
    of_end = -log_softmax(end)[[0, 1], [2, 3]]
    loss, rows = terms["span_loss"]
    assert float(loss) == pytest.approx((of_start.sum() + of_end.sum()) / 2)
    assert float(rows) == 2
    shorter = {name: value[:, :3] for name, value in logits.items()}
    first = {name: value[:1] for name, value in labels.items()}
    cut = span_terms({k: v[:1] for k, v in shorter.items()}, first)
    whole = span_terms({k: v[:1] for k, v in logits.items()}, first)
    assert float(whole["span_loss"][0]) > float(cut["span_loss"][0]) + 1


def test_both_ends_must_be_right():
    best = np.eye(4, dtype=np.float32)
    logits = {
        "start_logits": tf.constant(best[[1, 1, 0, 2]]),
        "end_logits": tf.constant(best[[2, 3, 2, 2]]),
    }
    labels = {
        "start_positions": np.array([1, 1, 1, 2], np.int32),
        "end_positions": np.array([2, 2, 2, 2], np.int32),
    }
    found = span_terms(logits, labels)["span_accuracy"]
    assert [float(value) for value in found] == [2, 4]


def updated(directory, number=3):
    """Train and save the run; return the model, and the values before and after."""
    keras.utils.set_random_seed(0)
    model = SpanModel(dataclasses.replace(MINI_CONFIG, initializer_range=0.1))
    for variable in model.bert.pooler.weights:
        variable.assign(tf.random.stateless_normal(variable.shape, [1, 2]))
    optimizer = BertAdam(0.1)
    optimizer.build(model.trainable_variables)
    state = State(model, optimizer, Guard(scaled=False))
    step = make_train_step(
        tf.distribute.get_strategy(),
        model,
        optimizer,
        state.guard,
        squad.OBJECTIVE,
        StepSettings(seed=1),
    )
    before = values_of(model)
    features = {k: tf.constant(v) for k, v in {**FEATURES, **POSITIONS}.items()}
    for _ in range(number):
        step(features)
    save_state(str(directory), state, run_id=1, keep=1)
    return model, before, values_of(model)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """(folder, model, values before, values after) of a few training steps."""
    folder = tmp_path_factory.mktemp("training")
    return folder, *updated(folder)


def test_the_pooler_has_no_gradient_and_no_moments(training):
    folder, model, _, _ = training
    trained = {names.google_name(v) for v in model.trainable_variables}
    assert set(values_of(model)) - trained == POOLER
    with tf.GradientTape() as tape:
        outputs = model(FEATURES, training=False)
        loss, _ = span_terms(outputs, POSITIONS)["span_loss"]
    pooler = [v.value for v in model.bert.pooler.weights]
    assert tape.gradient(loss, pooler) == [None, None]
    written = tf.train.load_checkpoint(str(folder / "model.ckpt-3"))
    moments = [n for n in written.get_variable_to_shape_map() if "adam_" in n]
    assert len(moments) == 2 * len(trained)
    assert not any("pooler" in name for name in moments)


def test_updates_and_decay_leave_the_pooler_bit_for_bit(training):
    _, _, before, after = training
    changed = {n for n in before if after[n].tobytes() != before[n].tobytes()}
    assert not changed & POOLER
    # A key's bias has no effect, so only rounding decides whether it changes.
    assert {name for name in before if "bias" not in name} - POOLER <= changed
    # If it took part in training, its kernel would have weight decay.
    assert decays(training[1].bert.pooler.weights[0])


def test_the_pooler_is_in_what_is_written(training, tmp_path):
    folder, model, before, after = training
    model_directory.save(str(tmp_path), model, tiny_model.VOCAB, True)
    of_run = tf.train.load_checkpoint(str(folder / "model.ckpt-3"))
    with any_format.opened(str(tmp_path)) as checkpoint:
        assert set(checkpoint.shapes) == set(after)
        for name in after:
            assert checkpoint.read(name).tobytes() == after[name].tobytes()
            assert of_run.get_tensor(name).tobytes() == after[name].tobytes()
        for name in POOLER:
            assert checkpoint.read(name).tobytes() == before[name].tobytes()


def test_the_loss_is_divided_by_the_windows():
    objective = squad.OBJECTIVE
    assert {k: float(v) for k, v in objective.weights(FEATURES).items()} == {
        "span_loss": 2.0
    }
    assert objective.losses == {"span_loss": 0.0}


def test_there_and_back_as_a_keras_model(model):
    config = model.get_config()
    again = SpanModel.from_config(config)
    assert again.config == model.config and again.get_config() == config
    for variable, other in zip(again.weights, model.weights, strict=True):
        assert variable.path == other.path
        variable.assign(other)
    for name, value in model(FEATURES).items():
        np.testing.assert_array_equal(again(FEATURES)[name], value)
    assert not again.bert.pooler.trainable
    assert SpanModel(MINI_CONFIG, recompute=True).get_config()["recompute"]


def test_a_keras_file(model, tmp_path):
    path = tmp_path / "model.keras"
    model.save(path)
    again = keras.models.load_model(path)
    assert type(again) is SpanModel
    for name, value in model(FEATURES).items():
        np.testing.assert_array_equal(again(FEATURES)[name], value)
