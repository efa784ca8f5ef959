"""Multiple choice on a tiny task learns, resumes, and predicts."""

import concurrent.futures
import dataclasses
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from killed_run import assert_same_bytes, killed_at
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.checkpoints import any_format, convert
from official_bert.checkpoints.initialize import load_weights
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning.task_file import has_task
from official_bert.modeling.multiple_choice import NO_CHOICE, MultipleChoiceModel
from official_bert.tasks.choice import training as choice
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.choice.predictor import ChoiceAnswer, ChoicePredictor
from official_bert.tasks.choice.training import ChoiceTask
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.predictor import Predictor

# A narrow model learns quickly if its initial weights are larger than usual.
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.2)
STRATEGY = tf.distribute.get_strategy()
TASK = ChoiceTask(32)
SETTINGS, START = fine_tuning_settings(), start_of(CONFIG)
CLS, SEP, RIGHT = 2, 3, 20
QUESTIONS = [
    ("the crust of the bread", ["horse", "she found one logbook on the water"]),
    ("over grand light", ("it was", "", "in the dough", "the the the")),
    ("she found it", ["horse", "water", "light " * 40]),
]


def examples(count, seed):
    """Return random examples; the correct choice contains the token 20."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        num_choices = 2 + number % 3
        label = int(rng.integers(num_choices))
        prompt = rng.integers(21, 100, rng.integers(2, 9))
        choices = []
        for place in range(num_choices):
            words = rng.integers(21, 100, rng.integers(2, 9))
            if place == label:
                words[rng.integers(len(words))] = RIGHT
            ids = np.array([CLS, *prompt, SEP, *words, SEP], np.int32)
            segments = (np.arange(len(ids)) > len(prompt) + 1).astype(np.int32)
            choices.append(Features(ids, segments, label, 0))
        found.append(choices)
    return found


TRAIN, DEV = examples(150, 1), examples(50, 2)


def run(directory, train=TRAIN, dev=DEV, **changes):
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    job = choice.make_job(START, TASK, train, dev)
    return fine_tuning.fine_tune(STRATEGY, job, settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return (output directory, scores) of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole")
    return directory, run(directory)


@pytest.fixture(scope="module")
def predictor(whole):
    return ChoicePredictor(str(whole[0]))


@pytest.fixture(scope="module")
def model(whole):
    model = MultipleChoiceModel(CONFIG)
    load_weights(model, whole[0])
    return model


def tensors(directory):
    with any_format.opened(directory) as checkpoint:
        return checkpoint.tensors()


def test_it_learns(whole):
    """Guessing is correct for 36 % of the examples."""
    assert whole[1]["accuracy"] > 0.9
    assert set(whole[1]) == {"global_step", "loss", "accuracy"}


def test_the_best_model_is_left(whole):
    directory, row = whole
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    scores = {r["step"]: r["eval_accuracy"] for r in rows if "eval_accuracy" in r}
    assert list(scores) == [20, 40, 60]
    best = max(scores, key=scores.get)
    assert row["global_step"] == best and row["accuracy"] == scores[best]
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{best}"))
    for name, value in tensors(directory).items():
        np.testing.assert_array_equal(value, reader.get_tensor(name))
    updates = [r for r in rows if "choice_loss" in r]
    assert updates and all("accuracy" in r for r in updates)


def test_task_json(whole):
    task = json.loads((whole[0] / "task.json").read_text())
    step = whole[1]["global_step"]
    assert task == {
        "task": "multiple_choice",
        "max_seq_length": 32,
        "global_step": step,
    }


def test_killed_and_started_again_it_ends_the_same(whole, tmp_path, monkeypatch):
    killed_at(50, lambda: run(tmp_path), monkeypatch)
    assert not (tmp_path / "task.json").exists()
    assert run(tmp_path) == whole[1]
    assert_same_bytes(tensors(tmp_path), tensors(whole[0]))


@pytest.mark.slow
def test_micro_batches_learn_the_same(tmp_path):
    """Also with batches of different lengths; only dropout differs."""
    lengths = set()
    for batch in choice.feature_set(TRAIN, 32).training_batches(4, 3, 0).take(8):
        lengths.add(batch["input_ids"].shape[2])
    assert lengths == {16, 32}
    rows = []
    for size in (0, 2):
        directory = tmp_path / str(size)
        changes = {"train_batch_size": 4, "micro_batch_size": size}
        run(directory, dev=None, num_train_steps=8, **changes)
        lines = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
        rows.append(next(line for line in lines if "choice_loss" in line))
    whole, split = rows
    assert split["choice_loss"] == pytest.approx(whole["choice_loss"], rel=0.2)


def test_other_examples_or_choices_are_another_run(tmp_path):
    run(tmp_path, num_train_steps=2)
    with pytest.raises(UserError, match="examples_crc32"):
        run(tmp_path, train=TRAIN[1:] + TRAIN[:1], num_train_steps=2)
    with pytest.raises(UserError, match="dev_examples_crc32"):
        run(tmp_path, dev=[[*DEV[0], DEV[0][0]], *DEV[1:]], num_train_steps=2)
    other_label = [one._replace(label_id=1 - one.label_id) for one in TRAIN[0]]
    with pytest.raises(UserError, match=r"[^_]examples_crc32"):
        run(tmp_path, train=[other_label, *TRAIN[1:]], num_train_steps=2)


def test_without_a_dev_set_the_last_model_is_left(tmp_path):
    assert run(tmp_path, dev=None, num_train_steps=2) == {"global_step": 2}
    assert json.loads((tmp_path / "task.json").read_text())["global_step"] == 2


def test_batches_have_the_choices_of_the_whole_set():
    """Also batches without an example with the largest number of choices."""
    batch_set = choice.feature_set(TRAIN, 32)
    for batch in batch_set.training_batches(4, 1, 0).take(5):
        assert batch["choice_mask"].shape == (4, 4)
        assert batch["input_ids"].shape[:2] == (4, 4)
        rows = batch["input_mask"].numpy().sum(axis=2)
        assert rows.max() <= batch["input_ids"].shape[2] in (16, 32)
        np.testing.assert_array_equal(rows > 0, batch["choice_mask"] == 1)
        counts = batch["choice_mask"].numpy().sum(axis=1)
        assert (batch["label_ids"].numpy() < counts).all()
    two = choice.feature_set(TRAIN[:1], 32)
    (batch,) = two.training_batches(1, 1, 0).take(1)
    assert batch["choice_mask"].numpy().tolist() == [[1, 1]]


def test_choices_scored_alone_are_what_training_sees(model):
    """One row at a time gives the same as [B, C, S] with missing choices."""
    logits = choice.predict(choice.compile_model(model), DEV, 8, 32)
    batch = choice.feature_set(DEV, 32).pad(DEV, 32)
    np.testing.assert_allclose(logits, model(batch)["logits"], atol=1e-4)
    for each, row in zip(DEV, logits, strict=True):
        assert (row[len(each) :] == np.float32(NO_CHOICE)).all()
        assert (row[: len(each)] > -100).all()


def test_evaluation_can_break_off(model):
    calls = []
    evaluate = choice.make_job(START, TASK, DEV, DEV).dev_set.make_evaluate(model, 8)
    assert evaluate(lambda: len(calls.append(1) or calls) > 2) is None
    assert len(calls) == 3


LOGITS = np.array([[2, 0, NO_CHOICE], [0.5, 1, 0], [0, 3, 1]], np.float32)
LABELLED = [[Features(None, None, label, 0)] for label in (0, 2, 1)]
LOSSES = [
    np.log(1 + np.exp(-2)),
    np.log(np.exp(0.5) + np.exp(1) + 1),
    np.log(np.exp(-3) + 1 + np.exp(-2)),
]


def test_scores_by_hand():
    found = choice.evaluate(LOGITS, LABELLED)
    assert found == {
        "loss": pytest.approx(np.mean(LOSSES), rel=1e-5),
        "accuracy": pytest.approx(2 / 3),
    }
    row = choice.results(LOGITS, LABELLED, 2)
    assert row == {
        "eval_loss": found["loss"],
        "eval_accuracy": found["accuracy"],
        "loss": pytest.approx((np.mean(LOSSES[:2]) + LOSSES[2]) / 2, rel=1e-5),
    }
    rows = choice.probabilities(LOGITS)
    assert rows[0, 2] == 0
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    assert choice.describe(found) == "loss 0.659  accuracy 0.6667"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"max_seq_length": "32"}, ValueError),
        ({"max_seq_length": 2}, ValueError),
        ({"max_seq_length": None}, ValueError),
        ({}, KeyError),
    ],
)
def test_what_is_no_task(changes, error):
    assert ChoiceTask.from_dict(TASK.to_dict()) == TASK
    with pytest.raises(error):
        ChoiceTask.from_dict(changes)


def test_the_predictor_scores_as_the_evaluation(whole, predictor):
    logits = predictor.outputs([], DEV)
    found = choice.evaluate(logits, DEV)
    assert found["accuracy"] == whole[1]["accuracy"]
    assert found["loss"] == pytest.approx(whole[1]["loss"], abs=1e-6)
    assert predictor.global_step == whole[1]["global_step"]
    assert predictor.task == TASK


def test_answers(predictor, model):
    found = predictor.predict_all(QUESTIONS)
    for (prompt, choices), answer in zip(QUESTIONS, found, strict=True):
        example = ChoiceExample("", prompt, tuple(choices))
        (features,) = predictor.features([example])
        batch = choice.feature_set([features], 32).pad([features], 32)
        expected = tf.nn.softmax(model(batch)["logits"])[0].numpy()
        np.testing.assert_allclose(answer.probabilities, expected, atol=1e-5)
        assert answer.index == expected.argmax()
        assert answer.choice == choices[answer.index]
        assert {type(each) for each in answer.probabilities} == {float}
        assert_same([predictor.predict(prompt, choices)], [answer])
        assert type(answer.index) is int
    assert predictor.predict_all([]) == []
    assert predictor.predict_all(pair for pair in QUESTIONS) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        found[0].index = 1
    json.dumps([dataclasses.asdict(each) for each in found])


def assert_same(left, right):
    assert [each.index for each in left] == [each.index for each in right]
    flat = [list(itertools.chain(*(e.probabilities for e in s))) for s in (left, right)]
    np.testing.assert_allclose(*flat, rtol=1e-4, atol=1e-6)


def test_the_right_choice_may_stand_anywhere(predictor):
    """The model learned a token, not an index."""
    word = predictor.tokenizer.convert_ids_to_tokens([RIGHT])[0]
    others = predictor.tokenizer.convert_ids_to_tokens([30, 40])
    for place in range(3):
        choices = [*others[:place], word, *others[place:]]
        assert predictor.predict("the bread", choices).choice == word


def test_any_fine_tuned_model_can_be_asked(whole, predictor):
    found = Predictor(str(whole[0]))
    assert found.task == TASK
    answer = found.predict(*QUESTIONS[0])
    assert isinstance(answer, ChoiceAnswer)
    assert_same([answer], [predictor.predict(*QUESTIONS[0])])


def test_a_model_of_hugging_face_answers(whole, predictor, tmp_path):
    """It has no `task.json`, but its config describes the task."""
    path = str(tmp_path / "converted")
    convert.convert(str(whole[0]), path, "huggingface")
    assert not has_task(path)
    found = Predictor(path)
    assert found.task == ChoiceTask(CONFIG.max_position_embeddings)
    assert_same([found.predict(*QUESTIONS[0])], [predictor.predict(*QUESTIONS[0])])


def test_the_answers_do_not_depend_on_the_batch(whole, predictor):
    expected = predictor.predict_all(QUESTIONS * 3)
    for size in (1, 2, 100):
        other = ChoicePredictor(str(whole[0]), size)
        assert_same(other.predict_all(QUESTIONS * 3), expected)


def test_eight_threads_get_what_one_gets(whole, predictor, monkeypatch):
    """Also for the first calls, during which the model is traced, but only once."""
    call, calls = MultipleChoiceModel.call, []

    def counted(self, inputs, *args, **kwargs):
        calls.append(inputs["input_ids"].shape)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(MultipleChoiceModel, "call", counted)
    other = ChoicePredictor(str(whole[0]), batch_size=2)
    tasks = [(QUESTIONS * 2)[n % 3 : n % 3 + 1 + n % 4] for n in range(32)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(other.predict_all, tasks))
    assert len(calls) == 1
    for questions, answers in zip(tasks, found, strict=True):
        assert_same(answers, predictor.predict_all(questions))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["abc"], "Question 0 is 'abc', not a prompt and its choices."),
        ([("a", ["b", "c"]), ("a", ["b"], "c")], r"Question 1 is \('a'.*, not a"),
        ([(None, ["b", "c"])], "Question 0 is .*, not a prompt"),
        ([(b"a", ["b", "c"])], "Question 0 is .*, not a prompt"),
        ([None], "Question 0 is None, not a prompt"),
        ([("a", "bc")], "The choices of question 0 are 'bc', not a list of str."),
        ([("a", ["b", None])], r"choices of question 0 are \['b', None\], not a list"),
        ([("a", ["b", 1])], r"choices of question 0 are \['b', 1\], not a list"),
        ([("a", ["b"])], r"choices of question 0 are \['b'\]. Give at least two."),
        ([("a", [])], r"choices of question 0 are \[\]. Give at least two."),
    ],
)
def test_what_is_no_question(predictor, pairs, words):
    with pytest.raises(TypeError, match=words):
        predictor.predict_all(pairs)


def message_of(*arguments, **named):
    with pytest.raises(UserError) as caught:
        ChoicePredictor(*arguments, **named)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_no_fine_tuned_model(whole, tmp_path):
    other = tiny_model.write(tmp_path / "other")
    assert f"{other} has no task.json" in message_of(str(other))
    assert "3 outputs, but the task needs 1" in message_of(str(other), task=TASK)
    (other / "task.json").write_text('{"task": "squad"}')
    assert "its task is 'squad'" in message_of(str(other))
    (other / "task.json").write_text('{"task": "multiple_choice", "global_step": 1}')
    assert "task.json is damaged (KeyError" in message_of(str(other))
    longer = ChoiceTask(33)
    assert "33, but the model reads at most 32" in message_of(
        str(whole[0]), task=longer
    )
