"""Each line of docs/migration/from_tensorflow_1.md runs, in the page's order."""

import dataclasses
import importlib
import json
import re
import shlex
import shutil
import zipfile

import numpy as np
import pytest
import tiny_model
import warm_python
from places import MINI, ROOT

from official_bert.checkpoints import google

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/migration/from_tensorflow_1.md").read_text("utf-8")
RELEASE = "uncased_L-12_H-768_A-12"
CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG, num_hidden_layers=4, max_position_embeddings=128
)


def blocks():
    """Return (language, text) of each code block."""
    return re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def commands(text):
    return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files that the page requires, with tiny models."""
    folder = tmp_path_factory.mktemp("migrating")
    shutil.copy(MINI / "text.txt", folder / "sample_text.txt")
    (folder / "input.txt").write_text("the water ||| of the lamps\nthe gulls\n")
    release = folder / RELEASE
    release.mkdir()
    tensors = pretraining_tensors()
    google.write_checkpoint(str(release / "bert_model.ckpt"), tensors)
    (release / "bert_config.json").write_text(CONFIG.to_json_string())
    shutil.copy(tiny_model.VOCAB, release / "vocab.txt")
    with zipfile.ZipFile(folder / f"{RELEASE}.zip", "w") as archive:
        for path in release.iterdir():
            archive.write(path, f"{RELEASE}/{path.name}")
    write_run_of_the_original(folder / "original_output", tensors)
    write_mrpc(folder / "glue_data" / "MRPC")
    write_tf_bert(folder / "my_tf_bert", tensors)
    return folder


def pretraining_tensors():
    return {
        name: 0.1 * value
        for name, value in tiny_model.tensors(CONFIG).items()
        if name.startswith(("bert/", *tiny_model.PRETRAINING_HEADS))
    }


def write_mrpc(directory):
    directory.mkdir(parents=True)
    pair = "the water\tthe lamps\n"
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for name, count in (("train", 40), ("dev", 8)):
        rows = [f"{number % 2}\t1\t2\t{pair}" for number in range(count)]
        (directory / f"{name}.tsv").write_text(header + "".join(rows))
    rows = [f"{number}\t1\t2\t{pair}" for number in range(5)]
    (directory / "test.tsv").write_text(
        header.replace("Quality", "index") + "".join(rows)
    )


def write_run_of_the_original(directory, tensors):
    directory.mkdir()
    slots = {
        f"{name}/{slot}": np.full_like(value, 1e-4)
        for name, value in tensors.items()
        for slot in ("adam_m", "adam_v")
    }
    step = {"global_step": np.int64(20)}
    prefix = str(directory / "model.ckpt-20")
    google.write_checkpoint(prefix, {**tensors, **slots, **step})


def write_tf_bert(directory, tensors):
    """Write a directory like `TFBertForPreTraining.save_pretrained`."""
    import huggingface_files

    directory.mkdir()
    huggingface_files.write_h5(
        directory / "tf_model.h5",
        {
            f"tf_bert_for_pre_training/{huggingface_files.tf_name(name)}:0": (
                value.T if name.endswith("output_weights") else value
            )
            for name, value in tensors.items()
        },
    )
    config = {**CONFIG.to_dict(), "model_type": "bert", "hidden_act": "gelu"}
    (directory / "config.json").write_text(json.dumps(config))
    shutil.copy(tiny_model.VOCAB, directory / "vocab.txt")


def test_every_line_runs(folder):
    found = blocks()
    assert [language for language, _ in found].count("python") == 2
    for language, text in found:
        if language == "python":
            run(["-c", text], folder)
            continue
        for command in commands(text):
            assert command[0] == "python"
            run([str(ROOT / command[1]), *command[2:]], folder)
    check_what_was_made(folder)


def run(arguments, folder):
    done = warm_python.run(arguments, cwd=folder)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)


def check_what_was_made(folder):
    features = [
        json.loads(line) for line in (folder / "output.jsonl").read_text().splitlines()
    ]
    assert [f["linex_index"] for f in features] == [0, 1]
    assert features == [
        json.loads(line)
        for line in (folder / "output_zip.jsonl").read_text().splitlines()
    ]
    assert (folder / "pretraining_output" / "bert_model.ckpt.index").exists()
    steps = (folder / "pretraining_goes_on" / "metrics.jsonl").read_text()
    assert min(json.loads(row)["step"] for row in steps.splitlines()) > 20
    results = (folder / "mrpc_output" / "eval_results.txt").read_text()
    keys = [line.split(" = ")[0] for line in results.splitlines()]
    assert {"eval_accuracy", "eval_loss", "global_step", "loss"} < set(keys)
    rows = (folder / "mrpc_predictions" / "test_results.tsv").read_text().splitlines()
    assert len(rows) == 5
    for name in ("my_pytorch_bert", "my_safetensors_bert"):
        assert (folder / name / "model.safetensors").exists()


# The last column of a table: a name in a module of this package.
NAMES = re.compile(r"`((?:official_bert|[a-z_]+(?:\.[a-z_]+)+)\.\w+)\b")


def test_names_of_the_package_exist():
    cells = [line.split("|")[-2] for line in PAGE.splitlines() if line.endswith("|")]
    names = [name for cell in cells for name in NAMES.findall(cell)]
    assert len(names) > 20
    for name in names:
        module, _, attribute = name.rpartition(".")
        module = f"official_bert.{module}".removesuffix(".official_bert")
        assert hasattr(importlib.import_module(module), attribute), name


def table_of_flags():
    """Return (script, names of flags) of each row of the page's table."""
    table = PAGE.partition("### Every flag of the original")[2].partition("A script's")
    rows = [line.split("|")[1:] for line in table[0].splitlines() if ".py` |" in line]
    return [
        (row[0].strip(" `"), re.findall(r"`(\w+)`", "".join(row[1:]))) for row in rows
    ]


# Numbers of flags in the original's scripts; run_squad.py is not complete.
NUMBER_OF_FLAGS = {
    "create_pretraining_data.py": 11,
    "run_pretraining.py": 22,
    "run_classifier.py": 25,
    "extract_features.py": 13,
}


@pytest.mark.parametrize(("script", "names"), table_of_flags())
def test_flags_of_the_original_are_accepted(script, names):
    if script == "run_classifier_with_tfhub.py":
        assert not (ROOT / "run_scripts" / script).exists()
        return
    assert len(set(names)) == NUMBER_OF_FLAGS.get(script, len(names))
    done = warm_python.run([ROOT / "run_scripts" / script, "--helpfull"])
    assert done.returncode == 0
    # The help names an alias next to the flag for which it stands.
    assert set(names) <= set(re.findall(r"--(?:\[no\])?(\w+)", done.stdout))
