"""The table of model names, and the interpretation of names."""

import re

import pytest

from official_bert.checkpoints.hub import names
from official_bert.checkpoints.hub.local_model import LocalModel, name_in_cache


def test_presets_are_those_of_keras_hub():
    from keras_hub.src.models.bert.bert_presets import backbone_presets

    theirs = {
        name: (preset["kaggle_handle"], preset["metadata"]["params"])
        for name, preset in backbone_presets.items()
        # The vocabulary is SentencePiece.
        if name != "multilingual_e5_small"
    }
    # KerasHub states fewer parameters than three layers of this size have.
    handle, _ = theirs["paraphrase_minilm_l3_v2_en"]
    theirs["paraphrase_minilm_l3_v2_en"] = handle, 17389824
    ours = {
        model.name: (f"kaggle://{model.location}", model.parameters)
        for model in names.MODELS
        if model.source == names.KAGGLE
    }
    assert ours == theirs


def test_each_name_and_location_is_there_once():
    assert len(names.BY_NAME) == len(names.BY_LOCATION) == len(names.MODELS)


def test_googles_names_state_the_sizes():
    models = [model for model in names.MODELS if model.source == names.GOOGLE]
    assert len(models) == 4 + 2 + 1 + 2 + 23
    for model in models:
        sizes = re.search(r"L-(\d+)_H-(\d+)_A-(\d+)$", model.name).groups()
        layers, hidden_size, heads = map(int, sizes)
        assert (model.layers, model.hidden_size) == (layers, hidden_size)
        assert heads == hidden_size // 64
        assert model.location.endswith(f"/{model.name}.zip")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("bert-base-uncasd", "bert-base-uncased"),
        ("google-bert/bert-base-cassed", "bert-base-cased"),
        ("BERT-LARGE-CASED", "bert-large-cased"),
        ("uncased_L-2_H-128", "uncased_L-2_H-128_A-2"),
        ("bert_base_en_uncase", "bert_base_en_uncased"),
        ("gone", None),
    ],
)
def test_similar_names(name, wanted):
    assert wanted in (names.nearest(name) or [None])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (
            f"/a/models--google-bert--bert-base-cased/snapshots/{'0' * 40}",
            f"google-bert/bert-base-cased@{'0' * 40}",
        ),
        (
            "/a/models/keras/bert/keras/bert_base_en/3",
            "keras/bert/keras/bert_base_en/3",
        ),
        ("/a/models/uncased_L-2_H-128_A-2", None),
        ("output/mrpc", None),
    ],
)
def test_the_name_of_a_folder_in_a_cache(path, name):
    assert name_in_cache(path) == name


def test_a_local_model_says_so():
    assert LocalModel("a", "a").source == "local path"
