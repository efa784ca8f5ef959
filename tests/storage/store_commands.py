"""Commands whose files are all in `gs://` do what they do with local files.

test_store_clients.py runs this inside `private_store.py`. Each command runs twice, with
local files and with objects, and all output files are compared.
"""

import pathlib
import posixpath
import shutil

import numpy as np
import places
import pytest
import stand_ins
import store_client
import tiny_model
from pretraining_runs import assert_equal, tensors

from official_bert import files

BUCKET = "gs://bucket"


def upload(folder, remote):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files.copy(path, f"{remote}/{path.relative_to(folder)}")


def download(remote, folder):
    """Copy the objects below a path; return the folder."""
    for path in store_client.objects():
        # An object whose name ends with a slash stands for a folder.
        if path.startswith(f"{remote}/") and not path.endswith("/"):
            target = folder / path.removeprefix(f"{remote}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            files.copy(path, target)
    return folder


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """(local folder, the same in the store): a model, tables, GLUE data, text."""
    folder = tmp_path_factory.mktemp("inputs")
    tiny_model.write(folder / "model")
    stand_ins.reviews(folder)
    stand_ins.glue(folder)
    shutil.copy(places.MINI / "vocab.txt", folder)
    text = sorted(places.MINI.glob("*.txt"))
    shutil.copy(next(p for p in text if p.name != "vocab.txt"), folder / "text.txt")
    upload(folder, f"{BUCKET}/inputs")
    return str(folder), f"{BUCKET}/inputs"


@pytest.fixture(scope="module")
def both(inputs, tmp_path_factory):
    """A function that runs a command with local files and with objects.

    `{inputs}` and `{output}` in its flags are the two folders. It returns both
    outputs as local folders.
    """

    def run(name, script, *flags):
        local = tmp_path_factory.mktemp(name)
        for folder, output in zip(
            inputs, (str(local), f"{BUCKET}/{name}"), strict=True
        ):
            given = [flag.format(inputs=folder, output=output) for flag in flags]
            store_client.run_well(script, *given)
        return local, download(f"{BUCKET}/{name}", tmp_path_factory.mktemp(name))

    return run


def names_in(folder):
    """Return the files of an output folder that every run has."""
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return {
        name
        for name in found
        if not name.startswith("events/")
        and not name.endswith((".parts.json", ".lock"))
        and "/events/" not in name
    }


def assert_same_files(local, remote, *names):
    assert names_in(local) == names_in(remote)
    for name in names:
        assert (local / name).read_bytes() == (remote / name).read_bytes(), name


@pytest.mark.parametrize(
    ("name", "more"), [("records", []), ("records_of_two", ["--num_workers=2"])]
)
def test_records(both, name, more):
    local, remote = both(
        name,
        "create_pretraining_data",
        "--input_file={inputs}/text.txt",
        "--output_file={output}/train@2.tfrecord",
        "--vocab_file={inputs}/vocab.txt",
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        *more,
    )
    records = [name for name in names_in(local) if name.endswith(".tfrecord")]
    assert len(records) == 2
    assert_same_files(local, remote, *records)


@pytest.fixture(scope="module")
def classifier(both):
    """Output folders of a fine-tuned classifier."""
    return both(
        "reviews",
        "run_classifier",
        "--train_file={inputs}/reviews.csv",
        "--dev_file={inputs}/dev.csv",
        "--test_file={inputs}/new.csv",
        "--init_checkpoint={inputs}/model",
        "--output_dir={output}",
        "--do_train",
        "--do_eval",
        "--do_predict",
        "--num_train_epochs=1",
        "--train_batch_size=8",
        "--max_seq_length=16",
    )


def test_fine_tuning(classifier):
    local, remote = classifier
    assert_same_files(local, remote, "eval_results.txt", "vocab.txt")
    predictions = [name for name in names_in(local) if "predictions" in name]
    predictions += [name for name in names_in(local) if "test_results" in name]
    assert predictions
    assert_same_files(local, remote, *predictions)
    ours, theirs = (tensors(folder / "bert_model.ckpt") for folder in classifier)
    assert_equal(ours, theirs)


def test_glue(both):
    local, remote = both(
        "mrpc",
        "run_classifier",
        "--task_name=MRPC",
        "--data_dir={inputs}/glue_data",
        "--init_checkpoint={inputs}/model",
        "--output_dir={output}",
        "--do_train",
        "--do_eval",
        "--do_predict",
        "--num_train_epochs=1",
        "--train_batch_size=8",
        "--max_seq_length=32",
    )
    written = [name for name in names_in(local) if name.endswith(".tsv")]
    assert written
    assert_same_files(local, remote, "eval_results.txt", *written)


def test_features(both):
    local, remote = both(
        "features",
        "extract_features",
        "--input_file={inputs}/texts.txt",
        "--init_checkpoint={inputs}/model",
        "--output_file={output}/tokens.jsonl",
        "--sentence_vectors={output}/vectors.npy",
        "--max_seq_length=16",
        "--layers=-1",
    )
    assert_same_files(local, remote, "tokens.jsonl", "vectors.npy")
    assert len(np.load(local / "vectors.npy")) > 1


@pytest.fixture(scope="module")
def finished(classifier):
    """(local folder, the same in the store) of the fine-tuned classifier."""
    return str(classifier[0]), f"{BUCKET}/reviews"


def run_on_both(finished, tmp_path, script, name, *flags):
    outputs = str(tmp_path / "local"), f"{BUCKET}/{name}"
    for model, output in zip(finished, outputs, strict=True):
        (tmp_path / "local").mkdir(exist_ok=True)
        given = [flag.format(model=model, output=output) for flag in flags]
        store_client.run_well(script, *given)
    return tmp_path / "local", download(outputs[1], tmp_path / "remote")


def test_predictions(finished, inputs, tmp_path):
    local, remote = run_on_both(
        finished,
        tmp_path,
        "predict",
        "predicted",
        "--model={model}",
        f"--input_file={inputs[1]}/new.csv",
        "--output_file={output}/new.jsonl",
    )
    assert_same_files(local, remote, "new.jsonl")
    assert (local / "new.jsonl").stat().st_size


def test_export(finished, tmp_path):
    flags = "--model={model}", "--export_dir={output}/exported"
    local, remote = run_on_both(finished, tmp_path, "export_model", "saved", *flags)
    assert_same_files(local, remote)
    prefix = pathlib.Path("exported", "1", "variables", "variables")
    ours, theirs = (
        {n: v for n, v in tensors(folder / prefix).items() if not isinstance(v, bytes)}
        for folder in (local, remote)
    )
    assert_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["tflite"])
def test_export_for_a_device(finished, tmp_path, kind):
    flags = "--model={model}", "--export_dir={output}/exported", f"--format={kind}"
    local, remote = run_on_both(finished, tmp_path, "export_model", kind, *flags)
    assert_same_files(local, remote)
    name = posixpath.join("exported", "model.tflite")
    assert (remote / name).stat().st_size == (local / name).stat().st_size
