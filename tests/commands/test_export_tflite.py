"""`export_model.py --format=tflite` from the command line, then `predict.py`.

The library's tests check the contents of a `.tflite` and its equality with Python.
"""

import json
import os
import re
import zipfile

import numpy as np
import pytest
import tiny_model
from script_runs import assert_refused, run_many
from untrained_models import with_outputs, write_model

from official_bert.tables.columns import Columns
from official_bert.tasks.choice.training import ChoiceTask
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.ner.features import tag_names
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.training import SquadTask

LABELS = ("bad", "good", "so so")
TASK = ClassifierTask(
    "single_label",
    LABELS,
    ("accuracy",),
    24,
    columns=Columns("text", None, "label", True),
)
TEXTS = [
    "the horse is on water",
    "",
    "of her years ! one logbook found in the light",
    "grand dough and crust",
    "it was time , he found " * 5,
    "light",
    "on the light",
    "she was over the water",
]
MODELS = {
    "classifier": (TASK, None),
    "squad": (SquadTask(24, 8, 6, Decoding(5, 9)), None),
    "tagger": (NerTask(tag_names(["LOC"]), 16), tiny_model.tensors(seed=4)),
    "choice": (ChoiceTask(24), with_outputs(1)),
    "encoder": (None, with_outputs(1)),
}
ANSWER = {
    "id": "a",
    "question": "who",
    "answers": [{"text": "horse", "answer_start": 4}],
}
SQUAD = {"context": "the horse is on water", "qas": [ANSWER]}


def squad(*paragraphs):
    """Return the text of a SQuAD file."""
    data = [{"title": "a", "paragraphs": list(paragraphs)}]
    return json.dumps({"version": "1.1", "data": data})


def rows(*pairs):
    return "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in pairs)


FILES = {
    "short.csv": rows(*[("the", "bad")] * 9),
    "other.csv": rows(("the", "bad"), ("on", "awful")),
    "unlabelled.csv": "text\nthe\non\n",
    "blank.csv": rows(("the", ""), ("on", "")),
    "head.csv": "text,label\n",
    "empty.csv": "",
    "latin.csv": b"text,label\nn\xe9,bad\n",
    "columns.csv": "texts,labels\nthe,bad\n",
    "squad.json": squad(SQUAD),
    "no-answers.json": squad({**SQUAD, "qas": [{"id": "a", "question": "who"}]}),
    "no-questions.json": squad(),
    "cut.json": squad(SQUAD)[:60],
    "tags.txt": "the O\nhorse B-LOC\n\n",
    "other-tags.txt": "the O\nhorse B-PER\n\n",
    "no-tags.txt": "\n\n",
    "no-texts.jsonl": '{"text": "", "entities": []}\n',
    "swag.jsonl": '{"question": "on", "choices": ["is", "in"], "label": 0}\n',
    "no-swag.jsonl": '{"question": "on", "choices": ["is", "in"]}\n',
    "mine/mine.txt": "mine",
    "text.tflite": "the horse is on water\n",
}
TO = "--format=tflite --model_dir="
# Name of the folder -> flags.
GOOD = {
    "int8": f"{TO}classifier --lengths=12 --dev_file=dev.csv --max_accuracy_drop=100",
    "squad32": f"{TO}squad --quantization=float32 --dev_file=squad.json --lengths=24",
    "encoder16": f"{TO}encoder --quantization=float16 --lengths=3 --max_seq_length=8",
    "mediapipe": "--format=mediapipe --model_dir=classifier --dev_file=dev.csv "
    "--max_accuracy_drop=100",
    # No lengths are given, and all texts are short.
    "full": f"{TO}classifier --quantization=full_int8 --calibration_file=short.csv "
    "--dev_file=dev.csv --max_accuracy_drop=100",
}
FULL = f"{TO}classifier --quantization=full_int8"
CALIBRATED = f"{FULL} --dev_file=dev.csv --calibration_file"
# Flags in addition to --export_dir=new-N -> words of the error.
BAD = {
    TO: "--model:",
    f"{TO}nowhere": "nowhere",
    f"{TO}nothing": "nothing",
    f"{TO}classifier --export_dir=mine": "--export_dir … mine … not an empty directory",
    f"{TO}classifier --export_dir=dev.csv": "--export_dir … dev.csv",
    f"{TO}classifier --export_dir=dev.csv/below": "--export_dir … dev.csv/below",
    f"{TO}int8": "int8 is already an export",
    f"{TO}int8/model.tflite": "model.tflite is already an export",
    f"{TO}text.tflite": "text.tflite",
    f"{TO}nan": "",
    f"{TO}classifier --quantization=int4": "--quantization … float32",
    f"{TO}classifier --quantization=": "--quantization",
    f"{TO}classifier --max_accuracy_drop=-1": "--max_accuracy_drop",
    f"{TO}classifier --max_accuracy_drop=little": "--max_accuracy_drop",
    f"{TO}classifier --dev_file=dev.csv --max_accuracy_drop=nan": "--max_accuracy_drop",
    f"{TO}classifier --max_seq_length=8": "--max_seq_length",
    f"{TO}encoder --max_seq_length=2": "max_seq_length … 3",
    f"{TO}encoder --max_seq_length=33": "--max_seq_length=33",
    f"{TO}classifier --lengths=abc": "--lengths … abc",
    f"{TO}classifier --lengths=16,2": "--lengths … 3 tokens",
    f"{TO}classifier --lengths=8.5": "--lengths … 8.5",
    f"{TO}classifier --lengths=-8": "--lengths",
    f"{TO}classifier --lengths=16,": "--lengths",
    # Flags of the other format.
    f"{TO}classifier --model_name=a": "--model_name works only with --format=saved",
    f"{TO}classifier --version=1": "--version works only with --format=saved",
    f"{TO}classifier --web_runtime=.": "--web_runtime works only",
    f"{TO}classifier --nopairs": "--pairs works only with --format=saved",
    f"{TO}classifier --check_file=dev.csv": "--check_file works only",
    "--format=web --model_dir=classifier --version=1": "--version works only",
    "--format=mediapipe --model_dir=classifier --lengths=16": "--lengths works only",
    "--format=mediapipe --model_dir=classifier --pairs": "--pairs works only with",
    "--format=mediapipe --model_dir=squad": "no text task … question answering",
    "--model_dir=classifier --dev_file=dev.csv": "--dev_file works only with",
    "--model_dir=classifier --quantization=int8": "--quantization works only with",
    "--model_dir=classifier --max_accuracy_drop=2": "--max_accuracy_drop works only",
    # full_int8 and its files.
    FULL: "--calibration_file … --dev_file",
    f"{FULL} --dev_file=dev.csv": "--calibration_file",
    f"{FULL} --calibration_file=dev.csv": "--dev_file",
    f"{TO}classifier --calibration_file=dev.csv": "--calibration_file … full_int8",
    f"{CALIBRATED}=no.csv": "--calibration_file … no.csv",
    f"{CALIBRATED}=head.csv": "head.csv",
    f"{CALIBRATED}=latin.csv": "latin.csv",
    f"{CALIBRATED}=short.csv --lengths=24": "accuracy "
    "falls from 100.00 to … --max_accuracy_drop=1",
    # Labeled files.
    f"{TO}classifier --dev_file=no.csv": "--dev_file … no.csv",
    f"{TO}classifier --dev_file=.": "--dev_file",
    f"{TO}classifier --dev_file=other.csv": "other.csv … awful",
    f"{TO}classifier --dev_file=unlabelled.csv": "unlabelled.csv … label",
    f"{TO}classifier --dev_file=blank.csv": "blank.csv",
    f"{TO}classifier --dev_file=head.csv": "head.csv",
    f"{TO}classifier --dev_file=empty.csv": "empty.csv",
    f"{TO}classifier --dev_file=latin.csv": "latin.csv",
    f"{TO}classifier --dev_file=columns.csv": "columns.csv … text",
    f"{TO}classifier --dev_file=squad.json": "squad.json",
    f"{TO}squad --dev_file=dev.csv": "dev.csv",
    f"{TO}squad --dev_file=cut.json": "cut.json",
    f"{TO}squad --dev_file=no-answers.json": "no-answers.json",
    f"{TO}squad --dev_file=no-questions.json": "no-questions.json",
    f"{TO}tagger --dev_file=other-tags.txt": "other-tags.txt",
    f"{TO}tagger --dev_file=no-tags.txt": "no-tags.txt",
    f"{TO}tagger --dev_file=no-texts.jsonl": "no-texts.jsonl are empty",
    f"{TO}tagger --dev_file=squad.json": "squad.json",
    f"{TO}choice --dev_file=no-swag.jsonl": "no-swag.jsonl",
    f"{TO}choice --dev_file=dev.csv": "dev.csv",
    f"{TO}encoder --dev_file=dev.csv": "--dev_file … pre-trained",
    CALIBRATED.replace("classifier", "encoder") + "=dev.csv": "_file … pre-trained",
}
# `predict.py`: --model_dir -> words of the error.
UNFIT = {
    "text.tflite": "text.tflite is not a TFLite model",
    "no.tflite": "no.tflite",
    "cut.tflite": "cut.tflite is damaged, or contains no files",
    "bare.tflite": "bare.tflite is damaged, or contains no files",
    "cut-folder": "cut-folder/model.tflite",
    "mediapipe": "mediapipe/model.tflite has no signature … --format=tflite",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("on-device")
    for name, (task, tensors) in MODELS.items():
        write_model(folder / name, task, tensors)
    nan = tiny_model.tensors()
    nan["output_bias"] = np.full_like(nan["output_bias"], np.nan)
    write_model(folder / "nan", TASK, nan)
    (folder / "nothing").mkdir()
    (folder / "mine").mkdir()
    for name, content in FILES.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    # Python's predictions are the reference.
    found = ClassifierPredictor(str(folder / "classifier")).predict(TEXTS)
    labels = [one.label for one in found]
    assert len(set(labels)) > 1
    (folder / "dev.csv").write_text(rows(*zip(TEXTS, labels, strict=True)))
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {
        name: {"arguments": [f"--export_dir={name}", *flags.split()]}
        for name, flags in GOOD.items()
    }
    for number, flags in enumerate(BAD):
        # If a flag is given twice, the last one counts.
        runs[flags] = {"arguments": [f"--export_dir=new-{number}", *flags.split()]}
    return run_many("export_model", runs, folder)


@pytest.fixture(scope="module")
def predictions(results, folder):
    """Return the output of `predict.py` for exports and for other files."""
    whole = (folder / "int8" / "model.tflite").read_bytes()
    with zipfile.ZipFile(folder / "int8" / "model.tflite") as packed:
        start = min(one.header_offset for one in packed.infolist())
    (folder / "cut.tflite").write_bytes(whole[: start // 2])
    (folder / "bare.tflite").write_bytes(whole[:start])
    (folder / "cut-folder").mkdir()
    (folder / "cut-folder" / "model.tflite").write_bytes(whole[:-30])
    (folder / "copied.tflite").write_bytes(whole)
    asked = "\n".join(TEXTS) + "\n"
    question = json.dumps({"question": "who", "context": "the horse is on water " * 9})
    models = {
        **dict.fromkeys(("classifier", "int8", "copied.tflite"), asked),
        **dict.fromkeys(("squad", "squad32", "squad32/model.tflite"), question),
        "encoder16": "the horse\n",
        **dict.fromkeys(UNFIT, "on\n"),
    }
    runs = {
        name: {"arguments": [f"--model_dir={name}"], "stdin": stdin}
        for name, stdin in models.items()
    }
    return run_many("predict", runs, folder)


def said(results, name):
    result = results[name]
    assert result["status"] == 0, result["stderr"]
    assert result["stderr"] == ""
    return result["stdout"].splitlines()


def test_it_says_what_it_wrote(results, folder):
    lines = said(results, "int8")
    path = os.path.join("int8", "model.tflite")
    assert lines[0].startswith(f"Exported to {path}: single-label classifier, int8, ")
    assert lines[0].endswith(" MB")
    assert lines[1].startswith("On sample texts, outputs differ from Python's by ")
    samples = r"Largest difference on 11 samples: logits \S+, probabilities \S+; \d+ sa"
    assert re.match(samples, lines[2])
    assert lines[3].startswith("dev.csv: accuracy: 100.00 in Python, ")
    assert re.match(r"\d of \d predictions differ from Python's", lines[4])
    numbers = r"Probabilities differ by 0\.\d{4} at most \(example \d\) and by 0\.\d{4}"
    assert re.match(numbers, lines[5])
    assert lines[6].startswith(os.path.join("int8", "README.md"))
    readme = (folder / "int8" / "README.md").read_text()
    assert all(line in readme for line in lines[4:6])
    names = {"README.md", "golden_tokens.json", "labels.txt", "model.tflite"}
    names |= {"task.json", "tokenizer.js", "tokenizer_config.json", "vocab.txt"}
    assert set(os.listdir(folder / "int8")) == names


def test_a_file_for_mediapipe(results, folder):
    lines = said(results, "mediapipe")
    assert "single-label classifier, int8" in lines[0]
    assert lines[3].startswith("dev.csv: accuracy: 100.00 in Python, ")
    names = {"README.md", "labels.txt", "model.tflite", "vocab.txt"}
    names |= {"tokenizer_config.json"}
    assert set(os.listdir(folder / "mediapipe")) == names
    assert "TextClassifier" in (folder / "mediapipe" / "README.md").read_text()


def test_squad_is_scored_by_f1(results):
    found = [line for line in said(results, "squad32") if "squad.json" in line]
    (before, after) = (found[0].split(": ")[2].split(" ")[n] for n in (0, 3))
    assert before == after and found[0].startswith("squad.json: f1: ")


def test_lengths_and_a_pre_trained_model(results, folder):
    lines = said(results, "encoder16")
    assert "pre-trained encoder, float16" in lines[0]
    assert "`length_3`, `length_8`" in (folder / "encoder16" / "README.md").read_text()
    assert not (folder / "encoder16" / "task.json").exists()


def test_full_int8_without_lengths_and_with_short_texts(results):
    assert "full_int8" in said(results, "full")[0]


@pytest.mark.parametrize("flags", list(BAD))
def test_refused(results, folder, flags):
    assert_refused(results[flags], BAD[flags].split(" … "))
    assert results[flags]["stdout"] == ""
    assert not (folder / f"new-{list(BAD).index(flags)}").exists()


def test_nothing_is_left_behind(results, folder):
    assert not list(folder.glob("**/*.tmp*"))
    assert os.listdir(folder / "mine") == ["mine.txt"]
    assert {path.name for path in folder.glob("new-*")} == set()


def test_the_refused_gate_says_both_numbers(results):
    (flags,) = (flags for flags in BAD if "short.csv --lengths=24" in flags)
    words = results[flags]["stderr"].split(" to ")[1].split(",")[0]
    assert float(words) < 99.0


def test_predict_with_an_export(predictions):
    directory = list(map(json.loads, said(predictions, "classifier")))
    device = list(map(json.loads, said(predictions, "int8")))
    assert [set(one) for one in device] == [set(one) for one in directory]
    assert len(device) == len(TEXTS)
    assert said(predictions, "copied.tflite") == said(predictions, "int8")


def test_predict_of_squad_with_an_export(predictions):
    wanted = json.loads(said(predictions, "squad")[0])
    for name in ("squad32", "squad32/model.tflite"):
        found = json.loads(said(predictions, name)[0])
        assert found["answer"] == wanted["answer"] and found["start"] == wanted["start"]
        assert found["score"] == pytest.approx(wanted["score"], abs=2e-4)


def test_predict_with_an_encoder(predictions):
    (line,) = said(predictions, "encoder16")
    found = json.loads(line)
    assert found["text"] == "the horse"
    assert len(found["pooled_output"]) == tiny_model.WIDTH


@pytest.mark.parametrize("name", list(UNFIT))
def test_predict_refuses(predictions, name):
    assert_refused(predictions[name], UNFIT[name].split(" … "))
    assert predictions[name]["stdout"] == ""
