"""`evaluate_squad.py` from the command line: published scores, and bad files."""

import gzip
import json
import math
import os
import subprocess
import sys

import pytest
from places import ROOT, SHARED
from script_runs import assert_refused, run_many

# Two questions with an answer, two without.
QUESTIONS = {"a": ["Paris", "the city of Paris"], "b": ["1895"], "c": [], "d": []}
ANSWERS = {"a": "Paris, city", "b": "1895", "c": "", "d": "no"}
NULL_ODDS = {"a": -2.5, "b": 3, "c": 1.5, "d": -1.0}
# The best non-empty texts.
NON_NULL = {**ANSWERS, "c": "none"}

V1 = "--data_file=v1.json --predictions=answers.json"
V2 = "--data_file=v2.json --predictions=answers.json"
ODDS = "--data_file=v2.json --predictions=non_null.json --null_odds=odds.json"
PUBLISHED = {
    "bert-ensemble-v1.1": ("dev-v1.1", {"exact_match": 86.20624, "f1": 92.19558}),
    "logreg-v1.1": ("dev-v1.1", {"exact_match": 40.1419, "f1": 50.9815}),
    "bert-single-v2.0": ("dev-v2.0-restored", {"exact": 78.74168, "f1": 81.77528}),
    "bidaf-v2.0": ("dev-v2.0-restored", {"exact": 65.7037, "f1": 67.8765}),
    "nlnet-v2.0": ("dev-v2.0-restored", {"exact": 75.8275, "f1": 78.7778}),
}
GOOD = {
    "v1": V1,
    "gzip": "--data_file=v1.json.gz --predictions=answers.json",
    "v1 as 2": f"{V1} --version_2_with_negative",
    "v2": V2,
    "odds": ODDS,
    "threshold": f"{ODDS} --null_score_diff_threshold=0",
    "nbest": f"{V2} --null_odds=odds.json --nbest_predictions=nbest.json",
    "nbest threshold": f"{V2} --null_odds=odds.json --nbest_predictions=nbest.json "
    "--null_score_diff_threshold=0",
    "taken": "--data_file=v2.json --predictions=taken.json --null_odds=odds.json",
    "some": "--data_file=v1.json --predictions=some.json",
    "some of v2": "--data_file=v2.json --predictions=some.json",
}
# Complete commands -> words of the error, in any order.
BAD = {
    "": "--dev_file",
    "--data_file=v1.json": "--predictions",
    "--predictions=answers.json": "--dev_file",
    "--data_file=gone.json --predictions=answers.json": "--dev_file … gone.json",
    "--data_file=. --predictions=answers.json": "--dev_file … directory",
    "--data_file=answers.json --predictions=answers.json": 'answers.json … "data"',
    "--data_file=cut.json --predictions=answers.json": "cut.json … line 1",
    "--data_file=cut.json.gz --predictions=answers.json": "cut.json.gz",
    "--data_file=none.json --predictions=answers.json": "no question",
    "--data_file=asked.json --predictions=answers.json": "asked.json has no answers",
    "--data_file=half.json --predictions=answers.json": '(id b) has no "answers"',
    "--data_file=twice.json --predictions=answers.json": "id of another question",
    "--data_file=bytes.json --predictions=answers.json": "bytes.json is not UTF-8",
    "--data_file=v1.json --predictions=gone.json": "--predictions … gone.json",
    "--data_file=v1.json --predictions=.": "--predictions … directory",
    "--data_file=v1.json --predictions=cut.json": "cut.json is not … line 1",
    "--data_file=v1.json --predictions=list.json": "list.json … not a JSON object",
    "--data_file=v1.json --predictions=bytes.json": "bytes.json … UTF-8",
    "--data_file=v1.json --predictions=numbers.json": "numbers.json has 5 … b",
    "--data_file=v1.json --predictions=nbest.json": "nbest.json has … a",
    # A message shows the start and the end of a long value.
    "--data_file=v1.json --predictions=long.json": "['xxxxxxxxxxxx...xxx … b",
    "--data_file=v1.json --predictions=deep.json": "deep.json",
    "--data_file=v1.json --predictions=huge.json": "huge.json",
    "--data_file=v2.json --predictions=other.json": "No question has a prediction",
    f"{V1} --null_odds=odds.json": "--null_odds … SQuAD 2.0",
    # The flag would have no effect, without the user noticing.
    f"{V1} --null_score_diff_threshold=0": "--null_score_diff_threshold",
    f"{V2} --null_score_diff_threshold=0": "--null_score_diff_threshold … --null_odds",
    f"{ODDS} --null_score_diff_threshold=nan": "--null_score_diff_threshold",
    f"{ODDS} --null_score_diff_threshold=low": "null_score_diff_threshold",
    f"{V1} --nbest_predictions=nbest.json": "--nbest_predictions … SQuAD 2.0",
    f"{V2} --nbest_predictions=nbest.json": "--nbest_predictions … --null_odds",
    f"{V2} --null_odds=odds.json --nbest_predictions=answers.json": "answers.json … a",
    f"{V2} --null_odds=odds.json --nbest_predictions=bare.json": 'b without a "text"',
    f"{V2} --null_odds=gone.json": "--null_odds … gone.json",
    f"{V2} --null_odds=answers.json": "answers.json has 'Paris, city' … a",
    f"{V2} --null_odds=some_odds.json": "1 questions … no null odds: d",
    f"{V2} --null_odds=nan.json": "nan.json has nan",
    f"{V2} --null_odds=inf.json": "inf.json has -inf … b",
    f"{V2} --null_odds=digits.json": "digits.json has -1000 … b",
    f"{V2} --null_odds=true.json": "true.json has True … b",
    f"{V2} --null_odds=odds.json --nbest_predictions=few.json": "few.json lacks",
    f"{V2} --noversion_2_with_negative": "Question c … --version_2_with_negative",
    f"{V2} --prediction=answers.json": "prediction",
}


def squad_file(questions):
    """Return the text of a SQuAD file; None means a question without `answers`."""
    qas = [
        {"id": qas_id, "question": "?"}
        | ({} if texts is None else {"answers": [{"text": one} for one in texts]})
        for qas_id, texts in questions
    ]
    paragraph = {"context": "of Paris in 1895", "qas": qas}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]})


def write_files(folder):
    of_v1 = [(key, texts) for key, texts in QUESTIONS.items() if texts]
    text = squad_file(of_v1)
    for name, content in {
        "v1": text,
        "v2": squad_file(QUESTIONS.items()),
        "none": '{"data": []}',
        "asked": squad_file([("a", None), ("b", None)]),
        "half": squad_file([("a", ["Paris"]), ("b", None)]),
        "twice": squad_file([*of_v1, of_v1[0]]),
        "cut": text[:60],
        "list": "[]",
        "deep": "[" * 100_000,
        # More digits than Python converts to a number.
        "huge": f'{{"a": {"1" * 5000}}}',
        "answers": json.dumps(ANSWERS | {"z": "nobody asked"}),
        "non_null": json.dumps(NON_NULL),
        "taken": json.dumps(NON_NULL | {"a": "", "c": ""}),
        "some": json.dumps({"b": "1895"}),
        "other": json.dumps({"z": "1895"}),
        "numbers": json.dumps(ANSWERS | {"b": 5}),
        "long": json.dumps(ANSWERS | {"b": ["x" * 20_000]}),
        "nbest": json.dumps(
            {
                key: [{"text": each} for each in ("", text, "another")]
                for key, text in NON_NULL.items()
            }
        ),
        "bare": json.dumps({"a": [{"text": "Paris"}], "b": [{"score": 1}]}),
        "odds": json.dumps(NULL_ODDS),
        "some_odds": json.dumps({k: v for k, v in NULL_ODDS.items() if k != "d"}),
        "few": json.dumps({"a": [{"text": "Paris"}]}),
        "inf": json.dumps(NULL_ODDS | {"b": -math.inf}),
        "digits": json.dumps(NULL_ODDS | {"b": -(10**400)}),
        "true": json.dumps(NULL_ODDS | {"b": True}),
        "nan": json.dumps(NULL_ODDS | {"b": float("nan")}),
    }.items():
        (folder / f"{name}.json").write_text(content)
    (folder / "bytes.json").write_bytes(b'{"a": "\xff"}')
    packed = gzip.compress(text.encode())
    (folder / "v1.json.gz").write_bytes(packed)
    (folder / "cut.json.gz").write_bytes(packed[:-20])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    commands = {**GOOD, **dict.fromkeys(BAD, None)}
    runs = {
        name: {"arguments": (flags if flags is not None else name).split()}
        for name, flags in commands.items()
    }
    before = sorted(os.listdir(folder))
    found = run_many("evaluate_squad", runs, folder)
    assert sorted(os.listdir(folder)) == before
    return found


@pytest.mark.parametrize("flags", list(BAD), ids=str)
def test_refused(results, flags):
    assert_refused(results[flags], BAD[flags].split(" … "))
    assert results[flags]["stdout"] == ""


def scores(results, name):
    """Return the printed scores; the output must be only JSON."""
    assert results[name]["status"] == 0, results[name]["stderr"]
    return json.loads(results[name]["stdout"])


def test_version_1(results):
    """ "Paris, city" scores 4/5 against "the city of Paris"."""
    expected = {"exact_match": 50.0, "f1": pytest.approx(90)}
    assert scores(results, "v1") == expected
    assert scores(results, "gzip") == expected
    assert results["v1"]["stderr"] == ""


def test_version_2(results):
    assert scores(results, "v2") == {
        "exact": 50.0,
        "f1": pytest.approx(100 * 2.8 / 4),
        "total": 4,
        "HasAns_exact": 50.0,
        "HasAns_f1": pytest.approx(90),
        "HasAns_total": 2,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }
    assert {"exact", "f1", "HasAns_f1"} < set(scores(results, "v1 as 2"))


def test_the_best_threshold(results):
    """Sorted by odds: +0.8 (a), -1 (d), -1 (c), +1 (b), starting from 2."""
    found = scores(results, "odds")
    assert found["best_f1"] == pytest.approx(70) and found["best_f1_thresh"] == -2.5
    assert found["best_exact"] == 50 and found["best_exact_thresh"] == 0.0
    assert found["NoAns_exact"] == 0


def test_the_best_threshold_of_the_n_best(results):
    """The threshold is that of the texts; other scores are those of the predictions."""
    best = {k: v for k, v in scores(results, "odds").items() if k.startswith("best")}
    assert scores(results, "nbest") == scores(results, "v2") | best
    assert results["nbest"]["stderr"] == ""
    assert scores(results, "nbest threshold") == scores(results, "threshold")


def test_texts_that_a_threshold_has_taken_are_missed(results, folder, tmp_path):
    """Without the text of a, an empty answer scores better than any answer."""
    found = scores(results, "taken")
    done = run_alone(folder, tmp_path, GOOD["taken"])
    assert json.loads(done.stdout) == found
    assert found["best_f1"] == 50 and scores(results, "nbest")["best_f1"] > 69
    words = "2 of 4 predictions are empty, so no threshold can restore their answers. "
    assert done.stderr == f"{words}Give --nbest_predictions, which contains them.\n"


def test_a_threshold(results):
    """Only a and d are below 0."""
    found = scores(results, "threshold")
    assert found["f1"] == pytest.approx(100 * 1.8 / 4) and found["exact"] == 25
    assert found["HasAns_f1"] == pytest.approx(40) and found["NoAns_f1"] == 50
    assert found["best_f1"] == scores(results, "odds")["best_f1"]


def run_alone(folder, place, flags):
    """Run the script without TensorFlow, which it does not need."""
    (place / "tensorflow.py").write_text("raise ImportError")
    script = str(ROOT / "run_scripts" / "evaluate_squad.py")
    return subprocess.run(
        [sys.executable, script, *flags.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(place)},
    )


def test_questions_without_a_prediction(results, folder, tmp_path):
    assert scores(results, "some") == {"exact_match": 50.0, "f1": 50.0}
    assert scores(results, "some of v2")["total"] == 1
    for name, words in {
        "some": "1 of 2 questions have no prediction, they score 0: a.\n",
        "some of v2": "3 of 4 questions have no prediction, they are left out of the "
        "scores: a, c, d.\n",
    }.items():
        done = run_alone(folder, tmp_path, GOOD[name])
        assert done.returncode == 0 and done.stderr == words
        assert done.stdout == results[name]["stdout"]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    if not SHARED.is_dir():
        pytest.skip("the large recordings (../shared) are not on this machine")
    runs = {
        name: {
            "arguments": [
                f"--data_file={SHARED}/data/squad/{data}.json",
                f"--predictions={SHARED}/golden/squad_official_scores/{name}.json",
            ]
        }
        for name, (data, _) in PUBLISHED.items()
    }
    return run_many("evaluate_squad", runs, tmp_path_factory.mktemp("published"))


@pytest.mark.comparison
@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_predictions(published, name):
    """The command detects the version from the file."""
    found = scores(published, name)
    assert set(PUBLISHED[name][1]) <= set(found)
    for key, value in PUBLISHED[name][1].items():
        assert found[key] == pytest.approx(value, abs=1e-4), key
