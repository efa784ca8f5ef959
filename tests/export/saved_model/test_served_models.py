"""Each kind of model as a graph equals Python, for text, ids and records."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tiny_exports import (
    KINDS,
    ask,
    assert_same,
    cases,
    open_kind,
    random_texts,
    traced,
    write_without_pooler,
)

from official_bert.checkpoints import model_directory
from official_bert.constants import INPUTS
from official_bert.export import expected, samples
from official_bert.export.saved_model import exports, signatures
from official_bert.export.saved_model.ner import ServedTagger
from official_bert.export.saved_model.signatures import (
    EXAMPLES,
    FILL_MASK,
    SERVING,
    TOKENS,
)
from official_bert.export.saved_model.texts import per_text
from official_bert.tables.examples import Example
from official_bert.tasks.choice.features import pad_choice_features
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.ner import sentences as ner_sentences
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.features import pad_ner_features
from official_bert.tasks.predictor import load
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad.features import pad_squad_features

LABELLING = [kind for kind in KINDS if "label" in kind or kind == "number"]
SQUAD = [kind for kind in KINDS if "squad" in kind]
TAGGING = [kind for kind in KINDS if "tags" in kind]
PRETRAINED = ["masks", "encoder"]
BY_TOKEN = [kind for kind in KINDS if kind != "choice"]
LONG_QUESTION = "how many years " * 9
CONTEXT = "the horse is on water . her light was found in a logbook , years on . " * 4
# The names in `dir(tf.raw_ops)` of TensorFlow 2.12.1.
OPS_OF_2_12 = pathlib.Path(__file__).with_name("tensorflow_2_12_ops.txt")
OPS = set(OPS_OF_2_12.read_text().split())


def texts_for(kind, number=30, seed=1):
    """Return inputs of `SERVING`: texts by input name."""
    texts = random_texts(number, seed)
    if kind == "choice":
        others = [random_texts(number, seed + n, 12) for n in (1, 2, 3)]
        return {"prompt": texts, "choices": list(map(list, zip(*others, strict=True)))}
    if kind in SQUAD:
        pairs = list(zip(random_texts(number, seed + 1, 8), texts, strict=True))
        pairs += [(LONG_QUESTION, CONTEXT), (LONG_QUESTION, ""), ("", CONTEXT)]
        pairs += [("who", "\u0301"), ("\u0301", "horse"), ("", " "), ("on", "is")]
        question, context = map(list, zip(*pairs, strict=True))
        return {"question": question, "context": context}
    if KINDS[kind][1]:
        return {
            "text": [*texts, "", "", "on", CONTEXT, CONTEXT],
            "text_b": [*random_texts(number, seed + 1), "", "on", "", "", CONTEXT],
        }
    return {"text": texts}


def values_of(answers):
    """Return the distinct values of the first output."""
    return set(np.ravel(next(iter(answers.values()))).tolist())


@pytest.mark.parametrize("kind", cases(KINDS))
def test_text(kind):
    inputs = texts_for(kind)
    wanted = open_kind(kind)[1].answers[SERVING](**inputs)
    assert kind == "squad of ties" or len(values_of(wanted)) > 1
    found = ask(kind, SERVING, inputs)
    assert_same(found, wanted)
    assert kind in (*TAGGING, *PRETRAINED) or set(found) == set(wanted)


@pytest.mark.parametrize("kind", cases(KINDS))
def test_one_text(kind):
    inputs = {name: values[:1] for name, values in texts_for(kind, 1, 9).items()}
    wanted = open_kind(kind)[1].answers[SERVING](**inputs)
    assert_same(ask(kind, SERVING, inputs), wanted)


@pytest.mark.parametrize("kind", cases(KINDS))
def test_no_texts(kind):
    inputs = {name: np.zeros([0], object) for name in texts_for(kind, 0)}
    if kind == "choice":
        inputs["choices"] = np.zeros([0, 3], object)
    found = ask(kind, SERVING, inputs)
    assert {len(value) for value in found.values()} == {0}
    usual = ask(kind, SERVING, texts_for(kind, 0))
    assert {n: v.dtype for n, v in found.items()} == {
        n: v.dtype for n, v in usual.items()
    }


def features_of(kind):
    """Return the model inputs of Python's code for texts, and its outputs per row.

    Returns:
      (`INPUTS` of some rows, dict of outputs of `TOKENS`).
    """
    directory, inputs = open_kind(kind)[0], texts_for(kind)
    if kind in PRETRAINED:
        return _encoded(directory, inputs["text"])
    predictor = load(directory)
    of_kind = {
        "choice": _choice_features,
        "vectors": _embedding_features,
        **dict.fromkeys(LABELLING, _classifier_features),
        **dict.fromkeys(SQUAD, _squad_features),
        **dict.fromkeys(TAGGING, _ner_features),
    }[kind]
    batch, wanted = of_kind(predictor, *inputs.values())
    return {name: batch[name] for name in INPUTS}, wanted


def _classifier_features(predictor, *texts):
    task = predictor.task
    examples = [Example(n, *each) for n, each in enumerate(zip(*texts, strict=True))]
    rows = classifier_features.encode(task, examples, predictor.tokenizer)
    rows = [one for windows in rows for one in windows]
    batch = classifier_features.pad_features(rows, task.max_seq_length)
    logits = predictor.outputs(examples, [[one] for one in rows])
    named = predictor.results(examples, logits)
    if task.kind == "regression":
        return batch, {"value": np.array([one.value for one in named], np.float32)}
    probabilities = [list(one.probabilities.values()) for one in named]
    wanted = {"probabilities": np.array(probabilities, np.float32)}
    if task.kind == "single_label":
        wanted["label"] = np.array([one.label.encode() for one in named], object)
        return batch, wanted
    labels = [
        [name.encode() if name in one.label else b"" for name in task.labels]
        for one in named
    ]
    return batch, {**wanted, "labels": np.array(labels, object)}


def _embedding_features(predictor, texts):
    rows = [row for each in predictor.features([(t,) for t in texts]) for row in each]
    assert len(rows) > len(texts)
    batch = classifier_features.pad_features(rows, predictor.task.max_seq_length)
    vectors = predictor.outputs([], [[row] for row in rows])
    return batch, {"embedding": vectors}


def _squad_features(predictor, questions, contexts):
    examples = [
        squad_files.make_example(*pair, qas_id="")
        for pair in zip(questions, contexts, strict=True)
    ]
    features = predictor.features(examples)
    assert len(features) > 2 * len(examples)
    batch = pad_squad_features(features, predictor.task.max_seq_length)
    outputs = predictor.model({name: batch[name] for name in INPUTS})
    wanted = {name: outputs[name].numpy() for name in ("start_logits", "end_logits")}
    # Compare the rows that Python decodes, without padding.
    for name, rows in zip(wanted, predictor.logits(features), strict=True):
        for mask, row, own in zip(batch["input_mask"], wanted[name], rows, strict=True):
            own = own[: mask.sum()]
            np.testing.assert_allclose(row[mask > 0], own, rtol=1e-4, atol=1e-4)
    return batch, wanted


def _ner_features(predictor, texts):
    documents = [[ner_sentences.text_sentence(text)] for text in texts]
    features = ner.convert(predictor.task, documents, predictor.tokenizer)
    batch = pad_ner_features(features, predictor.task.max_seq_length)
    logits = predictor.model({name: batch[name] for name in INPUTS})["logits"].numpy()
    tags = np.array([tag.encode() for tag in predictor.task.tags], object)
    return batch, {"tags": tags[logits.argmax(-1)], "logits": logits}


def _choice_features(predictor, prompts, choices):
    pairs = zip(prompts, choices, strict=True)
    examples = [ChoiceExample(n, p, tuple(c)) for n, (p, c) in enumerate(pairs)]
    features = predictor.features(examples)
    batch = pad_choice_features(features, predictor.task.max_seq_length)
    named = predictor.results(examples, predictor.outputs(examples, features))
    return batch, {
        "index": np.array([one.index for one in named]),
        "probabilities": np.array([one.probabilities for one in named], np.float32),
    }


def _encoded(directory, texts):
    bert = model_directory.load_encoder(directory)
    vocab = bert.tokenizer.vocab
    batch = {name: np.zeros((len(texts), 40), np.int32) for name in INPUTS}
    for row, text in enumerate(texts):
        ids = [vocab["[CLS]"], *bert.tokenizer.encode(text)[:38], vocab["[SEP]"]]
        batch["input_ids"][row, : len(ids)] = ids
        batch["input_mask"][row, : len(ids)] = 1
        batch["segment_ids"][row, 2 : len(ids)] = 1
    outputs = bert.model(batch)
    names = ("pooled_output", "sequence_output")
    return batch, {name: outputs[name].numpy() for name in names}


@pytest.mark.parametrize("kind", cases(KINDS))
def test_tokens(kind):
    batch, wanted = features_of(kind)
    found = ask(kind, TOKENS, batch)
    assert set(found) == set(wanted)
    assert_same(found, wanted)


@pytest.mark.parametrize("name", INPUTS[1:])
def test_tokens_of_unlike_shapes(name):
    """Inputs with different shapes are rejected, even if they have the same size."""
    batch, _ = features_of("label")
    rows, length = batch[name].shape
    wrong = batch[name].reshape(1, rows * length)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"{name} must have the shape"
    ):
        ask("label", TOKENS, batch | {name: wrong})


@pytest.mark.parametrize("kind", cases(KINDS))
def test_no_tokens(kind):
    batch = {name: np.zeros([0, 8], np.int32) for name in INPUTS}
    if kind == "choice":
        batch = {name: np.zeros([0, 3, 8], np.int32) for name in INPUTS}
    assert {len(value) for value in ask(kind, TOKENS, batch).values()} == {0}


def record(**columns):
    """Return a serialized `tf.train.Example` of integers."""
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for name, values in columns.items()
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


@pytest.mark.parametrize("kind", cases(BY_TOKEN))
def test_records(kind):
    # Different lengths, with zeros, with and without each optional column.
    rows = [
        ([7, 90, 91, 8, 92, 8], [1, 1, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]),
        ([7, 8], None, [0, 1]),
        ([7, 95, 96, 97, 8, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0], None),
        ([7, 99, 0, 100, 8], None, None),
    ]
    records, arrays = [], {name: np.zeros((4, 8), np.int32) for name in INPUTS}
    for number, values in enumerate(rows):
        records.append(
            record(**{n: v for n, v in zip(INPUTS, values, strict=True) if v})
        )
        size = len(values[0])
        usual = (None, [1] * size, [0] * size)
        for name, value, default in zip(INPUTS, values, usual, strict=True):
            arrays[name][number, :size] = value or default
    found = ask(kind, EXAMPLES, {"examples": records})
    assert_same(ask(kind, TOKENS, arrays), found)
    # Only the padding depends on the other records of the batch.
    alone = ask(kind, EXAMPLES, {"examples": records[1:2]})
    for name, value in alone.items():
        by_token = "logits" in name or name in ("tags", "sequence_output")
        row = found[name][1:2, :2] if by_token else found[name][1:2]
        assert_same({name: value}, {name: row})


@pytest.mark.parametrize("kind", ["label", "encoder"])
def test_no_records(kind):
    found = ask(kind, EXAMPLES, {"examples": np.zeros([0], object)})
    assert {len(value) for value in found.values()} == {0}


@pytest.mark.parametrize("kind", cases(SQUAD))
def test_answers_are_parts_of_the_context(kind):
    inputs = texts_for(kind, 20, 7)
    found = ask(kind, SERVING, inputs)
    nothing = found.get("is_impossible", np.array([not t for t in found["answer"]]))
    assert nothing.any() and not nothing.all()
    for row, context in enumerate(inputs["context"]):
        start, end = found["start"][row], found["end"][row]
        assert found["answer"][row].decode() == context[start:end]
        assert (start == end == 0) == nothing[row]


@pytest.mark.parametrize("kind", cases(TAGGING))
def test_words_and_tags(kind):
    texts = texts_for(kind, 20, 7)["text"]
    found = ask(kind, SERVING, {"text": texts})
    documents = [[ner_sentences.text_sentence(text)] for text in texts]
    predictor = load(open_kind(kind)[0])
    features = predictor.features(documents)
    tags = [rows[0] for rows in predictor.outputs(documents, features)]
    longest = max(map(len, tags))
    for row, text in enumerate(texts):
        offsets = ner_sentences.split_words(text)
        rest = longest - len(offsets)
        words = [text[start:end].encode() for start, end in offsets]
        assert found["words"][row].tolist() == words + [b""] * rest
        wanted = [tag.encode() for tag in tags[row]] + [b""] * rest
        assert found["tags"][row].tolist() == wanted
        starts, ends = ([pair[side] for pair in offsets] for side in (0, 1))
        assert found["word_starts"][row].tolist() == starts + [-1] * rest
        assert found["word_ends"][row].tolist() == ends + [-1] * rest


@pytest.mark.parametrize("kind", cases(TAGGING))
def test_entities_are_parts_of_the_text(kind):
    texts = texts_for(kind, 20, 7)["text"]
    found = ask(kind, SERVING, {"text": texts})
    names = ("entities", "labels", "starts", "ends")
    assert (found["starts"] >= 0).sum() > 20
    for text, *columns in zip(texts, *(found[name] for name in names), strict=True):
        for entity, label, start, end in zip(*columns, strict=True):
            if start < 0:
                assert (entity, label, end) == (b"", b"", -1)
            else:
                assert entity.decode() == text[start:end] != ""
                assert label in (b"LOC", b"PER")


MASKED = (
    "the [MASK] is on [MASK] .",
    "[MASK]",
    "[MASK][MASK]horse[MASK]\u0301",
    "THE Horse e\u0301 [MASK] [mask] [ MASK ]",
    "\u8001[MASK]\u5e08",
)


def test_requests_without_any_entity():
    predictor = load(open_kind("tags")[0])
    (bias,) = [w for w in predictor.model.weights if w.path.endswith("output_bias")]
    bias.assign(
        100.0 * np.eye(len(predictor.task.tags))[predictor.task.tags.index("O")]
    )
    module = ServedTagger(predictor, (16,))
    compute = signatures.of_strings(module.of_text, ("text",)).traced()
    for texts in (["on"], ["on", "", CONTEXT]):
        wanted = expected.of_tagger(predictor, texts)
        assert wanted["entities"].shape == (len(texts), 0)
        answers = compute(tf.constant(texts)).items()
        found = {name: value.numpy() for name, value in answers}
        assert_same(found, wanted)


def test_answers_of_texts_of_unlike_length_are_bounded():
    """The padded size of outputs is limited for texts of different lengths."""
    values = tf.constant([b"a"] * 3000 + [b"b"])
    of_text = tf.constant([0] * 3000 + [1])
    assert per_text(values, of_text, 1000, b"").shape == (1000, 3000)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Send fewer rows"):
        per_text(values, of_text, 2000, b"")


def test_masks():
    wanted = open_kind("masks")[1].answers[FILL_MASK](MASKED)
    assert wanted["tokens"].shape == (5, 3, 5) and len(values_of(wanted)) > 5
    assert_same(ask("masks", FILL_MASK, {"text": MASKED}), wanted)


def test_no_mask():
    found = ask("masks", FILL_MASK, {"text": ["on", "", "[MASK] is", "[mask]"]})
    assert found["tokens"].shape == (4, 1, 5)
    for row in (0, 1, 3):
        assert set(found["tokens"][row, 0]) == {b""}
        assert not found["probabilities"][row].any()
    assert found["probabilities"][2, 0].min() > 0
    assert ask("masks", FILL_MASK, {"text": ["on"]})["tokens"].shape == (1, 0, 5)
    nothing = np.zeros([0], object)
    assert ask("masks", FILL_MASK, {"text": nothing})["tokens"].shape == (0, 0, 5)


def test_masks_behind_the_cut():
    long = "on " * 61 + "[MASK] [MASK]"
    wanted = open_kind("masks")[1].answers[FILL_MASK](["on " * 61 + "[MASK]"])
    found = ask("masks", FILL_MASK, {"text": [long]})
    assert_same(found, wanted)


@pytest.mark.parametrize("kind", cases(PRETRAINED))
def test_vectors_of_tokens(kind):
    texts = texts_for(kind, 10, 3)["text"]
    found = ask(kind, SERVING, {"text": texts})
    tokenizer = open_kind(kind)[1].tokenizer
    for row, text in enumerate(texts):
        ids = [tokenizer.vocab["[CLS]"], *tokenizer.encode(text)[:62]]
        ids.append(tokenizer.vocab["[SEP]"])
        assert found["input_mask"][row].sum() == len(ids)
        assert found["input_ids"][row, : len(ids)].tolist() == ids
        assert not found["input_ids"][row, len(ids) :].any()
    batch = {name: found[name] for name in INPUTS[:2]}
    batch["segment_ids"] = np.zeros_like(found["input_ids"])
    outputs = ask(kind, TOKENS, batch)
    assert_same(found, outputs)


@pytest.mark.parametrize(
    ("text", "length"),
    [("", 8), ("on " * 6, 8), ("on " * 7, 16), ("on " * 31, 64), ("on " * 99, 64)],
)
def test_rows_are_as_long_as_they_need_to_be(text, length):
    found = ask("encoder", SERVING, {"text": ["", text]})
    assert found["sequence_output"].shape == (2, length, 16)


def nodes_of(function):
    """Return the nodes of a function and of those it calls."""
    graph = function.get_concrete_function().graph.as_graph_def()
    return [*graph.node, *(n for f in graph.library.function for n in f.node_def)]


# These depend on the server's locale, on patterns made while it runs, or on Python.
# `test_graph_export` checks the fixed patterns.
UNWANTED = {
    "StringUpper", "RegexReplace", "RegexFullMatch", "PyFunc", "EagerPyFunc",
    "UnicodeTranscode",
}  # fmt: skip


@pytest.mark.parametrize("kind", cases(KINDS))
def test_ops_that_every_server_has(kind):
    for name in open_kind(kind)[1].signatures:
        nodes = nodes_of(traced(kind, name))
        ops = {node.op for node in nodes}
        assert len(ops) > 20
        called = {op for op in ops if op.startswith("__")}
        assert {op for op in ops - called if ">" in op} == set()
        assert ops & UNWANTED == set()
        # With an encoding, lower case would follow the server's locale.
        lowering = (node for node in nodes if node.op == "StringLower")
        assert all(not node.attr["encoding"].s for node in lowering)
        assert ops - called - OPS == set()


def test_the_list_of_ops_is_an_old_one():
    newer = {name for name in dir(tf.raw_ops) if name[0].isupper()} - OPS
    assert {"MatMul", "UnicodeDecode", "BatchMatMulV3", "RaggedRange"} <= OPS
    assert newer


@pytest.mark.parametrize("heads", [True, False])
def test_a_model_without_a_pooler_has_no_pooled_output(tmp_path, heads):
    """A model without a pooler has no `pooled_output`: a new pooler would be random."""
    directory = write_without_pooler(tmp_path / "model", heads)
    export = exports.open_export(directory, lengths=(8, 16, 64))
    texts = {"text": random_texts(5, 1)}
    found = export.signatures[SERVING].traced()(tf.constant(texts["text"]))
    wanted = export.answers[SERVING](**texts)
    assert set(wanted) == {"sequence_output"} and "pooled_output" not in found
    assert_same({"sequence_output": found["sequence_output"].numpy()}, wanted)
    assert (FILL_MASK in export.signatures) == heads


@pytest.mark.parametrize("kind", cases(KINDS))
def test_samples_are_what_is_asked_for(kind):
    for name, signature in open_kind(kind)[1].signatures.items():
        if name not in (TOKENS, EXAMPLES):
            rows = samples.rows_of(name, signature.specs, (8,))
            assert all(set(row) == set(signature.specs) for row in rows)
    row = samples.first_row(open_kind(kind)[1].signatures[SERVING].specs)
    assert all(row.values())
