"""Reading and writing `bert_config.json`, and its valid values."""

import dataclasses
import json

import pytest

from official_bert.config import SIZES, BertConfig
from official_bert.errors import UserError

# The file of the released BERT-Base, Uncased, keys sorted.
BASE = """{
  "attention_probs_dropout_prob": 0.1,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "hidden_size": 768,
  "initializer_range": 0.02,
  "intermediate_size": 3072,
  "max_position_embeddings": 512,
  "num_attention_heads": 12,
  "num_hidden_layers": 12,
  "type_vocab_size": 2,
  "vocab_size": 30522
}
"""

# Additional keys of the released Chinese model.
EXTRA = {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
}


@pytest.mark.comparison
def test_byte_identical_to_the_original():
    assert BertConfig.named("base").to_json_string() == BASE


def test_reading_and_writing_loses_nothing(tmp_path):
    values = {**json.loads(BASE), **EXTRA, "vocab_size": 21128}
    text = json.dumps(values, indent=2, sort_keys=True) + "\n"
    path = tmp_path / "bert_config.json"
    path.write_text(text)
    config = BertConfig.from_json_file(path)
    assert config.vocab_size == 21128
    assert config.extra == EXTRA
    assert config.to_json_string() == text


def test_defaults_are_the_originals():
    """`type_vocab_size` is 16 in the original's code, and 2 in every released file."""
    config = BertConfig(vocab_size=100)
    assert config.to_dict() == {
        **json.loads(BASE),
        "vocab_size": 100,
        "type_vocab_size": 16,
    }


@pytest.mark.parametrize(
    "size, layers, hidden, heads",
    [
        ("tiny", 2, 128, 2),
        ("mini", 4, 256, 4),
        ("small", 4, 512, 8),
        ("medium", 8, 512, 8),
        ("base", 12, 768, 12),
        ("large", 24, 1024, 16),
    ],
)
def test_named_sizes(size, layers, hidden, heads):
    config = BertConfig.named(size, vocab_size=1000)
    assert (config.num_hidden_layers, config.hidden_size) == (layers, hidden)
    assert (config.num_attention_heads, config.head_size) == (heads, 64)
    assert config.intermediate_size == 4 * hidden
    assert (config.vocab_size, config.type_vocab_size) == (1000, 2)


def test_there_are_six_named_sizes():
    assert list(SIZES) == ["tiny", "mini", "small", "medium", "base", "large"]


def test_unknown_size():
    with pytest.raises(UserError, match="'huge'.*tiny, mini, small, medium, base"):
        BertConfig.named("huge")


@pytest.mark.parametrize(
    "misspelt, right",
    [
        ("hiden_size", "hidden_size"),
        ("num_hidden_layer", "num_hidden_layers"),
        ("hidden_dropout_probs", "hidden_dropout_prob"),
    ],
)
def test_misspelt_key(misspelt, right):
    values = json.loads(BASE)
    values[misspelt] = values.pop(right)
    with pytest.raises(UserError, match=f"{misspelt!r}.*{right!r}"):
        BertConfig.from_dict(values)


def test_a_key_like_one_that_is_there_is_not_misspelt():
    """Some releases have their own keys in addition to the original's."""
    values = json.loads(BASE) | {"hidden_sizes": [768]}
    assert BertConfig.from_dict(values).extra == {"hidden_sizes": [768]}


def test_vocab_size_has_no_default():
    with pytest.raises(UserError, match="vocab_size"):
        BertConfig.from_dict({"hidden_size": 768})


@pytest.mark.parametrize(
    "key, value",
    [
        ("vocab_size", 0),
        ("vocab_size", "30522"),
        ("hidden_size", 768.0),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", True),
        ("num_attention_heads", None),
        ("num_attention_heads", 7),
        ("hidden_act", "swish"),
        ("hidden_dropout_prob", 1.0),
        ("hidden_dropout_prob", -0.1),
        ("hidden_dropout_prob", "0.1"),
        ("attention_probs_dropout_prob", float("nan")),
        ("initializer_range", 0),
        ("initializer_range", float("inf")),
    ],
)
def test_impossible_value(key, value):
    with pytest.raises(UserError, match=key):
        BertConfig.from_dict({**json.loads(BASE), key: value})


def test_a_zero_dropout_written_as_a_whole_number():
    values = {**json.loads(BASE), "hidden_dropout_prob": 0}
    assert BertConfig.from_dict(values).hidden_dropout_prob == 0


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "line 1"),
        ("[]", "not a JSON object"),
        ('{"vocab_size": 0}', "vocab_size=0 is invalid"),
        ('{"vocab_size": 7, "hidden_size": 10}', "multiple of"),
    ],
)
def test_the_message_names_the_file(tmp_path, content, message):
    path = tmp_path / "bert_config.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as error:
        BertConfig.from_json_file(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match="nowhere.json"):
        BertConfig.from_json_file(tmp_path / "nowhere.json")


def test_a_config_is_a_value():
    config = BertConfig.named("tiny")
    assert config == BertConfig.named("tiny")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.hidden_size = 7


def test_causal_attention_is_written_where_it_is_true():
    config = BertConfig(vocab_size=100, causal_attention=True)
    assert config.to_dict()["causal_attention"] is True
    assert BertConfig.from_dict(config.to_dict()) == config
    with pytest.raises(
        UserError, match="causal_attention=1 is invalid: it must be true or"
    ):
        BertConfig(vocab_size=100, causal_attention=1)
