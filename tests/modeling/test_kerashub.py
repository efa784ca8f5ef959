"""The encoder equals KerasHub's `BertBackbone`, an independent BERT."""

import keras_hub
import numpy as np
import pytest

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=40,
    type_vocab_size=2,
)


def backbone():
    return keras_hub.models.BertBackbone(
        vocabulary_size=CONFIG.vocab_size,
        num_layers=CONFIG.num_hidden_layers,
        num_heads=CONFIG.num_attention_heads,
        hidden_dim=CONFIG.hidden_size,
        intermediate_dim=CONFIG.intermediate_size,
        max_sequence_length=CONFIG.max_position_embeddings,
        num_segments=CONFIG.type_vocab_size,
    )


def counterparts(theirs):
    """Return original scope -> KerasHub layer."""
    layers = {
        "embeddings/LayerNorm": theirs.embeddings_layer_norm,
        "pooler/dense": theirs.pooled_dense,
    }
    for i, block in enumerate(theirs.transformer_layers):
        scope, attention = f"encoder/layer_{i}/", block._self_attention_layer
        layers |= {
            scope + "attention/self/query": attention._query_dense,
            scope + "attention/self/key": attention._key_dense,
            scope + "attention/self/value": attention._value_dense,
            scope + "attention/output/dense": attention._output_dense,
            scope + "attention/output/LayerNorm": block._self_attention_layer_norm,
            scope + "intermediate/dense": block._feedforward_intermediate_dense,
            scope + "output/dense": block._feedforward_output_dense,
            scope + "output/LayerNorm": block._feedforward_layer_norm,
        }
    return layers


def copy_weights(ours, theirs):
    """Copy our weights to KerasHub's model, whose attention kernels are 3-D."""
    tables = {
        "embeddings/word_embeddings": theirs.token_embedding.embeddings,
        "embeddings/token_type_embeddings": theirs.segment_embedding.embeddings,
        "embeddings/position_embeddings": theirs.position_embedding.position_embeddings,
    }
    layers = counterparts(theirs)
    for variable in ours.trainable_variables:
        path = variable.path.removeprefix("bert/")
        scope, leaf = path.rsplit("/", 1)
        target = tables[path] if path in tables else getattr(layers[scope], leaf)
        target.assign(np.reshape(variable.numpy(), target.shape))


@pytest.fixture(scope="module")
def outputs():
    rng = np.random.default_rng(0)
    ours, theirs = BertEncoder(CONFIG), backbone()
    for variable in ours.trainable_variables:
        around = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(around + 0.3 * rng.normal(size=variable.shape))
    copy_weights(ours, theirs)
    assert ours.count_params() == theirs.count_params()

    lengths = np.array([33, 20, 7, 2])
    mask = (np.arange(33) < lengths[:, np.newaxis]).astype(np.int32)
    ids = rng.integers(0, 50, (4, 33)).astype(np.int32)
    segments = rng.integers(0, 2, (4, 33)).astype(np.int32)
    names = ("token_ids", "padding_mask", "segment_ids")
    expected = theirs(dict(zip(names, (ids, mask, segments), strict=True)))
    features = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    return ours(features), expected


@pytest.mark.comparison
@pytest.mark.parametrize("name", ["sequence_output", "pooled_output"])
def test_equal_to_kerashub(outputs, name):
    ours, theirs = outputs
    np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5, rtol=0)
