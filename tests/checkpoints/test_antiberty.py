"""A real trained masked-LM, AntiBERTy, returns PyTorch's numbers.

The weights are those of the package `antiberty` (MIT, antibody sequences, 25
tokens), which `make commands` installs without its PyTorch dependency.
tests/fixtures/antiberty has PyTorch's numbers. The heads for species, chain and
graft are not part of BERT and are reported as unused.
"""

import importlib.util
import itertools
import pathlib

import numpy as np
import pytest
from places import TESTS
from serving.running import predict, running

import official_bert
from official_bert.checkpoints import any_format, convert
from official_bert.errors import UserError
from official_bert.export import sources
from official_bert.export.saved_model import exports, writer
from official_bert.export.tflite import writer as tflite_writer
from official_bert.export.tflite.model import open_device_model
from official_bert.fine_tuning.tflite_model import FILE, TfliteModel
from official_bert.pretrained.feature_extraction import Reading, token_features
from official_bert.pretrained.likelihood import pseudo_log_likelihood
from official_bert.serving import model_versions

# 100 MB of weights in each format, two exports and a server: two minutes in
# total.
pytestmark = pytest.mark.slow

TOLERANCE = 1e-4
EVERY = 16
FORMATS = ("google", "huggingface", "keras_hub")


@pytest.fixture(scope="module")
def package():
    found = importlib.util.find_spec("antiberty")
    if found is None:
        pytest.skip("the package antiberty is not installed")
    return pathlib.Path(found.origin).parent / "trained_models"


@pytest.fixture(scope="module")
def files(package):
    """Return the model, and the vocabulary next to its folder."""
    return {
        "path": package / "AntiBERTy_md_smooth",
        "vocab_file": str(package / "vocab.txt"),
    }


@pytest.fixture(scope="module")
def reference():
    with np.load(TESTS / "fixtures" / "antiberty" / "reference.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def bert(files):
    return official_bert.load(**files, next_sentence=False)


@pytest.fixture(scope="module")
def directories(files, tmp_path_factory):
    """Return the model in each format, converted from the package's."""
    folder = tmp_path_factory.mktemp("antiberty")
    for name in FORMATS:
        source, vocab_file = str(files["path"]), files["vocab_file"]
        convert.convert(source, str(folder / name), name, vocab_file=vocab_file)
    return {name: folder / name for name in FORMATS}


def text_of(sequence):
    """Return a sequence of amino acids as a text of words."""
    return " ".join("[MASK]" if one == "_" else one for one in sequence)


def rows_of(reference):
    """Return the rows of ids, padded, and their mask."""
    lengths = reference["lengths"]
    mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
    ids = np.zeros(mask.shape, np.int32)
    ids[mask] = reference["input_ids"]
    return {"input_ids": ids, "input_mask": mask.astype(np.int32)}


@pytest.mark.comparison
def test_hidden_states_equal_pytorch_s(bert, reference):
    rows = rows_of(reference)
    outputs = bert.encoder(rows)
    layers = [outputs["embedding_output"], *outputs["all_encoder_layers"]]
    mask = rows["input_mask"] == 1
    hidden = np.stack([layer.numpy()[mask][:, ::EVERY] for layer in layers])
    assert hidden.shape == reference["hidden"].shape == (9, mask.sum(), 32)
    largest = np.abs(hidden - reference["hidden"]).max()
    of_pooled = np.abs(outputs["pooled_output"] - reference["pooled"]).max()
    print(f"hidden states {largest:.1e}, pooled outputs {of_pooled:.1e}")
    assert max(largest, of_pooled) < TOLERANCE


@pytest.mark.comparison
def test_head_probabilities_equal_pytorch_s(bert, reference):
    """The probabilities of all 25 tokens at each mask equal PyTorch's."""
    masked = [one for one in reference["sequences"] if "_" in one]
    found = [mask for one in masked for mask in bert.fill_mask(text_of(one), 25)]
    assert len(found) == len(reference["probabilities"]) == 3
    differences = []
    for candidates, wanted in zip(found, reference["probabilities"], strict=True):
        ids = [bert.tokenizer.vocab[one.token] for one in candidates]
        assert sorted(ids) == list(range(25))
        probabilities = [one.probability for one in candidates]
        differences.append(np.abs(np.array(probabilities) - wanted[ids]).max())
        # Some predictions are certain and others not; otherwise the comparison
        # is empty.
        assert wanted.max() > 0.5
    print(f"head probabilities {max(differences):.1e}")
    assert max(differences) < TOLERANCE


@pytest.mark.comparison
def test_likelihood_equals_pytorch_s(bert, reference):
    score = pseudo_log_likelihood(bert, text_of(reference["sequences"][-1]))
    assert "".join(score.tokens) == reference["sequences"][-1]
    wanted = reference["log_probabilities"]
    largest = np.abs(np.array(score.log_probabilities) - wanted).max()
    print(f"log-probabilities {largest:.1e}")
    assert largest < TOLERANCE


@pytest.mark.comparison
def test_features_equal_pytorch_s(bert, reference):
    """The cased tokenizer gives PyTorch's ids, and the last layer PyTorch's numbers."""
    texts = [text_of(one) for one in reference["sequences"] if "_" not in one]
    found = token_features(bert, texts, (-1, 0), Reading(128))
    starts = np.cumsum([0, *reference["lengths"]])
    whole = [n for n, one in enumerate(reference["sequences"]) if "_" not in one]
    for number, features in zip(whole, found, strict=True):
        part = slice(starts[number], starts[number + 1])
        ids = bert.tokenizer.convert_tokens_to_ids(features.tokens)
        assert ids == reference["input_ids"][part].tolist()
        for place, layer in ((0, -1), (1, 1)):
            wanted = reference["hidden"][layer, part]
            found = features.vectors[:, place, ::EVERY]
            assert np.abs(found - wanted).max() < TOLERANCE
        mean = bert.vectors([" ".join(features.tokens[1:-1])], max_seq_length=128)[0]
        np.testing.assert_allclose(mean, features.vectors[:, 0].mean(0), atol=1e-5)


def test_what_is_not_bert_s_is_reported(bert):
    report = bert.report
    heads = [
        f"cls.{head}.{part}"
        for head in ("chain", "graft", "species")
        for part in ("bias", "weight")
    ]
    assert sorted(report.unused) == heads
    # The model has a pooler, but no next-sentence head.
    assert {name.split("/")[1] for name in report.new} == {"seq_relationship"}
    assert not bert.tokenizer.do_lower_case


def test_both_heads_are_not_there(files):
    with pytest.raises(UserError, match="has no cls/seq_relationship.*next_sentence="):
        official_bert.load(**files)


@pytest.mark.parametrize(("back", "to"), itertools.permutations(FORMATS, 2))
def test_conversions_there_and_back_are_byte_equal(directories, to, back, tmp_path):
    """Conversion from every format to every other, and back, keeps all bytes."""
    convert.convert(str(directories[back]), str(tmp_path / "there"), to)
    convert.convert(str(tmp_path / "there"), str(tmp_path / "again"), back)
    assert bytes_of(tmp_path / "again") == bytes_of(directories[back])


def bytes_of(path):
    with any_format.opened(path) as checkpoint:
        return {name: array.tobytes() for name, array in checkpoint.tensors().items()}


def test_converted_weights_are_the_package_s(files, directories):
    """All 146 tensors keep their values, including those of unknown heads."""
    wanted = bytes_of(files["path"])
    assert len(wanted) == 146
    for name, directory in directories.items():
        assert bytes_of(directory) == wanted, name


@pytest.mark.parametrize("name", FORMATS)
def test_converted_models_fill_masks_alike(directories, bert, reference, name):
    text = text_of(reference["sequences"][2])
    other = official_bert.load(directories[name], next_sentence=False)
    assert other.fill_mask(text) == bert.fill_mask(text)


def test_tflite(directories, reference, tmp_path):
    """The `.tflite` returns PyTorch's pooled outputs and token vectors."""
    model = open_device_model(directories["google"], (128,), 128)
    report = tflite_writer.write(tmp_path / "device", model, "float32")
    assert report.difference < TOLERANCE
    answer = TfliteModel(tmp_path / "device" / FILE)
    rows, start, differences = rows_of(reference), 0, []
    for number, length in enumerate(reference["lengths"]):
        row = {n: values[number : number + 1, :length] for n, values in rows.items()}
        outputs = answer(row | {"segment_ids": np.zeros_like(row["input_ids"])})
        last = outputs["sequence_output"][0, :length, ::EVERY]
        wanted = reference["hidden"][-1, start : start + length]
        differences.append(np.abs(last - wanted).max())
        pooled = outputs["pooled_output"][0] - reference["pooled"][number]
        differences.append(np.abs(pooled).max())
        start += length
    print(f"TFLite {max(differences):.1e}")
    assert max(differences) < TOLERANCE


def test_saved_model_and_server(directories, reference, tmp_path):
    """The export is verified in a fresh process; then the server fills masks."""
    export = exports.open_export(directories["google"], None, sources.LENGTHS[:4], 128)
    _, report = writer.write(str(tmp_path / "antiberty"), export, "antiberty")
    assert report["difference"] < TOLERANCE
    masked = [one for one in reference["sequences"] if "_" in one]
    versions = model_versions.open_model("antiberty", str(tmp_path / "antiberty"))
    with running(versions) as url:
        request = {
            "signature_name": "fill_mask",
            "instances": [text_of(one) for one in masked],
        }
        status, answer = predict(url, request, "/v1/models/antiberty:predict")
    assert status == 200, answer
    vocab = (directories["google"] / "vocab.txt").read_text().split()
    rows = [
        mask
        for one in answer["predictions"]
        for mask in zip(one["tokens"], one["probabilities"], strict=True)
        if any(mask[0])
    ]
    assert len(rows) == 3
    differences = []
    for (tokens, found), wanted in zip(rows, reference["probabilities"], strict=True):
        ids = [vocab.index(token) for token in tokens]
        assert ids == np.argsort(-wanted)[: len(ids)].tolist()
        differences.append(np.abs(np.array(found) - wanted[ids]).max())
    print(f"SavedModel {report['difference']:.1e}, server {max(differences):.1e}")
    assert max(differences) < TOLERANCE
