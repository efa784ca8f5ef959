"""`Predictor` returns correct results from any thread, and rejects bad arguments."""

import concurrent.futures
import dataclasses
import json
import os

import huggingface_files
import numpy as np
import pytest
import tiny_model

from official_bert.checkpoints import any_format, google, model_directory, names
from official_bert.errors import UserError
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling.classification import ClassificationModel
from official_bert.tables.examples import Example
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier.predictor import ClassifierPredictor, PredictedValue
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.predictor import Predictor

LABELS = ("bad", "good", "so so")
TASK = ClassifierTask("single_label", LABELS, ("accuracy",), 24)
MULTI = dataclasses.replace(TASK, kind="multi_label", metrics=("f1", "accuracy"))
NUMBER = ClassifierTask("regression", (), ("pearson", "spearman"), 24)
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.3)
TEXTS = [
    "the crust of the bread",
    "",
    "she found one logbook on the water " * 5,
    "over grand light",
    "horse",
    "it was in the dough for years and years than time",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HUGGING_FACE_VOCAB = [*SPECIAL, "a", "b", "c", "##a", "##b", "."]
PAIRS = [("the crust", "of it"), ["she was over the light", "on the water"]]


def write(directory, task=TASK, global_step=7):
    """Write a fine-tuned model of a task; return its directory as a str."""
    directory.mkdir(exist_ok=True)
    model = ClassificationModel(CONFIG, task.num_outputs)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if not variable.path.endswith(("gamma", "beta")):
            variable.assign(rng.normal(scale=0.3, size=variable.shape))
    model_directory.save(str(directory), model, str(tiny_model.VOCAB), True)
    write_task(str(directory), task, global_step)
    return str(directory)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("predictor") / "single")


@pytest.fixture(scope="module")
def predictor(path):
    return ClassifierPredictor(path)


def logits_of(predictor, path, texts, num_outputs=3):
    """Return the logits of texts, each one separate and without padding."""
    model = ClassificationModel(CONFIG, num_outputs)
    model_directory.load_opened(model, google_checkpoint(path))
    found = []
    for text in texts:
        texts = (text,) if isinstance(text, str) else text
        one = classifier_features.convert_example(
            Example(0, *texts), predictor.tokenizer, 24
        )
        batch = {
            "input_ids": one.input_ids[None],
            "input_mask": np.ones((1, len(one.input_ids)), np.int32),
            "segment_ids": one.segment_ids[None],
        }
        found.append(model(batch)["logits"].numpy()[0])
    return np.array(found, np.float64)


def google_checkpoint(path):
    return google.open_weights(os.path.join(path, names.MODEL_PREFIX), path)


def softmax(logits):
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def table(predictions):
    return np.array([list(each.probabilities.values()) for each in predictions])


def assert_same(left, right):
    assert [each.label for each in left] == [each.label for each in right]
    np.testing.assert_allclose(table(left), table(right), rtol=1e-4, atol=1e-6)


def test_labels_by_name_and_probabilities(path, predictor):
    found = predictor.predict(TEXTS)
    expected = softmax(logits_of(predictor, path, TEXTS))
    np.testing.assert_allclose(table(found), expected, rtol=1e-3, atol=1e-5)
    assert [each.label for each in found] == [LABELS[i] for i in expected.argmax(1)]
    assert len({each.label for each in found}) > 1
    for each in found:
        assert tuple(each.probabilities) == LABELS
        assert sum(each.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert {type(value) for value in each.probabilities.values()} == {float}
    assert predictor.global_step == 7 and predictor.task == TASK
    json.dumps([dataclasses.asdict(each) for each in found])


def test_pairs(path, predictor):
    found = predictor.predict(PAIRS)
    expected = softmax(logits_of(predictor, path, PAIRS))
    np.testing.assert_allclose(table(found), expected, rtol=1e-3, atol=1e-5)
    # The second text is in segment 1.
    joined = predictor.predict(["the crust of it"])
    assert abs(table(found)[0] - table(joined)[0]).max() > 1e-3
    mixed = predictor.predict([TEXTS[0], PAIRS[0]])
    assert_same(mixed, predictor.predict(TEXTS[:1]) + found[:1])


def test_any_iterable_will_do(predictor):
    expected = predictor.predict(TEXTS)
    assert_same(predictor.predict(tuple(TEXTS)), expected)
    assert_same(predictor.predict(text for text in TEXTS), expected)
    assert predictor.predict([]) == []


def test_several_labels_from_the_threshold_on(tmp_path):
    path = write(tmp_path / "half", MULTI)
    predictor = ClassifierPredictor(path)
    expected = sigmoid(logits_of(predictor, path, TEXTS))
    found = predictor.predict(TEXTS)
    np.testing.assert_allclose(table(found), expected, rtol=1e-3, atol=1e-5)
    assert [each.label for each in found] == holding(expected >= 0.5)

    # Chosen so that one more or one fewer probability is above it.
    values = np.sort(expected.ravel())
    threshold = float(values[-2:].mean())
    write_task(path, dataclasses.replace(MULTI, threshold=threshold), 7)
    found = ClassifierPredictor(path).predict(TEXTS)
    assert [each.label for each in found] == holding(expected >= threshold)
    assert sum(len(each.label) for each in found) == 1
    write_task(path, dataclasses.replace(MULTI, threshold=1e-9), 7)
    assert {each.label for each in ClassifierPredictor(path).predict(TEXTS)} == {LABELS}


def holding(rows):
    return [
        tuple(name for name, holds in zip(LABELS, row, strict=True) if holds)
        for row in rows
    ]


def test_a_number(tmp_path):
    path = write(tmp_path / "number", NUMBER)
    predictor = ClassifierPredictor(path)
    found = predictor.predict(TEXTS)
    expected = logits_of(predictor, path, TEXTS, 1)[:, 0]
    np.testing.assert_allclose([each.value for each in found], expected, rtol=1e-3)
    assert all(type(each) is PredictedValue for each in found)
    assert all(type(each.value) is float for each in found)
    assert [type(each) for each in Predictor(path).predict(TEXTS)] == [
        PredictedValue for _ in TEXTS
    ]


def test_long_texts_through_windows(tmp_path):
    task = dataclasses.replace(TASK, max_seq_length=12, long_text="window")
    predictor = ClassifierPredictor(write(tmp_path / "window", task))
    text = TEXTS[2]
    windows = classifier_features.convert_windows(
        [Example(0, text)], predictor.tokenizer, 12, LABELS
    )
    assert len(windows[0]) > 2
    mean = np.mean([predictor.outputs([], [[one]])[0] for one in windows[0]], axis=0)
    expected = softmax(mean[None].astype(np.float64))
    np.testing.assert_allclose(table(predictor.predict([text])), expected, rtol=1e-4)


def count_calls(monkeypatch):
    """Return a list that grows with each Python call of the model."""
    call, calls = ClassificationModel.call, []

    def counted(self, inputs, *args, **kwargs):
        calls.append(inputs["input_ids"].shape)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(ClassificationModel, "call", counted)
    return calls


def test_it_is_traced_once_whatever_comes(path, monkeypatch):
    calls = count_calls(monkeypatch)
    predictor = ClassifierPredictor(path, batch_size=4)
    for texts in (TEXTS, TEXTS[:1], TEXTS[2:3] * 9, ["a"], [""], PAIRS, TEXTS * 5):
        predictor.predict(texts)
    examples = [Example(number, text) for number, text in enumerate(TEXTS)]
    predictor.outputs(examples, predictor.features(examples), batch_size=3)
    assert len(calls) == 1


def test_the_answers_do_not_depend_on_the_batch(path, predictor):
    expected = predictor.predict(TEXTS * 3)
    for size in (1, 2, 5, 100):
        assert_same(ClassifierPredictor(path, size).predict(TEXTS * 3), expected)
    single = [predictor.predict([text])[0] for text in TEXTS * 3]
    assert_same(single, expected)


def test_eight_threads_get_what_one_gets(path, monkeypatch):
    """Also for the first calls, during which the model is traced."""
    tasks = [
        [TEXTS[(start + i) % len(TEXTS)] for i in range(1 + start % 4)]
        for start in range(64)
    ]
    calls = count_calls(monkeypatch)
    predictor = ClassifierPredictor(path, batch_size=2)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(predictor.predict, tasks))
    assert len(calls) == 1
    for texts, predictions in zip(tasks, found, strict=True):
        assert_same(predictions, predictor.predict(texts))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("one text", "predict needs a list of texts. Put this text into a list."),
        (["a", ("b", "c", "d")], r"Text 1 is \('b', 'c', 'd'\), not a str or a"),
        ([("a", None)], r"Text 0 is \('a', None\), not a str"),
        ([()], r"Text 0 is \(\), not a str"),
        ([b"ab"], "Text 0 is b'ab', not a str"),
        ([["a", 1]], "Text 0 is .*, not a str"),
        # Pandas reads empty cells of a table as this value.
        (["a", None], "Text 1 is None, not a str"),
        ([float("nan")], "Text 0 is nan, not a str"),
        ([5], "Text 0 is 5, not a str"),
    ],
)
def test_what_is_no_text(predictor, texts, words):
    with pytest.raises(TypeError, match=words):
        predictor.predict(texts)


def message_of(*arguments, **named):
    with pytest.raises(UserError) as caught:
        ClassifierPredictor(*arguments, **named)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_no_fine_tuned_model(tmp_path):
    assert "No checkpoint at" in message_of(str(tmp_path / "nowhere"))
    bare = tiny_model.write(tmp_path / "bare")
    assert f"{bare} has no task.json" in message_of(str(bare))
    assert "not the output directory of a finished" in message_of(str(bare))

    folder = tmp_path / "encoder"
    folder.mkdir()
    google.write_model(str(folder), tiny_model.checkpoint(heads=False))
    expected = (
        f"{folder} is not fine-tuned for 'classifier': it has no weights output_weights"
    )
    assert expected in message_of(str(folder), task=TASK)


def test_a_damaged_task(tmp_path):
    path = write(tmp_path / "model")
    (tmp_path / "model" / "task.json").write_text('{"task": "classif')
    assert "task.json" in message_of(path)
    (tmp_path / "model" / "task.json").write_text('{"task": "classifier"}')
    assert "task.json is damaged (KeyError" in message_of(path)


def test_a_task_that_does_not_fit_the_weights(tmp_path, path):
    fewer = dataclasses.replace(TASK, labels=("bad", "good"))
    assert "3 outputs, but the task needs 2" in message_of(path, task=fewer)
    longer = dataclasses.replace(TASK, max_seq_length=33)
    assert message_of(path, task=longer) == (
        "max_seq_length is 33, but the model reads at most 32 tokens. Choose a "
        "smaller length."
    )


def test_a_checkpoint_of_the_original(tmp_path):
    """A prefix without `task.json` and without a step."""
    folder = tiny_model.write(tmp_path / "model")
    by_directory = ClassifierPredictor(str(folder), task=TASK)
    prefix = folder / names.MODEL_PREFIX
    by_prefix = ClassifierPredictor(str(prefix), task=TASK)
    assert by_prefix.global_step is None
    expected = by_directory.predict(TEXTS)
    assert_same(by_prefix.predict(TEXTS), expected)
    assert tuple(expected[0].probabilities) == LABELS


def test_the_step_of_a_checkpoint_of_the_original(tmp_path):
    """The step is saved by the original's `run_classifier.py`."""
    folder = tiny_model.write(tmp_path / "model")
    tensors = tiny_model.tensors() | {names.GLOBAL_STEP: np.int64(343)}
    google.write_checkpoint(str(folder / "model.ckpt-343"), tensors)
    predictor = ClassifierPredictor(str(folder / "model.ckpt-343"), task=TASK)
    assert predictor.global_step == 343


def test_its_files_may_lie_elsewhere(tmp_path):
    folder = tiny_model.write(tmp_path / "model")
    expected = ClassifierPredictor(str(folder), task=TASK).predict(TEXTS)
    (tmp_path / "files").mkdir()
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        (folder / name).rename(tmp_path / "files" / name)
    assert "bert_config.json" in message_of(str(folder), task=TASK)
    given = {
        "config_file": str(tmp_path / "files" / "bert_config.json"),
        "vocab_file": str(tmp_path / "files" / "vocab.txt"),
        "do_lower_case": True,
    }
    found = ClassifierPredictor(str(folder), task=TASK, **given)
    assert_same(found.predict(TEXTS), expected)
    cased = ClassifierPredictor(
        str(folder), task=TASK, **given | {"do_lower_case": False}
    )
    assert cased.tokenizer.do_lower_case is False


def write_hugging_face(directory, kind="safetensors", **changes):
    directory.mkdir()
    huggingface_files.write_config(directory, **changes)
    (directory / "vocab.txt").write_text("\n".join(HUGGING_FACE_VOCAB) + "\n")
    huggingface_files.FILES[kind](directory, "BertForSequenceClassification")
    return str(directory)


def hugging_face_logits(path):
    """Return the logits of "a b c ." from unconverted weights."""
    weights = huggingface_files.weights("BertForSequenceClassification")
    with any_format.opened(path) as checkpoint:
        model = ClassificationModel(checkpoint.config, 3)
    for variable in model.trainable_variables:
        variable.assign(weights[names.google_name(variable)])
    ids = np.array([[2, 5, 6, 7, 10, 3]], np.int32)
    batch = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
    }
    return model(batch)["logits"].numpy().astype(np.float64)


@pytest.mark.parametrize("kind", ["safetensors", "h5", "bin"])
def test_a_checkpoint_of_hugging_face(tmp_path, kind):
    path = write_hugging_face(tmp_path / "model", kind)
    task = dataclasses.replace(TASK, max_seq_length=16)
    predictor = ClassifierPredictor(path, task=task)
    found = predictor.predict(["a b c .", "ab ba"])
    expected = softmax(hugging_face_logits(path))
    np.testing.assert_allclose(table(found[:1]), expected, rtol=1e-3, atol=1e-6)
    assert found[0].label == LABELS[expected[0].argmax()]
    assert predictor.global_step is None


@pytest.mark.parametrize("labels", [None, {"0": "LABEL_0", "1": "LABEL_1"}])
def test_labels_without_names(tmp_path, labels):
    """Names and number are those of transformers."""
    architectures = ["BertForSequenceClassification"]
    path = write_hugging_face(
        tmp_path / "model", architectures=architectures, id2label=labels
    )
    (found,) = ClassifierPredictor(path).predict(["a b c ."])
    assert list(found.probabilities) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    expected = softmax(hugging_face_logits(path))
    np.testing.assert_allclose(table([found]), expected, rtol=1e-3, atol=1e-6)


def test_labels_of_hugging_face_s_config(tmp_path):
    """They are in the order of their numbers, not in the order of the file."""
    labels = {"2": "neutral", "0": "entailment", "1": "contradiction"}
    path = write_hugging_face(tmp_path / "model", id2label=labels)
    predictor = ClassifierPredictor(path)
    (found,) = predictor.predict(["a b c ."])
    assert list(found.probabilities) == ["entailment", "contradiction", "neutral"]
    expected = softmax(hugging_face_logits(path))
    np.testing.assert_allclose(table([found]), expected, rtol=1e-3, atol=1e-6)
    assert predictor.task.max_seq_length == huggingface_files.POSITIONS
    (found,) = ClassifierPredictor(
        path, task=dataclasses.replace(TASK, max_seq_length=16)
    ).predict(["a b c ."])
    assert tuple(found.probabilities) == LABELS
