"""`run_pretraining.py` from the command line: one good run, and many bad ones."""

import gzip
import json
import os

import numpy as np
import pytest
import record_files
from record_files import MINI, MINI_CONFIG, mini_manifest, mini_records, numbered
from script_runs import assert_refused, run_many

from official_bert.checkpoints import google
from official_bert.data.records.manifest import write_manifest

GOOD = {
    "bert_config_file": "config.json",
    "input_file": "records/*.tfrecord",
    "output_dir": "out",
    "vocab_file": str(MINI / "vocab.txt"),
    "do_train": True,
    "train_batch_size": 16,
    "num_train_steps": 2,
    "num_warmup_steps": 1,
    "learning_rate": 1e-3,
}

# name -> (flags that differ from `GOOD`, words of the error).
BAD = {
    "no config": ({"bert_config_file": None}, ["--bert_config_file"]),
    "config missing": ({"bert_config_file": "none.json"}, ["none.json"]),
    "config is no JSON": ({"bert_config_file": "text.txt"}, ["text.txt", "line 1"]),
    "impossible config": (
        {"bert_config_file": "odd.json"},
        ["odd.json", "hidden_size"],
    ),
    "no input": ({"input_file": None}, ["--input_file"]),
    "no output": ({"output_dir": None}, ["--output_dir"]),
    "no match": (
        {"input_file": "data/*.tfrecord"},
        [
            "create_pretraining_data.py",
            "--output_file=data/00.tfrecord",
            "more than a few hundred MB of text add --num_workers",
        ],
    ),
    "no eval match": (
        {"eval_input_file": "held/*.tfrecord"},
        ["--dev_file", "create_pretraining_data.py"],
    ),
    "directory": ({"input_file": "records"}, ["records is a directory"]),
    "empty file": ({"input_file": "empty"}, ["empty", "no records"]),
    "not a TFRecord": ({"input_file": "text.txt"}, ["text.txt", "TFRecord"]),
    "gzip": ({"input_file": "packed"}, ["packed", "TFRecord"]),
    "truncated": ({"input_file": "cut"}, ["cut is truncated", "record 20"]),
    "foreign": ({"input_file": "foreign"}, ["foreign", "no input_ids", "label"]),
    "no examples": ({"input_file": "noise"}, ["noise", "record 0"]),
    "ids": (
        {"input_file": "ids"},
        ["ids record 2: input_ids is 5000", "vocab_size is 128"],
    ),
    "eval ids": (
        {"eval_input_file": "ids", "do_eval": True},
        ["ids record 2: input_ids is 5000"],
    ),
    "length": ({"max_seq_length": 128}, ["--max_seq_length is 128", "with 32"]),
    "predictions": (
        {"max_predictions_per_seq": 20},
        ["--max_predictions_per_seq is 20", "with 5"],
    ),
    "length in manifest": (
        {"input_file": "described/*.tfrecord", "max_seq_length": 64},
        ["--max_seq_length is 64", "with 32"],
    ),
    "two lengths": ({"input_file": "records/0.tfrecord,short"}, ["short", "32", "4"]),
    "length later": ({"input_file": "later"}, ["later: record 3", "32"]),
    "too long": (
        {"bert_config_file": "short.json"},
        ["32", "16", "max_position_embeddings"],
    ),
    "batch": ({"train_batch_size": 42}, ["batch size 42", "41 records"]),
    "packed batch": (
        {"pack": True, "train_batch_size": 42},
        ["batch size 42", "41 records (41 rows with --pack)"],
    ),
    "packed and damaged": (
        {"pack": True, "input_file": "later"},
        ["later: record 3", "32"],
    ),
    "packed without padding": (
        {"pack": True, "skip_padding": True},
        ["--pack fills padding", "Use only one of them"],
    ),
    "vocabulary size": ({"vocab_file": "long.txt"}, ["long.txt: line 129", "128"]),
    "vocabulary": (
        {"input_file": "described/*.tfrecord", "vocab_file": "other.txt"},
        ["other.txt", "manifest.json"],
    ),
    "eval vocabulary": (
        {
            "input_file": "described/*.tfrecord",
            "eval_input_file": "other/a.tfrecord",
            "vocab_file": None,
        },
        ["other/a.tfrecord", "vocab_sha256"],
    ),
    "no vocabulary": ({"vocab_file": "none.txt"}, ["none.txt"]),
    "neither": ({"do_train": None}, ["--do_train", "--do_eval"]),
    "nothing to evaluate": (
        {"do_train": None, "do_eval": True},
        ["holds no checkpoint", "--model"],
    ),
    "tpu": (
        {"use_tpu": True},
        ["--use_tpu, or --strategy=tpu: TensorFlow finds no free TPU on this machine."],
    ),
    "tpu and more": (
        {"use_tpu": True, "strategy": "mirrored"},
        ["--use_tpu and --strategy=mirrored"],
    ),
    "alone with many": (
        {"strategy": "one_device", "num_devices": 2},
        ["--num_devices is 2", "--strategy=mirrored"],
    ),
    "no workers": ({"strategy": "multi_worker"}, ["TF_CONFIG", '"cluster"']),
    "micro batch": ({"micro_batch_size": 5}, ["--micro_batch_size=5", "16"]),
    "optimizer": ({"optimizer": "sgd"}, ["optimizer", "adam"]),
    "rate of stored masks": ({"masked_lm_prob": "0.4"}, ["--masking=dynamic"]),
    "no rate": ({"masked_lm_prob": "40"}, ["--masked_lm_prob=40 is invalid"]),
    "decay without its schedule": (
        {"num_decay_steps": 1},
        ["--learning_rate_schedule=constant_decay", "Give both"],
    ),
    "long decay": (
        {"learning_rate_schedule": "constant_decay", "num_decay_steps": 2},
        ["--num_decay_steps=2", "only 1 steps"],
    ),
    "growing batch": (
        {"batch_size_steps": "1:42"},
        ["batch size 42", "41 records"],
    ),
    "initializer of a loaded model": (
        {"initializer": "fan_in", "init_checkpoint": "other.ckpt"},
        ["--initializer", "--model"],
    ),
    "stop behind the end": ({"stop_at_step": 3}, ["--stop_at_step=3"]),
    "two starts": (
        {"init_checkpoint": "other.ckpt", "continue_from": "run"},
        ["--model", "--continue_from"],
    ),
    "continue from nothing": (
        {"continue_from": "records"},
        ["--continue_from: records holds no checkpoint"],
    ),
    "steps": ({"num_train_steps": 0}, ["num_train_steps", "0"]),
    "warmup": ({"num_warmup_steps": -1}, ["num_warmup_steps", "-1"]),
    "train batch": ({"train_batch_size": -4}, ["train_batch_size", "-4"]),
    "eval batch": ({"eval_batch_size": 0}, ["eval_batch_size", "0"]),
    "eval steps": ({"max_eval_steps": 0}, ["max_eval_steps", "0"]),
    "save steps": ({"save_checkpoints_steps": 0}, ["save_checkpoints_steps", "0"]),
    "loop": ({"iterations_per_loop": 0}, ["iterations_per_loop", "0"]),
    "rate": ({"learning_rate": -1}, ["--learning_rate", "-1"]),
    "rate nan": ({"learning_rate": "nan"}, ["--learning_rate", "nan"]),
    "rate word": ({"learning_rate": "fast"}, ["learning_rate", "fast"]),
    "seed": ({"seed": -1}, ["seed", "-1"]),
    "large seed": ({"seed": 2**32}, ["seed", str(2**32)]),
    "devices": ({"num_devices": -1}, ["num_devices", "-1"]),
    "many devices": ({"num_devices": 1000}, ["--num_devices is 1000"]),
    "unknown flag": ({"num_train_step": 5}, ["num_train_step"]),
    "checkpoint missing": ({"init_checkpoint": "none.ckpt"}, ["none.ckpt"]),
    "checkpoint empty": ({"init_checkpoint": "records"}, ["contains no checkpoint"]),
    "checkpoint cut": ({"init_checkpoint": "cut.ckpt"}, ["cut.ckpt", "truncated"]),
    "data cut": ({"init_checkpoint": "data.ckpt"}, ["data.ckpt", "word_embeddings"]),
    "checkpoint of another size": (
        {"init_checkpoint": "large.ckpt"},
        ["large.ckpt", "hidden_size is 32", "16 in the model", "bert_config.json"],
    ),
    "other checkpoint": (
        {"init_checkpoint": "other.ckpt"},
        ["other.ckpt", "are missing"],
    ),
    "output is a file": ({"output_dir": "text.txt"}, ["--output_dir", "text.txt"]),
    "output under a file": ({"output_dir": "text.txt/a"}, ["--output_dir", "text.txt"]),
    "output is a model": ({"output_dir": "model"}, ["model holds a model"]),
    "output of another model": (
        {"output_dir": "run"},
        ["run/model.ckpt-7 belongs to a different model"],
    ),
    "output with other settings": (
        {"output_dir": "begun"},
        ["--output_dir", "begun holds a run with ", "--allow_changed_settings"],
    ),
}
# Output of `GOOD` with another seed.
BEGUN = {
    "bert_config": MINI_CONFIG.to_dict(),
    "train_batch_size": 16,
    "learning_rate": 1e-3,
    "num_train_steps": 2,
    "num_warmup_steps": 1,
    "optimizer": "adam",
    "seed": 1,
}
# The good runs come last in the process, to show that earlier runs left no state in it.
AFTERWARDS = {
    "good": {"do_eval": True, "eval_input_file": "records/1.tfrecord"},
    "again": {"do_eval": True, "eval_input_file": "records/1.tfrecord"},
    "without vocabulary": {"vocab_file": None, "output_dir": "out/without"},
    "described": {"input_file": "described/*.tfrecord", "output_dir": "out/described"},
    "packed": {"pack": True, "output_dir": "out/packed"},
    # The default is 10,000 steps of warm-up, as in the original.
    "only warm-up": {"num_warmup_steps": None, "output_dir": "out/warm-up"},
}


def flags(changes):
    """Return a command line; None leaves a flag out."""
    values = {**GOOD, **changes}
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def write_records(folder):
    for name in ("records", "described", "other"):
        (folder / name).mkdir()
    record_files.write_mini(folder / "records")
    record_files.write_mini(folder / "described", manifest=True)
    other = record_files.write(folder / "other" / "a.tfrecord", mini_records())
    write_manifest({other: mini_manifest(vocab_sha256="0" * 64)})
    (folder / "empty").touch()
    (folder / "text.txt").write_text("This is a text.\n" * 20)
    data = (folder / "records" / "0.tfrecord").read_bytes()
    (folder / "packed").write_bytes(gzip.compress(data))
    (folder / "cut").write_bytes(data[:-30])
    record_files.write(folder / "foreign", [{"label": [1], "image": [5]}])
    values = mini_records()
    values[2]["input_ids"][9] = 5000
    record_files.write(folder / "ids", values)
    record_files.write(folder / "short", numbered(1, 20))
    values = mini_records()
    values[3]["segment_ids"].append(0)
    record_files.write(folder / "later", values)
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(folder / "noise")) as writer:
        writer.write(b"\xff\xfe no example")


def write_configs(folder):
    for name, changes in {
        "config": {},
        "odd": {"hidden_size": 17},
        "short": {"max_position_embeddings": 16},
    }.items():
        values = {**MINI_CONFIG.to_dict(), **changes}
        (folder / f"{name}.json").write_text(json.dumps(values))
    lines = (MINI / "vocab.txt").read_text().splitlines()
    more = [f"word{number}" for number in range(10)]
    (folder / "long.txt").write_text("\n".join(lines + more) + "\n")
    (folder / "other.txt").write_text("\n".join([*lines[:-1], "other"]) + "\n")


def write_checkpoints(folder):
    table = "bert/embeddings/word_embeddings"
    tensors = {table: np.zeros([128, 32], np.float32)}
    google.write_checkpoint(str(folder / "large.ckpt"), tensors)
    google.write_checkpoint(str(folder / "other.ckpt"), {"w": np.zeros(3)})
    google.write_checkpoint(str(folder / "cut.ckpt"), tensors)
    os.truncate(folder / "cut.ckpt.index", 60)
    from official_bert.modeling.pretraining import PretrainingModel

    whole = {
        v.path: v.numpy() for v in PretrainingModel(MINI_CONFIG).trainable_variables
    }
    google.write_checkpoint(str(folder / "data.ckpt"), whole)
    os.truncate(folder / "data.ckpt.data-00000-of-00001", 100)
    for name in ("model", "run", "begun"):
        (folder / name).mkdir()
    google.write_checkpoint(str(folder / "model" / "bert_model.ckpt"), tensors)
    google.write_checkpoint(str(folder / "run" / "model.ckpt-7"), tensors)
    google.write_checkpoint(str(folder / "begun" / "model.ckpt-1"), tensors)
    manifest = json.dumps({"run_id": 1, "settings": BEGUN, "history": []})
    (folder / "begun" / "training.json").write_text(manifest)


def listing(folder):
    """Return every folder below a folder, and every file with its time."""
    return {
        str(path.relative_to(folder)): path.is_file() and path.stat().st_mtime_ns
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    write_records(folder)
    write_configs(folder)
    write_checkpoints(folder)
    return folder


@pytest.fixture(scope="module")
def results(place):
    runs = {}
    for name, (changes, _) in BAD.items():
        output = {"output_dir": f"out of {name}", **changes}
        runs[name] = {"arguments": flags(output)}
    for name, changes in AFTERWARDS.items():
        runs[name] = {"arguments": flags(changes)}
    before = listing(place)
    done = run_many("run_pretraining", runs, place)
    return before, done


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, name):
    assert_refused(results[1][name], BAD[name][1])


def test_refused_runs_left_nothing(results, place):
    """The only exception is a run that trained to its end and cannot be evaluated."""
    before, _ = results
    after = listing(place)
    assert {name: after.get(name) for name in before} == before
    new = set(after) - set(before)
    kept = ("out", "out of eval ids")
    assert not [name for name in new if name.split("/")[0] not in kept]
    assert "out of eval ids/model.ckpt-2.index" in new
    assert not [name for name in new if ".tmp" in name]


def test_a_good_run(results, place):
    before, done = results
    assert done["good"]["status"] == 0, done["good"]["stderr"]
    assert done["good"]["stderr"] == ""
    out = place / "out"
    keys = [line.split(" = ")[0] for line in (out / "eval_results.txt").open()]
    assert keys == [
        "global_step",
        "loss",
        "masked_lm_accuracy",
        "masked_lm_loss",
        "next_sentence_accuracy",
        "next_sentence_loss",
    ]
    for word in ("step 2/2", "Eval results", "global_step = 2", "unigram"):
        assert word in done["good"]["stdout"]
    assert (out / "bert_model.ckpt.index").exists()
    card = (out / "README.md").read_text()
    assert "| training steps | 2 |" in card and "| `--vocab_file` | vocab.txt |" in card
    run = json.loads((out / "run.json").read_text())
    assert run["flags"]["learning_rate"] == 1e-3
    names = {os.path.basename(name) for name in run["inputs"]}
    assert names == {"config.json", "0.tfrecord", "1.tfrecord", "vocab.txt"}


def test_the_same_command_again_trains_no_further(results):
    good, again = (results[1][name]["stdout"] for name in ("good", "again"))
    assert results[1]["again"]["status"] == 0
    assert "step 2/2" not in again
    assert good[good.index("Eval results") :] == again[again.index("Eval results") :]


def test_a_packed_run(results, place):
    """The mini records are full, so each record has its own row."""
    found = results[1]["packed"]
    assert found["status"] == 0, found["stderr"]
    line = (
        "--pack: 41 sequences in 41 rows of 32 tokens, 1.00 per row. Padding: 0.0% of"
    )
    assert line in found["stdout"]
    assert "step 2/2" in found["stdout"]
    manifest = json.loads((place / "out" / "packed" / "training.json").read_text())
    assert manifest["settings"]["sequences_per_row"] == 3


def test_warm_up_may_be_longer_than_the_run(results):
    found = results[1]["only warm-up"]
    assert found["status"] == 0, found["stderr"]
    assert "step 2/2" in found["stdout"]


def test_without_a_vocabulary_there_is_a_warning(results, place):
    """The weights are still a model."""
    found = results[1]["without vocabulary"]
    assert found["status"] == 0, found["stderr"]
    assert "Without --vocab_file the model directory gets no" in found["logged"]
    assert "--vocab_file" not in results[1]["good"]["logged"]
    assert (place / "out" / "without" / "bert_model.ckpt.index").exists()
    assert not (place / "out" / "without" / "vocab.txt").exists()


def test_records_without_a_manifest_are_not_checked_and_it_says_so(results):
    line = "Could not check the vocabulary of the records: no manifest.json"
    assert results[1]["good"]["logged"].count(line) == 1
    assert results[1]["described"]["status"] == 0, results[1]["described"]["stderr"]
    assert "Could not check" not in results[1]["described"]["logged"]
