"""`run_squad.py` as people call it: good runs, answers alone, and bad commands."""

import copy
import dataclasses
import gzip
import json
import shutil
import statistics

import filelock
import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from places import MINI
from script_runs import (
    assert_refused,
    contents,
    first_runs,
    later_runs,
    new_of,
    said,
    scores,
)

from official_bert.checkpoints import model_directory
from official_bert.metrics import squad as metrics
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks import squad_files, squad_reports
from official_bert.tasks.classifier_task import ClassifierTask
from official_bert.tasks.squad import SquadTask
from official_bert.tasks.squad_answers import Decoding
from official_bert.tasks.squad_predictor import SquadPredictor
from official_bert.tasks.task_file import write_task

CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG, initializer_range=0.2, max_position_embeddings=64
)
LENGTHS = "--max_seq_length=64 --doc_stride=24 --max_query_length=24"
BRIEF = (
    f"--init_checkpoint=model {LENGTHS} --train_batch_size=4 --num_train_epochs=10 "
    "--learning_rate=3e-3 --save_checkpoints_steps=10 --do_train"
)
V1 = f"{BRIEF} --train_file=v1.json.gz"
EVAL = "--predict_file=v2.json --version_2_with_negative --do_eval"
LONGER = "--num_train_epochs=20 --save_checkpoints_steps=20"
V2 = f"{BRIEF} --train_file=v2.json {EVAL} {LONGER}"
ASK_V1 = "--do_predict --predict_file=v1.json"
ASK = "--do_predict --predict_file=v2.json"
SEEDS = f"{V2} --num_seeds=2 --seed=5 --num_train_epochs=4 --save_checkpoints_steps=8"
# google-research/bert's README, with all flags there are.
ORIGINAL = (
    "--vocab_file=model/vocab.txt --bert_config_file=model/bert_config.json "
    "--init_checkpoint=original/model.ckpt-7 --do_train=False --train_file=v1.json "
    "--do_predict=True --predict_file=v1.json --train_batch_size=12 "
    "--learning_rate=3e-5 --num_train_epochs=2.0 --max_seq_length=48 --doc_stride=20 "
    "--max_query_length=24 --predict_batch_size=3 --n_best_size=5 "
    "--max_answer_length=9 --do_lower_case=True --use_tpu=False --master= "
    "--num_tpu_cores=8 --verbose_logging=False --version_2_with_negative=False "
    "--save_checkpoints_steps=1000 --iterations_per_loop=1000 --warmup_proportion=0.1"
)

FIRST = {
    "v1": f"{V1} {ASK_V1} --max_answer_length=9",
    "v2": f"{V2} --do_predict",
    "seeds": f"{SEEDS} --do_predict",
    "last": f"{V1} --num_train_epochs=2",
}
LATER = {
    "v2": FIRST["v2"],
    "alone": f"{ASK} --init_checkpoint=v2",
    "alone-v1": f"{ASK_V1} --init_checkpoint=v1 --max_answer_length=9",
    "asked": "--do_predict --predict_file=asked.json --init_checkpoint=v2",
    "always": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=1e6",
    "never": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=-1e6",
    "zero": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=0",
    "ensemble": f"{ASK} --ensemble_dirs=v2,seeds",
    "one": f"{ASK} --ensemble_dirs=v2",
    "original": ORIGINAL,
}
# Flags beside `V1` -> words of the error, in any order.
BAD_V1 = {
    "--output_dir=": "--output_dir",
    "--train_file=": "--train_file",
    "--train_file=gone.json": "--train_file … gone.json",
    "--train_file=model": "--train_file … directory",
    "--train_file=empty.json": "empty.json is no SQuAD file",
    "--train_file=cut.json": "cut.json is no SQuAD file: line 1 … cut off",
    "--train_file=cut.json.gz": "cut.json.gz cannot be read",
    "--train_file=list.json": 'list.json is no SQuAD file … "data"',
    "--train_file=deep.json": "deep.json is no SQuAD file … nested",
    "--train_file=huge.json": "huge.json",
    "--train_file=none.json": "none.json has no questions to train on",
    "--train_file=two.json": "q0 … 2 answers … exactly one",
    "--train_file=v2.json": "question 3 (id q2) … --version_2_with_negative",
    "--train_file=v1.json --version_2_with_negative": 'q0 … no "is_impossible"',
    "--train_file=asked.json": 'q0 … no "answers"',
    "--train_file=blank.json --version_2_with_negative": "blank.json",
    "--do_eval": "--predict_file",
    "--do_predict": "--predict_file",
    "--do_eval --predict_file=gone.json": "--predict_file … gone.json",
    "--do_eval --predict_file=cut.json": "cut.json is no SQuAD file",
    "--do_eval --predict_file=asked.json": "asked.json have no answers",
    "--do_eval --predict_file=same.json": "q0 … id of another question",
    # Known before hours of training as well as after them.
    "--do_eval --predict_file=v2.json": "--version_2_with_negative",
    "--do_predict --predict_file=cut.json": "cut.json is no SQuAD file",
    "--do_predict --predict_file=v2.json": "--version_2_with_negative",
    "--ensemble_dirs=v1 --do_predict --predict_file=v1.json": "--ensemble_dirs",
    "--max_seq_length=65": "--max_seq_length is 65 … 64 tokens",
    "--max_seq_length=27": "27 … max_query_length 24 + 3",
    "--max_query_length=61": "64 … max_query_length 61 + 3",
    "--max_seq_length=4": "max_seq_length",
    "--doc_stride=0": "doc_stride",
    "--n_best_size=0": "n_best_size",
    "--max_answer_length=0": "max_answer_length",
    "--null_score_diff_threshold=low": "null_score_diff_threshold",
    "--null_score_diff_threshold=nan": "null_score_diff_threshold",
    "--learning_rate=nan": "--learning_rate … nan",
    "--train_batch_size=999": "999 … no update",
    "--num_seeds=2": "--num_seeds … --do_eval",
    "--early_stopping_patience=1": "--do_eval",
    "--stop_at_step=99": "--stop_at_step=99",
    "--n_best=3": "n_best",
    "--init_checkpoint=gone": "gone",
    "--init_checkpoint=": "--bert_config_file",
    "--vocab_file=gone.txt": "gone.txt",
    "--output_dir=v1.json": "--output_dir … v1.json",
    "--output_dir=model": "model holds a model",
    "--output_dir=v1 --max_answer_length=9 --seed=1": "seed 12345",
    "--output_dir=v2": "v2 holds a run with",
    "--output_dir=seeds": "seeds holds a model",
    "--output_dir=locked": "another process",
}
BAD_ALONE = {
    "--init_checkpoint=v2 --predict_file=v2.json": "--do_train … --do_predict",
    "--do_predict --init_checkpoint=v2": "--predict_file",
    f"{ASK} --output_dir= --init_checkpoint=v2": "--output_dir",
    ASK: "new-",
    f"{ASK} --init_checkpoint=gone": "gone",
    f"{ASK_V1} --init_checkpoint=model": "model is no fine-tuned … cls/squad/",
    f"{ASK} --init_checkpoint=classifier": "task.json … squad … 'classifier'",
    f"{ASK} --init_checkpoint=damaged": "damaged/task.json",
    f"{ASK} --init_checkpoint=astray": "not finite",
    f"{ASK} --init_checkpoint=v2 --max_seq_length=65": "65 … 64 tokens",
    f"{ASK} --init_checkpoint=v2 --max_query_length=61": "max_query_length 61",
    f"{ASK} --init_checkpoint=v2 --output_dir=v1.json": "--output_dir … v1.json",
    f"{ASK} --init_checkpoint=v2 --predict_file=cut.json": "cut.json is no SQuAD",
    f"{ASK} --init_checkpoint=v2 --predict_file=some.json": 'q3 … no "answers"',
    f"{ASK} --init_checkpoint=v1": "--version_2_with_negative",
    f"{ASK} --ensemble_dirs=v2,gone": "gone",
    f"{ASK} --ensemble_dirs=v2,model": "model is no fine-tuned",
    f"{ASK} --ensemble_dirs=v2,cased": "--ensemble_dirs … casing",
    f"{SEEDS} --output_dir=v1": "v1 holds another run",
}
BAD = {**{f"{V1} {more}": words for more, words in BAD_V1.items()}, **BAD_ALONE}


def write_files(folder):
    """Write the SQuAD files, good and bad ones."""
    mini = json.loads((MINI / "squad.json").read_text("utf-8"))
    shutil.copy(MINI / "squad.json", folder / "v2.json")

    def changed(name, change):
        content = copy.deepcopy(mini)
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for qa in list(paragraph["qas"]):
                    change(qa, paragraph)
        (folder / name).write_text(json.dumps(content))

    def version_1(qa, paragraph):
        if qa.pop("is_impossible"):
            paragraph["qas"].remove(qa)

    def blank(qa, paragraph):
        paragraph["context"] = " "
        qa.update(is_impossible=True, answers=[])

    changed("v1.json", version_1)
    changed("blank.json", blank)
    changed("asked.json", lambda qa, _: qa.pop("answers"))
    changed("some.json", lambda qa, _: qa["id"] == "q3" and qa.pop("answers"))
    changed("two.json", lambda qa, _: qa["answers"].extend(qa["answers"]))
    changed("same.json", lambda qa, _: qa.update(id="q0"))
    text = (folder / "v1.json").read_text()
    (folder / "v1.json.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "cut.json.gz").write_bytes(gzip.compress(text.encode())[:-20])
    for name, content in {
        "cut": text[:1000],
        "empty": "",
        "list": "[]",
        "none": '{"data": []}',
        "deep": "[" * 100_000,
        # More digits than Python turns into a number.
        "huge": text.replace("193", "1" * 5000),
    }.items():
        (folder / f"{name}.json").write_text(content)


def write_models(folder):
    """Write what runs start from, and fine-tuned models that nobody trained."""
    keras.utils.set_random_seed(1)
    task = SquadTask(64, 24, 24, Decoding(version_2_with_negative=True))
    astray = SpanModel(CONFIG)
    astray.cls.squad.output_bias.assign([np.nan, 0.0])
    labels = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 24)
    for name, model, lower, written in (
        ("model", PretrainingModel(CONFIG), True, None),
        ("original", SpanModel(CONFIG), True, None),
        ("astray", astray, True, task),
        ("damaged", SpanModel(CONFIG), True, task),
        ("cased", SpanModel(CONFIG), False, task),
        ("classifier", ClassificationModel(CONFIG, 2), True, labels),
    ):
        (folder / name).mkdir()
        model_directory.save(str(folder / name), model, str(tiny_model.VOCAB), lower)
        if written:
            write_task(str(folder / name), written, 7)
    (folder / "damaged" / "task.json").write_text('{"task": "squad"}')
    # As the original leaves it: weights alone, under their step.
    for path in list((folder / "original").iterdir()):
        if path.name.startswith("bert_model."):
            path.rename(
                path.with_name(path.name.replace("bert_model.ckpt", "model.ckpt-7"))
            )
        else:
            path.unlink()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """(folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("squad")
    write_files(folder)
    write_models(folder)
    return folder, first_runs("run_squad", FIRST, folder)


@pytest.fixture(scope="module")
def later(first):
    """(results of the later and the bad runs, contents of the folders before)."""
    folder, _ = first
    (folder / "locked").mkdir()
    with filelock.FileLock(folder / "locked" / ".lock"):
        return later_runs("run_squad", LATER, BAD, folder)


@pytest.mark.parametrize(
    "flags", list(BAD), ids=[flags.removeprefix(f"{V1} ") for flags in BAD]
)
def test_refused(first, later, flags):
    """And nothing was begun."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert "span accuracy" not in later[0][flags]["stdout"]
    assert not contents(new_of(first[0], BAD, flags))


@pytest.mark.parametrize("name", ["v1", "v2", "seeds", "model", "cased", "locked"])
def test_refusals_harm_nothing(first, later, name):
    """Nor does the same command again."""
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
    # 7 questions in batches of 4: 17 updates in 10 passes.
    assert task["global_step"] == 17
    assert "7 questions to train on, " in first[1]["v1"]["stdout"]
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
    # So what is answered scores as the best threshold promised.
    assert found["f1"] == found["best_f1"] == rows[best]["eval_best_f1"]
    predictions = read(out / "predictions.json")
    plain = metrics.evaluate_v2(gold(first, "v2.json"), predictions)
    assert {name: found[name] for name in plain} == plain
    assert set(read(out / "null_odds.json")) == set(predictions)


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
    assert task["null_score_diff_threshold"] == row["best_f1_thresh"]


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


def test_questions_without_answers(first, later):
    assert "Eval results" not in said(later, "asked")
    found = contents(first[0] / "asked")
    assert set(found) == {
        *("predictions.json", "nbest_predictions.json", "null_odds.json")
    }
    for name, content in found.items():
        assert content == later[1]["v2"][name]


def test_thresholds(first, later):
    """Of the command line; null odds are the same for all."""
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
    assert scores(folder / "zero")["best_f1"] == scores(folder / "v2")["best_f1"]


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
