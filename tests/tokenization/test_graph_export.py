"""The tokenizer in a SavedModel: its ops, and that it needs only TensorFlow."""

import os
import pathlib
import pickle
import re
import subprocess
import sys

import graph_checks
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

CODE_POINTS = graph_checks.special_code_points()[::4]
CHILD = pathlib.Path(__file__).with_name("tokenize_saved.py")


class Tokenizers(tf.Module):
    """Tokenizers of both casings, with a signature that returns all pieces in order."""

    def __init__(self, uncased, cased):
        super().__init__()
        self.tokenizers = {"uncased": uncased.graph, "cased": cased.graph}

    def signature(self, name):
        def tokenize(texts):
            pieces = self.tokenizers[name](texts)
            flat = {key: column.values for key, column in vars(pieces).items()}
            return {**flat, "lengths": pieces.ids.row_lengths()}

        function = tf.function(tokenize, input_signature=[TEXTS])
        return function.get_concrete_function()


TEXTS = tf.TensorSpec([None], tf.string, name="texts")


@pytest.fixture(scope="module")
def both_casings(tmp_path_factory):
    path = graph_checks.write_vocab(
        tmp_path_factory.mktemp("vocab") / "vocab.txt",
        graph_checks.telling_pieces(CODE_POINTS),
    )
    return {
        "uncased": graph_checks.Both(path, do_lower_case=True),
        "cased": graph_checks.Both(path, do_lower_case=False),
    }


@pytest.fixture(scope="module")
def saved(both_casings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    module = Tokenizers(**both_casings)
    signatures = {name: module.signature(name) for name in both_casings}
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return folder


def nodes_of(graph):
    """Return the nodes of a GraphDef, with those of its functions."""
    return [*graph.node, *(n for f in graph.library.function for n in f.node_def)]


def op_types(graph):
    """Return the op types of a GraphDef, with those of its functions."""
    return {node.op for node in nodes_of(graph)}


@pytest.mark.slow
def test_no_op_of_tensorflow_text_or_of_the_locale(saved):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((saved / "saved_model.pb").read_bytes())
    [graph] = [one.graph_def for one in model.meta_graphs]
    ops = op_types(graph)
    assert "UnicodeDecode" in ops and "While" in ops
    # Ops that do not belong to TensorFlow have names like "TFText>...".
    assert [op for op in ops if ">" in op] == []
    unwanted = {"StringUpper", "PyFunc", "EagerPyFunc", "UnicodeTranscode"}
    assert ops & unwanted == set()
    lowering = [node for node in nodes_of(graph) if node.op == "StringLower"]
    # With an encoding, it would follow the locale and the Unicode version of ICU.
    assert {node.attr["encoding"].s for node in lowering} == {b""}


def test_regular_expressions_name_code_points(saved):
    """Classes such as \\pL or [[:punct:]] would depend on the version of a library."""
    signature = tf.saved_model.load(str(saved)).signatures["uncased"]
    nodes = nodes_of(signature.graph.as_graph_def())
    patterns = {node.attr["pattern"].s.decode() for node in nodes if "Regex" in node.op}
    assert len(patterns) == 2
    for pattern in patterns:
        assert re.fullmatch(r"\[(\\x{[0-9A-F]+}-\\x{[0-9A-F]+})+\]\*?", pattern)


def test_ops_that_read_strings(saved):
    signature = tf.saved_model.load(str(saved)).signatures["uncased"]
    ops = op_types(signature.graph.as_graph_def())
    reading = {op for op in ops if re.search("String|Unicode|Regex|Utf|UTF|Lookup", op)}
    assert reading == {
        "LookupTableFindV2",
        "StaticRegexFullMatch",
        "StaticRegexReplace",
        "StringLength",
        "StringLower",
        "StringSplitV2",
        "UnicodeDecode",
        "UnicodeEncode",
    }


def test_a_process_with_tensorflow_alone_under_a_turkish_locale(
    saved, both_casings, tmp_path
):
    texts = [b"TITLE I \xc4\xb0stanbul", "ΟΔΟΣ".encode(), b"", b" \xff"]
    texts += graph_checks.in_forms(CODE_POINTS, ("{}", "aΣ{}\u0301b"))
    texts += graph_checks.random_texts(CODE_POINTS, 300, seed=8)
    texts += graph_checks.random_bytes(500, seed=9)
    (tmp_path / "texts").write_bytes(pickle.dumps(texts))
    subprocess.run(
        [sys.executable, str(CHILD), str(saved), "texts", "pieces"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "tr_TR.UTF-8", "CUDA_VISIBLE_DEVICES": "-1"},
        check=True,
    )
    answers = pickle.loads((tmp_path / "pieces").read_bytes())
    # This is the lower case in that process's locale, if TensorFlow computed it.
    assert answers["lower"] == "tıtle"
    assert answers["imported"] == []
    for casing, both in both_casings.items():
        expected = [graph_checks.expected_pieces(both.python, text) for text in texts]
        flat = [piece for row in expected for piece in row]
        found = answers[casing]
        assert found["lengths"] == [len(row) for row in expected]
        assert [*zip(found["ids"], found["starts"], found["ends"], strict=True)] == flat
