"""Records equal the recordings of the original's script."""

import json
import os
import resource

import numpy as np
import pytest

from official_bert.data import pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import examples, manifest
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer


def _settings(recorded, **more):
    names = InstanceSettings.__dataclass_fields__
    known = {key: value for key, value in recorded.items() if key in names}
    return InstanceSettings(**known, **more)


def _read(path):
    """Return the records of a file as dicts of lists."""
    return [
        {
            name: list(examples.feature_values(feature))
            for name, feature in example.features.feature.items()
        }
        for example in examples.read_examples(path)
    ]


@pytest.mark.comparison
@pytest.mark.parametrize("name", ["plain", "whole_word"])
def test_mini_recordings(mini, mini_tokenizer, tmp_path, name):
    recorded = json.loads((mini / "instances.json").read_text())[name]
    outputs = [str(tmp_path / f"{number}") for number in range(2)]
    vocab_file = str(mini / "vocab.txt")
    pretraining_data.create_pretraining_data(
        [str(mini / "text.txt")],
        outputs,
        mini_tokenizer,
        _settings(recorded["settings"]),
        vocab_file,
    )
    assert [_read(path) for path in outputs] == recorded["files"]


@pytest.fixture(scope="module")
def base_tokenizer(pytestconfig):
    path = pytestconfig.rootpath.parent / "shared/data/vocab/bert-base-uncased"
    if not path.is_dir():
        pytest.skip("the large recordings (../shared) are not on this machine")
    return FullTokenizer(str(path / "vocab.txt"))


def _create_with_base(shared, tokenizer, inputs, outputs, settings):
    vocab_file = str(shared / "data/vocab/bert-base-uncased/vocab.txt")
    return pretraining_data.create_pretraining_data(
        inputs, outputs, tokenizer, settings, vocab_file
    )


@pytest.mark.comparison
@pytest.mark.parametrize("name", ["seq128", "seq128_wwm", "seq64_short", "seq512"])
def test_large_recordings(shared, base_tokenizer, tmp_path, name):
    folder = shared / "golden/instances"
    recorded = json.loads((folder / "configs.json").read_text())
    assert recorded["do_lower_case"]
    settings = _settings({**recorded, **recorded["configs"][name]})
    outputs = [str(tmp_path / f"{number}") for number in range(2)]
    inputs = [str(folder / text) for text in recorded["input_file"]]
    _create_with_base(shared, base_tokenizer, inputs, outputs, settings)
    with np.load(folder / f"{name}.npz") as expected:
        for number, path in enumerate(outputs):
            ours = _read(path)
            for feature in examples.FEATURES:
                values = [record[feature] for record in ours]
                np.testing.assert_array_equal(
                    values, expected[f"file{number}_{feature}"], err_msg=feature
                )


@pytest.mark.comparison
def test_the_records_of_a_real_run_of_the_original(shared, base_tokenizer, tmp_path):
    folder = shared / "golden/original_runs"
    output = str(tmp_path / "out.tfrecord")
    settings = InstanceSettings(random_seed=12345, dupe_factor=5)
    _create_with_base(
        shared, base_tokenizer, [str(folder / "sample_text.txt")], [output], settings
    )
    theirs = _read(str(folder / "tf_examples.tfrecord"))
    assert len(theirs) == 60
    assert _read(output) == theirs


@pytest.mark.comparison
def test_one_document_of_the_recordings(shared, base_tokenizer, tmp_path, caplog):
    inputs = [str(shared / "golden/instances/one_document.txt")]
    labels = {}
    for fix in (False, True):
        output = str(tmp_path / f"{fix}")
        settings = InstanceSettings(next_sentence_fix=fix)
        _create_with_base(shared, base_tokenizer, inputs, [output], settings)
        labels[fix] = {row["next_sentence_labels"][0] for row in _read(output)}
    assert labels == {False: {0, 1}, True: {0}}
    assert caplog.text.count("The input is one document") == 1


@pytest.fixture
def create(mini, mini_tokenizer, tmp_path):
    """Return a function that makes records of the mini text."""

    def _create(outputs=("out.tfrecord",), text=None, **settings):
        inputs = [str(mini / "text.txt")]
        if text is not None:
            (tmp_path / "text.txt").write_text(text)
            inputs = [str(tmp_path / "text.txt")]
        settings = {"dupe_factor": 2, "max_seq_length": 64, **settings}
        return pretraining_data.create_pretraining_data(
            inputs,
            [str(tmp_path / name) for name in outputs],
            mini_tokenizer,
            InstanceSettings(**settings),
            str(mini / "vocab.txt"),
        )

    return _create


def test_manifest_says_what_was_made(create, mini, tmp_path):
    create(["a.tfrecord", "b.tfrecord"], do_whole_word_mask=True)
    rows = [_read(str(tmp_path / name)) for name in ("a.tfrecord", "b.tfrecord")]
    entry = manifest.read_manifest(str(tmp_path / "b.tfrecord"))
    assert entry["num_records"] == len(rows[1])
    assert entry["max_seq_length"] == 64
    assert entry["max_predictions_per_seq"] == 20
    assert entry["vocab_size"] == 125
    assert entry["do_lower_case"] and entry["do_whole_word_mask"]
    both = rows[0] + rows[1]
    labels = [
        label
        for row in both
        for label, weight in zip(
            row["masked_lm_ids"], row["masked_lm_weights"], strict=True
        )
        if weight
    ]
    counts = np.bincount(labels)
    shares = counts[counts > 0] / len(labels)
    tokens = (mini / "vocab.txt").read_text().split("\n")
    assert entry["unigram_entropy"] == pytest.approx(-(shares * np.log(shares)).sum())
    assert entry["most_frequent_token"]["share"] == pytest.approx(shares.max())
    assert entry["most_frequent_token"]["token"] == tokens[counts.argmax()]
    random_next = [row["next_sentence_labels"][0] for row in both]
    assert entry["share_random_next"] == pytest.approx(np.mean(random_next))


def test_lines_and_documents_without_tokens_drop_out(mini_tokenizer):
    texts = [["the bread.", "\u200e", "water"], ["\x01", "\u200e"]]
    for whole_words in (False, True):
        encoded = pretraining_data.encode_documents(texts, mini_tokenizer, whole_words)
        (document,) = encoded
        assert len(document) == 2


def test_the_seed_decides(create, tmp_path):
    create(["a"])
    create(["b"])
    create(["c"], random_seed=7)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


def test_no_text_is_an_error_and_nothing_is_written(create, tmp_path):
    with pytest.raises(UserError, match="contains no text"):
        create(text="\n \n\t\n")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_one_sentence_has_no_pair_under_the_fix(create):
    with pytest.raises(UserError, match="No sentence is followed by another one"):
        create(text="the bread.", next_sentence_fix=True)


def test_the_folder_of_the_records_is_created(create, tmp_path):
    create(["new/folder/a"])
    assert {path.name for path in (tmp_path / "new/folder").iterdir()} >= {
        "a",
        "manifest.json",
    }
    with pytest.raises(UserError, match="contains no text"):
        create(["other/a"], text="\n")
    assert not (tmp_path / "other").exists()


def test_outputs_are_checked_before_the_work(create, tmp_path):
    with pytest.raises(UserError, match="twice"):
        create(["a", "a"])
    with pytest.raises(UserError, match="is also an input"):
        create(["text.txt"], text="the bread.")
    with pytest.raises(UserError, match="text.txt is a file"):
        create(["text.txt/a"])
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(UserError, match="manifest"):
        create()


def test_many_files_are_checked_at_once(tmp_path, monkeypatch):
    """Many files are checked fast, without comparing each output with each input."""
    looked_up, read = [], []
    realpath = os.path.realpath
    monkeypatch.setattr(
        os.path, "realpath", lambda path: looked_up.append(path) or realpath(path)
    )
    monkeypatch.setattr(manifest, "check_manifest", read.append)
    inputs, outputs = (
        [str(tmp_path / f"{kind}{number}") for number in range(20)]
        for kind in ("in", "out")
    )
    pretraining_data.check_output_files(outputs, inputs)
    assert len(looked_up) <= 2 * len(outputs) + len(inputs)
    assert len(read) == 1


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    outputs = [str(tmp_path / name) for name in ("a", "b")]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, hard))
    try:
        with pytest.raises(UserError, match="whether the disk is full"):
            pretraining_data.write_records([b"x" * 500] * 1000, outputs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


def test_records_go_to_the_files_in_turn(tmp_path):
    import tensorflow as tf

    outputs = [str(tmp_path / name) for name in "abc"]
    pretraining_data.write_records([bytes([n]) for n in range(5)], outputs)
    found = [list(tf.data.TFRecordDataset(p).as_numpy_iterator()) for p in outputs]
    assert found == [[b"\0", b"\3"], [b"\1", b"\4"], [b"\2"]]
