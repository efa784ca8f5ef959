"""A `.tflite` runs with the right length and cutting; damaged files are rejected."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import warnings
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export.tflite import flatbuffer
from official_bert.fine_tuning import loading, tflite_model
from official_bert.fine_tuning.tflite_model import TfliteModel

LENGTHS = (4, 8)
FILES = {"vocab.txt": b"[PAD]\nthe\n", "task.json": b"{}"}


class Counting(tf.Module):
    """Outputs its inputs: for each text, and for each token."""

    def __init__(self):
        super().__init__()
        self.one = tf.Variable(1.0)

    def of_length(self, length):
        specs = [tf.TensorSpec([1, length], tf.int32, name) for name in INPUTS]

        @tf.function(input_signature=specs, autograph=False)
        def answer(ids, mask, segments):
            tokens = tf.cast(ids + 100 * segments, tf.float32) * self.one
            used = tf.reduce_sum(mask, 1, keepdims=True)
            # Padding also gets a number, as from a real model.
            return {
                "logits": tf.concat([used, tf.fill([1, 1], length)], 1),
                "tag_logits": tf.stack([tokens + 1, -tokens], 2),
                "tags": ids + 1,
            }

        return answer


def written(path, names):
    """Write a model with these signatures, "…_LENGTH"; return its path."""
    model = Counting()
    signatures = {name: model.of_length(int(name.split("_")[1])) for name in names}
    folder = f"{path}.saved"
    tf.saved_model.save(model, folder, signatures=signatures)
    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=list(names)
    )
    pathlib.Path(path).write_bytes(converter.convert())
    shutil.rmtree(folder)
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A model without files inside."""
    folder = tmp_path_factory.mktemp("counting")
    return written(folder / "bare.tflite", ["length_8", "length_4"])


@pytest.fixture(scope="module")
def path(bare):
    """A model with files inside, in a folder."""
    folder = bare.parent / "folder"
    folder.mkdir()
    path = folder / tflite_model.FILE
    shutil.copy(bare, path)
    flatbuffer.append_files(path, FILES)
    return path


@pytest.fixture(scope="module")
def model(path):
    return TfliteModel(path)


def batch(*rows, size=8):
    """Return rows of ids as a padded batch; the last of two rows is of segment 1."""
    ids = np.zeros([len(rows), size], np.int32)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
        segments[place, len(row) // 2 : len(row)] = 1
    return dict(zip(INPUTS, (ids, mask, segments), strict=True))


def test_it_finds_its_lengths(model):
    assert model.lengths == [4, 8]


def test_outputs_are_those_of_the_shortest(model):
    assert model.outputs() == {
        "logits": ("int32", (1, 2)),
        "tag_logits": ("float32", (1, 4, 2)),
        "tags": ("int32", (1, 4)),
    }


def test_each_row_takes_the_shortest_length_that_has_room(model):
    rows = [range(1, 1 + n) for n in (1, 3, 4, 5, 8)]
    found = model(batch(*rows))["logits"]
    assert found.tolist() == [[1, 4], [3, 4], [4, 4], [5, 8], [8, 8]]


def test_tokens_keep_their_places_and_padding_is_0(model):
    found = model(batch([7, 9, 11], [3, 5, 7, 9, 11], size=6))
    assert found["tags"].tolist() == [[8, 10, 12, 0, 0, 0], [4, 6, 8, 10, 12, 0]]
    tokens = [[8, 110, 112, 0, 0, 0], [4, 6, 108, 110, 112, 0]]
    assert found["tag_logits"][:, :, 0].tolist() == tokens
    assert found["tag_logits"].shape == (2, 6, 2)
    assert found["tag_logits"].dtype == np.float32
    assert found["tags"].dtype == np.int32


def test_padding_may_be_longer_than_any_row(model):
    found = model(batch([7, 9, 11], size=40))
    assert found["logits"].tolist() == [[3, 4]]
    assert found["tags"].shape == (1, 40)
    assert not found["tags"][:, 3:].any()


def test_a_row_without_tokens(model):
    found = model(batch([], [5]))
    assert found["logits"].tolist() == [[0, 4], [1, 4]]


def test_a_row_of_one_token_at_the_end_of_a_gap(model):
    """The position of the mask's last token counts, not the number of tokens."""
    gap = batch([1, 2, 3, 4, 5, 6])
    gap["input_mask"][0, 1:5] = 0
    assert model(gap)["logits"].tolist() == [[2, 8]]
    assert model(gap)["tags"][0, 5] == 7


def test_threads_do_not_mix_answers_up(path):
    model = TfliteModel(path)
    draw = np.random.default_rng(1)
    rows = [draw.integers(1, 99, draw.integers(1, 9)).tolist() for _ in range(200)]

    def ask(row):
        found = model(batch(row))
        return found["tags"][0].tolist(), found["logits"][0].tolist()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, rows))
    for row, (tags, (used, length)) in zip(rows, answers, strict=True):
        assert tags == [id + 1 for id in row] + [0] * (8 - len(row))
        assert used == len(row) and length == (4 if used <= 4 else 8)


def test_answers_stay_when_others_are_asked(model):
    first = model(batch([7, 9, 11]))
    before = {name: value.copy() for name, value in first.items()}
    model(batch([2, 3, 4]))
    for name, value in before.items():
        np.testing.assert_array_equal(first[name], value)


def test_it_is_quiet(path, capfd):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TfliteModel(path)(batch([1]))
    assert [str(one.message) for one in caught] == []
    assert "deprecated" not in capfd.readouterr().err


def test_other_signatures_are_refused(tmp_path, bare):
    path = written(tmp_path / "other.tflite", ["size_4"])
    with pytest.raises(UserError, match=r"no signature length_.*export_model\.py"):
        TfliteModel(path)


def test_signatures_besides_do_not_matter(tmp_path):
    path = written(tmp_path / "more.tflite", ["length_4", "longlength_8"])
    assert TfliteModel(path).lengths == [4]


def test_no_signature_at_all_is_refused(tmp_path):
    spec = tf.TensorSpec([1, 4], tf.float32)
    traced = tf.function(tf.nn.relu).get_concrete_function(spec)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced], tf.Module())
    path = tmp_path / "foreign.tflite"
    path.write_bytes(converter.convert())
    with pytest.raises(UserError, match="no signature length_"):
        TfliteModel(path)


def test_it_is_found_in_its_folder(path):
    assert tflite_model.find_file(path) == str(path)
    assert tflite_model.find_file(str(path)) == str(path)
    assert tflite_model.find_file(path.parent) == str(path)
    assert tflite_model.find_file(f"{path.parent}/") == str(path)


def test_what_is_none(path, tmp_path):
    assert tflite_model.find_file(path.parent / "vocab.txt") is None
    assert tflite_model.find_file(path.parent / "no.tflite") is None
    assert tflite_model.find_file(tmp_path / "nowhere") is None
    (tmp_path / "folder.tflite").mkdir()
    assert tflite_model.find_file(tmp_path / "folder.tflite") is None
    (tmp_path / "other.txt").write_text("")
    assert tflite_model.find_file(tmp_path / "other.txt") is None


def test_the_carried_files_are_there_for_a_while(path):
    assert tflite_model.read_files(path) == FILES
    with tflite_model.carried_files(path) as folder:
        found = {one.name: one.read_bytes() for one in pathlib.Path(folder).iterdir()}
    assert found == FILES
    assert not pathlib.Path(folder).exists()


def test_an_error_names_the_model_and_not_the_folder(path):
    with (
        pytest.raises(UserError, match=re.escape(f"{path}/task.json is bad")) as caught,
        tflite_model.carried_files(path) as folder,
    ):
        raise UserError(f"{folder}/task.json is bad.")
    assert folder not in str(caught.value)


def test_names_with_folders_stay_inside(bare, tmp_path):
    path = tmp_path / "evil.tflite"
    shutil.copy(bare, path)
    names = ["../../escaped.txt", "/abs.txt", "a/..", "..", "x" * 300, "vocab.txt"]
    flatbuffer.append_files(path, dict.fromkeys(names, b"1"))
    with tflite_model.carried_files(path) as folder:
        assert os.listdir(folder) == ["vocab.txt"]
        assert not (pathlib.Path(folder).parent / "escaped.txt").exists()


def damaged(path, place):
    """Return the bytes of a file with one wrong byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    return bytes(content)


def bad_files(bare, path):
    """Return name -> (bytes, words of the error)."""
    whole, size = path.read_bytes(), bare.stat().st_size
    archive = whole[size:]
    with zipfile.ZipFile(path) as packed:
        first = packed.infolist()[0].header_offset + 30 + len("vocab.txt")
    return {
        "nothing": (b"", "is not a TFLite model"),
        "text": (b"the horse is on water\n" * 99, "is not a TFLite model"),
        "archive alone": (archive, "is not a TFLite model"),
        "bare": (bare.read_bytes(), "is damaged, or contains no files"),
        "cut": (whole[: size // 2], "is damaged, or contains no files"),
        "cut in the archive": (whole[: size + 40], "is damaged, or contains no files"),
        "without its last byte": (whole[:-1], "is damaged, or contains no files"),
        "other bytes": (damaged(path, first), "is damaged, or contains no files"),
    }


NAMES = ("nothing", "text", "archive alone", "bare", "cut", "cut in the archive")
NAMES += ("without its last byte", "other bytes")


@pytest.mark.parametrize("name", NAMES)
def test_bad_files_are_refused(bare, path, tmp_path, name):
    content, words = bad_files(bare, path)[name]
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(content)
    with pytest.raises(UserError, match=f"bad.tflite {words}.*export_model.py"):
        tflite_model.read_files(bad)


def test_any_byte_of_the_archive_may_be_wrong(bare, path, tmp_path):
    """The file is read as before, or rejected with a `UserError`."""
    start, bad = bare.stat().st_size, tmp_path / "bad.tflite"
    refused = 0
    for place in range(start, path.stat().st_size):
        bad.write_bytes(damaged(path, place))
        try:
            tflite_model.read_files(bad)
        except UserError as error:
            assert "None" not in str(error)
            refused += 1
    assert refused > 50


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(UserError, match="Cannot read the model .*no.tflite: No such"):
        tflite_model.read_files(tmp_path / "no.tflite")


def test_an_archive_without_files(bare, tmp_path):
    path = tmp_path / "empty.tflite"
    shutil.copy(bare, path)
    flatbuffer.append_files(path, {})
    assert tflite_model.read_files(path) == {}
    with pytest.raises(UserError, match="empty.tflite"):
        loading.load_tflite(path)
