"""Exports on disk: their content, the check, and leftovers."""

import contextlib
import dataclasses
import functools
import json
import math
import os
import re
import shlex
import sys

import numpy as np
import pytest
import tensorflow as tf
import tiny_exports
import yaml
from tiny_exports import open_kind

from official_bert import files
from official_bert.errors import UserError
from official_bert.export import samples, sources
from official_bert.export.saved_model import (
    exports,
    fresh_process,
    server_files,
    verify,
    writer,
)
from official_bert.export.saved_model.signatures import (
    FILL_MASK,
    SERVING,
    TOKENS,
)
from official_bert.tables.columns import Columns

BESIDE = {"README.md", "batching_parameters.txt", "docker-compose.yml", ".lock"}
CHECKED = {"rows": 1, "difference": 0.0}


load = functools.cache(tf.saved_model.load)


def ask_here(directory, requests, python=None):
    """Replace `ask_fresh_process`, which takes ten seconds."""
    model = load(directory)
    requests = json.loads(json.dumps(requests))
    answers = [fresh_process.run(model, request) for request in requests]
    return json.loads(json.dumps(answers))


@pytest.fixture
def no_process(monkeypatch):
    monkeypatch.setattr(verify, "ask_fresh_process", ask_here)


@pytest.fixture
def no_check(monkeypatch):
    """Write without a check, and record only the name of the checked path."""
    monkeypatch.setattr(writer, "verify", lambda *ignored: dict(CHECKED))


@pytest.fixture
def no_model(monkeypatch, no_check):
    """Write everything except the graph."""
    monkeypatch.setattr(writer, "_save", lambda export, folder: None)


# Run a script (second argument) with a Python switch (first argument).
# TensorFlow imports Keras if it finds it; here it does not.
RUN = """
import runpy, sys
sys.modules["keras"] = None
assert sys.argv[1] == "-P"
sys.path[:] = [path for path in sys.path if path]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a version checked by a fresh process, and the names of its modules."""
    folder = tmp_path_factory.mktemp("recorded")
    log, python = folder / "imported", folder / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -X importtime -c '{RUN}' \"$@\" 2>{log}\n"
    )
    python.chmod(0o755)
    _, export = open_kind("label")
    rows = [{"text": text} for text in tiny_exports.SPECIAL_TEXTS]
    with pytest.MonkeyPatch.context() as patch:
        check = functools.partial(verify.verify, python=str(python))
        patch.setattr(writer, "verify", check)
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        path, found = writer.write(str(folder / "model"), export, "a", None, rows)
    imported = re.findall(r"\| +(\S+)$", log.read_text(), re.M)
    return folder / "model", path, found, set(imported)


def test_a_fresh_process_has_checked_it(recorded):
    directory, path, found, _ = recorded
    assert path == str(directory / "1")
    assert 0 <= found["difference"] <= verify.TOLERANCE
    # The texts of two signatures, samples for each of three lengths, and the
    # given texts.
    number = 2 * len(samples.TEXTS) + 3 + len(tiny_exports.SPECIAL_TEXTS)
    assert found["rows"] == number


def test_the_process_knows_only_tensorflow(recorded):
    *_, imported = recorded
    assert {"tensorflow", "numpy"} <= imported
    tops = {name.partition(".")[0] for name in imported}
    # Only TensorFlow's dependencies, not this package or its others.
    assert not tops & {"official_bert", "tensorflow_text", "tokenizers", "keras_hub"}
    assert "keras" not in tops


def test_what_is_in_the_folder(recorded):
    directory, path, found, _ = recorded
    assert set(os.listdir(directory)) == {"1"} | BESIDE
    names = {"saved_model.pb", "variables", "assets", "fingerprint.pb"}
    extra = {"assets.extra"} if found["has_warmup"] else set()
    assert set(os.listdir(path)) == names | extra
    assets = directory / "1" / "assets"
    vocab = tiny_exports.write_vocab(directory.parent / "vocab.txt").read_bytes()
    assert (assets / "vocab.txt").read_bytes() == vocab
    assert (assets / "labels.txt").read_text() == "bad\nso so\nschön\n"
    source, _ = open_kind("label")
    for name in ("task.json", "bert_config.json", "tokenizer_config.json"):
        with open(os.path.join(source, name), "rb") as file:
            assert (assets / name).read_bytes() == file.read()
    assert len(os.listdir(assets)) == 5


def test_a_model_without_labels_has_no_file_of_them(tmp_path, no_model):
    writer.write(str(tmp_path), open_kind("encoder")[1], "encoder")
    assert not (tmp_path / "1" / "assets" / "labels.txt").exists()
    assert not (tmp_path / "1" / "assets" / "task.json").exists()


def test_a_label_of_two_lines_would_shift_those_behind_it(tmp_path):
    tokenizer = open_kind("label")[1].tokenizer
    for label in ("so\nso", "so\r\nso", "so\u2028so"):
        with pytest.raises(UserError, match="contains a line break"):
            sources.write_names(str(tmp_path), tokenizer, ("bad", label))
    assert not list(tmp_path.iterdir())


def read_readme(directory):
    """Return (words of the curl line, request, expected response) of the README."""
    text = (directory / "README.md").read_text()
    command = re.search(r"^    (curl .*\\\n +\S+)$", text, re.M).group(1)
    # Like a shell.
    words = shlex.split(command.replace("\\\n", ""))
    answer = re.search(r"\nanswers\n\n((?:    .*\n)+)", text).group(1)
    return words, json.loads(words[2]), json.loads(answer)


@pytest.mark.parametrize("kind", ["label", "squad 2.0", "choice"])
def test_the_readme_tells_what_is_answered(tmp_path, kind, no_model):
    _, export = open_kind(kind)
    writer.write(str(tmp_path), export, "né")
    words, request, answer = read_readme(tmp_path)
    url = "http://127.0.0.1:8501/v1/models/né:predict"
    assert words[:2] == ["curl", "-d"] and words[3:] == [url]
    ((row,), specs) = request["instances"], export.signatures[SERVING].specs
    assert (type(row) is str) == (len(specs) == 1)
    row = {"text": row} if len(specs) == 1 else row
    assert set(row) == set(specs)
    outputs = tiny_exports.ask(kind, SERVING, {name: [row[name]] for name in specs})
    (found,) = answer["predictions"]
    assert set(found) == set(outputs)
    for name, value in outputs.items():
        value = value[0]
        if isinstance(value, bytes):
            assert found[name] == value.decode()
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-4)
    text = (tmp_path / "README.md").read_text()
    for name in export.signatures:
        assert f"\n| `{name}` | `" in text


def test_the_readme_of_an_only_output(tmp_path, no_model):
    """With a single output, the README shows rows without its name, like a server."""
    writer.write(str(tmp_path), open_kind("number")[1], "number")
    _, _, answer = read_readme(tmp_path)
    (value,) = answer["predictions"]
    assert isinstance(value, float)


def test_files_for_a_server(recorded):
    directory, *_ = recorded
    compose = yaml.safe_load((directory / "docker-compose.yml").read_text())
    assert list(compose) == ["services"]
    ((name, service),) = compose["services"].items()
    assert name == "a"
    assert re.fullmatch(r"tensorflow/serving:2\.\d+\.\d+", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"] == ["./:/models/a:ro"]
    assert service["environment"] == {"MODEL_NAME": "a"}
    # Batching rejects large requests, so it must be enabled explicitly.
    assert "command" not in service
    lines = (directory / "batching_parameters.txt").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    parsed = [
        re.fullmatch(r"\w+( \{ value: \d+ \}|: (true|false))", line) for line in lines
    ]
    assert len(parsed) >= 4 and all(parsed)
    # The server would pad with a tensor's first value: [CLS], and 1 for the
    # mask.
    assert "pad_variable_length_inputs: true" not in lines


@pytest.mark.slow
def test_versions_side_by_side(tmp_path, no_process):
    one, two = open_kind("label")[1], open_kind("number")[1]
    assert writer.next_version(str(tmp_path / "new")) == 1
    first, _ = writer.write(str(tmp_path), one, "model")
    second, _ = writer.write(str(tmp_path), two, "model", 7)
    before = (tmp_path / "7" / "saved_model.pb").read_bytes()
    assert (first, second) == (str(tmp_path / "1"), str(tmp_path / "7"))
    assert writer.next_version(str(tmp_path)) == 8
    assert "regression" in (tmp_path / "README.md").read_text()
    for path, outputs in ((first, {"label", "probabilities"}), (second, {"value"})):
        signature = tf.saved_model.load(path).signatures[SERVING]
        assert set(signature.structured_outputs) == outputs
    with pytest.raises(UserError, match="7 already exists. Choose another number"):
        writer.write(str(tmp_path), one, "model", 7)
    assert (tmp_path / "7" / "saved_model.pb").read_bytes() == before
    assert set(os.listdir(tmp_path)) == {"1", "7"} | BESIDE
    assert not {name for name in os.listdir(first) if "tmp" in name}


def test_what_people_changed_beside_the_versions_stays(tmp_path, no_model):
    one, two = open_kind("label")[1], open_kind("number")[1]
    _, found = writer.write(str(tmp_path), one, "model")
    assert found["changed"] == []
    compose = tmp_path / "docker-compose.yml"
    mine = compose.read_text().replace('ports: ["127.0.0.1:8500', 'ports: ["8500')
    compose.write_text(mine)
    _, found = writer.write(str(tmp_path), two, "model")
    assert found["changed"] == ["docker-compose.yml"]
    assert compose.read_text() == mine
    assert "regression" in (tmp_path / "README.md").read_text()


def test_one_export_at_a_time(tmp_path, no_model):
    """A version that another process is writing is not removed as a leftover."""
    half = tmp_path / "1.tmp.99999999"
    half.mkdir()
    with (
        files.locked_directory(tmp_path),
        pytest.raises(UserError, match="--export_dir: another process is using"),
    ):
        writer.write(str(tmp_path), open_kind("label")[1], "model")
    assert half.is_dir()


@pytest.mark.parametrize("names", [["9", "x", "12.tmp.5"], ["9", "²", "٣"]])
def test_the_next_version(tmp_path, names):
    for name in names:
        (tmp_path / name).mkdir()
    assert writer.next_version(str(tmp_path)) == 10


def wrong(answer):
    """Return a function like `answer` that gives other labels."""

    def give(**inputs):
        outputs = answer(**inputs)
        outputs["label"][-1] = b"other"
        return outputs

    return give


def with_answer(export, answer):
    return dataclasses.replace(export, answers={SERVING: answer})


def test_nothing_is_left_of_a_wrong_export(tmp_path, no_process):
    export = open_kind("label")[1]
    bent = with_answer(export, wrong(export.answers[SERVING]))
    (tmp_path / "1").mkdir()
    with pytest.raises(UserError, match="serving_default returns another label"):
        writer.write(str(tmp_path), bent, "model")
    assert set(os.listdir(tmp_path)) == {"1", ".lock"}


@pytest.mark.parametrize("where", ["write_assets", "write_warmup"])
def test_nothing_is_left_if_the_disk_is_full(tmp_path, no_model, monkeypatch, where):
    def fail(*ignored):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server_files, where, fail)
    with pytest.raises((OSError, UserError), match="No space left"):
        writer.write(str(tmp_path), open_kind("label")[1], "model")
    assert os.listdir(tmp_path) == [".lock"]


def test_leftovers_of_a_killed_export_are_removed(tmp_path, no_model):
    (tmp_path / "1.tmp.99999999").mkdir()
    (tmp_path / "1.tmp.99999999" / "saved_model.pb").write_bytes(b"half")
    writer.write(str(tmp_path), open_kind("label")[1], "model")
    assert set(os.listdir(tmp_path)) == {"1"} | BESIDE


def check(recorded, export, **options):
    """Compare the files of `recorded` with an `Export`."""
    return verify.verify(recorded[1], export, **options)


def test_a_changed_weight_is_found(recorded, no_process):
    # A separate model, because its weights are changed.
    directory, _ = open_kind("label")
    export = tiny_exports.open_directory(directory, "label")
    predictor = export.answers[SERVING].args[0]
    assert check(recorded, export)["difference"] <= verify.TOLERANCE
    (bias,) = [w for w in predictor.model.weights if w.path.endswith("output_bias")]
    bias.assign(bias.numpy() + [0.001, 0.0, 0.0])
    with pytest.raises(UserError, match="another (label|probabilities) than Python"):
        check(recorded, export)
    # A larger tolerance accepts the difference.
    assert check(recorded, export, tolerance=0.01)["difference"] > verify.TOLERANCE


def bend(outputs, name, change):
    """Return outputs with one changed."""
    value = outputs[name].copy()
    return {**outputs, name: change(value)}


def set_last(value):
    def change(array):
        array[-1] = value
        return array

    return change


def add_last(value):
    def change(array):
        array[-1, -1] += value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("label", set_last(b"so")),
        ("label", set_last(b"")),
        ("label", lambda array: array[:-1]),
        ("probabilities", add_last(2e-5)),
        ("probabilities", add_last(-2e-5)),
        ("probabilities", add_last(math.nan)),
        ("probabilities", add_last(math.inf)),
        ("probabilities", lambda array: array[:, :-1]),
        ("probabilities", lambda array: array.T),
    ],
    ids=[
        "another name",
        "no name",
        "a row less",
        "more",
        "less",
        "nan",
        "infinite",
        "a column less",
        "turned",
    ],  # fmt: skip
)
def test_a_changed_answer_is_found(recorded, no_process, name, change):
    export = open_kind("label")[1]
    answer = export.answers[SERVING]
    bent = with_answer(export, lambda **given: bend(answer(**given), name, change))
    with pytest.raises(UserError, match=f"returns another {name} than Python"):
        check(recorded, bent)


def test_a_missing_output_is_found(recorded, no_process):
    export = open_kind("label")[1]
    answer = export.answers[SERVING]
    more = with_answer(
        export, lambda **given: {**answer(**given), "score": np.zeros(1)}
    )
    with pytest.raises(UserError, match="score"):
        check(recorded, more)


def test_a_small_difference_is_none(recorded, no_process):
    export = open_kind("label")[1]
    answer = export.answers[SERVING]
    bent = with_answer(
        export, lambda **given: bend(answer(**given), "probabilities", add_last(5e-6))
    )
    assert 3e-6 < check(recorded, bent)["difference"] <= verify.TOLERANCE


def test_changed_ids_are_found(recorded, no_process):
    export = open_kind("label")[1]
    tokens = export.signatures[TOKENS]

    def compute(**inputs):
        return tokens.compute(**{**inputs, "segment_ids": inputs["input_mask"]})

    changed = {TOKENS: dataclasses.replace(tokens, compute=compute)}
    bent = dataclasses.replace(export, signatures={**export.signatures, **changed})
    with pytest.raises(UserError, match="the signature tokens returns another"):
        check(recorded, bent)


def test_given_rows_are_compared(recorded, no_process):
    export = open_kind("label")[1]
    answer = export.answers[SERVING]

    def only_there(text):
        outputs = answer(text)
        if "horse" in text:
            outputs["label"][text.index("horse")] = b"other"
        return outputs

    bent = with_answer(export, only_there)
    number = check(recorded, bent)["rows"]
    assert check(recorded, bent, rows=[{"text": "on"}])["rows"] == number + 1
    with pytest.raises(UserError, match="another label"):
        check(recorded, bent, rows=[{"text": "on"}, {"text": "horse"}])


def test_given_rows_may_have_other_numbers_of_choices(tmp_path, no_process):
    export = open_kind("choice")[1]
    traced = {SERVING: export.signatures[SERVING].traced()}
    traced[TOKENS] = export.signatures[TOKENS].traced()
    tf.saved_model.save(export.module, str(tmp_path), signatures=traced)
    rows = [{"prompt": "on", "choices": ["is", "in", "of", "the"][:n]} for n in (4, 2)]
    verify.verify(str(tmp_path), export, rows)


def test_a_process_that_ends_with_an_error(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no TensorFlow is here >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(
        UserError, match="(?s)export cannot run in a process.*no TensorFlow is"
    ):
        verify.ask_fresh_process(str(tmp_path), [], str(python))


def test_samples_reach_every_length():
    export = open_kind("encoder")[1]
    rows = samples.rows_of(SERVING, export.signatures[SERVING].specs, export.lengths)
    answers = [
        tiny_exports.ask("encoder", SERVING, {"text": [row["text"]]}) for row in rows
    ]
    lengths = {answer["sequence_output"].shape[1] for answer in answers}
    assert lengths == set(export.lengths)


def test_what_cannot_be_exported(tmp_path):
    directory, _ = open_kind("squad 1.1")
    with pytest.raises(UserError, match="not a classifier. Remove --pairs"):
        exports.open_export(directory, is_pair=True)
    with pytest.raises(UserError, match="fine-tuned for 24 tokens"):
        exports.open_export(directory, max_seq_length=16)
    encoder, _ = open_kind("encoder")
    for length in (2, 65):
        with pytest.raises(UserError, match="Use a number from 3 to 64"):
            exports.open_export(encoder, max_seq_length=length)


def test_lengths_end_where_the_model_does():
    assert open_kind("label")[1].lengths == (8, 16, 24)
    assert open_kind("encoder")[1].lengths == (8, 16, 32, 64)
    directory, _ = open_kind("encoder")
    assert exports.open_export(directory, None, (30, 5, 30), 20).lengths == (5, 20)
    assert set(open_kind("masks")[1].signatures) >= {SERVING, TOKENS, FILL_MASK}
    assert FILL_MASK not in open_kind("encoder")[1].signatures


def test_which_classifiers_take_pairs():
    def takes(**changes):
        return exports.takes_pairs(dataclasses.replace(tiny_exports.SINGLE, **changes))

    assert takes(columns=Columns("a", "b", "label", True)) and takes(name="mrpc")
    assert not takes(columns=Columns("a", None, "label", True))
    assert not takes(name="sst-2") and not takes()


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"score": [0.2001, 30.0], "null_score": [1.0, 2.0]}, None),
        ({"score": [0.201, 30.0], "null_score": [1.0, 2.0]}, "another score"),
        ({"score": [0.2, 30.0], "null_score": [1.0, 2.001]}, "another null_score"),
        # Other outputs are not sums of logits.
        ({"odds": [0.2001, 30.0]}, "another odds"),
        ({"score": [float("nan"), 30.0]}, "another score"),
    ],
)
def test_scores_of_logits_that_cancel(outputs, words):
    wanted = {"score": [0.2, 30.0], "null_score": [1.0, 2.0], "odds": [0.2, 30.0]}
    wanted = {name: np.array(wanted[name]) for name in outputs}
    case = verify.Case("serving_default", {"text": [""]}, wanted)
    expected = (
        pytest.raises(UserError, match=words) if words else contextlib.nullcontext()
    )
    with expected:
        assert verify.difference(case, outputs) <= verify.TOLERANCE
