"""Vectors of tokens and texts equal the original's, in any batch."""

import dataclasses
import gc
import io
import json
import tracemalloc
import types
import weakref

import keras
import numpy as np
import original_head
import pytest
import tensorflow as tf
from record_files import MINI, MINI_CONFIG

from official_bert.checkpoints.initialize import Report
from official_bert.checkpoints.model_directory import Bert
from official_bert.errors import UserError
from official_bert.modeling.encoder import BertEncoder
from official_bert.pretrained import feature_extraction
from official_bert.pretrained import reading as reading_module
from official_bert.pretrained.feature_extraction import (
    Reading,
    TokenFeatures,
    each_sentence_vector,
    sentence_vectors,
    token_features,
)
from official_bert.pretrained.feature_files import write_json_lines
from official_bert.tables.text_pairs import split_line
from official_bert.tokenization.full import FullTokenizer

# The largest number of a vector is about 3 here.
TOLERANCE = 1e-5
CONFIG = dataclasses.replace(MINI_CONFIG, num_hidden_layers=3, initializer_range=0.3)
WORDS = ["the", "light", "of", "lamps", "on", "water", "dough", "is", "logbook", "ł"]
LENGTH = Reading(max_seq_length=32)


def report(new=()):
    return Report("tiny", loaded=[], new=list(new), unused=[], notes=[])


@pytest.fixture(scope="module")
def bert():
    keras.utils.set_random_seed(5)
    tokenizer = FullTokenizer(str(MINI / "vocab.txt"))
    return Bert(BertEncoder(CONFIG), tokenizer, CONFIG, report())


@pytest.fixture(scope="module")
def texts():
    """Return 50 texts of 0 to 12 words, at most 23 tokens."""
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS, rng.integers(0, 13))) for _ in range(50)]


def ids_of(bert, *texts):
    """Return ids and segments as the original combines them."""
    vocab = bert.tokenizer.vocab
    ids, segments = [vocab["[CLS]"]], [0]
    for segment, text in enumerate(texts):
        part = [*bert.tokenizer.encode(text), vocab["[SEP]"]]
        ids += part
        segments += [segment] * len(part)
    return ids, segments


def run_alone(bert, ids, segments, length=32):
    """Return the model's outputs for one row that is padded to `length`."""

    def padded(values):
        return tf.constant([values + [0] * (length - len(values))])

    features = {
        "input_ids": padded(ids),
        "input_mask": padded([1] * len(ids)),
        "segment_ids": padded(segments),
    }
    return bert.model(features)


def layers_of(bert, *texts):
    """Return all layers of the tokens of a text that fits, [T, L, H]."""
    ids, segments = ids_of(bert, *texts)
    layers = run_alone(bert, ids, segments)["all_encoder_layers"]
    return np.stack(layers, axis=2)[0, : len(ids)]


@pytest.fixture(scope="module")
def alone(bert, texts):
    """Return (all layers [T, L, H], pooled output [H]) of each text alone."""
    found = []
    for text in texts:
        ids, segments = ids_of(bert, text)
        outputs = run_alone(bert, ids, segments)
        layers = np.stack(outputs["all_encoder_layers"], axis=2)[0, : len(ids)]
        found.append((layers, outputs["pooled_output"].numpy()[0]))
    return found


@pytest.fixture
def recorded(monkeypatch):
    """Return the rows that the original processed, and its outputs."""
    arrays = original_head.recording()
    rows = original_head.features(arrays)
    config = original_head.head_config()
    model = BertEncoder(config)
    for variable in model.trainable_variables:
        variable.assign(original_head.weights(arrays)[variable.path])
    lengths = rows["input_mask"].sum(1)

    def frame(vocab, numbers, _):
        row = slice(lengths[numbers[0]])
        ids, segments = rows["input_ids"], rows["segment_ids"]
        return ids[numbers[0]][row].tolist(), segments[numbers[0]][row].tolist()

    # Its ids are random and do not come from a text.
    monkeypatch.setattr(reading_module, "join_texts", frame)
    tokenizer = types.SimpleNamespace(
        vocab={},
        encode=lambda text: [int(text)] if text else [],
        convert_ids_to_tokens=lambda ids: list(map(str, ids)),
    )
    bert = Bert(model, tokenizer, config, report())
    return bert, list(map(str, range(len(lengths)))), arrays, lengths


@pytest.mark.comparison
def test_layers_equal_what_the_original_computed(recorded):
    bert, texts, arrays, lengths = recorded
    layers = (-1, 0, -2, 2)
    found = list(token_features(bert, texts, layers, Reading(32, batch_size=3)))
    assert len(found) == len(lengths) == 8
    for row, (features, length) in enumerate(zip(found, lengths, strict=True)):
        assert len(features.tokens) == length
        for place, layer in enumerate((2, 0, 1, 2)):
            wanted = arrays[f"out_layer_{layer}"].reshape(8, 24, 24)[row, :length]
            assert np.abs(features.vectors[:, place] - wanted).max() < TOLERANCE


@pytest.mark.comparison
@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_sentences_equal_what_the_original_computed(recorded, pooling):
    bert, texts, arrays, lengths = recorded
    last = arrays["out_layer_2"].reshape(8, 24, 24)
    wanted = {
        "mean": [last[row, :length].mean(0) for row, length in enumerate(lengths)],
        "cls": last[:, 0],
        "pooler": arrays["out_pooled_output"],
    }[pooling]
    ours = sentence_vectors(bert, texts, pooling, reading=Reading(32, batch_size=3))
    assert np.abs(ours - wanted).max() < TOLERANCE


def test_a_text_and_a_pair(bert):
    reading = Reading(max_seq_length=32)
    one, two = token_features(bert, ["The light", ("on", "water!")], (-1,), reading)
    assert one.tokens == ["[CLS]", "the", "light", "[SEP]"]
    assert two.tokens == ["[CLS]", "on", "[SEP]", "water", "!", "[SEP]"]
    for features, texts in ((one, ["the light"]), (two, ["on", "water!"])):
        wanted = layers_of(bert, *texts)[:, -1:]
        assert features.vectors.dtype == np.float32
        np.testing.assert_allclose(features.vectors, wanted, atol=TOLERANCE)


@pytest.mark.parametrize("layers", [(-1, -2, -3), (0,), (2, 0, 2), (-3, 0)])
def test_layers_are_counted_as_in_the_original(bert, layers):
    (features,) = token_features(bert, ["the light of lamps"], layers, LENGTH)
    wanted = layers_of(bert, "the light of lamps")[:, list(layers)]
    np.testing.assert_allclose(features.vectors, wanted, atol=TOLERANCE)
    assert not np.allclose(wanted[:, 0], layers_of(bert, "the light of lamps")[:, 1])


@pytest.mark.parametrize(
    ("text", "length", "tokens"),
    [
        ("the of in that is", 5, "[CLS] the of in [SEP]"),
        ("the of in that is", 3, "[CLS] the [SEP]"),
        (("the of in", "is on"), 7, "[CLS] the of [SEP] is on [SEP]"),
        (("the of in", "is on water her"), 7, "[CLS] the of [SEP] is on [SEP]"),
        (("the of in", "is on water her"), 6, "[CLS] the of [SEP] is [SEP]"),
        (("the of", "is"), 4, "[CLS] the [SEP]"),
        (("the of", "is"), 3, "[CLS] [SEP]"),
        (("the of", "\x01"), 8, "[CLS] the of [SEP]"),
        (("the of", None), 8, "[CLS] the of [SEP]"),
        ("", 8, "[CLS] [SEP]"),
    ],
)
def test_what_a_text_becomes(bert, text, length, tokens):
    (features,) = token_features(bert, [text], (-1,), Reading(length))
    assert " ".join(features.tokens) == tokens
    assert features.vectors.shape == (len(features.tokens), 1, CONFIG.hidden_size)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_tokens_do_not_depend_on_the_batch(bert, texts, alone, batch_size):
    found = token_features(bert, texts, (-1, 0), Reading(32, batch_size))
    for (layers, _), features in zip(alone, found, strict=True):
        wanted = layers[:, [-1, 0]]
        np.testing.assert_allclose(features.vectors, wanted, atol=TOLERANCE)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_sentences_do_not_depend_on_the_batch(bert, texts, alone, batch_size, pooling):
    reading = Reading(32, batch_size)
    found = sentence_vectors(bert, texts, pooling, (-2,), reading)
    assert (found.dtype, found.shape) == (np.float32, (50, CONFIG.hidden_size))
    for (layers, pooled), vector in zip(alone, found, strict=True):
        tokens = layers[:, -2]
        wanted = {"mean": tokens.mean(0), "cls": tokens[0], "pooler": pooled}[pooling]
        np.testing.assert_allclose(vector, wanted, atol=TOLERANCE)


def test_several_layers_make_their_mean(bert):
    found = sentence_vectors(bert, ["the light"], layers=(-1, -3), reading=LENGTH)
    wanted = layers_of(bert, "the light")[:, [2, 0]].mean((0, 1))
    np.testing.assert_allclose(found[0], wanted, atol=TOLERANCE)


def test_the_last_layer_is_the_default(bert):
    (vector,) = sentence_vectors(bert, ["the light"], reading=LENGTH)
    wanted = layers_of(bert, "the light")[:, -1].mean(0)
    np.testing.assert_allclose(vector, wanted, atol=TOLERANCE)


def test_no_texts(bert):
    assert sentence_vectors(bert, [], reading=LENGTH).shape == (0, CONFIG.hidden_size)
    assert list(token_features(bert, [], (-1,), LENGTH)) == []


LONG = " ".join(WORDS * 4)  # 60 tokens.


def window_vectors(bert, before, document, room, stride):
    """Return the last layer of `before` and a document, window by window.

    Each token comes from the window in which it has the most context.
    """
    vocab = bert.tokenizer.vocab
    starts = [0]
    while starts[-1] + room < len(document):
        starts.append(starts[-1] + stride)
    windows = []
    for start in starts:
        part = [*document[start : start + room], vocab["[SEP]"]]
        segment = len(before) > 1
        ids, segments = before + part, [0] * len(before) + [int(segment)] * len(part)
        outputs = run_alone(bert, ids, segments)
        windows.append(outputs["sequence_output"].numpy()[0, : len(ids)])
    vectors = list(windows[0][: len(before)])
    for place in range(len(document)):
        scores = []
        for start in starts:
            end = min(start + room, len(document)) - 1
            context = min(place - start, end - place)
            scores.append(context + 0.01 * (end - start + 1) if context >= 0 else -1)
        best = scores.index(max(scores))
        vectors.append(windows[best][len(before) + place - starts[best]])
    return np.array([*vectors, windows[-1][-1]]), np.array([w[0] for w in windows])


@pytest.mark.parametrize(("length", "stride"), [(12, None), (12, 3), (20, 7), (32, 20)])
def test_windows_over_a_long_text(bert, length, stride):
    reading = Reading(length, 4, "window", stride)
    document = bert.tokenizer.encode(LONG)
    room = length - 2
    first = [bert.tokenizer.vocab["[CLS]"]]
    wanted, cls = window_vectors(bert, first, document, room, stride or room // 2)
    before, features, _ = token_features(bert, ["of", LONG, ""], (-1,), reading)
    assert before.tokens == ["[CLS]", "of", "[SEP]"]
    assert features.tokens == ["[CLS]", *bert.tokenizer.tokenize(LONG), "[SEP]"]
    np.testing.assert_allclose(features.vectors[:, 0], wanted, atol=TOLERANCE)
    means = sentence_vectors(bert, ["of", LONG], "mean", (-1,), reading)
    np.testing.assert_allclose(means[1], wanted.mean(0), atol=TOLERANCE)
    firsts = sentence_vectors(bert, ["of", LONG], "cls", (-1,), reading)
    np.testing.assert_allclose(firsts[1], cls.mean(0), atol=TOLERANCE)


def test_windows_over_a_long_pair(bert):
    """Each window contains the whole first text, like a question of SQuAD."""
    vocab, encode = bert.tokenizer.vocab, bert.tokenizer.encode
    before = [vocab["[CLS]"], *encode("is on water"), vocab["[SEP]"]]
    wanted, _ = window_vectors(bert, before, encode(LONG), 16 - len(before) - 1, 4)
    reading = Reading(16, 5, "window", 4)
    pair = ("is on water", LONG)
    (features,) = token_features(bert, [pair], (-1,), reading)
    tokens = bert.tokenizer.tokenize(LONG)
    assert features.tokens[:5] == ["[CLS]", "is", "on", "water", "[SEP]"]
    assert features.tokens[5:] == [*tokens, "[SEP]"]
    np.testing.assert_allclose(features.vectors[:, 0], wanted, atol=TOLERANCE)
    (vector,) = sentence_vectors(bert, [pair], "mean", (-1,), reading)
    np.testing.assert_allclose(vector, wanted.mean(0), atol=TOLERANCE)


def test_windows_leave_short_texts_as_they_are(bert, texts):
    assert max(len(bert.tokenizer.encode(text)) for text in texts) == 23
    cut, windowed = (
        sentence_vectors(bert, texts, reading=Reading(25, 8, long_text))
        for long_text in ("truncate", "window")
    )
    np.testing.assert_array_equal(cut, windowed)


def test_cut_texts_are_counted(bert, caplog):
    texts = ["the of in that is on", "the of", ("the of", "in that is"), "", "\x01"]
    sentence_vectors(bert, texts, reading=Reading(5))
    assert "2 of 5 texts are longer than max_seq_length=5: 6 tokens were" in caplog.text
    assert "2 of 5 texts have no tokens" in caplog.text
    caplog.clear()
    sentence_vectors(bert, texts[:2], reading=Reading(5, 32, "window"))
    assert caplog.text == ""


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
@pytest.mark.parametrize("long_text", ["truncate", "window"])
def test_tokens_and_sentences_in_one_pass(bert, texts, pooling, long_text):
    """The result equals that of two passes, for all batches."""
    settings = Reading(12, 7, long_text)
    both = list(
        feature_extraction.token_and_sentence_features(
            bert, iter(texts), pooling, (0, -1), (-2, -3), settings
        )
    )
    tokens = list(token_features(bert, texts, (0, -1), settings))
    vectors = sentence_vectors(bert, texts, pooling, (-2, -3), settings)
    for (found, vector), wanted, sentence in zip(both, tokens, vectors, strict=True):
        assert found.tokens == wanted.tokens
        np.testing.assert_allclose(found.vectors, wanted.vectors, atol=TOLERANCE)
        np.testing.assert_allclose(vector, sentence, atol=TOLERANCE)


def test_texts_are_read_a_little_ahead_only(bert, monkeypatch):
    monkeypatch.setattr(reading_module, "READ_AHEAD_BATCHES", 3)
    asked = []

    def many():
        for _ in range(2000):
            asked.append(0)
            yield "the light of lamps"

    vectors = each_sentence_vector(bert, many(), reading=Reading(32, 4))
    for taken in range(1, 100):
        next(vectors)
        assert len(asked) <= taken + 3 * 4
    # Size in bytes of eight texts of 6 tokens.
    bytes_of_eight = 8 * 6 * 2 * CONFIG.hidden_size * 4
    monkeypatch.setattr(feature_extraction, "READ_AHEAD_BYTES", bytes_of_eight)
    asked.clear()
    features = token_features(bert, many(), (-1, -2), Reading(32, 4))
    for taken in range(1, 100):
        next(features)
        assert len(asked) <= taken + 8


def peak_memory(bert, texts, folder):
    """Return the peak memory of Python and NumPy while features are written."""
    tracemalloc.start()
    try:
        with open(folder / "out.jsonl", "w") as out:
            features = token_features(bert, iter(texts), (-1, -2), Reading(32, 4))
            write_json_lines(out, features, (-1, -2))
        vectors = each_sentence_vector(bert, iter(texts), reading=Reading(32, 4))
        for _ in vectors:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_stays_flat(bert, texts, tmp_path, monkeypatch):
    """Eight times the texts take the same memory, about 0.2 MB."""
    monkeypatch.setattr(reading_module, "READ_AHEAD_BATCHES", 5)
    peak_memory(bert, texts, tmp_path)  # Exclude objects that are created once.
    small = peak_memory(bert, texts * 2, tmp_path)
    large = peak_memory(bert, texts * 16, tmp_path)
    assert large < 2 * small


def test_batches_have_few_shapes_and_little_padding(bert, texts, monkeypatch):
    shapes = []

    def compiled(*_):
        def run(features, kept):
            shapes.append((kept.shape, features["input_mask"].sum()))
            return tf.zeros([len(kept), CONFIG.hidden_size])

        return run

    monkeypatch.setattr(feature_extraction, "_compiled", compiled)
    # Of 1,000 texts, 320 are sorted at a time.
    sentence_vectors(bert, texts * 20, reading=Reading(25, 5))
    lengths = {length for (_, length), _ in shapes}
    assert lengths <= {4, 8, 12, 16, 20, 24, 25}
    assert sum(rows for (rows, _), _ in shapes) == 1000
    positions = sum(rows * length for (rows, length), _ in shapes)
    assert sum(tokens for _, tokens in shapes) / positions > 0.85


def test_one_graph_for_all_batches(bert, texts, monkeypatch):
    """Later calls reuse the graph: a service may send one text at a time."""
    count = feature_extraction._run.experimental_get_tracing_count
    other = dataclasses.replace(bert, model=BertEncoder(CONFIG))
    before = count()
    sentence_vectors(other, texts, "cls", (-2, -3), Reading(25, 7))
    for text in texts[:5]:
        sentence_vectors(other, [text], "cls", [-2, -3], Reading(25, 1))
    assert count() == before + 1
    ours, theirs = (
        sentence_vectors(b, texts[:5], "cls", (-2, -3), LENGTH) for b in (bert, other)
    )
    assert np.abs(ours - theirs).max() > 0.1


def test_a_model_that_is_done_with_leaves_memory(bert):
    model = BertEncoder(CONFIG)
    reference = weakref.ref(model)
    sentence_vectors(dataclasses.replace(bert, model=model), ["the"], reading=LENGTH)
    del model
    gc.collect()
    assert reference() is None


def test_lines_of_json_are_the_original_s(bert):
    texts = ["The ligħt ±", ("on", "老师")]
    layers = (-1, -3)
    found = list(token_features(bert, texts, layers, LENGTH))
    out = io.StringIO()
    write_json_lines(out, found, layers)
    wanted = ""
    for index, features in enumerate(found):
        line = {"linex_index": index, "features": []}
        for token, vectors in zip(features.tokens, features.vectors, strict=True):
            all_layers = [
                {"index": layer, "values": [round(float(x), 6) for x in values]}
                for layer, values in zip(layers, vectors, strict=True)
            ]
            line["features"].append({"token": token, "layers": all_layers})
        wanted += json.dumps(line) + "\n"
    assert out.getvalue() == wanted
    assert wanted.count("\n") == 2 and wanted.isascii()


def test_rounding_is_python_s():
    rng = np.random.default_rng(0)
    scales = np.array([1e-8, 1e-6, 1e-3, 1, 30, 1e6, 1e12], np.float32)
    numbers = (rng.normal(size=[3000, 7]).astype(np.float32) * scales).ravel()
    # Halfway between two numbers of six digits: these tie to even.
    ties = np.arange(-99, 100, 2, dtype=np.float32) / np.float32(128)
    special = np.float32([0.0, -0.0, -1e-9, 0.5e-6, 3e38, -3e38])
    numbers = np.concatenate([numbers, ties, special])
    out = io.StringIO()
    vectors = numbers[np.newaxis, np.newaxis]
    write_json_lines(out, [TokenFeatures(["a"], vectors)], (0,))
    assert json.dumps([round(float(x), 6) for x in numbers]) in out.getvalue()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a b", "a b"),
        ("a ||| b", ("a", "b")),
        ("a ||| b ||| c", ("a ||| b", "c")),
        ("a ||| ||| c", ("a |||", "c")),
        ("a |||", "a |||"),
        ("||| b", "||| b"),
        ("a|||b", "a|||b"),
        ("", ""),
    ],
)
def test_lines_are_split_as_in_the_original(line, text):
    assert split_line(line) == text


def refused(match, call, *arguments, **options):
    with pytest.raises(UserError, match=match):
        call(*arguments, **options)


@pytest.mark.parametrize("layer", [3, -4, 12])
def test_no_such_layer(bert, layer):
    refused(
        f"Layer {layer} does not exist: the model has 3 layers.* -3 to 2",
        lambda: token_features(bert, [], (-1, layer), LENGTH),
    )
    refused("does not exist", lambda: sentence_vectors(bert, [], layers=(layer,)))


def test_no_layers(bert):
    refused("--layers is empty", lambda: token_features(bert, [], (), LENGTH))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"max_seq_length": 2}, "max_seq_length is 2: it must be at least 3"),
        ({"batch_size": 0}, "batch_size=0 is invalid"),
        ({"doc_stride": 0}, "doc_stride=0 is invalid"),
        (
            {"long_text": "split"},
            "long_text='split' is invalid. Choose from truncate, window",
        ),
    ],
)
def test_impossible_settings(settings, match):
    refused(match, Reading, **settings)


def test_a_length_that_the_model_does_not_read(bert):
    match = "max_seq_length=33 is larger than the model's max_position_embeddings=32"
    refused(match, lambda: token_features(bert, [], reading=Reading(33), layers=(-1,)))
    refused(match, lambda: sentence_vectors(bert, [], reading=Reading(33)))


def test_unknown_pooling(bert):
    refused(
        "pooling='max' is invalid", sentence_vectors, bert, [], "max", reading=LENGTH
    )


def test_a_random_pooler_is_refused(bert):
    other = dataclasses.replace(bert, report=report(["bert/pooler/dense/kernel"]))
    refused("tiny has no pooler", sentence_vectors, other, [], "pooler", reading=LENGTH)
    assert len(sentence_vectors(other, ["the"], "mean", reading=LENGTH)) == 1


def test_a_pair_without_room_for_windows(bert):
    pair = ("the of in that is", "on water her she")
    features = token_features(bert, ["a", pair], (-1,), Reading(8, 1, "window"))
    refused("Text 1 .* has 5 tokens. With .* no room for windows", list, features)


def test_a_model_without_second_segments(bert):
    config = dataclasses.replace(CONFIG, type_vocab_size=1)
    other = Bert(BertEncoder(config), bert.tokenizer, config, report())
    assert len(sentence_vectors(other, ["the"], reading=LENGTH)) == 1
    refused("Text 0 .*is a pair", sentence_vectors, other, [("a", "b")], reading=LENGTH)


def test_out_of_memory(bert, monkeypatch):
    def run(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM")

    monkeypatch.setattr(feature_extraction, "_compiled", lambda *_: run)
    match = "Out of memory with --batch_size=32. Use a smaller value"
    refused(match, sentence_vectors, bert, ["the"], reading=LENGTH)


def test_the_default_length_is_what_the_model_reads(bert):
    """The default is the original's 128, limited by the positions; here 32."""
    text = "the water " * 40
    (features,) = token_features(bert, [text], (-1,))
    assert len(features.tokens) == CONFIG.max_position_embeddings == 32
