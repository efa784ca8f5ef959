"""`run_squad.py` from the command line: training, prediction alone, bad commands."""

import json
import shutil
import statistics

import filelock
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from script_runs import (
    assert_refused,
    contents,
    first_runs,
    json_lines,
    later_runs,
    new_of,
    run_many,
    said,
    scores,
)
from squad_runs import BAD, FIRST, LATER, V1, write_files, write_models

from official_bert.metrics import squad as metrics
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad import reports as squad_reports
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tasks.squad.training import SquadTask


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return (folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("squad")
    write_files(folder)
    write_models(folder)
    return folder, first_runs("run_squad", FIRST, folder)


@pytest.fixture(scope="module")
def later(first):
    """Return (results of the later and bad runs, earlier contents of the folders)."""
    folder, _ = first
    for name in ("untuned-1", "untuned-2"):
        shutil.copytree(folder / "v2", folder / name)
        for file in ("predictions.json", "eval_results.txt"):
            (folder / name / file).unlink()
        task = read(folder / name / "task.json")
        task["null_score_diff_threshold"] = -99.5
        (folder / name / "task.json").write_text(json.dumps(task))
    (folder / "locked").mkdir()
    with filelock.FileLock(folder / "locked" / ".lock"):
        return later_runs("run_squad", LATER, BAD, folder)


@pytest.mark.parametrize(
    "flags", list(BAD), ids=[flags.removeprefix(f"{V1} ") for flags in BAD]
)
def test_refused(first, later, flags):
    """A refused command creates nothing."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert "span accuracy" not in later[0][flags]["stdout"]
    assert not new_of(first[0], BAD, flags).exists()


@pytest.mark.parametrize("name", ["v1", "v2", "seeds", "model", "cased", "locked"])
def test_refusals_harm_nothing(first, later, name):
    """Neither a refused command nor a repeated one changes the folder."""
    assert contents(first[0] / name) == later[1][name]


def read(path):
    return json.loads(path.read_text("utf-8"))


def gold(first, name):
    return squad_files.read_gold_answers(str(first[0] / name))


def test_version_1(first):
    out = first[0] / "v1"
    predictions = read(out / "predictions.json")
    answers = gold(first, "v1.json")
    assert list(predictions) == list(answers) and "q2" not in predictions
    assert scores(out) == metrics.evaluate_v1(answers, predictions)
    assert not (out / "null_odds.json").exists()
    task = read(out / "task.json")
    assert not task["version_2_with_negative"] and task["max_answer_length"] == 9
    # 7 questions in batches of 4: 17 training steps in 10 passes.
    assert task["global_step"] == 17
    assert "7 training questions, " in first[1]["v1"]["stdout"]
    assert all(predictions.values())
    run = read(out / "run.json")
    assert {"v1.json.gz", "v1.json", "model/vocab.txt"} <= set(run["inputs"])
    assert run["flags"]["max_answer_length"] == 9
    assert not list(first[0].rglob("*.tmp.*"))


def test_version_2_keeps_the_best_threshold(first):
    out = first[0] / "v2"
    task, found = read(out / "task.json"), scores(out)
    log = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    rows = {r["step"]: r for r in log if "eval_best_f1" in r}
    assert list(rows) == [20, 40]
    best = read(out / "best_checkpoint.json")["step"]
    assert task["global_step"] == best
    assert rows[best]["eval_best_f1"] == max(r["eval_best_f1"] for r in rows.values())
    threshold = task["null_score_diff_threshold"]
    assert threshold == rows[best]["eval_best_f1_thresh"] != 0
    assert found["null_score_diff_threshold"] == threshold
    # The predictions score as the best threshold promised.
    assert found["f1"] == found["best_f1"] == rows[best]["eval_best_f1"]
    predictions = read(out / "predictions.json")
    plain = metrics.evaluate_v2(gold(first, "v2.json"), predictions)
    assert {name: found[name] for name in plain} == plain
    assert set(read(out / "null_odds.json")) == set(predictions)


def test_the_first_of_several_answers_is_used(first):
    """The second answers are wrong, so the model equals that of `last`."""
    folder, results = first
    text = "two.json: 7 of 7 questions have several answers. The first one of each"
    assert text in results["several"]["logged"]
    models = [
        tf.train.load_checkpoint(str(folder / name / "bert_model.ckpt"))
        for name in ("last", "several")
    ]
    for name in models[0].get_variable_to_shape_map():
        one, other = (model.get_tensor(name) for model in models)
        np.testing.assert_array_equal(one, other)


def test_the_last_model_where_nothing_is_evaluated(first):
    out = first[0] / "last"
    assert read(out / "task.json")["global_step"] == 3
    for name in ("predictions.json", "eval_results.txt", "best_checkpoint.json"):
        assert not (out / name).exists()
    reader = tf.train.load_checkpoint(str(out / "bert_model.ckpt"))
    names = reader.get_variable_to_shape_map()
    assert {"cls/squad/output_bias", "bert/pooler/dense/bias"} <= set(names)
    before = tf.train.load_checkpoint(str(first[0] / "model" / "bert_model.ckpt"))
    for name in ("bert/pooler/dense/kernel", "bert/pooler/dense/bias"):
        kept = reader.get_tensor(name) == before.get_tensor(name)
        assert kept.all()


def test_scores_of_an_evaluation_behind_a_training(first):
    out = first[0] / "only-scored"
    log = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    best = read(out / "best_checkpoint.json")["step"]
    (row,) = [r for r in log if r["step"] == best and "eval_f1" in r]
    found = scores(out)
    assert found == {name: row[f"eval_{name}"] for name in found}
    assert {"exact_match", "f1"} <= set(found)
    assert not (out / "predictions.json").exists()


def test_seeds(first):
    folder, results = first
    rows = read(folder / "seeds" / "runs.json")
    assert [row["seed"] for row in rows] == [5, 6]
    values = [row["best_f1"] for row in rows]
    text = f"2 seeds: best_f1 {statistics.fmean(values):.4f} ± "
    assert text in results["seeds"]["stdout"]
    assert scores(folder / "seeds")["best_f1"] == max(values)
    task = read(folder / "seeds" / "task.json")
    row = max(rows, key=lambda row: row["best_f1"])
    assert task["null_score_diff_threshold"] == row["best_null_score_diff_threshold"]


def test_the_same_command_again(first, later):
    assert "The run in v2 is done at step 40" in said(later, "v2")


@pytest.mark.parametrize(("name", "run"), [("alone", "v2"), ("alone-v1", "v1")])
def test_answers_alone(first, later, name, run):
    """Version, lengths and threshold come from `task.json`."""
    said(later, name)
    found, before = contents(first[0] / name), later[1][run]
    assert set(found) <= set(before)
    assert {"predictions.json", "nbest_predictions.json", "eval_results.txt"} <= set(
        found
    )
    assert ("null_odds.json" in found) == (run == "v2")
    for file, content in found.items():
        assert content == before[file], file
    assert (first[0] / name / "eval_run.json").exists()


@pytest.mark.parametrize(("name", "file"), [("v1", "v1.json"), ("v2", "v2.json")])
def test_places_in_the_contexts(first, name, file):
    """The texts nearly always equal the original's, except for spaces."""
    examples = squad_files.read_examples(str(first[0] / file), False)
    lines = json_lines(first[0] / name / "predictions.jsonl")
    texts = read(first[0] / name / "predictions.json")
    assert [line["id"] for line in lines] == [one.qas_id for one in examples]
    for line, example in zip(lines, examples, strict=True):
        assert example.context[line["start"] : line["end"]] == line["text"]
    same = [line["text"].split() == texts[line["id"]].split() for line in lines]
    assert same.count(False) <= 1
    assert sum(line["end"] > line["start"] > 0 for line in lines) > 2
    odds = {line["id"]: line["null_odds"] for line in lines if "null_odds" in line}
    written = first[0] / name / "null_odds.json"
    assert odds == (read(written) if written.exists() else {})


def test_the_original_s_defaults(first, later):
    """These are defaults of flags that are not given; `SquadTask` has the lengths."""
    said(later, "alone")
    flags = read(first[0] / "alone" / "eval_run.json")["flags"]
    expected = {
        "learning_rate": 5e-5,
        "train_batch_size": 32,
        "num_train_epochs": 3.0,
        "warmup_proportion": 0.1,
        "predict_batch_size": 8,
        "version_2_with_negative": None,
    }
    assert {name: flags[name] for name in expected} == expected
    lengths = ("max_seq_length", "doc_stride", "max_query_length")
    for name in (*lengths, "n_best_size", "max_answer_length"):
        assert flags[name] is None
    assert flags["null_score_diff_threshold"] is None


def test_questions_without_answers(first, later):
    assert "Eval results" not in said(later, "asked")
    found = contents(first[0] / "asked")
    assert set(found) == {
        *("predictions.json", "nbest_predictions.json", "null_odds.json"),
        "predictions.jsonl",
    }
    for name, content in found.items():
        assert content == later[1]["v2"][name]


def test_a_model_of_version_2_asked_as_one_of_version_1(first, later):
    said(later, "as-v1")
    out = first[0] / "as-v1"
    assert not (out / "null_odds.json").exists()
    assert not all(read(first[0] / "asked" / "predictions.json").values())
    assert all(read(out / "predictions.json").values())
    # A file in which some questions have no answer gives no scores.
    said(later, "as-v1-all")
    out = first[0] / "as-v1-all"
    assert all(read(out / "predictions.json").values())
    assert not (out / "eval_results.txt").exists()


def test_thresholds(first, later):
    """The command line sets the thresholds; null odds are the same for all."""
    folder = first[0]
    found = {}
    odds = read(folder / "v2" / "null_odds.json")
    for name, threshold in (("always", 1e6), ("never", -1e6), ("zero", 0)):
        said(later, name)
        found[name] = read(folder / name / "predictions.json")
        assert read(folder / name / "null_odds.json") == odds
        assert scores(folder / name)["null_score_diff_threshold"] == threshold
        for key, text in found[name].items():
            assert (text == "") == (odds[key] > threshold)
    assert scores(folder / "zero")["f1"] <= scores(folder / "v2")["f1"]
    assert "leaves all 8 questions unanswered" in said(later, "never")
    assert "best_f1_thresh is " in said(later, "never")
    assert "unanswered" not in said(later, "always")
    assert scores(folder / "zero")["best_f1"] == scores(folder / "v2")["best_f1"]


@pytest.fixture(scope="module")
def again(first, later):
    """Return scores of `evaluate_squad.py` from the files of these runs."""
    commands = {
        name: {
            "arguments": [
                "--data_file=v2.json",
                *(
                    f"--{flag}={name}/{flag}.json"
                    for flag in ("predictions", "null_odds", "nbest_predictions")
                ),
            ]
        }
        for name in ("v2", "always", "never")
    }
    found = run_many("evaluate_squad", commands, first[0])
    return {name: json.loads(result["stdout"]) for name, result in found.items()}


@pytest.mark.parametrize("name", ["v2", "always", "never"])
def test_scored_again_from_the_files(first, again, name):
    """The scores, including the best one, do not depend on the threshold."""
    expected = scores(first[0] / name)
    del expected["null_score_diff_threshold"]
    assert again[name] == expected
    assert again[name]["best_f1"] == scores(first[0] / "v2")["best_f1"]


def test_an_evaluation_keeps_the_best_threshold(first, later):
    """It is kept in the model's directory; the scores use the given threshold."""
    out, before = first[0] / "untuned-1", later[1]["untuned-1"]
    tuned = read(first[0] / "v2" / "task.json")
    threshold = tuned["null_score_diff_threshold"]
    path = "untuned-1/task.json\n"
    told = "the fine-tuned model in untuned-1; --model is ignored"
    assert told in said(later, "untuned-1")
    assert "is ignored" not in said(later, "scored")
    assert f"Best threshold {threshold}, saved in {path}" in said(later, "untuned-1")
    assert read(out / "task.json") == tuned
    found = contents(out)
    changed = {name for name in found if found[name] != before.get(name)}
    assert changed == {"task.json", "eval_results.txt"}
    assert scores(out)["null_score_diff_threshold"] == 1e6
    assert scores(out)["best_f1"] == scores(first[0] / "v2")["best_f1"]


def test_an_evaluation_of_a_model_that_is_elsewhere(first, later):
    """Predictions use the new threshold, and the model stays unchanged."""
    folder = first[0]
    threshold = scores(folder / "v2")["null_score_diff_threshold"]
    told = said(later, "elsewhere")
    assert f"Best threshold {threshold}. It is not saved" in told
    assert f"--null_score_diff_threshold={threshold} " in told
    assert contents(folder / "untuned-2") == later[1]["untuned-2"]
    for name, content in contents(folder / "elsewhere").items():
        assert content == later[1]["v2"][name]
    assert "It is not saved" in said(later, "ensemble-eval")
    found = scores(folder / "ensemble-eval")
    assert found["f1"] == pytest.approx(found["best_f1"])
    assert set(contents(folder / "ensemble-eval")) == {"eval_results.txt"}


def test_an_evaluation_of_version_1(first, later):
    assert "threshold" not in said(later, "scored")
    found = contents(first[0] / "scored")
    assert list(found) == ["eval_results.txt"]
    assert found["eval_results.txt"] == later[1]["v1"]["eval_results.txt"]


def test_padding_that_competes(first, later):
    folder = first[0]
    said(later, "padded")
    examples = squad_files.read_examples(str(folder / "v2.json"), False)
    path = str(folder / "random")
    without, padded = (
        squad_reports.answer(
            [SquadPredictor(path, pad_to_max_seq_length=pads)], examples
        )
        for pads in (False, True)
    )
    found = read(folder / "padded" / "nbest_predictions.json")
    texts = [[row["text"] for row in rows] for rows in found.values()]
    assert texts == [[row.text for row in one.nbest] for one in padded]
    assert texts != [[row.text for row in one.nbest] for one in without]


def test_an_ensemble(first, later):
    folder = first[0]
    said(later, "ensemble")
    examples = squad_files.read_examples(str(folder / "v2.json"), False)
    models = [SquadPredictor(str(folder / name)) for name in ("v2", "seeds")]
    models[1] = SquadPredictor(str(folder / "seeds"), task=models[0].task)
    expected = squad_reports.answer(models, examples)
    found = read(folder / "ensemble" / "null_odds.json")
    assert list(found) == [one.qas_id for one in expected]
    np.testing.assert_allclose(
        list(found.values()), [one.null_odds for one in expected], atol=1e-4
    )
    assert found != read(folder / "v2" / "null_odds.json")
    inputs = read(folder / "ensemble" / "eval_run.json")["inputs"]
    assert {"v2.json", "v2/task.json", "seeds/bert_config.json"} <= set(inputs)
    assert all(inputs.values())
    said(later, "one")
    for name, content in contents(folder / "one").items():
        assert content == later[1]["v2"][name]


def test_the_original_s_command_and_checkpoint(first, later):
    folder = first[0]
    said(later, "original")
    task = SquadTask(48, 20, 24, Decoding(n_best_size=5, max_answer_length=9))
    predictor = SquadPredictor(
        str(folder / "original" / "model.ckpt-7"),
        task=task,
        config_file=str(folder / "model" / "bert_config.json"),
        vocab_file=str(tiny_model.VOCAB),
        do_lower_case=True,
    )
    examples = squad_files.read_examples(str(folder / "v1.json"), False)
    expected = squad_reports.answer([predictor], examples)
    found = read(folder / "original" / "predictions.json")
    assert found == {one.qas_id: one.answer.text for one in expected}
    nbest = read(folder / "original" / "nbest_predictions.json")
    assert max(len(rows) for rows in nbest.values()) == 5
    assert scores(folder / "original") == metrics.evaluate_v1(
        gold(first, "v1.json"), found
    )
    assert not (folder / "original" / "task.json").exists()
