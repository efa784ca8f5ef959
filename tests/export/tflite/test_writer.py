"""A model for devices predicts like Python, or is not written."""

import concurrent.futures
import dataclasses
import itertools
import json
import os
import shutil
import zipfile

import device_exports
import numpy as np
import pytest
import tiny_exports
from device_exports import directory_of, exported, horse, horse_set
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools.flatbuffer_utils import opcode_to_name
from tflite_sizes import constant_bytes

from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export.tflite import flatbuffer, writer
from official_bert.export.tflite.changes import Answers
from official_bert.export.tflite.model import open_device_model
from official_bert.fine_tuning import loading, outputs, tflite_model
from official_bert.fine_tuning.tflite_model import TfliteModel
from official_bert.tasks.predictor import Predictor, load
from official_bert.tasks.squad.predictor import SquadPredictor

# Kinds with different graphs or inputs.
KINDS = (
    "label",
    "label of pairs",
    "labels",
    "number",
    "squad 1.1",
    "squad 2.0",
    "tags",
    "choice",
    "masks",
)
ANSWERING = KINDS[:-1]
BESIDE = {
    "README.md",
    "golden_tokens.json",
    "model.tflite",
    "tokenizer.js",
    "tokenizer_config.json",
    "vocab.txt",
}
TEXTS = tiny_exports.random_texts(8, 4)


def rows(model, number=8):
    """Return random rows of ids of all sizes, dicts of int32 [1, S]."""
    draw = np.random.default_rng(number)
    sizes = [2, *model.lengths, *draw.integers(2, model.lengths[-1] + 1, number)]
    return [
        {
            "input_ids": draw.integers(0, 125, [1, size], np.int32),
            "input_mask": np.ones([1, size], np.int32),
            "segment_ids": (np.arange(size) >= draw.integers(size))[None].astype(
                np.int32
            ),
        }
        for size in sizes
    ]


def ask(predictor, kind, texts=TEXTS):
    """Return a predictor's predictions for texts, a list."""
    following = [*texts[1:], texts[0]]
    if kind in ("label of pairs", "labels of pairs", "number"):
        return predictor.predict(list(zip(texts, following, strict=True)))
    if kind.startswith("squad"):
        return [predictor.predict(t, o) for t, o in zip(texts, following, strict=True)]
    if kind == "choice":
        pairs = zip(texts, following, strict=True)
        return [predictor.predict(t or "on", [o, t, "the horse"]) for t, o in pairs]
    return predictor.predict(texts)


def assert_like(found, wanted, tolerance=1e-4):
    """Assert equal names and texts, and nearly equal numbers, at any depth."""
    if isinstance(wanted, float):
        assert found == pytest.approx(wanted, abs=tolerance)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        assert_like(list(found.values()), list(wanted.values()), tolerance)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_like(one, other, tolerance)
    elif dataclasses.is_dataclass(wanted):
        assert type(found) is type(wanted)
        assert_like(vars(found), vars(wanted), tolerance)
    else:
        assert found == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_python_s(kind):
    folder, report = exported(kind)
    assert 0 < report.difference <= writer.TOLERANCE
    model = open_device_model(directory_of(kind))
    score, answering = (
        outputs.compile_model(model.compute),
        TfliteModel(folder / "model.tflite"),
    )
    for row in rows(answering):
        wanted, found = score(row), answering(row)
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            assert found[name].dtype == value.dtype
            if value.dtype == np.float32:
                np.testing.assert_allclose(found[name], value, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["label", "labels"])
def test_its_probabilities_are_those_that_python_tells(kind):
    """Probabilities equal Python's, so a device program needs no softmax or sigmoid."""
    predictor = load(directory_of(kind))
    (one,) = predictor.predict(["the horse is on water"])
    ids = [
        predictor.tokenizer.vocab[p]
        for p in ["[CLS]", "the", "horse", "is", "on", "water", "[SEP]"]
    ]
    ids = np.array([ids], np.int32)
    row = dict(zip(INPUTS, (ids, ids * 0 + 1, ids * 0), strict=True))
    (found,) = TfliteModel(exported(kind)[0] / "model.tflite")(row)["probabilities"]
    assert found.tolist() == pytest.approx([*one.probabilities.values()], abs=1e-5)


@pytest.mark.parametrize("kind", ANSWERING)
def test_it_answers_like_the_directory(kind):
    folder, _ = exported(kind)
    wanted = ask(Predictor(directory_of(kind)), kind)
    found = Predictor(folder)
    assert found.task == Predictor(directory_of(kind)).task
    assert_like(ask(found, kind), wanted)


def test_the_answers_are_not_all_the_same():
    """Predictions differ between texts; otherwise the test above proves nothing."""
    labels = [one.label for one in ask(Predictor(directory_of("label")), "label")]
    assert len(set(labels)) > 1
    answers = [one.text for one in ask(Predictor(directory_of("squad 2.0")), "squad")]
    assert len(set(answers)) > 3 and "" in answers
    assert any(ask(Predictor(directory_of("tags")), "tags"))


@pytest.mark.parametrize("kind", ["label", "labels", "squad 2.0", "tags"])
def test_texts_of_any_length(kind):
    texts = ["", "the horse is on water , " * 60, "grand" * 80, "a b c d " * 7]
    wanted = ask(Predictor(directory_of(kind)), kind, texts)
    assert_like(ask(Predictor(exported(kind)[0]), kind, texts), wanted)


@pytest.mark.parametrize("kind", ["label", "squad 2.0"])
def test_threads_get_their_own_answers(kind):
    predictor = Predictor(exported(kind)[0])
    some = [TEXTS[n : n + 2] for n in range(len(TEXTS) - 1)] * 3
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda texts: ask(predictor, kind, texts), some))
    for texts, answers in zip(some, found, strict=True):
        assert answers == ask(predictor, kind, texts)


def test_the_file_alone_is_enough(tmp_path):
    for kind in ("label", "tags", "squad 2.0", "choice"):
        path = tmp_path / f"{kind}.tflite"
        shutil.copy(exported(kind)[0] / "model.tflite", path)
        assert_like(ask(Predictor(path), kind), ask(Predictor(exported(kind)[0]), kind))
    assert len(os.listdir(tmp_path)) == 4


def test_nothing_to_answer():
    assert Predictor(exported("label")[0]).predict([]) == []
    assert Predictor(exported("tags")[0]).predict([]) == []


def test_the_encoder_gives_python_s_vectors():
    found = Predictor(exported("masks")[0]).predict(TEXTS)
    model = open_device_model(directory_of("masks"))
    score, answering = (
        outputs.compile_model(model.compute),
        TfliteModel(exported("masks")[0] / "model.tflite"),
    )
    assert found.shape == (len(TEXTS), tiny_exports.CONFIG.hidden_size)
    tokenizer = model.tokenizer
    for text, vector in zip(TEXTS, found, strict=True):
        pieces = tokenizer.tokenize(text)[: answering.lengths[-1] - 2]
        pieces = ["[CLS]", *pieces, "[SEP]"]
        ids = np.array([[tokenizer.vocab[piece] for piece in pieces]], np.int32)
        row = dict(zip(INPUTS, (ids, ids * 0 + 1, ids * 0), strict=True))
        np.testing.assert_allclose(
            vector, score(row)["pooled_output"][0], atol=1e-4, rtol=0
        )


def test_the_encoder_is_asked_for_nothing_or_nonsense():
    predictor = Predictor(exported("masks")[0])
    assert predictor.predict([]).shape == (0, tiny_exports.CONFIG.hidden_size)
    for texts in ("the horse", [5], [("on", "in", "of")], [None]):
        with pytest.raises(TypeError):
            predictor.predict(texts)


def test_a_model_without_a_pooler_has_no_vector_of_a_text(tmp_path):
    directory = tiny_exports.write_without_pooler(tmp_path / "model")
    model = open_device_model(directory, (8,))
    writer.write(str(tmp_path / "lite"), model, "float32")
    with pytest.raises(UserError, match="lite: the model has no pooler"):
        Predictor(str(tmp_path / "lite"))
    tflite, tokenizer, _ = loading.load_tflite(str(tmp_path / "lite"))
    assert set(tflite.outputs()) == {"sequence_output"} and tokenizer.vocab


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_folder(kind):
    folder, report = exported(kind)
    has_labels = kind in ("label", "label of pairs", "labels", "tags")
    more = {"labels.txt"} if has_labels else set()
    more |= set() if kind == "masks" else {"task.json"}
    assert set(os.listdir(folder)) == BESIDE | more
    assert report.size == os.path.getsize(folder / "model.tflite")
    source = directory_of(kind)
    for name in {"vocab.txt", "task.json"} & set(os.listdir(folder)):
        with open(os.path.join(source, name), "rb") as wanted:
            assert (folder / name).read_bytes() == wanted.read()
    casing = json.loads((folder / "tokenizer_config.json").read_text())
    assert casing == {"do_lower_case": tiny_exports.KINDS[kind][2]}
    if has_labels:
        labels = tuple((folder / "labels.txt").read_text("utf-8").splitlines())
        assert labels == (tiny_exports.TAGS if kind == "tags" else tiny_exports.LABELS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_carries_what_is_beside_it(kind):
    folder, _ = exported(kind)
    names = {"vocab.txt", "tokenizer_config.json", "labels.txt", "task.json"}
    names &= set(os.listdir(folder))
    with zipfile.ZipFile(folder / "model.tflite") as packed:
        assert names <= set(packed.namelist())
        for name in names:
            assert packed.read(name) == (folder / name).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_it_needs_tflite_s_own_operators_and_fixed_shapes(kind):
    model = flatbuffer.read((exported(kind)[0] / "model.tflite").read_bytes())
    numbers = range(len(model.operatorCodes))
    assert numbers and None not in [opcode_to_name(model, i) for i in numbers]
    assert flatbuffer.custom_operators(model) == []
    assert flatbuffer.dynamic_shapes(model) == []


@pytest.mark.slow
def test_so_do_the_others():
    folders = [horse("int8")[0], horse("full_int8")[0], exported("label", "float16")[0]]
    for folder in folders:
        model = flatbuffer.read((folder / "model.tflite").read_bytes())
        assert flatbuffer.custom_operators(model) == []
        assert flatbuffer.dynamic_shapes(model) == []


def number_of_weights(folder_or_kind):
    model = open_device_model(folder_or_kind, (24,)).keras_model
    return sum(int(np.prod(weight.shape)) for weight in model.weights)


@pytest.mark.parametrize("kind", ["label", "squad 2.0"])
def test_two_lengths_share_the_weights(kind):
    """Two lengths share the weights; only constants of a length differ."""
    content = (exported(kind)[0] / "model.tflite").read_bytes()
    total, repeated = constant_bytes(content)
    assert len(TfliteModel(exported(kind)[0] / "model.tflite").lengths) == 2
    weights = 4 * number_of_weights(directory_of(kind))
    assert repeated == 0
    assert 0.75 * weights < total < 1.35 * weights


@pytest.mark.slow
def test_sizes_of_constants():
    """Constants have 4, 2 or 1 bytes per weight."""
    weights = number_of_weights(device_exports.horse_directory())
    for quantization, most in (("float32", 4.0), ("int8", 1.15), ("full_int8", 1.15)):
        content = (horse(quantization)[0] / "model.tflite").read_bytes()
        assert constant_bytes(content)[0] < most * weights
    wide, half = exported("label")[0], exported("label", "float16")[0]
    sizes = [
        constant_bytes((folder / "model.tflite").read_bytes())[0]
        for folder in (wide, half)
    ]
    assert sizes[1] < 0.6 * sizes[0]


def test_float16_answers_nearly_as_python_does():
    _, report = exported("label", "float16")
    assert 0 < report.difference < 0.05


def test_the_metadata_names_labels_and_vocabulary():
    content = (exported("label")[0] / "model.tflite").read_bytes()
    model = schema.Model.GetRootAs(content)
    entries = [model.Metadata(i) for i in range(model.MetadataLength())]
    (entry,) = [one for one in entries if one.Name() == b"TFLITE_METADATA"]
    metadata = model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()
    for word in ("labels.txt", "vocab.txt", "task.json", "single-label classifier"):
        assert word.encode() in metadata


@pytest.mark.parametrize("kind", ["label", "tags", "squad 2.0", "masks", "number"])
def test_the_readme_tells_inputs_and_outputs(kind):
    folder, _ = exported(kind)
    text = (folder / "README.md").read_text()
    model = TfliteModel(folder / "model.tflite")
    for length in model.lengths:
        assert f"`length_{length}`" in text
    for name, (dtype, shape) in model.outputs().items():
        assert f"| `{name}` | {dtype} {list(shape)} |" in text


def test_a_tagger_of_features_is_refused(tmp_path):
    with pytest.raises(UserError, match="a BiLSTM .* cannot .* --feature_based"):
        open_device_model(directory_of("tags of features"))


def test_an_export_is_no_source():
    folder, _ = exported("label")
    for path in (folder, folder / "model.tflite"):
        with pytest.raises(UserError, match="already an export"):
            open_device_model(path)


def test_another_task_s_file_is_refused():
    path = exported("label")[0]
    with pytest.raises(UserError, match="task.json does not describe a squad"):
        SquadPredictor(path)


def test_a_changed_byte_among_the_weights_is_noticed(tmp_path):
    """A damaged copy is reported; it gives no predictions and does not crash Python."""
    content = bytearray((horse("int8")[0] / "model.tflite").read_bytes())
    place = len(content) // 2
    content[place : place + 64] = bytes(64)
    (tmp_path / "model.tflite").write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        Predictor(tmp_path)


@pytest.fixture
def no_conversion(monkeypatch):
    """Return a function that replaces an export's model by another one."""

    def use(folder):
        content = (folder / "model.tflite").read_bytes()

        def write(path, *_):
            with open(path, "wb") as written:
                written.write(content)

        monkeypatch.setattr(writer.converter, "convert", lambda *_: None)
        monkeypatch.setattr(writer, "_write_model", write)

    return use


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_a_model_of_nan_is_refused(tmp_path, no_conversion, quantization):
    model = open_device_model(directory_of("label"), (12,))
    (bias,) = (w for w in model.keras_model.weights if w.path.endswith("output_bias"))
    bias.assign(np.full(bias.shape, np.nan))
    no_conversion(exported("label")[0])
    with pytest.raises(UserError):
        writer.write(tmp_path / "new", model, quantization)
    assert os.listdir(tmp_path) == []


def test_one_nan_is_enough(tmp_path, no_conversion, monkeypatch):
    """One NaN is found in any sample, not only in the last."""
    model = open_device_model(directory_of("label"), (12,))
    no_conversion(exported("label")[0])
    place = itertools.count()

    def open_model(path):
        answering = TfliteModel(path)

        def answer(row):
            scale = np.float32(np.nan if next(place) == 2 else 1)
            return {name: value * scale for name, value in answering(row).items()}

        answer.outputs = answering.outputs
        return answer

    monkeypatch.setattr(writer, "TfliteModel", open_model)
    with pytest.raises(UserError, match="returns NaN or infinity"):
        writer.write(tmp_path / "new", model, "float32")
    assert os.listdir(tmp_path) == []


def test_a_difference_is_refused(tmp_path, no_conversion, monkeypatch):
    model = open_device_model(directory_of("label"), (12,))
    no_conversion(exported("label")[0])
    monkeypatch.setattr(writer, "TOLERANCE", 1e-9)
    with pytest.raises(UserError, match=r"differs .* by \d.*nothing was written"):
        writer.write(tmp_path / "new" / "er", model, "float32")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    assert not any(".tmp" in path.name for path in tmp_path.rglob("*"))


def test_operators_that_are_not_tflite_s_are_refused(tmp_path, monkeypatch):
    model = open_device_model(directory_of("label"), (24,))
    monkeypatch.setattr(flatbuffer, "read", lambda content: content)
    monkeypatch.setattr(flatbuffer, "custom_operators", lambda _: ["FlexErf"])
    monkeypatch.setattr(writer.converter, "convert", lambda *_: b"")
    with pytest.raises(UserError, match="FlexErf"):
        writer.write(tmp_path / "new", model, "int8")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_empty_stays_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    model = open_device_model(directory_of("label"), (24,))
    with pytest.raises(UserError, match="--export_dir: .* not an empty directory"):
        writer.write(tmp_path, model, "float32")
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_int8_answers_as_python_does():
    _, report = horse("int8")
    assert report.metric == "accuracy" and report.before == 100.0
    assert report.after >= 99.0 and report.same >= 0.99
    # Some accuracy is lost; otherwise the reports are not tested.
    assert 0 < report.changes.mean < report.changes.largest
    assert report.outputs["logits"] > report.outputs["probabilities"] > 0


def test_int8_is_small():
    wide, narrow = horse("float32")[1], horse("int8")[1]
    assert wide.after == wide.before == 100.0 and wide.same == 1.0
    assert narrow.size <= 0.30 * wide.size


def test_full_int8_with_texts_like_its_own_is_accepted():
    folder, report = horse("full_int8")
    assert report.after >= report.before - 1.0
    assert report.scores() in (folder / "README.md").read_text()


def test_bad_calibration_is_refused(tmp_path):
    """Calibration without the word is rejected: the model could not predict "yes"."""
    model = open_device_model(device_exports.horse_directory(), (24,))
    calibration = horse_set(60, 5, ("no",))
    with pytest.raises(UserError) as caught:
        writer.write(
            tmp_path / "new", model, "full_int8", calibration, horse_set(200, 2)
        )
    said = str(caught.value)
    assert "accuracy falls from 100.00 to " in said and "--max_accuracy_drop=1;" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_mask_is_clipped_in_eight_bits(tmp_path, monkeypatch):
    """The mask is clipped for 8 bits: -10000 would leave no precision for scores."""
    model = open_device_model(device_exports.horse_directory(), (24,))
    monkeypatch.setattr(writer, "CLIPPED_SCORE", -10000.0)
    with pytest.raises(UserError, match="falls from 100.00 to"):
        writer.write(
            tmp_path / "new", model, "full_int8", horse_set(60, 3), horse_set(200, 2)
        )


def test_only_eight_bits_clip_the_mask(tmp_path, monkeypatch):
    model, seen = open_device_model(directory_of("label"), (24,)), []

    def convert(*_):
        raise UserError("no")

    def with_fixed_lengths(_, kernels):
        seen.append(kernels.masked_score)

    monkeypatch.setattr(writer.converter, "convert", convert)
    monkeypatch.setattr(type(model), "with_fixed_lengths", with_fixed_lengths)
    for quantization in ("float32", "full_int8"):
        with pytest.raises(UserError, match="^no$"):
            writer.write(tmp_path / "new", model, quantization)
    assert seen == [-10000.0, writer.CLIPPED_SCORE]


def scored(drops):
    """Return a set whose score falls from 90 by each of these values in turn."""
    scores = iter([score for drop in drops for score in (90.0, 90.0 - drop)])
    return dataclasses.replace(
        horse_set(200, 2),
        evaluate=lambda predictor: Answers(next(scores), ["a"], None),
    )


@pytest.mark.parametrize("drop", [1.01, np.nan])
def test_the_gate_closes(tmp_path, no_conversion, drop):
    model = open_device_model(device_exports.horse_directory(), (24,))
    no_conversion(horse("int8")[0])
    with pytest.raises(UserError, match="falls from 90.00 to (88.99|nan)"):
        writer.write(tmp_path / "new", model, "int8", None, scored([drop]), 1.0)
    assert os.listdir(tmp_path) == []


def test_the_gate_lets_through_what_is_allowed(tmp_path, no_conversion):
    model = open_device_model(device_exports.horse_directory(), (24,))
    no_conversion(horse("int8")[0])
    report = writer.write(tmp_path / "new", model, "int8", None, scored([1.0]), 1.0)
    assert (report.before, report.after) == (90.0, 89.0)
    assert (
        "90.00 in Python, 89.00 in this file"
        in (tmp_path / "new" / "README.md").read_text()
    )


@pytest.mark.parametrize("longest", [3, 4])
def test_the_shortest_rows_there_are(tmp_path, longest):
    model = open_device_model(directory_of("masks"), (16,), longest)
    assert model.lengths == (longest,)
    assert open_device_model(directory_of("masks"), (64, 16, 16, 99)).lengths == (
        16,
        64,
    )


def test_carried_files_may_be_missing(tmp_path):
    """Missing packed files are accepted; each is read by its name."""
    folder, _ = exported("label")
    carried = tflite_model.read_files(folder / "model.tflite")
    with zipfile.ZipFile(folder / "model.tflite") as packed:
        start = min(one.header_offset for one in packed.infolist())
    bare = (folder / "model.tflite").read_bytes()[:start]
    for name in ("vocab.txt", "tokenizer_config.json"):
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(bare)
        others = {key: value for key, value in carried.items() if key != name}
        flatbuffer.append_files(path, others)
        with pytest.raises(UserError, match=f"{path}/{name}|{name}.*{path}"):
            Predictor(path)
