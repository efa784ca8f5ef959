"""`export_model.py` from the command line: one export, and bad commands."""

import json
import os
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf
from script_runs import assert_refused, run_many
from untrained_models import with_outputs, write_model

from official_bert.errors import UserError
from official_bert.export.saved_model import server_files
from official_bert.serving import model_versions, saved_model
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.squad.training import SquadTask

TASK = ClassifierTask("single_label", ("bad", "good", "so so"), ("accuracy",), 24)
TEXTS = ["the horse is on né water", "", "of her {years}" * 9]
FILES = {
    "texts.jsonl": "\ufeff\n"
    + "".join(json.dumps({"text": text}) + "\n" for text in TEXTS),
    "cut.jsonl": '{"text": "on"}\n\n{"text": "on"\n',
    "name.jsonl": '{"text": "on"}\n{"texts": "on"}\n',
    "more.jsonl": '{"text": "on", "text_b": "on"}\n',
    "list.jsonl": '["on"]\n',
    "number.jsonl": '{"text": "on"}\n{"text": 5}\n',
    "null.jsonl": '{"text": null}\n',
    "deep.jsonl": "[" * 99999 + "\n",
    "half.jsonl": '{"text": "\\ud800"}\n',
    "latin.jsonl": b'{"text": "n\xe9"}\n',
    "empty.jsonl": "\n",
    "a-file": "",
}
EXPORT = "--model_dir=classifier --export_dir=exports/reviews --lengths=32,8 "
EXPORT += "--check_file=texts.jsonl"
FAST = "--model_dir=classifier --export_dir=exports/fast --lengths=8"
FAST += " --tokenizer_ops=tf_text --check_file=texts.jsonl"
MODEL = "--model_dir=classifier"
# Flags in addition to `--export_dir=new-N` -> words of the error.
BAD = {
    "": "--model:",
    "--model_dir=nowhere": "nowhere",
    "--model_dir=nothing": "nothing",
    "--model_dir=unfinished": "unfinished",
    "--model_dir=damaged": "damaged … task.json",
    "--model_dir=squad --pairs": "squad is not a classifier … --pairs",
    "--model_dir=squad --nopairs": "squad is not a classifier … --pairs",
    f"{MODEL} --max_seq_length=8": "fine-tuned for 24 tokens … --max_seq_length",
    "--model_dir=encoder --max_seq_length=0": "max_seq_length … 3",
    "--model_dir=encoder --max_seq_length=33": "--max_seq_length=33 … 3 to 32",
    f"{MODEL} --lengths=abc": "--lengths … abc",
    f"{MODEL} --lengths=16,": "--lengths",
    f"{MODEL} --lengths=16,2": "--lengths … 3 tokens",
    f"{MODEL} --lengths=8.5": "--lengths … 8.5",
    "--model_dir=nowhere --model_name=a/b": "--model_name='a/b' … letters",
    f"{MODEL} --version=0": "--version",
    f"{MODEL} --version=one": "--version",
    f"{MODEL} --check_file=nowhere.jsonl": "--check_file … nowhere.jsonl",
    f"{MODEL} --check_file=.": "--check_file",
    f"{MODEL} --check_file=cut.jsonl": "cut.jsonl, line 3",
    f"{MODEL} --check_file=name.jsonl": "name.jsonl, line 2 … text",
    f"{MODEL} --check_file=more.jsonl": "more.jsonl, line 1",
    f"{MODEL} --check_file=list.jsonl": "list.jsonl, line 1",
    f"{MODEL} --check_file=number.jsonl": "number.jsonl",
    f"{MODEL} --check_file=null.jsonl": "null.jsonl",
    f"{MODEL} --check_file=deep.jsonl": "deep.jsonl, line 1",
    f"{MODEL} --check_file=half.jsonl": "half.jsonl",
    f"{MODEL} --check_file=latin.jsonl": "latin.jsonl",
    f"{MODEL} --pairs --check_file=texts.jsonl": "texts.jsonl, line 2 … text_b",
    f"{MODEL} --export_dir=a-file": "--export_dir … a-file",
    f"{MODEL} --export_dir=a-file/below": "--export_dir … a-file/below",
    f"{MODEL} --export_dir=/proc/nowhere": "--export_dir … /proc/nowhere",
    f"{MODEL} --export_dir=exports/reviews --version=1": "--version … Choose another",
    f"{MODEL} --format=tflite --tokenizer_ops=tf_text": "--tokenizer_ops … saved_model",
    f"{MODEL} --tokenizer_ops=fast": "--tokenizer_ops … tf_text",
    f"{MODEL} more": "more",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exporting")
    write_model(folder / "classifier", TASK)
    write_model(folder / "squad", SquadTask(32, 8, 8))
    write_model(folder / "encoder", None, with_outputs(1))
    (folder / "nothing").mkdir()
    shutil.copytree(folder / "classifier", folder / "damaged")
    (folder / "damaged" / "task.json").write_text('{"task": "classifier"}')
    shutil.copytree(folder / "classifier", folder / "unfinished")
    for path in (folder / "unfinished").iterdir():
        if path.name not in ("task.json", "vocab.txt"):
            path.unlink()
    for name, content in FILES.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {"export": {"arguments": EXPORT.split()}}
    runs["fast"] = {"arguments": FAST.split()}
    for number, flags in enumerate(BAD):
        # If a flag is given twice, the last one counts.
        runs[flags] = {"arguments": [f"--export_dir=new-{number}", *flags.split()]}
    return run_many("export_model", runs, folder)


def test_the_command_says_what_it_wrote(results, folder):
    result = results["export"]
    assert result["status"] == 0, result["stderr"]
    said = result["stdout"].splitlines()
    path = os.path.join("exports", "reviews")
    assert said[0] == f"Exported to {path}/1: single-label classifier"
    assert said[1].startswith("A new process gives the same outputs as Python for ")
    # 9 samples for each of two signatures, one for each length, and those of the file.
    assert " for 23 inputs (largest difference " in said[1]
    assert said[-1] == f"{path}/README.md explains how to start and query a server."
    has_warmup = (folder / path / "1" / server_files.WARMUP).exists()
    assert len(said) == (3 if has_warmup else 4)
    assert has_warmup or "tensorflow-serving-api" in said[2]


def test_the_export_answers(results, folder):
    assert results["export"]["status"] == 0
    model = tf.saved_model.load(str(folder / "exports" / "reviews" / "1"))
    found = model.signatures["serving_default"](text=tf.constant(TEXTS))
    wanted = ClassifierPredictor(str(folder / "classifier")).predict(TEXTS)
    labels = [label.decode() for label in found["label"].numpy()]
    assert labels == [one.label for one in wanted]
    for row, one in zip(found["probabilities"].numpy(), wanted, strict=True):
        assert row.tolist() == pytest.approx([*one.probabilities.values()], abs=1e-5)


def test_an_export_with_operations_of_tensorflow_text(results, folder, monkeypatch):
    result = results["fast"]
    assert result["status"] == 0, result["stderr"]
    # A new process has compared it with Python, with the kernels and without them.
    assert "A new process gives the same outputs" in result["stdout"]
    directory = folder / "exports" / "fast"
    assert "uses operations of TensorFlow Text" in (directory / "README.md").read_text()
    served = model_versions.open_model("fast", directory)
    texts = {"text": np.array([text.encode() for text in TEXTS], object)}
    found = saved_model.run(served.current, "serving_default", texts)
    wanted = ClassifierPredictor(str(folder / "classifier")).predict(TEXTS)
    assert [label.decode() for label in found["label"]] == [one.label for one in wanted]
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(UserError, match="pip install tensorflow-text") as caught:
        model_versions.open_model("fast", directory)
    assert str(caught.value).count(". ") <= 1 and "\n" not in str(caught.value)


def test_what_is_beside_the_version(results, folder):
    names = {"1", "README.md", "batching_parameters.txt", "docker-compose.yml"}
    assert set(os.listdir(folder / "exports" / "reviews")) == names | {".lock"}
    readme = (folder / "exports" / "reviews" / "README.md").read_text()
    assert readme.partition("\n")[2].startswith("# reviews: ")
    assert "/v1/models/reviews:predict" in readme
    assert "Rows are padded to 8, 24 tokens" in readme
    assert "only TensorFlow's standard operations" in readme


@pytest.mark.parametrize("flags", list(BAD))
def test_refused(results, folder, flags):
    assert_refused(results[flags], BAD[flags].split(" … "))
    assert results[flags]["stdout"] == ""
    # At most an empty folder is left.
    assert list(folder.glob(f"new-{list(BAD).index(flags)}/*")) == []
    assert not list(folder.glob("**/*.tmp.*"))


def test_the_export_is_as_it_was(results, folder):
    newest = max(os.path.getmtime(p) for p in (folder / "exports").rglob("*"))
    assert newest < os.path.getmtime(folder / "exports") + 600
    assert sorted(os.listdir(folder / "exports")) == ["fast", "reviews"]
