"""Training embeddings on a tiny task learns, resumes, and predicts."""

import json

import numpy as np
import pytest
from embedding_runs import CONFIG, START, TOPICS, make_job, pairs, run
from killed_run import assert_same_bytes, killed_at

from official_bert.checkpoints import any_format
from official_bert.errors import UserError
from official_bert.modeling.embedding.losses import LossSettings
from official_bert.tasks.embedding.files import EmbeddingExample
from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.predictor import Predictor

TRAIN, DEV = pairs(96, 1), pairs(40, 2)
TASK = EmbeddingTask(32, size=8, metrics=("mrr_at_10",))
SHORT = {"num_train_steps": 40}
TEXTS = ["the horse was on water", "", "crust " * 50]


def trained(directory, **changes):
    return run(directory, TRAIN, DEV, TASK, **{**SHORT, **changes})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return (output directory, scores) of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole")
    return directory, trained(directory)


@pytest.fixture(scope="module")
def predictor(whole):
    return EmbeddingPredictor(str(whole[0]))


def tensors(directory):
    with any_format.opened(directory) as checkpoint:
        return checkpoint.tensors()


def test_it_learns(whole):
    rows = [json.loads(line) for line in (whole[0] / "metrics.jsonl").open()]
    losses = [row["embedding_loss"] for row in rows if "embedding_loss" in row]
    assert losses[-1] < 0.6 * losses[0]
    scores = [row["eval_mrr_at_10"] for row in rows if "eval_mrr_at_10" in row]
    assert whole[1]["mrr_at_10"] == max(scores) > 0.4


def test_task_json(whole):
    task = json.loads((whole[0] / "task.json").read_text())
    assert task == {
        "task": "embedding",
        "max_seq_length": 32,
        "pooling": "mean",
        "normalize": True,
        "size": 8,
        "long_text": "truncate",
        "metrics": ["mrr_at_10", "recall_at_1", "recall_at_10", "ndcg_at_10"],
        "global_step": whole[1]["global_step"],
    }


def test_killed_and_started_again_it_ends_the_same(whole, tmp_path, monkeypatch):
    """Also with dropout, because masks are functions of the step."""
    killed_at(30, lambda: trained(tmp_path), monkeypatch)
    assert not (tmp_path / "task.json").exists()
    assert trained(tmp_path) == whole[1]
    assert_same_bytes(tensors(tmp_path), tensors(whole[0]))


def test_other_losses_are_another_run(whole):
    others = {
        "temperature 0.05, and now it is 0.1": LossSettings("info_nce", 0.1),
        "symmetric True, and now it is False": LossSettings("info_nce", 0.05, False),
        "examples_crc32": LossSettings("simcse"),
    }
    for words, loss in others.items():
        with pytest.raises(UserError, match=words):
            run(whole[0], TRAIN, DEV, TASK, loss, **SHORT)


def test_vectors(predictor):
    found = predictor.vectors(TEXTS)
    assert found.shape == (3, 8) and found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    for text, vector in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(predictor.vectors([text])[0], vector, atol=1e-5)
    assert predictor.vectors([]).shape == (0, 8)
    cosines = predictor.similarity(TEXTS, TEXTS[:2])
    np.testing.assert_allclose(cosines, found @ found[:2].T, atol=1e-5)


def test_results_of_texts_and_pairs(predictor):
    vector, cosine = predictor.predict_all([TEXTS[0], (TEXTS[0], TEXTS[2])])
    np.testing.assert_allclose(vector, predictor.vectors(TEXTS[:1])[0], atol=1e-5)
    assert cosine == pytest.approx(predictor.similarity(*[[t] for t in TEXTS[::2]])[0])
    row = predictor.to_json(TEXTS[0], vector)
    assert row == {"text": TEXTS[0], "vector": [round(float(v), 6) for v in vector]}
    row = predictor.to_json(("a", "b"), cosine)
    assert row == {"text": "a", "text_b": "b", "similarity": round(cosine, 6)}


@pytest.mark.parametrize(
    ("texts", "words"), [("a", "into a list"), ([1], "Text 0 is 1, which is not a str")]
)
def test_what_is_not_a_text(predictor, texts, words):
    with pytest.raises(TypeError, match=words):
        predictor.vectors(texts)
    with pytest.raises(TypeError, match="not a str or a pair"):
        predictor.predict_all([None])


def test_any_program_can_use_it(whole, predictor):
    found = Predictor(str(whole[0]))
    assert found.task == predictor.task
    np.testing.assert_allclose(
        found.vectors(TEXTS), predictor.vectors(TEXTS), atol=1e-6
    )
    assert found.similarity(TEXTS, TEXTS).shape == (3, 3)


def test_windows_are_averaged(whole):
    task = EmbeddingTask(12, long_text="window")
    windows = EmbeddingPredictor(str(whole[0]), task=task)
    cut = EmbeddingPredictor(str(whole[0]), task=EmbeddingTask(12))
    words = ["horse"] * 15
    # Windows of 10 tokens start at 0 and 5.
    parts = cut.vectors([" ".join(words[:10]), " ".join(words[5:])])
    mean = parts.mean(0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(
        windows.vectors([" ".join(words)])[0], expected, atol=1e-5
    )
    same = windows.vectors(["the horse"]), cut.vectors(["the horse"])
    np.testing.assert_allclose(*same, atol=1e-6)


def test_texts_of_a_batch_are_as_many_as_the_set_has():
    train_set = make_job(TASK, LossSettings("info_nce"), TRAIN).train_set
    (batch,) = train_set.training_batches(4, 1, 0).take(1)
    assert batch["input_ids"].shape[:2] == (4, 2) and batch["scores"].shape == (4,)
    assert (batch["text_mask"].numpy() == 1).all()


def test_tokens_of_all_texts_count():
    """The number decides whether a run is long enough for compiled kernels."""
    train = [
        EmbeddingExample(0, ("the horse", "on")),
        EmbeddingExample(1, ("on", "on")),
    ]
    train_set = make_job(TASK, LossSettings("info_nce"), train).train_set
    # Each text has [CLS] and [SEP].
    assert train_set.tokens_per_row == (4 + 3 + 3 + 3) / 2


def test_windows_of_a_training_batch():
    """Each text gets the mean of its own windows; the number of rows may vary."""
    task = EmbeddingTask(12, long_text="window")
    long, short = " ".join(["horse"] * 15), "the horse"
    train = [
        EmbeddingExample(0, (short, long, short)),
        EmbeddingExample(1, (short, "on water")),
    ]
    train_set = make_job(task, LossSettings("info_nce"), train).train_set
    batches = {
        tuple(batch["input_ids"].shape): batch
        for batch in train_set.training_batches(1, 1, 0).take(2)
    }
    assert set(batches) == {(1, 4, 12), (1, 2, 12)}
    weights = batches[1, 4, 12]["window_weights"][0].numpy()
    halves = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(weights, halves)
    # The shorter example has no third text.
    weights = batches[1, 2, 12]["window_weights"][0].numpy()
    np.testing.assert_array_equal(weights, [[1, 0], [0, 1], [0, 0]])


def test_training_vectors_equal_those_of_the_predictor(whole):
    task = EmbeddingTask(12, long_text="window")
    texts = (" ".join(TOPICS * 3), "the horse")
    train = [EmbeddingExample(0, texts)]
    (batch,) = (
        make_job(task, LossSettings("info_nce"), train)
        .train_set.training_batches(1, 1, 0)
        .take(1)
    )
    predictor = EmbeddingPredictor(str(whole[0]), task=task)
    found = predictor.model(batch)["vectors"][0].numpy()
    found /= np.linalg.norm(found, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, predictor.vectors(texts), atol=1e-5)


def test_windows_train_and_resume(tmp_path, monkeypatch):
    """A text's second half decides its pair, so cutting it off would not learn."""
    task = EmbeddingTask(12, long_text="window")
    filler = "the of in that is and on than be was "
    train, dev = (
        [
            EmbeddingExample(one.guid, tuple(filler + text for text in one.texts))
            for one in some
        ]
        for some in (TRAIN, DEV)
    )
    settings = {"task": task, "num_train_steps": 40}
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    scores = run(tmp_path / "whole", train, dev, **settings)
    rows = [json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").open()]
    losses = [row["embedding_loss"] for row in rows if "embedding_loss" in row]
    assert losses[-1] < 0.8 * losses[0]
    killed_at(30, lambda: run(tmp_path / "killed", train, dev, **settings), monkeypatch)
    assert run(tmp_path / "killed", train, dev, **settings) == scores
    assert_same_bytes(tensors(tmp_path / "killed"), tensors(tmp_path / "whole"))


def test_simcse_trains_each_text_with_itself():
    (row,) = make_job(TASK, LossSettings("simcse"), TRAIN[:1]).train_set.features
    assert len(row.rows) == 2 and row.numbers == (0, 0)
    np.testing.assert_array_equal(row.rows[0].input_ids, row.rows[1].input_ids)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"pooling": "max"}, "pooling is 'max'"),
        ({"size": 0}, "size is 0"),
        ({"max_seq_length": 2}, "max_seq_length"),
        ({"max_seq_length": 4, "long_text": "window"}, "max_seq_length"),
        ({"long_text": "skip"}, "long_text is 'skip'"),
        ({"normalize": "yes"}, "normalize is 'yes'"),
        ({"metrics": []}, "metrics"),
    ],
)
def test_what_is_not_a_task(changes, word):
    assert EmbeddingTask.from_dict(TASK.to_dict()) == TASK
    with pytest.raises(ValueError, match=word):
        EmbeddingTask.from_dict({**TASK.to_dict(), **changes})


def test_a_vector_cannot_be_longer_than_the_model_s(whole):
    task = EmbeddingTask(32, size=CONFIG.hidden_size + 1)
    with pytest.raises(UserError, match="Choose a smaller size"):
        EmbeddingPredictor(str(whole[0]), task=task)
    assert START.config.hidden_size == CONFIG.hidden_size
