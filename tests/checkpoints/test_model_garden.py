"""Model Garden's checkpoints, built with the names of its classes.

`official/nlp/modeling` defines the attributes of its objects; TensorFlow makes
the keys from them. Some keys are compared with released ones below.
"""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_model

from official_bert.checkpoints import google, initialize, model_garden
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel

# More than ten layers, whose numbers do not sort alphabetically.
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, num_hidden_layers=11)
HEADS, HEAD_SIZE = CONFIG.num_attention_heads, CONFIG.head_size
WIDTH = CONFIG.hidden_size
VALUES = tiny_model.tensors(CONFIG)
ENCODER = {name for name in VALUES if name.startswith("bert/")}


def module(**attributes):
    """Return an object with these attributes, in this order."""
    made = tf.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def variable(name, shape=None):
    value = VALUES[name]
    return tf.Variable(value if shape is None else value.reshape(shape))


def dense(name, kernel=None, bias=None):
    return module(
        kernel=variable(name + "/kernel", kernel), bias=variable(name + "/bias", bias)
    )


def layer_norm(name):
    return module(gamma=variable(name + "/gamma"), beta=variable(name + "/beta"))


def logits(scope):
    """Return a Keras `Dense` layer; its kernel is [H, C]."""
    kernel = tf.Variable(VALUES[scope + "output_weights"].T)
    return module(kernel=kernel, bias=variable(scope + "output_bias"))


def attention(scope):
    """Return Keras' `MultiHeadAttention`."""
    split = [(WIDTH, HEADS, HEAD_SIZE), (HEADS, HEAD_SIZE)]
    return module(
        _query_dense=dense(scope + "self/query", *split),
        _key_dense=dense(scope + "self/key", *split),
        _value_dense=dense(scope + "self/value", *split),
        _output_dense=dense(scope + "output/dense", (HEADS, HEAD_SIZE, WIDTH)),
    )


def block(index):
    """Return a `TransformerEncoderBlock`."""
    scope = f"bert/encoder/layer_{index}/"
    return module(
        _attention_layer=attention(scope + "attention/"),
        _attention_layer_norm=layer_norm(scope + "attention/output/LayerNorm"),
        _intermediate_dense=dense(scope + "intermediate/dense"),
        _output_dense=dense(scope + "output/dense"),
        _output_layer_norm=layer_norm(scope + "output/LayerNorm"),
    )


def embedding(name):
    return module(embeddings=variable(f"bert/embeddings/{name}_embeddings"))


def parts():
    """Return the layers of an encoder in the order of computation."""
    return [
        embedding("word"),
        embedding("position"),
        embedding("token_type"),
        layer_norm("bert/embeddings/LayerNorm"),
        *(block(index) for index in range(CONFIG.num_hidden_layers)),
        dense("bert/pooler/dense"),
    ]


def numbered(layers):
    """Return a functional Keras model, like the oldest encoders."""
    return module(**{f"layer_with_weights-{i}": x for i, x in enumerate(layers)})


def encoder_v1():
    """Return a `BertEncoder`: a functional model that also names its layers."""
    layers = parts()
    return with_attributes(numbered(layers), layers)


def encoder_v2():
    """Return a `BertEncoderV2`, a layer."""
    return with_attributes(module(), parts())


def with_attributes(made, layers):
    made._pooler_layer = layers[-1]
    made._transformer_layers = layers[4:-1]
    made._embedding_norm_layer = layers[3]
    made._embedding_layer = layers[0]
    made._position_embedding_layer = layers[1]
    made._type_embedding_layer = layers[2]
    return made


def masked_lm(encoder, bias_names=("output_bias/bias", "bias")):
    """Return `layers.MaskedLM`, which holds the embedding table.

    Keras knows a variable by its given name and as an attribute.
    """
    scope = "cls/predictions/"
    bias = variable(scope + "output_bias")
    return module(
        embedding_table=encoder._embedding_layer.embeddings,
        dense=dense(scope + "transform/dense"),
        layer_norm=layer_norm(scope + "transform/LayerNorm"),
        **dict.fromkeys(bias_names, bias),
    )


def untrained_pooler():
    return module(
        kernel=tf.Variable(tf.zeros([WIDTH, WIDTH])), bias=tf.Variable(tf.zeros(WIDTH))
    )


def pretraining_run():
    """Return the objects saved by a training run of `BertPretrainerV2`."""
    encoder = encoder_v1()
    last = len(parts()) - 1
    encoder._pooler_layer = untrained_pooler()
    setattr(encoder, f"layer_with_weights-{last}", encoder._pooler_layer)
    pooler = dense("bert/pooler/dense")
    head = module(dense=pooler, out_proj=logits("cls/seq_relationship/"))
    scores = masked_lm(encoder)
    heads = [head]
    model = module(
        encoder_network=encoder,
        # Keras also tracks the arguments, so two lists lead to the heads.
        _config={"classification_heads": heads, "encoder_network": encoder},
        classification_heads=heads,
        masked_lm=scores,
    )
    return {
        "encoder": encoder,
        "masked_lm": scores,
        "model": model,
        "next_sentence.pooler_dense": pooler,
        "global_step": tf.Variable(7, dtype=tf.int64),
    }


def write(directory, objects, config=CONFIG, name="bert_model.ckpt"):
    """Write a checkpoint and its config; return its prefix."""
    directory.mkdir(exist_ok=True)
    if config:
        (directory / "bert_config.json").write_text(config.to_json_string())
    return tf.train.Checkpoint(**objects).write(str(directory / name))


def opened(prefix):
    return model_garden.open_checkpoint(prefix, prefix)


def assert_holds(checkpoint, names):
    """Assert that a checkpoint has exactly these tensors, bit for bit."""
    assert set(checkpoint.shapes) == set(names)
    for name, value in checkpoint.tensors().items():
        assert value.dtype == np.float32 and value.flags.c_contiguous
        assert value.shape == checkpoint.shapes[name] == VALUES[name].shape, name
        np.testing.assert_array_equal(value, VALUES[name], name)


@pytest.mark.parametrize("root", ["encoder", "model"])
@pytest.mark.parametrize(
    "make", [lambda: numbered(parts()), encoder_v1, encoder_v2], ids=["v0", "v1", "v2"]
)
def test_encoders(tmp_path, make, root):
    prefix = write(tmp_path, {root: make()})
    assert model_garden.is_checkpoint(prefix)
    checkpoint = opened(prefix)
    assert (checkpoint.format, checkpoint.config) == ("model_garden", CONFIG)
    assert checkpoint.notes == ()
    assert_holds(checkpoint, ENCODER)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (encoder_v1, "encoder/layer_with_weights-0/embeddings"),
        (encoder_v1, "encoder/layer_with_weights-4/_attention_layer/_key_dense/bias"),
        (encoder_v1, "encoder/layer_with_weights-15/kernel"),
        (encoder_v2, "encoder/_transformer_layers/1/_output_layer_norm/beta"),
        (encoder_v2, "encoder/_type_embedding_layer/embeddings"),
    ],
)
def test_the_keys_are_those_of_released_checkpoints(tmp_path, make, key):
    prefix = write(tmp_path, {"encoder": make()})
    assert tf.train.load_checkpoint(prefix).has_tensor(key + model_garden.KEY_ENDING)


def test_separate_attention_output(tmp_path):
    """A block of 2020 is read; its output layer is outside the attention."""
    layers = parts()
    for each in layers[4:-1]:
        each._attention_output_dense = each._attention_layer._output_dense
        del each._attention_layer._output_dense
    assert_holds(opened(write(tmp_path, {"model": numbered(layers)})), ENCODER)


def test_a_pretraining_run(tmp_path):
    prefix = write(tmp_path, pretraining_run(), name="ckpt-7")
    keys = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    for known in (
        "masked_lm/embedding_table",
        "masked_lm/output_bias.Sbias",
        "next_sentence..pooler_dense/kernel",
        "model/classification_heads/0/out_proj/kernel",
    ):
        assert known + model_garden.KEY_ENDING in keys
    checkpoint = opened(prefix)
    untrained = {f"encoder/layer_with_weights-15/{leaf}" for leaf in ("kernel", "bias")}
    assert set(checkpoint.shapes) == untrained | {
        name
        for name in VALUES
        if name.startswith(("bert/", "cls/predictions", "cls/seq"))
    }
    for name, value in checkpoint.tensors().items():
        np.testing.assert_array_equal(value, VALUES.get(name, np.zeros_like(value)))
    assert "layer_with_weights-15/kernel was not trained with it" in checkpoint.notes[0]


def test_a_released_encoder_with_the_pooler_of_its_head(tmp_path):
    """An encoder with its head's pooler, but without the head, is read.

    `uncased_L-12_H-768_A-12` was released like this.
    """
    encoder = encoder_v1()
    encoder._pooler_layer = untrained_pooler()
    pooler = {"next_sentence.pooler_dense": dense("bert/pooler/dense")}
    checkpoint = opened(write(tmp_path, {"encoder": encoder, **pooler}))
    np.testing.assert_array_equal(
        checkpoint.read("bert/pooler/dense/bias"), VALUES["bert/pooler/dense/bias"]
    )
    assert "was not trained with it" in checkpoint.notes[0]


@pytest.mark.parametrize("name", ["output_bias/bias", "bias"])
def test_names_of_the_output_bias(tmp_path, name):
    encoder = encoder_v2()
    objects = {"encoder": encoder, "masked_lm": masked_lm(encoder, [name])}
    names = {name for name in VALUES if name.startswith("cls/predictions")}
    assert_holds(opened(write(tmp_path, objects)), ENCODER | names)


def test_a_pretrainer_of_the_first_version(tmp_path):
    """A `BertPretrainer` is read; its head uses the encoder's pooler."""
    encoder = encoder_v1()
    model = module(
        encoder=encoder,
        masked_lm=masked_lm(encoder),
        classification=numbered([logits("cls/seq_relationship/")]),
    )
    names = {name for name in VALUES if name.startswith("cls/") and "squad" not in name}
    assert_holds(opened(write(tmp_path, {"model": model})), ENCODER | names)


def test_other_heads_keep_their_names(tmp_path):
    """A head with three classes is not read as next-sentence prediction."""
    heads = [module(out_proj=logits(""))]
    model = module(encoder_network=encoder_v2(), classification_heads=heads)
    checkpoint = opened(write(tmp_path, {"model": model}))
    others = set(checkpoint.shapes) - ENCODER
    assert others == {
        f"model/classification_heads/0/out_proj/{leaf}" for leaf in ("kernel", "bias")
    }


def test_only_the_model_of_a_pretraining_run(tmp_path):
    """A model saved without the training run's names is read."""
    run = {"model": pretraining_run()["model"]}
    checkpoint = opened(write(tmp_path, run))
    np.testing.assert_array_equal(
        checkpoint.read("bert/pooler/dense/kernel"), VALUES["bert/pooler/dense/kernel"]
    )
    assert "cls/seq_relationship/output_weights" in checkpoint.shapes


@pytest.mark.parametrize(
    "head",
    [
        lambda: module(out_proj=logits("")),
        lambda: logits(""),
        lambda: numbered([logits("")]),
    ],
    ids=["BertClassifier", "BertTokenClassifier", "old BertClassifier"],
)
def test_classifiers(tmp_path, head):
    encoder = encoder_v2()
    model = module(_network=encoder, classifier=head())
    checkpoint = opened(write(tmp_path, {"model": model, "encoder": encoder}))
    assert_holds(checkpoint, ENCODER | {"output_weights", "output_bias"})


def test_a_classifier_with_a_pooler_of_its_own(tmp_path):
    encoder = encoder_v2()
    encoder._pooler_layer = untrained_pooler()
    head = module(dense=dense("bert/pooler/dense"), out_proj=logits(""))
    model = module(_network=encoder, classifier=head)
    checkpoint = opened(write(tmp_path, {"model": model}))
    np.testing.assert_array_equal(
        checkpoint.read("bert/pooler/dense/kernel"), VALUES["bert/pooler/dense/kernel"]
    )
    assert "was not trained with it" in checkpoint.notes[0]


def test_a_span_labeler(tmp_path):
    head = numbered([logits("cls/squad/")])
    model = module(_network=encoder_v1(), span_labeling=head)
    names = {"cls/squad/output_weights", "cls/squad/output_bias"}
    assert_holds(opened(write(tmp_path, {"model": model})), ENCODER | names)


def test_an_encoder_without_pooler(tmp_path):
    encoder = encoder_v2()
    del encoder._pooler_layer
    names = {name for name in ENCODER if "pooler" not in name}
    assert_holds(opened(write(tmp_path, {"encoder": encoder})), names)


def test_optimizer_state_is_left_out_and_other_weights_are_kept(tmp_path):
    encoder = encoder_v2()
    old = tf.compat.v1.train.AdamOptimizer()
    table = encoder._embedding_layer.embeddings
    old.apply_gradients([(tf.ones_like(table), table)])
    new = module(_variables=[tf.Variable(tf.ones([3, 3]))], rate=tf.Variable(0.1))
    more = module(extra=tf.Variable(tf.fill([2, 3], 5.0)), count=tf.Variable([1, 2]))
    objects = {"encoder": encoder, "optimizer": old, "mine": more}
    keys = tf.train.load_checkpoint(
        write(tmp_path, objects)
    ).get_variable_to_shape_map()
    assert any(".OPTIMIZER_SLOT" in key for key in keys)
    for name, optimizer in (("optimizer", old), ("adam", old), ("optimizer", new)):
        objects = {"encoder": encoder, "mine": more, name: optimizer}
        checkpoint = opened(write(tmp_path, objects))
        assert set(checkpoint.shapes) == ENCODER | {"mine/extra"}
        np.testing.assert_array_equal(
            checkpoint.read("mine/extra"), np.full((2, 3), 5.0)
        )


def test_half_precision_becomes_float32(tmp_path):
    encoder = encoder_v2()
    half = tf.Variable(np.full([2, 3], 0.1, np.float16))
    encoder._embedding_norm_layer.gamma = tf.Variable(np.full(WIDTH, 0.1, np.float16))
    checkpoint = opened(write(tmp_path, {"encoder": encoder, "mine": module(x=half)}))
    value = checkpoint.read("bert/embeddings/LayerNorm/gamma")
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, np.float32(np.float16(0.1)))
    assert checkpoint.notes == ("The float16 weights were read as float32.",)


def test_a_model_is_initialised_from_it(tmp_path):
    write(tmp_path, pretraining_run())
    model = PretrainingModel(CONFIG)
    checkpoint = opened(str(tmp_path / "bert_model.ckpt"))
    report = initialize.load_opened(model, checkpoint)
    assert report.new == []
    for loaded in model.trainable_variables:
        np.testing.assert_array_equal(loaded.numpy(), VALUES[loaded.path])


PARAMS = """\
runtime:
  distribution_strategy: mirrored
task:
  model:
    cls_heads:
    - inner_dim: 768
      name: next_sentence
      num_classes: 2
    encoder:
      bert:
        attention_dropout_rate: 0.2
        dropout_rate: 0.1
        embedding_size: null
        hidden_activation: gelu
        hidden_size: 16
        initializer_range: 0.02
        intermediate_size: 24
        max_position_embeddings: 32
        norm_first: false
        num_attention_heads: 2
        num_layers: 11
        token_allow_list: !!python/tuple
        - 1
        type_vocab_size: 2
        vocab_size: 128
      type: bert
    mlm_activation: gelu
  train_data:
    seq_length: 512
    vocab_size: 7
"""


def test_the_parameters_of_a_training_run(tmp_path):
    prefix = write(tmp_path, {"encoder": encoder_v2()}, config=None)
    assert opened(prefix).config is None
    (tmp_path / "params.yaml").write_text(PARAMS)
    expected = dataclasses.replace(CONFIG, attention_probs_dropout_prob=0.2)
    assert opened(prefix).config == expected
    # This bert_config.json was added intentionally.
    (tmp_path / "bert_config.json").write_text(CONFIG.to_json_string())
    assert opened(prefix).config == CONFIG


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: bert", "type: bigbird", "type is 'bigbird', not bert"),
        ("norm_first: false", "norm_first: true", "norm_first is true"),
        (
            "activation: gelu\n  ",
            "activation: swish\n  ",
            "hidden_act='swish' is invalid",
        ),
        ("num_layers: 11", "num_layers: two", "num_hidden_layers='two' is invalid"),
    ],
)
def test_parameters_of_another_model(tmp_path, old, new, message):
    prefix = write(tmp_path, {"encoder": encoder_v2()}, config=None)
    (tmp_path / "params.yaml").write_text(PARAMS.replace(old, new))
    with pytest.raises(UserError, match=rf"params.yaml: .*{message}"):
        opened(prefix)


def test_parameters_without_encoder(tmp_path):
    prefix = write(tmp_path, {"encoder": encoder_v2()}, config=None)
    (tmp_path / "params.yaml").write_text("task:\n  seed: 1\n")
    assert opened(prefix).config is None


def test_files_beside_it(tmp_path):
    prefix = write(tmp_path, {"encoder": encoder_v2()})
    (tmp_path / "vocab.txt").write_bytes(tiny_model.VOCAB.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": False})
    )
    checkpoint = opened(prefix)
    assert checkpoint.vocab_file == str(tmp_path / "vocab.txt")
    assert checkpoint.do_lower_case is False


def test_a_checkpoint_of_google_is_none(tmp_path):
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), VALUES)
    assert not model_garden.is_checkpoint(str(tmp_path / "bert_model.ckpt"))


def refused(prefix, message):
    with pytest.raises(UserError, match=message) as caught:
        opened(prefix)
    assert prefix in str(caught.value)


def test_another_model(tmp_path):
    image = module(conv=dense("bert/pooler/dense"))
    message = "without a Model Garden BERT encoder .*are backbone.*Give a BERT"
    refused(write(tmp_path, {"backbone": image}), message)


def test_two_encoders(tmp_path):
    model = module(generator=encoder_v2(), discriminator=encoder_v2())
    refused(write(tmp_path, {"model": model}), "contains 2 encoders")


def test_other_embeddings(tmp_path):
    encoder = encoder_v2()
    encoder._embedding_projection = dense("bert/pooler/dense")
    refused(write(tmp_path, {"encoder": encoder}), "other embeddings than BERT")
    layers = parts()
    layers.insert(4, dense("bert/pooler/dense"))
    refused(
        write(tmp_path, {"encoder": numbered(layers)}), "other embeddings than BERT"
    )


def test_a_part_that_is_missing(tmp_path):
    encoder = encoder_v2()
    del encoder._position_embedding_layer
    refused(
        write(tmp_path, {"encoder": encoder}),
        "similar to BERT's, but without bert/embeddings/position_embeddings",
    )
    encoder = encoder_v2()
    del encoder._transformer_layers[1]._intermediate_dense.bias
    refused(
        write(tmp_path, {"encoder": encoder}),
        "without bert/encoder/layer_1/intermediate/dense/bias",
    )


def test_another_attention(tmp_path):
    """Multi-query attention (one head of keys for all) is rejected."""
    encoder = encoder_v2()
    key = encoder._transformer_layers[0]._attention_layer._key_dense
    key.kernel = tf.Variable(tf.zeros([WIDTH, 1, HEAD_SIZE]))
    refused(write(tmp_path, {"encoder": encoder}), "another kind of attention")


def test_heads_of_the_config(tmp_path):
    """A config with another number of heads is rejected: the shapes show the number."""
    config = dataclasses.replace(CONFIG, num_attention_heads=4)
    prefix = write(tmp_path, {"encoder": encoder_v2()}, config)
    refused(prefix, "has 2 attention heads, but its config has .* 4")


def test_a_damaged_data_file(tmp_path):
    prefix = write(tmp_path, {"encoder": encoder_v2()})
    data = tmp_path / "bert_model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(UserError, match="bert_model.ckpt: cannot read"):
        opened(prefix).tensors()


def test_a_damaged_graph(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "x.ckpt"),
        tensor_names=[model_garden.GRAPH_KEY],
        shape_and_slices=[""],
        tensors=[tf.constant(b"\xff no graph")],
    )
    refused(str(tmp_path / "x.ckpt"), "_CHECKPOINTABLE_OBJECT_GRAPH is damaged")
