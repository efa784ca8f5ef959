"""Opening TFDS datasets works, or fails with a helpful message."""

import importlib.util
from unittest import mock

import pytest

from official_bert.errors import UserError
from official_bert.tables.dataset_opening import open_dataset, require_tfds
from official_bert.tables.datasets import parse_name


def message_of(name, folder=None):
    with pytest.raises(UserError) as caught:
        open_dataset(parse_name(name), folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("missing", ["tensorflow_datasets", "importlib_resources"])
def test_without_the_packages(monkeypatch, missing):
    def find(name):
        return None if name == missing else "there"

    monkeypatch.setattr(importlib.util, "find_spec", find)
    package = missing.replace("_", "-")
    for check in (require_tfds, lambda: open_dataset(parse_name("squad"))):
        with pytest.raises(UserError) as caught:
            check()
        assert str(caught.value) == (
            f"--dataset needs {package}. Run pip install {package}, or read local "
            "files instead."
        )
    with pytest.raises(UserError, match="^--tfds needs"):
        require_tfds("--tfds")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "imdb",
            "TFDS has no dataset imdb, and --data_dir has none prepared "
            "of this name. Similar names: imdb_reviews.",
        ),
        ("gleu/mrpc", "has no dataset gleu, .* Similar names: glue"),
        ("swag", "TFDS has no dataset swag, .* Similar names: hellaswag"),
        ("glue/mrcp", "it has no config mrcp. Similar names: mrpc."),
        ("snli/plain", "snli has no configs. Use --dataset=snli."),
        ("squad/v1.1:9.9.9", r"does not have version 9.9.9 \(.*only: 3.0.0\). Leave"),
        ("xnli", "--dataset=xnli must name a language.*xnli/zh. Languages: ar, bg"),
        ("xnli/xx", "--dataset=xnli/xx must name a language"),
    ],
)
def test_unknown_names(tmp_path, name, message):
    from named_datasets import tfds  # noqa: F401

    with pytest.raises(UserError, match=message):
        open_dataset(parse_name(name), tmp_path)
    assert not list(tmp_path.iterdir())


def fail_with(error):
    """Make each preparation fail."""
    from named_datasets import tfds

    return mock.patch.object(
        tfds.core.DatasetBuilder, "download_and_prepare", side_effect=error
    )


class DownloadError(Exception):
    """Stands for TFDS's class, which is not an `OSError`."""


@pytest.mark.parametrize(
    "error",
    [
        OSError("No route to host"),
        ValueError("Unknown split"),
        DownloadError("Failed to get url https://x.\n HTTP code: 503."),
    ],
)
def test_what_cannot_be_downloaded(tmp_path, error):
    reason = " ".join(str(error).split()).rstrip(".")
    with fail_with(error):
        assert message_of("imdb_reviews", tmp_path) == (
            f"--dataset=imdb_reviews cannot be downloaded and prepared: {reason}. "
            "Check the network, or copy the prepared dataset to "
            f"{tmp_path}/imdb_reviews/plain_text/1.0.0."
        )


def test_files_that_a_user_must_download(tmp_path):
    from named_datasets import tfds  # noqa: F401

    message = message_of("story_cloze/2016", tmp_path)
    assert message.startswith(
        "--dataset=story_cloze/2016 needs files that you must download yourself. Put "
        f"them into {tmp_path}/downloads/manual: "
    )
    assert "cs.rochester.edu" in message


def test_each_is_described(tmp_path, capsys):
    from named_datasets import opened, tfds

    with tfds.testing.mock_data(num_examples=2):
        for name, printed in {
            "imdb_reviews": "imdb_reviews",
            "conll2003": "conll2003",
            "glue/mrpc:2.0.0": "glue/mrpc",
            "squad": "squad/v1.1",  # TFDS uses the first config.
            "xnli/zh": "xnli/zh",
        }.items():
            dataset = opened(name, None)
            (line,) = capsys.readouterr().out.splitlines()
            assert line == dataset.describe()
            assert line.startswith(f"Dataset {printed}: version ")
            assert dataset.language == ("zh" if name == "xnli/zh" else None)


def test_prepared_data_need_no_code_and_no_network(tmp_path):
    from named_datasets import opened, prepare_rows, tfds

    rows = {"train": [{"text": "a horse"}]}
    prepare_rows("my_own", tmp_path, {"text": tfds.features.Text()}, rows)
    for name in ("my_own", "my_own:1.0.0"):
        assert list(opened(name, tmp_path).rows("train")) == [{"text": "a horse"}]
    assert "has no dataset my_own" in message_of("my_own:2.0.0", tmp_path)
