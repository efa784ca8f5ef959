r"""Compare MediaPipe's `TextClassifier` and `TextEmbedder` with Python.

    make mediapipe

Exports small models with `--format=mediapipe` and runs MediaPipe's Python API in an
environment of its own:

    python tests/export/tflite/compare_mediapipe.py build/mediapipe/bin/python

MediaPipe tokenizes the texts itself. A second model with the same vocabulary returns
its ids as a vector. So the ids of every text can be compared with ours. If they
agree, the results must agree with `predict.py`. The other texts are counted.

A classifier of two layers is fine-tuned on CoLA with `run_classifier.py` if
../shared/data exists. All of CoLA's dev set is compared.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tiny_exports  # noqa: E402
from absl import logging  # noqa: E402
from places import ROOT, SHARED  # noqa: E402

from official_bert.export.tflite import converter, mediapipe  # noqa: E402
from official_bert.export.tflite.model import open_device_model  # noqa: E402

SCRIPT = pathlib.Path(__file__).with_name("mediapipe_results.py")
# Maximum difference of a number: float32 and 8-bit weights.
TOLERANCES = {"float32": 1e-4, "int8": 1e-4}
KINDS = ("label", "labels", "vectors", "masks")
COLA = SHARED / "data" / "glue" / "CoLA"
VOCAB = SHARED / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
COLA_CONFIG = {
    "hidden_size": 128,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 30522,
}


def write_probe(path, vocab, length):
    """Write a model for `TextEmbedder` whose vector is the ids themselves."""

    def ids(inputs):
        zero = 0 * (inputs["input_mask"] + inputs["segment_ids"])
        return {"embedding": tf.cast(inputs["input_ids"] + zero, tf.float32)}

    content = converter.convert(converter.FixedLengths(ids, [], (length,)), "float32")
    packed = {"vocab.txt": vocab, "tokenizer_config.json": b"{}"}
    mediapipe.write_file(path, content, "embedding", "probe", packed)


def own_ids(tokenizer, texts, length):
    """Return our ids, padded with 0: int array [texts, length]."""
    rows = np.zeros((len(texts), length), int)
    for row, text in zip(rows, texts, strict=True):
        ids = tokenizer.encode(text)[: length - 2]
        ids = [tokenizer.vocab["[CLS]"], *ids, tokenizer.vocab["[SEP]"]]
        row[: len(ids)] = ids
    return rows


def ask(python, folder, requests):
    """Return (MediaPipe's version, its results for each request)."""
    questions, answers = folder / "requests.json", folder / "answers.json"
    questions.write_text(json.dumps(requests))
    command = [python, SCRIPT, questions, answers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"MediaPipe failed:\n{done.stderr[-2000:]}")
    return json.loads(answers.read_text())


def largest_difference(results, expected):
    """Return the greatest difference of two lists of dicts or vectors."""
    pairs = []
    for one, other in zip(results, expected, strict=True):
        if isinstance(other, dict):
            # MediaPipe sorts the labels by score.
            assert set(one) == set(other), (one, other)
            one, other = [one[name] for name in other], list(other.values())
        pairs.append((one, other))
    return max(float(np.abs(np.subtract(*pair)).max()) for pair in pairs)


def compare(python, folder, directory, texts, expected, quantization="float32"):
    """Export a model, run it in MediaPipe and compare.

    Args:
      python: interpreter with MediaPipe.
      folder: a new folder.
      directory: the model's directory.
      texts: list of str.
      expected: function: () -> for each text a dict of label -> probability, or a
        vector.
      quantization: of the export.

    Returns:
      list of cells for the table.
    """
    folder.mkdir()
    model = open_device_model(directory, ())
    run(
        "export_model.py",
        f"--model={directory}",
        f"--export_dir={folder / 'export'}",
        "--format=mediapipe",
        f"--quantization={quantization}",
    )
    path, probe = folder / "export" / "model.tflite", folder / "probe.tflite"
    vocab = (folder / "export" / "vocab.txt").read_bytes()
    write_probe(probe, vocab, model.lengths[0])
    class_name = mediapipe.CLASSES[mediapipe.output_of(model)]
    requests = [(str(path), class_name, texts), (str(probe), "TextEmbedder", texts)]
    version, (results, ids) = ask(python, folder, requests)
    wanted_ids = own_ids(model.tokenizer, texts, model.lengths[0])
    fits = np.full(len(texts), True)
    if getattr(getattr(model.predictor, "task", None), "long_text", "") == "window":
        # Python reads these texts in several windows; MediaPipe cuts them.
        longest = model.lengths[0] - 2
        fits = np.array([len(model.tokenizer.encode(t)) <= longest for t in texts])
    same = (np.array(ids, int) == wanted_ids).all(axis=1)
    rows = np.flatnonzero(same & fits)
    assert len(rows), "MediaPipe's tokenizer agrees on no text."
    found, wanted = ([each[i] for i in rows] for each in (results, expected()))
    difference = largest_difference(found, wanted)
    # The texts must not all have the same result.
    spread = largest_difference(wanted[:-1], wanted[1:])
    assert spread > 100 * TOLERANCES[quantization], spread
    if not difference <= TOLERANCES[quantization]:
        raise AssertionError(f"{directory}: the results differ by {difference:.1e}.")
    counts = [len(texts), len(rows), np.sum(~same), np.sum(same & ~fits)]
    return [f"{class_name} {version}", quantization, *counts, f"{difference:.0e}"]


def in_python(directory, texts):
    """Return a function for `compare`: predictions of a model directory."""

    def expected():
        model = open_device_model(directory, ())
        if model.predictor is None:
            rows = own_ids(model.tokenizer, texts, model.lengths[0])
            return [_pooled(model, np.trim_zeros(row, "b")[None]) for row in rows]
        if model.labels:
            return [one.probabilities for one in model.predictor.predict(texts)]
        return list(model.predictor.vectors(texts))

    return expected


def _pooled(model, ids):
    ids = tf.constant(ids, tf.int32)
    row = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}
    return model.compute(row)["pooled_output"].numpy()[0]


def run(script, *flags):
    """Run a command of `run_scripts`."""
    command = [sys.executable, ROOT / "run_scripts" / script, *flags]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        sys.exit(f"{script} failed:\n{done.stderr[-2000:]}")


def train_cola(folder):
    """Fine-tune a small classifier on CoLA; return its directory."""
    config = folder / "config.json"
    config.write_text(json.dumps(COLA_CONFIG))
    run(
        "run_classifier.py",
        "--task_name=cola",
        "--do_train=true",
        f"--data_dir={COLA}",
        f"--vocab_file={VOCAB}",
        f"--bert_config_file={config}",
        "--max_seq_length=48",
        "--num_train_epochs=4",
        "--learning_rate=5e-4",
        f"--output_dir={folder / 'cola'}",
    )
    return str(folder / "cola")


def predicted(model, texts, folder):
    """Return the probabilities that `predict.py` prints for texts."""
    source, output = folder / "texts.txt", folder / "predictions.jsonl"
    source.write_text("".join(f"{text}\n" for text in texts))
    run(
        "predict.py",
        f"--model={model}",
        f"--input_file={source}",
        f"--output_file={output}",
    )
    lines = output.read_text().splitlines()
    return [json.loads(line)["probabilities"] for line in lines]


def compare_cola(python, folder):
    """Yield rows of the table for CoLA's dev set."""
    directory = train_cola(folder)
    lines = (COLA / "dev.tsv").read_text().splitlines()
    texts = [line.split("\t")[3] for line in lines]
    lite = folder / "lite"
    run(
        "export_model.py",
        f"--model={directory}",
        f"--export_dir={lite}",
        "--format=tflite",
    )
    for quantization, model in (("float32", directory), ("int8", lite)):
        wanted = predicted(model, texts, folder)
        yield [
            "CoLA, dev set",
            *compare(
                python,
                folder / quantization,
                directory,
                texts,
                lambda wanted=wanted: wanted,
                quantization,
            ),
        ]


def rows_of(python, folder):
    """Yield the rows of the table, as lists of cells."""
    for kind in KINDS:
        parent = folder / kind
        parent.mkdir()
        directory = tiny_exports.write_kind(parent, kind)
        texts = tiny_exports.random_texts(100, 3, 6)
        expected = in_python(directory, texts)
        cells = compare(python, parent / "mediapipe", directory, texts, expected)
        yield [f"tiny model: {kind}", *cells]
    if COLA.is_dir():
        yield from compare_cola(python, folder)
    else:
        print(f"CoLA is left out, because {COLA} does not exist.")


def main(python):
    """Print the table; fail if a result differs."""
    names = ("model", "MediaPipe", "weights", "texts", "same ids", "other ids")
    names += ("longer than the model", "greatest difference where ids agree")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")
    with tempfile.TemporaryDirectory() as folder:
        for cells in rows_of(python, pathlib.Path(folder)):
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    logging.set_verbosity("error")
    tf.get_logger().setLevel("ERROR")
    main(os.path.abspath(sys.argv[1]))
