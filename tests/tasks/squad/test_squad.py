"""Fine-tuning on questions: scores, thresholds, `task.json`, and a run that learns."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from killed_run import assert_same_bytes, killed_at
from places import MINI
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.checkpoints import any_format
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning.task_file import read_task, write_task
from official_bert.metrics import squad as scores
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import features as squad_features
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad import training as squad
from official_bert.tasks.squad.answers import (
    NO_CANDIDATE,
    Decoding,
    SquadAnswer,
    SquadPrediction,
)
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tasks.squad.training import SquadTask
from official_bert.tokenization.full import FullTokenizer

# A narrow model learns quickly if its initial weights are larger than usual.
CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG, initializer_range=0.2, max_position_embeddings=64
)
STEPS = 120
SETTINGS = fine_tuning_settings(
    num_train_steps=STEPS,
    num_warmup_steps=12,
    save_checkpoints_steps=40,
    iterations_per_loop=20,
    seed=1,
)
START = start_of(CONFIG)
V1 = SquadTask(64, 24, 16)
V2 = SquadTask(64, 24, 16, Decoding(version_2_with_negative=True))
OTHER = SquadTask(100, 50, 20, Decoding(7, 9, True, -1.25))
TOKENIZER = FullTokenizer(str(tiny_model.VOCAB))
FILE = str(MINI / "squad.json")


def read(is_training):
    examples = squad_files.read_examples(FILE, is_training, True)
    return examples, squad_features.convert_examples(examples, TOKENIZER, *V2.lengths)


EXAMPLES, TRAIN = read(True)
DEV = squad.AnsweredQuestions(*read(False), squad_files.read_gold_answers(FILE))


def run(directory, task=V2, train=TRAIN, dev=DEV, **changes):
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    job = squad.make_job(START, task, train, dev)
    return fine_tuning.fine_tune(tf.distribute.get_strategy(), job, settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return (output directory, scores) of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole")
    return directory, run(directory)


def tensors(directory):
    with any_format.opened(str(directory)) as checkpoint:
        return checkpoint.tensors()


def test_padding_is_part_of_the_softmax():
    assert squad.make_job(START, V2, TRAIN, DEV).reads_padding


@pytest.mark.parametrize("task", [SquadTask(), V1, V2, OTHER])
def test_there_and_back(tmp_path, task):
    values = json.loads(json.dumps(task.to_dict()))
    assert SquadTask.from_dict(values) == task
    write_task(str(tmp_path), task, 12)
    assert read_task(str(tmp_path), SquadTask) == (task, 12)
    written = json.loads((tmp_path / "task.json").read_text("utf-8"))
    assert written == {"task": "squad", **values, "global_step": 12}
    assert SquadTask.from_dict(values | {"new": 1}) == task
    assert hash(SquadTask.from_dict(values)) == hash(task)


def test_the_original_s_defaults():
    assert SquadTask().to_dict() == {
        "max_seq_length": 384,
        "doc_stride": 128,
        "max_query_length": 64,
        "n_best_size": 20,
        "max_answer_length": 30,
        "version_2_with_negative": False,
        "null_score_diff_threshold": 0.0,
    }


def test_what_is_written():
    assert OTHER.to_dict() == {
        "max_seq_length": 100,
        "doc_stride": 50,
        "max_query_length": 20,
        "n_best_size": 7,
        "max_answer_length": 9,
        "version_2_with_negative": True,
        "null_score_diff_threshold": -1.25,
    }


def message_of(directory, values):
    (directory / "task.json").write_text(json.dumps(values))
    with pytest.raises(UserError) as caught:
        read_task(str(directory), SquadTask)
    message = str(caught.value)
    assert "task.json is damaged" in message and message.endswith("train again.")
    return message


@pytest.mark.parametrize("name", [*OTHER.to_dict(), "global_step"])
def test_a_value_that_is_missing(tmp_path, name):
    values = {"task": "squad", **OTHER.to_dict(), "global_step": 7}
    del values[name]
    assert f"KeyError: '{name}'" in message_of(tmp_path, values)


@pytest.mark.parametrize(
    "change",
    [
        *(
            {name: value}
            for name in ("max_seq_length", "doc_stride", "n_best_size")
            for value in (0, -1, None, "64", 64.0, [64])
        ),
        {"max_query_length": 0},
        {"max_answer_length": "30"},
        # A text is not a bool.
        {"version_2_with_negative": "false"},
        {"version_2_with_negative": None},
        {"null_score_diff_threshold": None},
        {"null_score_diff_threshold": "low"},
        {"null_score_diff_threshold": float("nan")},
        {"global_step": None},
    ],
    ids=str,
)
def test_a_damaged_value(tmp_path, change):
    values = {"task": "squad", **OTHER.to_dict(), "global_step": 7}
    message_of(tmp_path, values | change)


def prediction(qas_id, text, non_null=None, odds=None):
    def answer(text):
        return SquadAnswer(text, 0, len(text), 1.0, 1.0, 1.0)

    return SquadPrediction(
        qas_id,
        answer(text),
        (answer(text),),
        None if non_null is None else answer(non_null),
        odds,
    )


def test_scores_of_version_1():
    gold = {"a": ("Paris", "the city of Paris"), "b": ("1895",)}
    found = evaluate_predictions(
        V1.decoding, [prediction("a", "Paris, city"), prediction("b", "1895")], gold
    )
    assert found == {"exact_match": 50, "f1": pytest.approx(90)}
    assert V1.metrics == ("f1", "exact_match")


GOLD = {"a": ("Paris",), "b": (), "c": ("the Nile",), "d": (), "e": ("Rome",)}
PREDICTIONS = [
    prediction("a", "", "Paris", 1.5),
    prediction("b", "Berlin", "Berlin", -2.0),
    prediction("c", "Nile river", "Nile river", -3.0),
    prediction("d", "", None, NO_CANDIDATE),
    prediction("e", "", "Rome", 1.75),
]


def test_scores_of_version_2():
    """The best threshold considers answers that the current threshold removes.

    "Nile river" scores 2/3. In the order of the null odds, +2/3 (c), -1 (b), +1 (a)
    and +1 (e) are added to the two questions that are correct without an answer.
    """
    found = evaluate_predictions(V2.decoding, PREDICTIONS, GOLD)
    plain = {one.qas_id: one.answer.text for one in PREDICTIONS}
    assert {k: v for k, v in found.items() if not k.startswith("best")} == (
        scores.evaluate_v2(GOLD, plain)
    )
    assert found["exact"] == 20 and found["f1"] == pytest.approx(100 / 3)
    assert found["best_f1"] == pytest.approx(100 * (2 + 2 / 3 + 1) / 5)
    assert found["best_f1_thresh"] == 1.75
    assert found["best_exact"] == 60 and found["best_exact_thresh"] == 1.75
    assert V2.metrics == ("best_f1", "best_exact")


def f1_at(predictions, gold, threshold):
    """Return the F1 of the answers with a threshold."""
    texts = {one.qas_id: one.answer_at(threshold).text for one in predictions}
    return scores.evaluate_v2(gold, texts)["f1"]


def random_questions(rng, odds):
    """Return (predictions, gold answers) with random null odds."""
    gold, predictions = {}, []
    for key in "abcdefg"[: rng.integers(1, 8)]:
        gold[key] = ("x y",) if rng.random() < 0.5 else ()
        text = rng.choice(["x", "x y", "z", ""])
        if text:
            nbest = prediction(key, "", text, float(rng.choice(odds)))
        else:
            nbest = prediction(key, "", None, NO_CANDIDATE)
        predictions.append(nbest)
    return predictions, gold


def test_the_threshold_to_keep_answers_with_the_best_f1():
    """Also if it is best to answer nothing, and if all null odds are below 0."""
    rng, num_silent = np.random.default_rng(3), 0
    for _ in range(200):
        shift = rng.choice([-20, 0, 20])
        predictions, gold = random_questions(rng, shift + rng.normal(size=1000))
        found = evaluate_predictions(V2.decoding, predictions, gold)
        threshold = found[scores.BEST_THRESHOLD]
        assert f1_at(predictions, gold, threshold) == pytest.approx(found["best_f1"])
        odds = [one.null_odds for one in predictions]
        if threshold < min(odds):
            num_silent += 1
            assert found["best_f1_thresh"] == 0.0
        else:
            assert threshold == found["best_f1_thresh"] in odds
    assert 20 < num_silent < 180


def test_of_equal_null_odds_all_are_answered_or_none():
    """The official search may count only some of them, which a threshold cannot do."""
    rng, num_less = np.random.default_rng(4), 0
    for _ in range(200):
        predictions, gold = random_questions(rng, [-2.0, -1.0, 0.0])
        found = evaluate_predictions(V2.decoding, predictions, gold)
        reached = f1_at(predictions, gold, found[scores.BEST_THRESHOLD])
        every = [f1_at(predictions, gold, each) for each in (-9, -2, -1, 0)]
        assert reached == pytest.approx(max(every))
        assert reached <= found["best_f1"] + 1e-9
        num_less += reached < found["best_f1"] - 1e-9
    assert num_less > 5


def test_at_best_threshold():
    row = {"best_f1_thresh": 0.0, scores.BEST_THRESHOLD: np.float64(2.5)}
    task = squad.at_best_threshold(OTHER, row)
    assert task.decoding == dataclasses.replace(
        OTHER.decoding, null_score_diff_threshold=2.5
    )
    assert task.lengths == OTHER.lengths
    assert OTHER.decoding.null_score_diff_threshold == -1.25
    json.dumps(task.to_dict())
    assert squad.at_best_threshold(OTHER, {"f1": 50.0}) == OTHER
    assert squad.at_best_threshold(OTHER, {}) == OTHER


def test_a_batch():
    batch = squad_features.pad_squad_features(TRAIN[:3], 64)
    assert set(batch) == {
        *("input_ids", "input_mask", "segment_ids"),
        *("start_positions", "end_positions"),
    }
    assert {value.dtype for value in batch.values()} == {np.dtype(np.int32)}
    for row, one in enumerate(TRAIN[:3]):
        size = len(one.input_ids)
        assert batch["input_ids"][row, :size].tolist() == one.input_ids.tolist()
        assert batch["input_mask"][row].tolist() == [1] * size + [0] * (64 - size)
        assert not batch["input_ids"][row, size:].any()
        assert batch["segment_ids"][row].sum() == one.segment_ids.sum()
        assert batch["start_positions"][row] == one.start_position
        assert batch["end_positions"][row] == one.end_position
    asked = squad_features.pad_squad_features(DEV.features[:2], 64)
    assert set(asked) == {"input_ids", "input_mask", "segment_ids"}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    return SpanModel(CONFIG)


@pytest.mark.parametrize("batch_size", [1, 7, 200])
def test_logits_are_those_of_each_window_alone(model, batch_size):
    """Windows have different lengths; order is kept, and padding has no logits."""
    examples = [
        squad_files.make_example("how deep is the lake ?"[:n], "the water " * n)
        for n in (12, 3, 30, 1, 20)
    ]
    features = squad_features.convert_examples(examples, TOKENIZER, *V2.lengths)
    assert len({len(one.input_ids) for one in features}) > 5
    score = squad.compile_model(model)
    found = squad.window_logits(score, V2, features, batch_size)
    assert [len(part) for part in found] == [len(features)] * 2
    for one, start, end in zip(features, *found, strict=True):
        batch = {
            "input_ids": one.input_ids[None],
            "input_mask": np.ones((1, len(one.input_ids)), np.int32),
            "segment_ids": one.segment_ids[None],
        }
        expected = model(batch)
        assert start.shape == end.shape == one.input_ids.shape
        np.testing.assert_allclose(start, expected["start_logits"][0], atol=1e-5)
        np.testing.assert_allclose(end, expected["end_logits"][0], atol=1e-5)


def test_logits_of_nothing_and_of_a_run_that_is_to_end(model):
    score = squad.compile_model(model)
    assert squad.window_logits(score, V2, [], 8) == ([], [])
    calls = iter([False, True])
    evaluate = squad.make_job(START, V2, TRAIN, DEV).dev_set.make_evaluate(model, 8)
    assert evaluate(lambda: next(calls)) is None


def test_it_learns(whole):
    directory, row = whole
    assert row["best_f1"] > 50
    log = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    losses = [each["span_loss"] for each in log if "span_loss" in each]
    assert losses[0] > 1.5 and losses[-1] < 0.6


def test_the_best_model_is_left(whole):
    directory, row = whole
    log = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    found = {r["step"]: r["eval_best_f1"] for r in log if "eval_best_f1" in r}
    assert list(found) == [40, 80, 120]
    best = max(found, key=found.get)
    assert row["global_step"] == best and row["best_f1"] == found[best]
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{best}"))
    left = tensors(directory)
    assert {"cls/squad/output_weights", "bert/pooler/dense/kernel"} <= set(left)
    for name, value in left.items():
        np.testing.assert_array_equal(value, reader.get_tensor(name))


def test_the_best_threshold_is_kept_and_moves_the_score(whole):
    directory, row = whole
    task, step = read_task(str(directory), SquadTask)
    assert step == row["global_step"] and task.lengths == V2.lengths
    threshold = task.decoding.null_score_diff_threshold
    assert threshold == row["best_f1_thresh"] != 0
    # From the same batches, because the threshold equals the null odds of a question.
    predictor = SquadPredictor(str(directory), batch_size=8)
    assert predictor.task == task and predictor.global_step == step
    logits = predictor.logits(DEV.features)
    at_best = predictor.outputs(DEV.examples, DEV.features, logits)
    assert (
        evaluate_predictions(task.decoding, at_best, DEV.gold_answers)["f1"]
        == row["best_f1"]
    )
    at_zero = squad_answers.decode(
        DEV.examples, DEV.features, *logits, TOKENIZER, V2.decoding
    )
    found = evaluate_predictions(V2.decoding, at_zero, DEV.gold_answers)
    assert {"global_step": step, **found} == row
    assert found["f1"] < row["best_f1"] == found["best_f1"]


@pytest.mark.slow
def test_killed_and_started_again_it_ends_the_same(whole, tmp_path, monkeypatch):
    killed_at(100, lambda: run(tmp_path), monkeypatch)
    assert not (tmp_path / "task.json").exists()
    assert run(tmp_path) == whole[1]
    assert_same_bytes(tensors(tmp_path), tensors(whole[0]))
    assert (tmp_path / "task.json").read_text() == (whole[0] / "task.json").read_text()


def test_without_a_dev_set_the_last_model_is_left(tmp_path):
    """Different settings start a different run."""
    row = run(tmp_path, V1, dev=None, num_train_steps=20)
    assert row == {"global_step": 20}
    assert read_task(str(tmp_path), SquadTask) == (V1, 20)
    # The same command keeps a threshold that was chosen later.
    tuned = V1.with_threshold(-2.5)
    write_task(str(tmp_path), tuned, 20)
    assert run(tmp_path, V1, dev=None, num_train_steps=20) == row
    assert read_task(str(tmp_path), SquadTask) == (tuned, 20)
    (tmp_path / "task.json").write_text("{")
    run(tmp_path, V1, dev=None, num_train_steps=20)
    assert read_task(str(tmp_path), SquadTask) == (V1, 20)
    moved = [TRAIN[0]._replace(start_position=5, end_position=5), *TRAIN[1:]]
    others = {
        "windows_crc32": {"train": moved},
        "doc_stride": {"task": SquadTask(64, 23, 16)},
        "dev_answers_crc32": {"dev": DEV},
    }
    for word, changes in others.items():
        with pytest.raises(UserError, match=word):
            run(tmp_path, **{"task": V1, "dev": None, "num_train_steps": 20, **changes})


def test_other_answers_to_choose_the_best_by_are_another_run(tmp_path):
    """Otherwise models would be compared by scores on different questions."""
    run(tmp_path, num_train_steps=20)
    gold = {**DEV.gold_answers, "q0": ("nobody",)}
    other = dataclasses.replace(DEV, gold_answers=gold)
    with pytest.raises(UserError, match="holds a run"):
        run(tmp_path, dev=other, num_train_steps=20)


def test_what_a_log_line_says():
    assert squad.describe({"loss": 0.5, "span_accuracy": 0.25, "step": 1}) == (
        "loss 0.500  span accuracy 0.2500"
    )
    assert squad.describe({"f1": 50.0, "exact_match": 25.0, "total": 8}) == (
        "exact_match 25.00  f1 50.00"
    )
