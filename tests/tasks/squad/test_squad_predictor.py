"""Answers have correct offsets and scores; bad arguments are rejected."""

import concurrent.futures
import dataclasses
import json
import time

import keras
import numpy as np
import pytest
import tiny_model

from official_bert import Predictor
from official_bert.checkpoints import convert, google, model_directory, names
from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export import sources
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import features as squad_features
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.predictor import Answer, SquadPredictor
from official_bert.tasks.squad.training import SquadTask

ALWAYS = SquadTask(32, 10, 8, Decoding(max_answer_length=6))
MAY_NOT = SquadTask(
    32, 10, 8, Decoding(max_answer_length=6, version_2_with_negative=True)
)
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.3)
MINI = "The light over the water was one of years. She found the logbook in it."
CONTEXTS = [
    MINI,
    "Children of Łąka-sur-Mer, naïve e\u0301te\u0301 & très\u00a0rapides!\n\tİstanbul",
    "👩\u200d👩 wrote 😀😀 to 王老师，她的 lighthouse: 3.75 m (±0.05)",
    "שָׁלוֹם the water \u200fمُحَمَّد was here, \u202eover\u202c grand",
    "\u2028one \u00ad two\r\n\r\n three\u202ffour",
    "word",
]
QUESTIONS = ["Who found it?", "王老师?", "", "how " * 30]


def write(directory, task=MAY_NOT, seed=0, config=CONFIG):
    """Write a fine-tuned model; return its directory as a str."""
    directory.mkdir(exist_ok=True)
    keras.utils.set_random_seed(seed)
    model = SpanModel(config)
    model_directory.save(str(directory), model, str(tiny_model.VOCAB), True)
    write_task(str(directory), task, 7)
    return str(directory)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("predictor") / "squad")


@pytest.fixture(scope="module")
def predictor(path):
    return SquadPredictor(path)


@pytest.fixture(scope="module")
def always(tmp_path_factory):
    """A model that always answers."""
    folder = tmp_path_factory.mktemp("predictor") / "always"
    return SquadPredictor(write(folder, ALWAYS))


@pytest.fixture(scope="module")
def never(tmp_path_factory):
    """A model whose threshold removes all answers."""
    decoding = dataclasses.replace(MAY_NOT.decoding, null_score_diff_threshold=-1e9)
    folder = tmp_path_factory.mktemp("predictor") / "never"
    return SquadPredictor(
        write(folder, dataclasses.replace(MAY_NOT, decoding=decoding))
    )


def example_of(context):
    return squad_files.make_example("who ?", context)


def assert_same(left, right):
    assert [(a.start, a.end) for a in left] == [(a.start, a.end) for a in right]
    for name in ("score", "probability"):
        np.testing.assert_allclose(
            *([getattr(one, name) for one in each] for each in (left, right)),
            rtol=1e-4,
            atol=1e-5,
        )


def test_task_json_says_what_answers(path, tmp_path):
    found = Predictor(path)
    assert type(found.task_predictor) is SquadPredictor
    assert found.task == found.task_predictor.task == MAY_NOT
    assert (
        found.task_predictor.global_step == 7 and found.task_predictor.batch_size == 32
    )
    assert_same(
        [found.predict("Who?", MINI)], [SquadPredictor(path).predict("Who?", MINI)]
    )
    folder = tmp_path / "classifier"
    folder.mkdir()
    model = ClassificationModel(CONFIG, 2)
    model_directory.save(str(folder), model, str(tiny_model.VOCAB), True)
    task = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 24)
    write_task(str(folder), task, 3)
    found = Predictor(str(folder))
    assert type(found.task_predictor) is ClassifierPredictor and found.task == task
    assert found.predict(["the light"])[0].label in ("no", "yes")


@pytest.mark.parametrize("text", ['{"task": "ner"}', '{"task": null}', "{}", "{", "[]"])
def test_a_task_that_nobody_answers_for(tmp_path, text):
    path = write(tmp_path / "model")
    (tmp_path / "model" / "task.json").write_text(text)
    with pytest.raises(UserError, match=r"task\.json") as caught:
        Predictor(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_in_its_place(always, question, context):
    found = always.predict(question, context)
    assert isinstance(found, Answer)
    assert found.text == context[found.start : found.end] != ""
    assert found.text.strip() == found.text
    assert found.null_score is None and 0 < found.probability <= 1
    assert {type(v) for v in (found.score, found.probability)} == {float}
    json.dumps(dataclasses.asdict(found))


def test_every_place_can_be_an_answer(always):
    """The logits of each token are the largest once."""
    for context in CONTEXTS[1:5]:
        example = example_of(context)
        features = always.features([example])
        (first, *_) = features
        seen = set()
        for place in np.flatnonzero(first.token_is_max_context):
            logits = [np.full(len(one.input_ids), -5.0) for one in features]
            logits[0][place] = 9.0
            (one,) = always.outputs([example], features, (logits, logits))
            answer = one.answer
            text = context[answer.start : answer.end]
            assert text and answer.start < answer.end
            seen.add((answer.start, answer.end))
        assert len(seen) > 5


def test_scores_are_those_of_the_logits(predictor, always):
    """The model's two columns for one window give the scores by hand."""
    context = "the light over the water"
    example = example_of(context)
    (window,) = features = always.features([example])
    (start,), (end,) = always.logits(features)
    places = np.flatnonzero(window.token_to_orig_map >= 0)
    sums = {
        (i, j): float(start[i]) + float(end[j])
        for i in places
        for j in places
        if 0 <= j - i < 6
    }
    best = max(sums, key=sums.get)
    words = example.doc_tokens
    found = always.predict("who ?", context)
    first, last = (window.token_to_orig_map[place] for place in best)
    assert found.text == " ".join(words[first : last + 1])
    assert found.score == pytest.approx(sums[best], rel=1e-5)
    null = float(start[0]) + float(end[0])
    other = predictor.predict("who ?", context)
    assert other.null_score == pytest.approx(null, rel=1e-5)
    assert other.text == ("" if null > sums[best] else found.text)


def test_padding_takes_part_with_the_original_s_padding(path):
    """The logits of padding are the model's, for input_ids 0 with input_mask 0."""
    padded = SquadPredictor(path, 3, MAY_NOT, pad_to_max_seq_length=True)
    examples = [example_of(context) for context in CONTEXTS]
    features = padded.features(examples)
    batch = squad_features.pad_squad_features(features, MAY_NOT.max_seq_length)
    outputs = padded.model({name: batch[name] for name in INPUTS})
    logits = padded.logits(features)
    assert min(len(one.input_ids) for one in features) < MAY_NOT.max_seq_length
    for found, name in zip(logits, ("start_logits", "end_logits"), strict=True):
        np.testing.assert_allclose(np.stack(found), outputs[name], rtol=1e-4, atol=1e-4)
    expected = squad_answers.decode(
        examples, features, *logits, padded.tokenizer, MAY_NOT.decoding
    )
    assert padded.outputs(examples, features) == expected


def test_no_answer(never):
    for context in CONTEXTS:
        found = never.predict("Who found it?", context)
        assert (found.text, found.start, found.end) == ("", 0, 0)
        assert found.null_score == pytest.approx(found.score, abs=1e-5)


def test_the_threshold_decides_whether_there_is_an_answer(predictor, monkeypatch):
    pairs = [("Who found it?", each) for each in CONTEXTS]
    answers = predictor.predict_all(pairs)
    assert all(one.text for one in answers)
    odds = [one.null_score - one.score for one in answers]
    middle = np.mean(sorted(odds)[2:4])
    decoding = dataclasses.replace(
        predictor.task.decoding, null_score_diff_threshold=middle
    )
    task = dataclasses.replace(predictor.task, decoding=decoding)
    monkeypatch.setattr(predictor, "task", task)
    found = predictor.predict_all(pairs)
    assert [one.text == "" for one in found] == [each > middle for each in odds]
    assert [one.null_score for one in found] == [one.null_score for one in answers]


@pytest.mark.parametrize("context", ["", " \n\t", "\u202f"])
def test_a_context_without_words(predictor, always, context):
    for each in (predictor, always):
        found = each.predict("Who found it?", context)
        assert (found.text, found.start, found.end) == ("", 0, 0)
        json.dumps(dataclasses.asdict(found), allow_nan=False)
    assert predictor.predict("Who?", context).null_score is not None


def test_the_null_score_where_nothing_can_be_an_answer(never, monkeypatch):
    """All starts and ends are among the tokens of the question."""
    example = example_of(MINI)
    features = never.features([example])
    logits = []
    for one in features:
        row = np.linspace(-3.0, -9.0, len(one.input_ids))
        row[:3] = (1.0, 2.0, 2.0)
        logits.append(row)
    few = dataclasses.replace(never.task.decoding, n_best_size=2)
    monkeypatch.setattr(never, "task", dataclasses.replace(never.task, decoding=few))
    monkeypatch.setattr(never, "logits", lambda features: (logits, logits))
    found = never.predict("who ?", MINI)
    assert found.text == "" and found.score == 2.0
    assert found.null_score == 2.0


def test_a_long_context(always):
    """An answer is found at any position of the context."""
    rng = np.random.default_rng(0)
    words = rng.choice(
        ["the", "light", "over", "water", "naïve", "😀", "42,"], 20000
    ).tolist()
    words[14321] = "logbook"
    context = "  ".join(words)
    started = time.monotonic()
    found = always.predict("Who?", context)
    assert time.monotonic() - started < 60
    assert found.text == context[found.start : found.end] != ""
    examples = [example_of(context)]
    features = always.features(examples)
    assert len(features) > 1000
    piece = always.tokenizer.encode("logbook")[0]
    logits = [np.where(one.input_ids == piece, 5.0, -5.0) for one in features]
    (one,) = always.outputs(examples, features, (logits, logits))
    assert one.answer.start == context.index("logbook")


def test_many_questions_in_their_order(predictor):
    pairs = [(q, c) for q in QUESTIONS for c in CONTEXTS]
    found = predictor.predict_all(pairs)
    assert len(found) == len(pairs)
    assert_same(found, [predictor.predict(*pair) for pair in pairs])
    assert_same(predictor.predict_all([*map(list, pairs)][::-1]), found[::-1])
    assert_same(predictor.predict_all(iter(pairs[:3])), found[:3])
    assert predictor.predict_all([]) == []


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_answers_do_not_depend_on_the_batch(path, predictor, batch_size):
    pairs = [("Who found it?", each) for each in CONTEXTS]
    found = SquadPredictor(path, batch_size).predict_all(pairs)
    assert_same(found, predictor.predict_all(pairs))


def test_eight_threads_get_what_one_gets(path, predictor, monkeypatch):
    """Also for the first calls, during which the model is traced, but only once."""
    call, calls = SpanModel.call, []

    def counted(self, inputs, *args, **kwargs):
        calls.append(inputs)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(SpanModel, "call", counted)
    fresh = Predictor(path, batch_size=2)
    pairs = [(QUESTIONS[i % 3], CONTEXTS[i % 5] * (1 + i % 2)) for i in range(48)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pair: fresh.predict(*pair), pairs))
    assert len(calls) == 1
    assert_same(found, predictor.predict_all(pairs))


@pytest.mark.parametrize(
    "pair",
    ["two", b"ab", None, 5, (), ("a",), ("a", "b", "c"), ("a", None), [1, "b"], {"a"}],
    ids=repr,
)
def test_what_is_no_question(predictor, pair):
    with pytest.raises(TypeError, match="Question 1 is .*, not a pair of str: a"):
        predictor.predict_all([("Who?", MINI), pair])


@pytest.mark.parametrize(
    "texts", [(), ("Who?",), ("Who?", MINI, "c"), (["Who?", MINI],), ("Who?", b"a")]
)
def test_wrong_arguments(path, texts):
    with pytest.raises(TypeError):
        Predictor(path).predict(*texts)


def message_of(*arguments, **named):
    with pytest.raises(UserError) as caught:
        SquadPredictor(*arguments, **named)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_no_fine_tuned_model(tmp_path):
    assert "No checkpoint at" in message_of(str(tmp_path / "nowhere"))
    bare = tiny_model.write(tmp_path / "bare")
    folder = tmp_path / "encoder"
    folder.mkdir()
    google.write_model(str(folder), tiny_model.checkpoint(heads=False))
    expected = (
        "is not fine-tuned for 'squad': it has no weights cls/squad/output_weights"
    )
    assert f"{folder} {expected}" in message_of(str(folder), task=ALWAYS)
    task = dataclasses.replace(ALWAYS, max_seq_length=33)
    assert "33, but the model reads at most 32" in message_of(str(bare), task=task)
    # It has all heads, so no file shows that it was trained to answer questions.
    with pytest.raises(UserError, match=f"{bare} has no task.json"):
        Predictor(str(bare))


def test_a_checkpoint_of_the_original(tmp_path):
    """A prefix without `task.json`; all of its weights influence the answers."""
    folder = tiny_model.write(tmp_path / "model")
    found = SquadPredictor(str(folder / names.MODEL_PREFIX), task=ALWAYS)
    assert found.global_step is None and found.task == ALWAYS
    model, tensors = SpanModel(tiny_model.MINI_CONFIG), tiny_model.tensors()
    for variable in model.weights:
        variable.assign(tensors[names.google_name(variable)])
    (window,) = features = found.features([example_of("the light over")])
    batch = {
        "input_ids": window.input_ids[None],
        "input_mask": np.ones((1, len(window.input_ids)), np.int32),
        "segment_ids": window.segment_ids[None],
    }
    expected = model(batch)
    (start,), (end,) = found.logits(features)
    np.testing.assert_allclose(start, expected["start_logits"][0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(end, expected["end_logits"][0], rtol=1e-4, atol=1e-4)


def test_weights_that_went_astray(tmp_path):
    path = write(tmp_path / "model")
    model = SpanModel(CONFIG)
    model.cls.squad.output_bias.assign([np.nan, 0.0])
    model_directory.save(path, model, str(tiny_model.VOCAB), True)
    with pytest.raises(UserError, match="not finite"):
        SquadPredictor(path).predict("Who?", MINI)


def test_decode_takes_the_task_s_settings(predictor):
    example = example_of(MINI)
    features = predictor.features([example])
    logits = predictor.logits(features)
    expected = squad_answers.decode(
        [example], features, *logits, predictor.tokenizer, MAY_NOT.decoding
    )
    assert predictor.outputs([example], features) == expected
    assert predictor.outputs([example], features, logits) == expected


@pytest.mark.parametrize("positions, longest", [(100, 100), (500, 384)])
@pytest.mark.parametrize("to", ["google", "huggingface"])
def test_a_model_without_a_task(tmp_path, to, positions, longest):
    """It uses the original's default lengths, and always answers."""
    config = dataclasses.replace(CONFIG, max_position_embeddings=positions)
    path = write(tmp_path / "ours", config=config)
    convert.convert(path, str(tmp_path / "other"), to)
    found = Predictor(str(tmp_path / "other"))
    assert found.task == SquadTask(longest, 128, 64, Decoding())
    pairs = [(QUESTIONS[0], f"{context} " * 40) for context in CONTEXTS]
    known = SquadPredictor(path, task=found.task)
    answers = found.task_predictor.predict_all(pairs)
    assert answers == known.predict_all(pairs)
    assert all(one.text and one.null_score is None for one in answers)
    exported = sources.predictor_of(str(tmp_path / "other"))
    assert isinstance(exported, SquadPredictor) and exported.task == found.task
