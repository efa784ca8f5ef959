"""The multiple-choice model: scores, masks, gradients, and the loss by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, initialize, names
from official_bert.modeling import multiple_choice
from official_bert.modeling.multiple_choice import NO_CHOICE, MultipleChoiceModel

INPUTS = ("input_ids", "input_mask", "segment_ids")
IDS = np.array(
    [
        [[2, 5, 3, 6, 3, 0], [2, 5, 3, 7, 8, 3], [0] * 6],
        [[2, 9, 3, 5, 3, 0], [2, 9, 3, 6, 6, 3], [2, 9, 3, 8, 3, 0]],
    ],
    np.int32,
)
CHOICE_MASK = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
FEATURES = {
    "input_ids": IDS,
    "input_mask": (IDS > 0).astype(np.int32),
    "segment_ids": np.where(np.arange(6) > 2, IDS > 0, 0).astype(np.int32),
    "choice_mask": CHOICE_MASK,
}
LABELS = np.array([1, 0], np.int32)


@pytest.fixture(scope="module")
def model():
    model = MultipleChoiceModel(MINI_CONFIG)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if not variable.path.endswith(("gamma", "beta")):
            variable.assign(rng.normal(scale=0.3, size=variable.shape))
    return model


def values(model):
    return {names.google_name(v): v.numpy() for v in model.trainable_variables}


def test_one_vector_scores_all_choices(model):
    found = values(model)
    assert found["output_weights"].shape == (1, MINI_CONFIG.hidden_size)
    assert found["output_bias"].shape == (1,)
    assert all(name.startswith(("bert/", "output_")) for name in found)


def test_scores_by_hand(model):
    rows = {name: FEATURES[name].reshape(6, 6) for name in INPUTS}
    pooled = model.bert(rows)["pooled_output"].numpy()
    found = values(model)
    expected = pooled @ found["output_weights"][0] + found["output_bias"]
    logits = model(FEATURES)["logits"].numpy()
    assert logits.shape == (2, 3) and logits.dtype == np.float32
    is_there = CHOICE_MASK == 1
    np.testing.assert_allclose(
        logits[is_there], expected.reshape(2, 3)[is_there], atol=1e-5
    )
    np.testing.assert_array_equal(logits[~is_there], np.float32(NO_CHOICE))
    assert np.ptp(logits[1]) > 0.01


def test_a_choice_is_scored_alone(model):
    """Neither the content nor the order of the other choices changes its score."""
    logits = model(FEATURES)["logits"].numpy()
    turned = {name: value[:, [1, 0, 2]] for name, value in FEATURES.items()}
    found = model(turned)["logits"].numpy()
    np.testing.assert_allclose(found, logits[:, [1, 0, 2]], atol=1e-5)
    other_ids = np.where(CHOICE_MASK[..., None] == 0, 11, IDS)
    filled = {**FEATURES, "input_ids": other_ids}
    np.testing.assert_array_equal(model(filled)["logits"], logits)


def test_what_was_trained_is_read_back(model, tmp_path):
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), values(model))
    other = MultipleChoiceModel(MINI_CONFIG)
    report = initialize.load_weights(other, tmp_path)
    assert not report.new
    np.testing.assert_array_equal(other(FEATURES)["logits"], model(FEATURES)["logits"])


def test_it_can_be_made_from_its_config(model):
    copy = MultipleChoiceModel.from_config(model.get_config())
    assert values(copy).keys() == values(model).keys()
    assert copy.config == MINI_CONFIG


def test_a_classifier_s_head_is_left_out(tmp_path):
    """That head has one output per label; this model has one output."""
    folder = tiny_model.write(tmp_path / "model")
    report = initialize.load_weights(MultipleChoiceModel(MINI_CONFIG), folder)
    assert {"output_weights", "output_bias"} <= set(report.new)


def test_dropout_is_a_function_of_its_seed(model):
    def run(number):
        seed = tf.constant([1, number], tf.int64)
        return model(FEATURES, training=True, dropout_seed=seed)["logits"].numpy()

    np.testing.assert_array_equal(run(0), run(0))
    is_there = CHOICE_MASK == 1
    assert (run(0) != run(1024))[is_there].all()
    np.testing.assert_array_equal(run(0)[~is_there], np.float32(NO_CHOICE))


def test_dropout_of_the_pooled_output():
    """Without the encoder's dropout, a tenth of the pooled output is dropped."""
    seen = []
    config = {**MINI_CONFIG.to_dict(), "hidden_dropout_prob": 0.0}
    config["attention_probs_dropout_prob"] = 0.0
    other = MultipleChoiceModel(config)
    other.classifier.call = lambda x: seen.append(x.numpy()) or x[:, :1]
    many = {
        name: np.tile(v, [200] + [1] * (v.ndim - 1)) for name, v in FEATURES.items()
    }
    other(many, training=True, dropout_seed=tf.constant([1, 0], tf.int64))
    pooled = other.bert({name: many[name].reshape(-1, 6) for name in INPUTS})
    pooled, kept = pooled["pooled_output"].numpy(), seen[0] != 0
    assert abs(kept.mean() - 0.9) < 0.01
    np.testing.assert_allclose(seen[0][kept], pooled[kept] / 0.9, rtol=1e-4)


def terms_of(logits, labels):
    found = multiple_choice.choice_terms(
        {"logits": tf.constant(logits, tf.float32)}, {"label_ids": np.array(labels)}
    )
    return {name: (float(a), float(b)) for name, (a, b) in found.items()}


def test_the_loss_is_over_the_choices_that_are_there():
    logits = [[2.0, 0.0, NO_CHOICE], [0.5, 1.0, 0.0]]
    first = -np.log(np.exp(2) / (np.exp(2) + 1))
    second = -np.log(1 / (np.exp(0.5) + np.exp(1) + 1))
    found = terms_of(logits, [0, 2])
    assert set(found) == {"choice_loss", "accuracy"}
    assert found["choice_loss"] == pytest.approx((first + second, 2.0))
    assert found["accuracy"] == (1.0, 2.0)


def test_a_choice_that_is_not_there_is_never_chosen():
    """This holds however low the other scores are."""
    found = terms_of([[-50.0, -40.0, NO_CHOICE]], [1])
    assert found["accuracy"] == (1.0, 1.0)
    assert found["choice_loss"][0] == pytest.approx(np.log1p(np.exp(-10)), rel=1e-3)


def gradients_of(model, features):
    with tf.GradientTape() as tape:
        outputs = model(features)
        terms = multiple_choice.choice_terms(outputs, {"label_ids": LABELS})
        loss, _ = terms["choice_loss"]
    variables = model.trainable_variables
    found = tape.gradient(loss, [variable.value for variable in variables])
    return {
        names.google_name(v): tf.convert_to_tensor(g).numpy()
        for v, g in zip(variables, found, strict=True)
    }


def test_no_gradient_through_choices_that_are_not_there(model):
    """Ids in missing choices have no gradient and change no other gradient."""
    # No existing choice contains token 11.
    filled = np.where(CHOICE_MASK[..., None] == 0, 11, IDS)
    strange = {**FEATURES, "input_ids": filled}
    strange["input_mask"] = np.where(CHOICE_MASK[..., None] == 0, 1, IDS > 0)
    found, expected = gradients_of(model, strange), gradients_of(model, FEATURES)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-6, err_msg=name)
    table = found["bert/embeddings/word_embeddings"]
    assert not table[11].any()
    assert all(table[number].any() for number in (2, 3, 5, 6, 7, 8, 9))
    there = {**strange, "choice_mask": np.ones_like(CHOICE_MASK)}
    assert gradients_of(model, there)["bert/embeddings/word_embeddings"][11].any()


def test_the_gradient_of_the_vector_by_hand(model):
    """It is the sum over choices of (probability - 1 if right) times the vector."""
    rows = {name: FEATURES[name].reshape(6, 6) for name in INPUTS}
    pooled = model.bert(rows)["pooled_output"].numpy().reshape(2, 3, -1)
    exponents = np.exp(model(FEATURES)["logits"].numpy().astype(np.float64))
    errors = exponents / exponents.sum(axis=1, keepdims=True) - np.eye(3)[LABELS]
    assert errors[0, 2] == 0
    expected = np.einsum("bc,bch->h", errors, pooled)
    found = gradients_of(model, FEATURES)
    np.testing.assert_allclose(found["output_weights"][0], expected, atol=1e-5)
    # Softmax ignores a constant that is added to all choices.
    np.testing.assert_allclose(found["output_bias"], 0, atol=1e-6)
