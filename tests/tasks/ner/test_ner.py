"""Fine-tuning a tagger: `task.json`, scores, predictions, and runs that learn."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from killed_run import assert_same_bytes, killed_at
from marks import slow
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.checkpoints import any_format
from official_bert.checkpoints.initialize import load_weights
from official_bert.constants import IGNORED
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning.task_file import read_task, write_task
from official_bert.modeling import feature_based
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.features import pad_ner_features, tag_names
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.ner.sentences import word_sentence
from official_bert.tasks.ner.training import NerTask
from official_bert.tokenization.full import FullTokenizer
from official_bert.training import saving

# A narrow model learns quickly if its initial weights are larger than usual.
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.2)
TAGS = tag_names(["ANIMAL", "PLACE"])
TASK = NerTask(TAGS, 16)
FROZEN = dataclasses.replace(TASK, feature_based="weighted_sum_all")
OTHER = NerTask(TAGS, 20, 5, True, True, "concat_last_four")
TOKENIZER = FullTokenizer(str(tiny_model.VOCAB))
SETTINGS, START = fine_tuning_settings(), start_of(CONFIG)
WORDS = "the of in that is and on water her she one years found than".split()  # noqa: SIM905


@pytest.fixture(scope="module", autouse=True)
def narrow():
    """A BiLSTM that is trained in seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_based, "WIDTH", 24)
        yield


def corpus(count, seed):
    """Return documents of three sentences.

    Each sentence contains a horse, which may have several tokens, or a crust, which
    may have two words.
    """
    rng = np.random.default_rng(seed)
    names = [
        ("horse", "B-ANIMAL"),
        ("horsebook", "B-ANIMAL"),
        ("crust", "B-PLACE"),
        ("crust light", "B-PLACE I-PLACE"),
    ]
    documents = []
    for _ in range(count):
        document = []
        for _ in range(3):
            words = rng.choice(WORDS, rng.integers(2, 6)).tolist()
            tags = ["O"] * len(words)
            name, its_tags = names[rng.integers(len(names))]
            at = int(rng.integers(len(words) + 1))
            words[at:at], tags[at:at] = name.split(), its_tags.split()
            document.append(word_sentence(words, tags))
        documents.append(document)
    return documents


TRAIN, DEV = corpus(60, 1), corpus(12, 2)


def run(directory, task=TASK, train=TRAIN, dev=DEV, **changes):
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    features = ner.convert(task, train, TOKENIZER)
    job = ner.make_job(START, task, features, dev)
    return fine_tuning.fine_tune(tf.distribute.get_strategy(), job, settings)


@pytest.fixture(scope="module", params=[TASK, slow(FROZEN)], ids=["tuned", "frozen"])
def whole(request, tmp_path_factory):
    """Return (task, output directory, scores) of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole")
    return request.param, directory, run(directory, request.param)


def tensors(directory):
    with any_format.opened(str(directory)) as checkpoint:
        return checkpoint.tensors()


def json_of(path):
    return json.loads(path.read_text())


def tags_of(documents):
    return [[list(one.tags) for one in document] for document in documents]


@pytest.mark.parametrize("task", [TASK, FROZEN, OTHER, NerTask(("O", "B", "I"))])
def test_there_and_back(tmp_path, task):
    values = json.loads(json.dumps(task.to_dict()))
    assert NerTask.from_dict(values) == task
    write_task(str(tmp_path), task, 12)
    assert read_task(str(tmp_path), NerTask) == (task, 12)
    assert json_of(tmp_path / "task.json") == {
        "task": "ner",
        **values,
        "global_step": 12,
    }
    assert NerTask.from_dict(values | {"new": 1}) == task


def test_what_is_written():
    assert OTHER.to_dict() == {
        "tags": ["O", "B-ANIMAL", "I-ANIMAL", "B-PLACE", "I-PLACE"],
        "max_seq_length": 20,
        "doc_stride": 5,
        "one_sentence": True,
        "label_all_pieces": True,
        "feature_based": "concat_last_four",
    }
    assert OTHER.labels == ("ANIMAL", "PLACE")
    assert NerTask(("O", "B", "I")).labels == ("",)


def message_of(directory, values):
    (directory / "task.json").write_text(json.dumps(values))
    with pytest.raises(UserError) as caught:
        read_task(str(directory), NerTask)
    message = str(caught.value)
    assert "task.json is damaged" in message and message.endswith("train again.")
    return message


@pytest.mark.parametrize("name", [*OTHER.to_dict(), "global_step"])
def test_a_value_that_is_missing(tmp_path, name):
    values = {"task": "ner", **OTHER.to_dict(), "global_step": 7}
    del values[name]
    assert f"KeyError: '{name}'" in message_of(tmp_path, values)


@pytest.mark.parametrize(
    "change",
    [
        *({"max_seq_length": value} for value in (0, -1, None, "64", 64.0, [64])),
        *({"doc_stride": value} for value in (0, -1, "8", 8.0, [8], "", [])),
        *({"tags": value} for value in (None, "OB", {"O": 1, "B-X": 2}, [], ["O"])),
        *({"tags": ["O", value]} for value in ("X", "Z-X", "B-", "", 5, None, ["B"])),
        {"max_seq_length": True},
        {"tags": ["O", "B-X", "O"]},
        *({"one_sentence": value} for value in ("false", 0, None)),
        *({"label_all_pieces": value} for value in ("no", 1, None)),
        *({"feature_based": value} for value in ("first", "", 3, [], ["last"], True)),
        {"global_step": "many"},
        {"global_step": None},
    ],
    ids=str,
)
def test_a_value_that_is_damaged(tmp_path, change):
    message_of(tmp_path, {"task": "ner", **OTHER.to_dict(), "global_step": 7, **change})


def test_the_description_of_something_else(tmp_path):
    (tmp_path / "task.json").write_text('{"task": "squad"}')
    with pytest.raises(UserError, match="does not describe a ner.*'squad'"):
        read_task(str(tmp_path), NerTask)


def test_scores_by_hand():
    documents = [
        [word_sentence(["a", "b", "c"], ["B-X", "I-X", "O"])],
        [word_sentence(["d"], ["B-Y"]), word_sentence(["e", "f"], ["O", "B-X"])],
    ]
    found = [[["B-X", "O", "O"]], [["B-Y"], ["O", "O"]]]
    scores = ner.evaluate(documents, found)
    # Of three entities, two were predicted, one of them correctly.
    expected = {"precision": 1 / 2, "recall": 1 / 3, "f1": 0.4, "word_accuracy": 4 / 6}
    assert ner.row_of(scores) == pytest.approx(expected)
    assert list(scores.types) == ["X", "Y"] and scores.types["Y"].f1 == 1
    perfect = ner.row_of(ner.evaluate(documents, tags_of(documents)))
    assert set(perfect.values()) == {1.0}
    nothing = [[["O"] * 3], [["O"], ["O"] * 2]]
    row = ner.row_of(ner.evaluate(documents, nothing))
    assert row == {"f1": 0, "precision": 0, "recall": 0, "word_accuracy": 2 / 6}


def test_a_row_for_people():
    row = {"loss": 0.5, "token_accuracy": 0.75}
    assert ner.describe(row) == "loss 0.500  token accuracy 0.7500"
    row = {"f1": 0.5, "precision": 1, "recall": 1 / 3, "word_accuracy": 0.1}
    assert ner.describe(row) == "f1 0.5000  precision 1.0000  recall 0.3333"


def random_model(task, seed=0):
    keras.utils.set_random_seed(seed)
    model = ner.make_model(CONFIG, task)
    for variable in model.trainable_variables:
        if not variable.path.endswith(("gamma", "beta")):
            variable.assign(2 * tf.random.normal(variable.shape))
    return model


def predict(score, task, documents, batch_size=8):
    features = ner.convert(task, documents, TOKENIZER)
    return ner.predict(score, task, documents, features, batch_size)


@pytest.mark.parametrize("task", [TASK, FROZEN], ids=["tuned", "frozen"])
def test_predictions_are_those_of_single_windows(task):
    """Batches have no padding there, and the order of the documents stays."""
    task = dataclasses.replace(task, max_seq_length=9)
    model = random_model(task)
    documents = DEV[:3]
    features = ner.convert(task, documents, TOKENIZER)
    assert len(features) > 2 * len(documents)
    expected = [[[None] * len(one.words) for one in d] for d in documents]
    for one in features:
        batch = pad_ner_features([one], len(one.input_ids))
        best = model(batch)["logits"].numpy()[0].argmax(-1)
        for place, (sentence, word) in zip(one.positions, one.words, strict=True):
            expected[one.document][sentence][word] = TAGS[best[place]]
    score = ner.compile_model(model)
    for size in (1, 4, 100):
        assert predict(score, task, documents, size) == expected
    assert len({tag for d in expected for s in d for tag in s}) > 2


def test_it_breaks_off():
    answers = iter([False, True])
    job = ner.make_job(START, TASK, ner.convert(TASK, DEV, TOKENIZER), DEV)
    evaluate = job.dev_set.make_evaluate(random_model(TASK), 1)
    assert evaluate(lambda: next(answers)) is None


@pytest.mark.parametrize("task", [TASK, FROZEN], ids=["tuned", "frozen"])
def test_the_document_is_context(task):
    """Except if each sentence is read separately."""
    score = ner.compile_model(random_model(task))
    last = [document[-1] for document in DEV]
    before = [[word_sentence(["horse", "was"]), one] for one in last]
    others = [[word_sentence(["grand", "water", "over"]), one] for one in last]

    def tags(task, documents):
        return [document[-1] for document in predict(score, task, documents)]

    alone = dataclasses.replace(task, one_sentence=True)
    expected = tags(task, [[one] for one in last])
    assert tags(alone, before) == tags(alone, others) == expected
    assert tags(task, before) != tags(task, others)
    assert tags(task, before) != expected


def test_conversion_is_as_the_task_says():
    task = dataclasses.replace(TASK, max_seq_length=32)
    documents = [[word_sentence(["horsebook", "was"], ["B-ANIMAL", "O"])], DEV[0]]
    first = ner.convert(task, documents, TOKENIZER)
    assert first[0].label_ids.tolist() == [IGNORED, 1, IGNORED, 0, IGNORED]
    every = dataclasses.replace(task, label_all_pieces=True)
    (whole, _) = ner.convert(every, documents, TOKENIZER)
    assert whole.label_ids.tolist() == [IGNORED, 1, 1, 0, IGNORED]
    assert whole.input_ids.tolist() == first[0].input_ids.tolist()
    alone = dataclasses.replace(task, one_sentence=True)
    assert len(ner.convert(alone, documents, TOKENIZER)) == 4
    narrow = dataclasses.replace(task, max_seq_length=7)
    closer = dataclasses.replace(narrow, doc_stride=1)
    counts = [len(ner.convert(one, documents, TOKENIZER)) for one in (narrow, closer)]
    assert counts[0] < counts[1]
    assert all(len(one.input_ids) <= 7 for one in ner.convert(narrow, DEV, TOKENIZER))


def test_it_learns(whole):
    assert whole[2]["f1"] > 0.9
    assert set(whole[2]) == {"global_step", *ner.METRICS, "word_accuracy"}


def test_the_best_model_is_left(whole):
    task, directory, row = whole
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    scores = {r["step"]: r["eval_f1"] for r in rows if "eval_f1" in r}
    assert list(scores) == [20, 40, 60]
    best = row["global_step"]
    assert scores[best] == max(scores.values()) == row["f1"]
    assert set(json_of(directory / saving.BEST_FILE)) == {"step", "f1"}
    assert read_task(str(directory), NerTask) == (task, best)
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{best}"))
    for name, value in tensors(directory).items():
        np.testing.assert_array_equal(value, reader.get_tensor(name))


def test_it_is_a_model_that_answers(whole):
    """Its predictions equal the run's evaluation."""
    task, directory, row = whole
    predictor = NerPredictor(str(directory))
    assert (predictor.task, predictor.global_step) == (task, row["global_step"])
    found = ner.row_of(
        ner.evaluate(DEV, predictor.outputs(DEV, predictor.features(DEV)))
    )
    assert found == {name: row[name] for name in found}
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        assert (directory / name).exists()


@pytest.mark.slow
def test_killed_and_started_again_it_ends_the_same(whole, tmp_path, monkeypatch):
    task, directory, row = whole
    killed_at(50, lambda: run(tmp_path, task), monkeypatch)
    assert run(tmp_path, task) == row
    assert_same_bytes(tensors(tmp_path), tensors(directory))


@pytest.mark.slow
def test_other_windows_or_tags_are_another_run(tmp_path):
    run(tmp_path, num_train_steps=20)
    with pytest.raises(UserError, match="windows_crc32"):
        run(tmp_path, train=TRAIN[1:] + TRAIN[:1], num_train_steps=20)
    with pytest.raises(UserError, match="windows_crc32"):
        run(
            tmp_path, dev=DEV[1:] + DEV[:1], num_train_steps=20
        )  # The same number of windows.
    with pytest.raises(UserError, match="windows_crc32|num_dev_windows"):
        run(tmp_path, dev=DEV[1:], num_train_steps=20)
    other = dataclasses.replace(TASK, tags=(*TAGS[:3], "B-ROAD", "I-ROAD"))
    with pytest.raises(UserError, match="task: tags"):
        run(tmp_path, other, roads(TRAIN), roads(DEV), num_train_steps=20)


def roads(documents):
    """Return documents with roads instead of places."""
    return [
        [
            word_sentence(s.words, [t.replace("PLACE", "ROAD") for t in s.tags])
            for s in d
        ]
        for d in documents
    ]


def test_without_a_dev_set_the_last_model_is_left(tmp_path):
    """It contains the frozen encoder of the initial checkpoint."""
    start = tiny_model.write(tmp_path / "start")
    directory = tmp_path / "run"
    settings = {"init_checkpoint": str(start), "num_train_steps": 10}
    assert run(directory, FROZEN, dev=None, **settings) == {"global_step": 10}
    assert not load_weights(ner.make_model(CONFIG, FROZEN), str(directory)).new
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").open()]
    assert rows and not any("eval_f1" in row for row in rows)
    before, after = tiny_model.tensors(), tensors(directory)
    encoder = [name for name in after if name.startswith("bert/")]
    assert len(encoder) > 20
    for name in encoder:
        assert after[name].tobytes() == before[name].tobytes(), name
