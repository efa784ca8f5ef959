"""`BertEncoder` as a Keras layer, and its independence of padding."""

import keras
import numpy as np
import original_head
import pytest
import tensorflow as tf
from kernel_variants import with_dropout
from small_encoder import SMALL, make_encoder, make_features

from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling import dropout, heads, transformer
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.pretraining import PretrainingModel


def pad(features, length):
    return {
        key: np.pad(value, [(0, 0), (0, length - value.shape[1])])
        for key, value in features.items()
    }


def test_output_shapes():
    outputs = make_encoder()(make_features())
    assert outputs["sequence_output"].shape == (4, 32, 24)
    assert outputs["pooled_output"].shape == (4, 24)
    assert outputs["embedding_output"].shape == (4, 32, 24)
    assert [x.shape for x in outputs["all_encoder_layers"]] == [(4, 32, 24)] * 2
    assert "attention_probs" not in outputs
    assert "embedding_table" not in outputs


def test_padding_changes_nothing():
    encoder, features = make_encoder(), make_features(32)
    short, long = encoder(features), encoder(pad(features, 64))
    np.testing.assert_allclose(long["pooled_output"], short["pooled_output"], atol=1e-5)
    real = features["input_mask"].astype(bool)
    np.testing.assert_allclose(
        long["sequence_output"][:, :32][real], short["sequence_output"][real], atol=1e-5
    )


def test_what_stands_under_padding_changes_nothing():
    encoder, features = make_encoder(), make_features(32)
    other = dict(features)
    other["input_ids"] = np.where(features["input_mask"], features["input_ids"], 7)
    assert (other["input_ids"] != features["input_ids"]).any()
    np.testing.assert_allclose(
        encoder(other)["pooled_output"], encoder(features)["pooled_output"], atol=1e-5
    )


def test_a_row_without_any_token_is_finite():
    features = make_features()
    features["input_mask"][1] = 0
    outputs = make_encoder()(features, output_attention_probs=True)
    for value in tf.nest.flatten(outputs):
        assert np.isfinite(value).all()
    np.testing.assert_allclose(
        tf.reduce_sum(outputs["attention_probs"][0][1], -1), 1, atol=1e-5
    )


def test_attention_bias_is_the_originals():
    bias = transformer.attention_bias(tf.constant([[1, 1, 0]]))
    np.testing.assert_array_equal(bias, [[[[0.0, 0.0, -10000.0]]]])


def test_attention_maps():
    features = make_features()
    maps = make_encoder()(features, output_attention_probs=True)["attention_probs"]
    assert [m.shape for m in maps] == [(4, 3, 32, 32)] * 2
    for probs in maps:
        np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)
        padded = np.broadcast_to(
            features["input_mask"][:, np.newaxis, np.newaxis] == 0, probs.shape
        )
        assert np.asarray(probs)[padded].max() == 0


def test_attention_maps_are_those_before_dropout():
    encoder, seed = make_encoder(), tf.constant([1, 2], tf.int64)
    arguments = {"training": True, "dropout_seed": seed, "output_attention_probs": True}
    maps = encoder(make_features(), **arguments)["attention_probs"]
    np.testing.assert_allclose(tf.reduce_sum(maps[0], -1), 1, atol=1e-5)


def test_mask_and_segments_are_optional():
    encoder, features = make_encoder(), make_features(8, batch=1)
    ones, zeros = np.ones((1, 8), np.int32), np.zeros((1, 8), np.int32)
    given = {**features, "input_mask": ones, "segment_ids": zeros}
    np.testing.assert_array_equal(
        encoder({"input_ids": features["input_ids"]})["sequence_output"],
        encoder(given)["sequence_output"],
    )


@pytest.mark.parametrize("length", [64, 65])
def test_longest_sequence(length):
    encoder, features = make_encoder(), make_features(length, batch=1)
    if length == 64:
        encoder(features)
        return
    with pytest.raises(UserError, match="65.*max_position_embeddings 64"):
        encoder(features)


def test_variable_names_are_the_originals():
    model = PretrainingModel(original_head.head_config())
    recorded = original_head.weights(original_head.recording())
    ours = {v.path: tuple(v.shape) for v in model.trainable_variables}
    assert ours == {name: value.shape for name, value in recorded.items()}


def test_initial_weights():
    drawn = []
    for variable in BertEncoder(BertConfig(**SMALL)).trainable_variables:
        leaf, value = variable.path.split("/")[-1], variable.numpy()
        if leaf == "gamma":
            assert (value == 1).all()
        elif leaf in ("beta", "bias"):
            assert (value == 0).all()
        else:
            drawn.append(value.ravel())
            assert value.std() > 0.01, variable.path
    drawn = np.concatenate(drawn)
    # Normal with standard deviation 0.02, without values beyond two of them.
    assert np.abs(drawn).max() <= 0.04
    assert abs(drawn.std() - 0.0176) < 0.0006


def dropped(encoder, seed, **changes):
    features = {**make_features(), **changes}
    seed = tf.constant(seed, tf.int64)
    outputs = encoder(features, training=True, dropout_seed=seed)
    return outputs["sequence_output"].numpy()


def test_dropout_is_a_pure_function_of_the_seed():
    encoder = make_encoder()
    np.testing.assert_array_equal(dropped(encoder, [1, 2]), dropped(encoder, [1, 2]))
    assert np.abs(dropped(encoder, [1, 2]) - dropped(encoder, [1, 1026])).max() > 0.1
    assert np.abs(dropped(encoder, [1, 2]) - dropped(encoder, [2, 2])).max() > 0.1


def test_no_dropout_outside_training():
    encoder, features = make_encoder(), make_features()
    seed = tf.constant([1, 2], tf.int64)
    np.testing.assert_array_equal(
        encoder(features, dropout_seed=seed)["sequence_output"],
        encoder(features)["sequence_output"],
    )


@pytest.mark.parametrize(
    "name", ["hidden_dropout_prob", "attention_probs_dropout_prob"]
)
def test_each_kind_of_dropout_acts(name):
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    plain = make_encoder(**off)
    np.testing.assert_array_equal(
        dropped(plain, [1, 2]), plain(make_features())["sequence_output"]
    )
    one = dropped(make_encoder(**{**off, name: 0.1}), [1, 2])
    assert np.abs(one - dropped(plain, [1, 2])).max() > 0.1


def test_every_dropout_has_its_own_index_and_its_rate():
    rates = {}

    def spy(x, rate, seed, dropout_index):
        assert dropout_index not in rates
        rates[dropout_index] = rate
        return dropout.dropout(x, rate, seed, dropout_index)

    hidden, attention = 0.1, 0.2
    encoder = make_encoder(
        hidden_dropout_prob=hidden, attention_probs_dropout_prob=attention
    )
    seed = tf.constant([1, 2], tf.int64)
    encoder(
        make_features(), training=True, dropout_seed=seed, kernels=with_dropout(spy)
    )
    # The embeddings, then the attention map and both outputs of each block.
    block = [attention, hidden, hidden]
    assert rates == dict(enumerate([hidden, *block, *block]))
    assert max(rates) < dropout.NUM_INDICES


def keras_inputs(length=16):
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: keras.Input((length,), dtype="int32", name=name) for name in names}


def reload(model, tmp_path):
    path = tmp_path / "model.keras"
    model.save(path)
    return keras.models.load_model(path)


@pytest.mark.slow
def test_a_users_own_head_trains_and_reloads(tmp_path):
    keras.utils.set_random_seed(0)
    inputs = keras_inputs()
    pooled = make_encoder()(inputs)["pooled_output"]
    outputs = keras.layers.Dense(3, activation="softmax", name="mine")(pooled)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")

    features = make_features(16, batch=24)
    labels = features["input_ids"][:, 0] % 3
    before = model.evaluate(features, labels, verbose=0)
    model.fit(features, labels, batch_size=4, epochs=15, verbose=0)
    assert model.evaluate(features, labels, verbose=0) < 0.8 * before

    again = reload(model, tmp_path)
    expected = model.predict(features, verbose=0)
    np.testing.assert_array_equal(again.predict(features, verbose=0), expected)
    paths = {v.path for v in again.trainable_variables}
    assert "bert/encoder/layer_1/attention/self/query/kernel" in paths


def test_fit_draws_a_new_mask_each_step():
    model = keras.Model(inputs := keras_inputs(), make_encoder()(inputs))
    features = make_features(16)
    first, second = (model(features, training=True) for _ in range(2))
    difference = first["sequence_output"] - second["sequence_output"]
    assert np.abs(difference).max() > 0.1


@pytest.mark.slow
def test_both_heads_in_a_users_model_stay_tied_when_reloaded(tmp_path):
    keras.utils.set_random_seed(0)
    inputs = keras_inputs()
    inputs["masked_lm_positions"] = keras.Input(
        (2,), dtype="int32", name="masked_lm_positions"
    )
    encoder = make_encoder()
    encoded = encoder(inputs, output_embedding_table=True)
    words = heads.MaskedLM(encoder.config)(
        encoded["sequence_output"],
        inputs["masked_lm_positions"],
        encoded["embedding_table"],
    )
    pair = heads.Scores(encoder.config, 2)(encoded["pooled_output"])
    model = keras.Model(inputs, {"words": words, "pair": pair})
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), {"words": loss, "pair": loss})

    features = make_features(16, batch=16)
    features["masked_lm_positions"] = np.tile([[1, 3]], (16, 1)).astype(np.int32)
    labels = {
        "words": features["input_ids"][:, [1, 3]],
        "pair": features["input_ids"][:, 0] % 2,
    }
    before = model.evaluate(features, labels, verbose=0, return_dict=True)["loss"]
    model.fit(features, labels, epochs=8, verbose=0)
    after = model.evaluate(features, labels, verbose=0, return_dict=True)["loss"]
    assert after < 0.9 * before

    again = reload(model, tmp_path)
    table = np.random.default_rng(1).normal(size=(40, 24))
    for one in (model, again):
        one.get_layer("bert").embedding_table.assign(table)
    expected = model.predict(features, verbose=0)
    for name, value in again.predict(features, verbose=0).items():
        np.testing.assert_array_equal(value, expected[name])


def test_pretraining_model_reloads(tmp_path):
    arrays = original_head.recording()
    model = PretrainingModel(original_head.head_config())
    original_head.assign(model, arrays)
    features = original_head.features(arrays)
    expected = model(features)
    again = reload(model, tmp_path)
    for name, value in again(features).items():
        np.testing.assert_array_equal(value, expected[name])
    assert [v.path for v in again.trainable_variables] == [
        v.path for v in model.trainable_variables
    ]


def test_any_batch_and_length_in_one_graph():
    encoder = make_encoder()
    names = ("input_ids", "input_mask", "segment_ids")
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in names}

    @tf.function(input_signature=[signature])
    def pooled(features):
        return encoder(features)["pooled_output"]

    for length, batch in [(8, 2), (32, 4)]:
        features = make_features(length, batch)
        np.testing.assert_allclose(
            pooled(features), encoder(features)["pooled_output"], atol=1e-5
        )
