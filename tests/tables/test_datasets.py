"""Dataset names are parsed, and TFDS rows become Python values."""

import re

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tables.datasets import DatasetName, parse_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("imdb_reviews", ("imdb_reviews", None, None)),
        ("glue/mrpc", ("glue", "mrpc", None)),
        ("squad/v2.0:3.0.0", ("squad", "v2.0", "3.0.0")),
        ("conll2003:1.0.0", ("conll2003", None, "1.0.0")),
        ("paws_x_wiki/de", ("paws_x_wiki", "de", None)),
    ],
)
def test_names(name, parts):
    assert parse_name(name) == DatasetName(*parts)
    assert str(parse_name(name)) == name


@pytest.mark.parametrize(
    "name", ["", "glue/", "/mrpc", "a b", "glue/mrpc:2", "huggingface:x", "../x", "ä"]
)
def test_what_is_no_name(name):
    with pytest.raises(UserError, match="is not a TFDS name"):
        parse_name(name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return the folder of a dataset with every kind of feature."""
    from named_datasets import prepare_rows, tfds

    folder = tmp_path_factory.mktemp("tfds")
    features = {
        "text": tfds.features.Text(),
        "score": np.float32,
        "count": np.int64,
        "yes": np.bool_,
        "label": tfds.features.ClassLabel(names=["a", "b"]),
        "tags": tfds.features.Sequence(tfds.features.ClassLabel(names=["x", "y"])),
        "words": tfds.features.Sequence(tfds.features.Text()),
        "answers": tfds.features.Sequence(
            {"text": tfds.features.Text(), "start": np.int32}
        ),
    }
    row = {
        "text": "œuf 好",
        "score": 3.8,
        "count": 2**40,
        "yes": True,
        "label": "b",
        "tags": ["y", "x", "y"],
        "words": ["ä", "", "b"],
        "answers": [{"text": "好", "start": 4}],
    }
    empty = {
        "text": "",
        "score": -0.5,
        "count": -1,
        "yes": False,
        "label": -1,
        "tags": [],
        "words": [],
        "answers": [],
    }
    splits = {"train": [row, empty], "validation_second": [row], "test": [row]}
    prepare_rows(
        *("every_kind", folder, features, splits),
        homepage="https://example.org/every",
        license="CC0, as far\nas we know",
        citation="@misc{first2020,\n title={x}}\n@article{ second,\n title={y}}",
    )
    return folder


@pytest.fixture(scope="module")
def dataset(prepared):
    from named_datasets import opened

    return opened("every_kind", prepared)


def test_rows_are_python_values(dataset):
    rows = sorted(dataset.rows("train"), key=lambda row: row["text"])
    assert rows[1] == {
        "text": "œuf 好",
        "score": 3.8,
        "count": 2**40,
        "yes": True,
        "label": 1,
        "tags": [1, 0, 1],
        "words": ["ä", "", "b"],
        "answers": {"text": ["好"], "start": [4]},
    }
    assert rows[0]["label"] == -1 and rows[0]["score"] == -0.5
    assert rows[0]["words"] == [] and rows[0]["answers"] == {"text": [], "start": []}
    kinds = {name: type(value) for name, value in rows[1].items()}
    assert kinds["score"] is float and kinds["yes"] is bool and kinds["label"] is int


def test_splits(dataset):
    assert dataset.find_split("train") == "train"
    assert dataset.require_split("dev") == "validation_second"
    assert dataset.find_split("test") == "test"


def test_a_missing_split(tmp_path):
    from named_datasets import opened, prepare_rows, tfds

    splits = {"train": [{"text": "a"}], "unsupervised": [{"text": "b"}]}
    prepare_rows("half", tmp_path, {"text": tfds.features.Text()}, splits)
    dataset = opened("half", tmp_path)
    assert dataset.find_split("dev") is None
    with pytest.raises(UserError) as caught:
        dataset.require_split("dev")
    assert str(caught.value) == (
        "--dataset=half has no validation split, only train, unsupervised. Leave out "
        "the step that needs it, or choose another dataset."
    )


def test_what_it_is(dataset):
    assert dataset.describe() == (
        "Dataset every_kind: version 1.0.0; source https://example.org/every; license: "
        "CC0, as far as we know; citation: first2020, second"
    )
    assert dataset.record() == {
        "name": "every_kind",
        "version": "1.0.0",
        "source": "https://example.org/every",
        "license": "CC0, as far as we know",
        "citations": ["first2020", "second"],
        "checksums": {},
    }


def test_checksums_of_downloads():
    from named_datasets import opened, tfds

    with tfds.testing.mock_data(num_examples=1):
        record = opened("squad/v1.1", None).record()
    assert (record["name"], record["version"]) == ("squad/v1.1", "3.0.0")
    (url,) = (url for url in record["checksums"] if url.endswith("/train-v1.1.json"))
    assert re.fullmatch("[0-9a-f]{64}", record["checksums"][url])


def test_damaged_files(prepared, tmp_path):
    import shutil

    from named_datasets import opened

    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    (path,) = tmp_path.glob("every_kind/1.0.0/*-train.tfrecord*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="train cannot be read after row [01]: .*Remov"):
        list(opened("every_kind", tmp_path).rows("train"))
