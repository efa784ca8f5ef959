"""`bert.js` outside a browser: windows, words and predictions equal Python's."""

import json
import pathlib
import random
import shutil
import subprocess

import numpy as np
import pytest
import tiny_exports
from places import ROOT

from official_bert.fine_tuning.windows import best_spans, make_spans
from official_bert.metrics.entities import to_spans
from official_bert.tasks.ner.sentences import text_sentence
from official_bert.tasks.squad.answers import Decoding, decode
from official_bert.tasks.squad.features import convert_examples
from official_bert.tasks.squad.files import make_example
from official_bert.tasks.squad.training import SquadTask
from official_bert.tokenization.full import FullTokenizer

NODE = shutil.which("node")
RUNNER = pathlib.Path(__file__).with_name("bert_runner.mjs")
TASKS = [
    SquadTask(24, 6, 5, Decoding(20, 4)),
    SquadTask(24, 7, 5, Decoding(5, 3, True)),
    SquadTask(20, 6, 5, Decoding(1, 5, True, -9.0)),
]
MARKS = "'’.-&/_@,:"


class Port:
    """The modules in a Node process."""

    def __init__(self, folder):
        # A page imports them as modules; Node needs a package.json for this.
        shutil.copytree(ROOT / "ports/js/bert", folder / "bert")
        (folder / "bert" / "package.json").write_text('{"type": "module"}')
        shutil.copy(ROOT / "ports/js/tokenizer.js", folder)
        self.process = subprocess.Popen(
            [NODE, str(RUNNER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    return tiny_exports.write_vocab(tmp_path_factory.mktemp("vocab") / "vocab.txt")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    if NODE is None:
        pytest.skip("Node.js is not installed (no `node` on the PATH)")
    running = Port(tmp_path_factory.mktemp("port"))
    yield running
    running.process.stdin.close()
    assert running.process.wait(timeout=20) == 0
    running.process.stdout.close()


def test_windows(port):
    draw = random.Random(1)
    for _ in range(100):
        sizes = draw.randrange(60), draw.randrange(1, 30), draw.randrange(1, 30)
        spans = make_spans(*sizes)
        found = [list(one) for one in spans], best_spans(spans, sizes[0]).tolist()
        assert port.ask("spans", *sizes) == list(found), sizes


@pytest.mark.parametrize("as_columns", [False, True])
def test_words(port, vocab, as_columns):
    port.ask("open", vocab.read_text("utf-8"), True, None)
    draw = random.Random(2)
    texts = tiny_exports.random_texts(200, 3)
    for _ in range(500):
        parts = draw.choices(
            ["s", "ll", "J", "U", "12", "5", "it", "é", " ", "师"], k=9
        )
        texts.append("".join(part + draw.choice(MARKS) for part in parts))
    for text in texts:
        expected = [
            [units(text, at) for at in span]
            for span in text_sentence(text, as_columns=as_columns).offsets
        ]
        assert port.ask("words", text, as_columns) == expected, text


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
@pytest.mark.parametrize("task", TASKS, ids=["1.1", "2.0", "best"])
def test_answers(port, vocab, task, lower):
    """Rows, answers and probabilities of random logits equal Python's."""
    tokenizer = FullTokenizer(str(vocab), lower)
    values = task.to_dict()
    port.ask("open", vocab.read_text("utf-8"), lower, values)
    draw = np.random.default_rng(4)
    contexts = tiny_exports.random_texts(60, 5)
    for question, context in zip(reversed(contexts), contexts, strict=True):
        example = make_example(question, context)
        features = convert_examples([example], tokenizer, *task.lengths)
        shape = len(features), task.max_seq_length
        starts, ends = draw.integers(-9, 9, (2, *shape)) / 2
        sizes = [len(one.input_ids) for one in features]
        logits = [
            [row[:size] for row, size in zip(rows, sizes, strict=True)]
            for rows in (starts, ends)
        ]
        (expected,) = decode([example], features, *logits, tokenizer, task.decoding)
        rows = starts.tolist(), ends.tolist()
        result = port.ask("answer", question, context, *rows)
        assert result["rows"] == [
            [one.input_ids.tolist(), one.segment_ids.tolist()] for one in features
        ]
        found, best = result["found"], expected.answer
        wanted = [units(context, best.start), units(context, best.end)]
        assert [found["start"], found["end"]] == wanted, (question, context)
        assert found["score"] == best.score
        assert found["probability"] == pytest.approx(best.probability)
        assert [one["score"] for one in found["candidates"]] == [
            one.score for one in expected.nbest if one.text != "empty"
        ]


def test_entities_of_tags_in_any_scheme(port, vocab):
    tags = ["O", "B-LOC", "I-LOC", "E-LOC", "S-PER", "I-PER", "L-PER", "U-LOC", "B"]
    task = {"tags": tags, "max_seq_length": 64, "doc_stride": None}
    port.ask("open", vocab.read_text("utf-8"), False, task)
    draw = random.Random(6)
    # Each word is one token of this vocabulary.
    words = ["the", "of", "in", "that", "is", "and", "on", "water", "her", "light"]
    for _ in range(100):
        numbers = [draw.randrange(len(tags)) for _ in words]
        found = port.ask("tag", " ".join(words), [[0, *numbers, 0]])
        expected = [
            [" ".join(words[start:end]), label]
            for start, end, label in to_spans([tags[number] for number in numbers])
        ]
        assert [[one["text"], one["label"]] for one in found] == expected


def units(text, position):
    """Return an offset in JavaScript's UTF-16 units."""
    return len(text[:position].encode("utf-16-le", "surrogatepass")) // 2
