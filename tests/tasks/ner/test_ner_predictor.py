"""`NerPredictor` returns correct offsets for all scripts and rejects bad arguments."""

import concurrent.futures
import dataclasses
import json
import shutil

import numpy as np
import pytest
import tiny_model
from marks import slow
from record_files import MINI_CONFIG

from official_bert.checkpoints import convert, google, model_directory
from official_bert.constants import FEATURE_LAYERS
from official_bert.errors import UserError
from official_bert.export import sources
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling import feature_based
from official_bert.modeling.token_classification import TokenClassificationModel
from official_bert.tasks.classifier import task as classifier_task
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.features import tag_names
from official_bert.tasks.ner.predictor import FoundEntity, NerPredictor
from official_bert.tasks.ner.sentences import split_words, word_sentence
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.predictor import Predictor

TAGS = tag_names(["LOC", "PER"])
TASK = NerTask(TAGS, 16)
FOUR_LAYERS = dataclasses.replace(MINI_CONFIG, num_hidden_layers=4)
WORDS = {
    "the crust, of bread.": ["the", "crust", ",", "of", "bread", "."],
    "  two\t spaces \n": ["two", "spaces"],
    "Ångström né à Genève": ["Ångström", "né", "à", "Genève"],
    "cafe\u0301 noe\u0308l\u0301": ["cafe\u0301", "noe\u0308l\u0301"],
    # A lone accent, which an uncased model drops.
    "a \u0301 b": ["a", "\u0301", "b"],
    "🍕 pizza🍕 👩‍🚀!": ["🍕", "pizza🍕", "👩‍🚀", "!"],
    "北京is大": ["北", "京", "is", "大"],
    "𠀀 老师。": ["𠀀", "老", "师", "。"],
    "שלום, עולם": ["שלום", ",", "עולם"],
    "مُحَمَّد في القاهرة؟": ["مُحَمَّد", "في", "القاهرة", "؟"],
    "नई दिल्ली": ["नई", "दिल्ली"],
    "İstanbul ẞ ﬁn": ["İstanbul", "ẞ", "ﬁn"],
    "in\u00a0Rome\u200b and\u2028Oslo": ["in", "Rome", "and", "Oslo"],
    "half \ud800 a pair": ["half", "\ud800", "a", "pair"],
    "x" * 500 + " y": ["x" * 500, "y"],
}
TEXTS = [
    *(text for text in WORDS if "\ud800" not in text),
    "",
    "she found one logbook on the water " * 20,
    "over grand light",
]


def write(directory, task=TASK, tag=None, config=MINI_CONFIG):
    """Write a tagger with random weights, or one that gives one tag to all words."""
    directory.mkdir(exist_ok=True)
    model = ner.make_model(config, task)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if not variable.path.endswith(("gamma", "beta")):
            variable.assign(rng.normal(size=variable.shape))
    if tag:
        bias = 1000.0 * (np.array(task.tags) == tag)
        model.classifier.output_bias.assign(bias)
    model_directory.save(str(directory), model, str(tiny_model.VOCAB), True)
    write_task(str(directory), task, 7)
    return str(directory)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("random") / "model")


@pytest.fixture(scope="module")
def predictor(path):
    return NerPredictor(path)


@pytest.fixture(scope="module")
def each_word(tmp_path_factory):
    """A model that predicts a location for each word."""
    folder = tmp_path_factory.mktemp("word") / "model"
    return NerPredictor(write(folder, tag="B-LOC"))


@pytest.fixture(scope="module")
def whole_text(tmp_path_factory):
    """A model that predicts each text as one person."""
    folder = tmp_path_factory.mktemp("text") / "model"
    return NerPredictor(write(folder, tag="I-PER"))


def assert_offsets(text, found):
    """Entities are in order, do not overlap, and have correct offsets."""
    end = 0
    for entity in found:
        assert end <= entity.start < entity.end <= len(text)
        assert type(entity.start) is type(entity.end) is int
        assert text[entity.start : entity.end] == entity.text
        assert entity.label in ("LOC", "PER")
        end = entity.end


@pytest.mark.parametrize("text", list(WORDS), ids=range(len(WORDS)))
def test_words_of_any_script(each_word, whole_text, text):
    found = each_word.predict(text)
    assert_offsets(text, found)
    assert [entity.text for entity in found] == WORDS[text]
    (one,) = whole_text.predict(text)
    assert_offsets(text, [one])
    assert (one.start, one.end) == (found[0].start, found[-1].end)
    assert one.label == "PER"


def test_entities_by_hand(each_word):
    assert each_word.predict("né 北🍕") == [
        FoundEntity("né", 0, 2, "LOC"),
        FoundEntity("北", 3, 4, "LOC"),
        FoundEntity("🍕", 4, 5, "LOC"),
    ]


def test_random_tags(predictor):
    found = predictor.predict(TEXTS)
    for text, entities in zip(TEXTS, found, strict=True):
        assert_offsets(text, entities)
    assert sum(map(len, found)) > 20
    assert {entity.label for entities in found for entity in entities} == {"LOC", "PER"}
    json.dumps([[dataclasses.asdict(one) for one in each] for each in found])


@pytest.mark.parametrize("text", ["", " ", " \n\t\u00a0\u3000", "\x00\x07\u200b"])
def test_no_words(each_word, text):
    assert each_word.predict(text) == []
    assert each_word.predict([text]) == [[]]
    word = FoundEntity("a", 0, 1, "LOC")
    assert each_word.predict([text, "a", text, text]) == [[], [word], [], []]


def test_several_texts(predictor, path):
    """Results do not depend on the other texts or on the batches."""
    expected = [predictor.predict(text) for text in TEXTS]
    assert predictor.predict(TEXTS) == expected
    assert predictor.predict(TEXTS[::-1]) == expected[::-1]
    for size in (1, 3, 100):
        assert NerPredictor(path, size).predict(TEXTS) == expected
    assert predictor.predict([]) == []


def test_any_iterable_will_do(predictor):
    expected = predictor.predict(TEXTS[:4])
    assert predictor.predict(tuple(TEXTS[:4])) == expected
    assert predictor.predict(text for text in TEXTS[:4]) == expected


def test_a_very_long_text(each_word, predictor):
    """All 20,400 words are tagged, in windows."""
    text = "the crust of 北京, " * 3400
    found = each_word.predict(text)
    assert len(found) == 3400 * 6
    assert_offsets(text, found)
    assert [(one.start, one.end) for one in found] == split_words(text)
    assert_offsets(text, predictor.predict(text))


def test_words_as_in_columns(tmp_path):
    task = dataclasses.replace(TASK, words_as_columns=True)
    predictor = NerPredictor(write(tmp_path / "columns", task, "B-LOC"))
    text = "the U.S.-based crust, J. Horse's."
    found = [one.text for one in predictor.predict(text)]
    assert found == ["the", "U.S.-based", "crust", ",", "J.", "Horse", "'s", "."]


def tags_of(predictor, documents):
    return predictor.outputs(documents, predictor.features(documents))


def test_tags_of_words(predictor):
    documents = [
        [word_sentence(["the", "crust"]), word_sentence([])],
        [],
        [word_sentence(["of", "horse", "she"])],
    ]
    found = tags_of(predictor, documents)
    assert [[len(tags) for tags in document] for document in found] == [[2, 0], [], [3]]
    assert {tag for document in found for tags in document for tag in tags} <= set(TAGS)
    assert tags_of(predictor, [[word_sentence([])], []]) == [[[]], []]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([b"ab"], "Text 0 is b'ab', not a str"),
        (["a", None], "Text 1 is None, not a str"),
        ([float("nan")], "Text 0 is nan, not a str"),
        ([("a", "b")], r"Text 0 is \('a', 'b'\), not a str"),
        ([["a"]], r"Text 0 is \['a'\], not a str"),
        (b"ab", "b'ab' is neither a str nor a list"),
        ({"text": "ab"}, "neither a str nor a list"),
        (5, "5 is neither"),
        (None, "None"),
    ],
)
def test_what_is_no_text(predictor, texts, words):
    with pytest.raises(TypeError, match=words):
        predictor.predict(texts)


def count_calls(monkeypatch):
    """Return a list that grows with each Python call of the model."""
    call, calls = TokenClassificationModel.call, []

    def counted(self, inputs, *args, **kwargs):
        calls.append(inputs["input_ids"].shape)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(TokenClassificationModel, "call", counted)
    return calls


def test_eight_threads_get_what_one_gets(path, monkeypatch):
    """Also for the first calls, during which the model is traced, but only once."""
    tasks = [
        [TEXTS[(start + i) % len(TEXTS)] for i in range(1 + start % 4)]
        for start in range(40)
    ]
    calls = count_calls(monkeypatch)
    predictor = NerPredictor(path, batch_size=2)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(predictor.predict, tasks))
    assert len(calls) == 1
    single = dict(zip(TEXTS, predictor.predict(TEXTS), strict=True))
    assert found == [[single[text] for text in texts] for texts in tasks]
    assert len(calls) == 1


def test_predictor_picks_it(path, predictor):
    found = Predictor(path, 4)
    assert isinstance(found.task_predictor, NerPredictor) and found.task == TASK
    assert found.predict(TEXTS) == predictor.predict(TEXTS)
    assert found.predict(TEXTS[0]) == predictor.predict(TEXTS[0])
    with pytest.raises(ValueError, match="batch_size is 0"):
        Predictor(path, 0)
    with pytest.raises(TypeError):
        found.predict("one", "two")
    with pytest.raises(TypeError, match="Text 1 is 5"):
        found.predict(["one", 5])


@pytest.mark.parametrize("kind", [FEATURE_LAYERS[0], *map(slow, FEATURE_LAYERS[1:])])
def test_a_bilstm_answers(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(feature_based, "WIDTH", 4)
    task = dataclasses.replace(TASK, feature_based=kind)
    predictor = Predictor(write(tmp_path / "model", task, config=FOUR_LAYERS))
    assert predictor.task == task and predictor.task_predictor.global_step == 7
    for text, entities in zip(TEXTS, predictor.predict(TEXTS), strict=True):
        assert_offsets(text, entities)


def message_of(path):
    with pytest.raises(UserError) as caught:
        NerPredictor(str(path))
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_no_tagger(tmp_path):
    assert "No checkpoint at" in message_of(tmp_path / "nowhere")
    bare = tiny_model.write(tmp_path / "bare")
    assert f"{bare} has no task.json" in message_of(bare)
    other = classifier_task.ClassifierTask("single_label", ("a", "b"), ("f1",), 9)
    write_task(str(bare), other, 1)
    assert "does not describe a ner: its task is 'classifier'" in message_of(bare)

    folder = tmp_path / "encoder"
    folder.mkdir()
    google.write_model(str(folder), tiny_model.checkpoint(heads=False))
    write_task(str(folder), TASK, 1)
    expected = f"{folder} is not fine-tuned for 'ner': it has no weights output_weights"
    assert expected in message_of(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tags": TAGS[:3]}, "5 outputs, but the task needs 3"),
        (
            {"max_seq_length": 33},
            "max_seq_length is 33, but the model reads at most 32",
        ),
        ({"feature_based": "last"}, "is incomplete: it lacks bilstm_0/"),
    ],
    ids=str,
)
def test_a_task_that_does_not_fit_the_weights(tmp_path, change, words):
    directory = write(tmp_path / "model")
    write_task(directory, dataclasses.replace(TASK, **change), 7)
    assert words in message_of(directory)


def test_a_damaged_task(tmp_path):
    directory = write(tmp_path / "model")
    for content in ('{"task": "ne', '{"task": "ner"}', '{"task": "ner", "tags": 3}'):
        (tmp_path / "model" / "task.json").write_text(content)
        assert "task.json" in message_of(directory)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    """An untrained tagger, as written by `convert_checkpoint.py`."""
    folder = tmp_path_factory.mktemp("converted")
    config = ner.written_config(MINI_CONFIG, TASK)
    path = write(folder / "google", config=config)
    converted = folder / "hugging_face"
    convert.convert(path, str(converted), "huggingface")
    return converted


def test_a_converted_tagger_names_its_tags(hugging_face):
    config = json.loads((hugging_face / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["id2label"] == dict(zip("01234", TAGS, strict=True))
    assert config["label2id"] == dict(zip(TAGS, range(5), strict=True))


def test_a_tagger_of_hugging_face_answers(hugging_face, path):
    """It has no `task.json`, but its config describes the task."""
    found = Predictor(str(hugging_face))
    longest = MINI_CONFIG.max_position_embeddings
    assert found.task == dataclasses.replace(TASK, max_seq_length=longest)
    as_long = NerPredictor(path, task=found.task)
    answers = found.predict(TEXTS)
    assert answers == as_long.predict(TEXTS) and any(answers)
    exported = sources.predictor_of(str(hugging_face))
    assert isinstance(exported, NerPredictor) and exported.task == found.task


@pytest.mark.parametrize(
    "change",
    [
        {"id2label": {"0": "NOUN", "1": "O", "2": "B-X", "3": "VERB", "4": "I-X"}},
        {"id2label": {"0": "O", "1": "O", "2": "B-X", "3": "I-X", "4": "I-Y"}},
        {"id2label": None},
    ],
)
def test_other_labels_of_tokens_are_no_entities(hugging_face, tmp_path, change, caplog):
    """For example parts of speech. They are not labels of complete texts either."""
    copied = tmp_path / "model"
    shutil.copytree(hugging_face, copied)
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match="task.json"):
        Predictor(str(copied))
    # Its encoder can be exported, with a note about the head.
    assert sources.predictor_of(str(copied)) is None
    with caplog.at_level("WARNING", logger="absl"):
        assert not sources.load_pretrained(str(copied))[1]
    assert f"{copied} was fine-tuned, but no file states its task" in caplog.text
