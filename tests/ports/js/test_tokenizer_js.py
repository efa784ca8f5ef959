"""The JavaScript port gives the same ids as Python, for every string."""

import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import make_tokenizer_js
import pytest
from marks import slow
from places import MINI, ROOT

from official_bert.export.tflite import golden_tokens
from official_bert.tokenization import FullTokenizer, characters

NODE = shutil.which("node")
RUNNER = pathlib.Path(__file__).with_name("tokenizer_runner.js")
CASINGS = pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
VOCAB = MINI / "vocab.txt"
SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

# Contexts of a character: alone, in a word, next to sigmas, between marks.
FORMS = ("{}", "a{}", "{}b", "a{}b")
LOWER_FORMS = ("a{}Σ", "{}Σ", "aΣ{}", "aΣ{}b", "a\u0301{}\u302e\u1b44b", "{}\u0323")
# Blocks of equivalent characters, tested in part: Chinese, Korean syllables,
# surrogates, private use, unassigned.
ALIKE = [
    *range(0x3400, 0xA000),
    *range(0xAC00, 0xF900),
    *range(0x20000, 0xE0000),
    *range(0xE0200, 0x110000),
]
VARIED = sorted(set(range(0x110000)).difference(ALIKE))
# Characters for random texts: those that a rule treats specially.
TELLING = (
    "aAbB1 .,'-[]##_\t\n\r\v\f\0\x1c\x7f\x85\xa0\xad\u200b\u200d\u2028\u2029\u3000"
    "\ufefféÉİıßẞΣσςΆΐἈ\u0301\u0307\u0323\u0327\u0345\u0489\u302e\u1b44\u20dd\u037e\u0f73"
    "王师\u3400\uf900가각ᄀ\u1161\u11a8かば\u3099नि्ש\u05bcمُ😀🏽\ufe0f\U0002b820"
    "\U0002f800\U0001d15e\U0001d165\ufffd\ufffe\ue000\u0378\U0010ffff\ud83d\ude00\udfff"
)


class Port:
    """tokenizer.js in a Node process, which answers until it is closed."""

    def __init__(self):
        self.process = subprocess.Popen(
            [NODE, str(RUNNER), str(make_tokenizer_js.SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, **question):
        """Return the response to one request; see the runner."""
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=20) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def port():
    """Start Node once for all tests of this file."""
    if NODE is None:
        pytest.skip("Node.js is not installed (no `node` on the PATH)")
    running = Port()
    yield running
    running.close()


def both(port, vocab_file, lower):
    """Return Python's tokenizer, after the port has read the same vocabulary."""
    tokenizer = FullTokenizer(vocab_file, lower)
    text = vocab_file.read_bytes().decode("utf-8")
    assert port.ask(vocab=text, lower=lower) == list(tokenizer.vocab)
    return tokenizer


def utf16(text):
    """Return a text as in JavaScript: two adjacent surrogates form a pair."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def units(text, offset):
    """Return a character offset in UTF-16 units."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2


def expected_pieces(tokenizer, text):
    pieces, offsets = tokenizer.tokenize_with_offsets(text)
    in_units = [[units(text, start), units(text, end)] for start, end in offsets]
    return [tokenizer.encode(text), pieces, in_units]


def check_pieces(port, tokenizer, texts):
    """Compare ids, tokens and offsets of texts."""
    for text, found in zip(texts, port.ask(pieces=texts), strict=True):
        assert found == expected_pieces(tokenizer, text), repr(text)


def check_words(port, tokenizer, texts):
    """Compare the words of texts, independent of the vocabulary."""
    for text, found in zip(texts, port.ask(words=texts), strict=True):
        expected = tokenizer.basic_tokenizer.tokenize(text)
        if found != [utf16(word) for word in expected]:
            raise AssertionError(f"{text!r}: {found}, in Python {expected}")


def test_the_table_in_the_file_is_what_its_script_writes():
    source = make_tokenizer_js.SOURCE.read_text(encoding="utf-8")
    assert make_tokenizer_js.with_table(source) == source
    assert source.isascii()  # It may be served without a charset.
    assert len(source) < 64 * 1024


def test_a_syllable_that_does_not_decompose_by_rule_is_refused():
    with pytest.raises(ValueError, match=r"U\+AC01"):
        make_tokenizer_js.folded_entries({0xAC01: "a"})


def test_the_engine_is_asked_nothing_about_unicode():
    source = make_tokenizer_js.SOURCE.read_text(encoding="utf-8")
    code = "\n".join(line.partition("//")[0] for line in source.split("\n"))
    for name in ("toLowerCase", "toLocale", "normalize", "trim", r"\s", r"\p", "Intl"):
        assert name not in code


def test_the_script_runs_in_any_directory(tmp_path):
    """The script runs in a checkout without an installed package."""
    shutil.copytree(make_tokenizer_js.SOURCE.parent, tmp_path / "ports" / "js")
    (tmp_path / "official_bert").symlink_to(ROOT / "official_bert")
    source = tmp_path / "ports" / "js" / "tokenizer.js"
    table = make_tokenizer_js.table_section()
    source.write_text(source.read_text().replace(table, ""))
    script = source.with_name("make_tokenizer_js.py")
    without_path = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([sys.executable, script], cwd="/", env=without_path, check=True)
    assert source.read_bytes() == make_tokenizer_js.SOURCE.read_bytes()


def test_the_table_is_the_shipped_one(port):
    table, found = characters.load_table(), port.ask(table=True)
    for name, values in {
        "category": table.category,
        "combiningClass": table.combining_class,
        "sigmaContext": table.sigma_context,
    }.items():
        assert found[name] == hashlib.sha256(values).hexdigest()
    folded = {c: "".join(map(chr, text)) for c, text in found["folded"]}
    assert folded == table.folded


@pytest.mark.comparison
@CASINGS
def test_mini_recordings(port, lower):
    tokenizer = both(port, VOCAB, lower)
    lines = (MINI / "tokenization.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    texts = [row["text"] for row in rows]
    recorded = [row["uncased" if lower else "cased"] for row in rows]
    assert [found[0] for found in port.ask(pieces=texts)] == recorded
    check_pieces(port, tokenizer, texts)


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("recording", "vocabulary", "lower"),
    [
        ("uncased", "bert-base-uncased", True),
        slow("cased", "bert-base-cased", False),
        slow("chinese", "bert-base-chinese", True),
        ("multilingual_cased", "bert-base-multilingual-cased", False),
    ],
)
def test_large_recordings(port, shared, recording, vocabulary, lower):
    both(port, shared / "data/vocab" / vocabulary / "vocab.txt", lower)
    name = shared / "golden/tokenization" / f"{recording}.jsonl.gz"
    with gzip.open(name, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) > 3000
    found = port.ask(pieces=[row["text"] for row in rows])
    for row, (ids, _, _) in zip(rows, found, strict=True):
        assert ids == row["ids"], repr(row["text"])


@pytest.mark.slow
@CASINGS
def test_every_code_point_in_words(port, lower):
    tokenizer = both(port, VOCAB, lower)
    code_points = VARIED + random.Random(1).sample(ALIKE, 4000)
    forms = FORMS + LOWER_FORMS if lower else FORMS
    template = " | ".join(forms)
    for first in range(0, len(code_points), 4096):
        chars = map(chr, code_points[first : first + 4096])
        check_words(port, tokenizer, [template.replace("{}", char) for char in chars])


@pytest.fixture(scope="module")
def telling_vocab(tmp_path_factory):
    """Return a vocabulary of the special characters, so that few words are unknown."""
    folded = characters.load_table().folded
    chars = [char for char in TELLING if not "\ud800" <= char <= "\udfff"]
    chars += [one for char in chars for one in folded.get(ord(char), "")]
    chars = [char for char in chars if char not in characters.SPACES]
    pieces = [form for char in chars for form in (char, "##" + char, f"##{char}a")]
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    lines = dict.fromkeys([*SPECIAL.split("\n")[:-1], *pieces, "ab", "😀", "##😀"])
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
    return path


@CASINGS
def test_random_texts(port, telling_vocab, lower):
    tokenizer = both(port, telling_vocab, lower)
    rng = random.Random(2)
    texts = [
        utf16("".join(rng.choices(TELLING, k=rng.randrange(1, 24))))
        for _ in range(4000)
    ]
    texts += [
        utf16("".join(map(chr, rng.choices(range(0x110000), k=8)))) for _ in range(1000)
    ]
    check_words(port, tokenizer, texts)
    check_pieces(port, tokenizer, texts)


@CASINGS
def test_golden_tokens(port, lower):
    golden = golden_tokens.make(both(port, VOCAB, lower))
    texts = [vector["text"] for vector in golden["texts"]]
    for vector, words in zip(golden["texts"], port.ask(words=texts), strict=True):
        assert words == vector["words"], repr(vector["text"])
    found = port.ask(pieces=texts)
    for vector, (ids, tokens, offsets) in zip(golden["texts"], found, strict=True):
        assert [ids, tokens] == [vector["ids"], vector["tokens"]]
        text = vector["text"]
        in_units = [[units(text, one) for one in pair] for pair in vector["offsets"]]
        assert offsets == in_units, repr(text)
    names = ("text", "text_b", "max_seq_length")
    pairs = [[vector[name] for name in names] for vector in golden["pairs"]]
    for vector, row in zip(golden["pairs"], port.ask(pairs=pairs), strict=True):
        assert row | dict.fromkeys(names) == vector | dict.fromkeys(names)


def test_every_way_to_cut_a_pair(port):
    tokenizer = both(port, VOCAB, True)
    counts = range(7)
    pairs = [
        (" ".join("a" * a), " ".join("b" * b) if b else None, length)
        for a in counts
        for b in counts
        for length in range(3, 18)
    ]
    for pair, row in zip(pairs, port.ask(pairs=pairs), strict=True):
        vector = golden_tokens.pair_vector(tokenizer, *pair)
        assert row == {name: vector[name] for name in row}, pair


def test_half_a_surrogate_pair_is_a_character_of_an_unknown_word(port, telling_vocab):
    both(port, telling_vocab, True)
    # The last two surrogates have a character between them that is removed.
    texts = ["a\ud83d b", "\ude00", "\ud83d王\ude00", "\ud83d\u0001\ude00", "😀"]
    pieces = [found[1] for found in port.ask(pieces=texts)]
    unknown = "[UNK]"
    assert pieces == [
        [unknown, "b"], [unknown], [unknown, "王", unknown], [unknown], ["😀"],
    ]  # fmt: skip


def test_long_texts(port):
    both(port, VOCAB, True)
    marks = "\u0301\u0323\u302e" * 70000
    texts = ["a" * 200000, "!" * 200000, "a" + marks, "a b " * 50000]
    counts = [len(ids) for ids, _, _ in port.ask(pieces=texts)]
    assert counts == [1, 200000, 1, 100000]


@pytest.mark.parametrize(
    "text",
    [
        SPECIAL + "a\nb\n",
        SPECIAL + "a\nb",
        SPECIAL.replace("\n", "\r\n") + " a\t\r\nb\x85\u3000\r\n",
        SPECIAL + "\u2028\na b\n\x1fc\x1c\nd\ufeff\nconstructor\n",
        SPECIAL + "a\rb\n##a\n\n",
    ],
)
def test_vocabularies_are_read_alike(port, tmp_path, text):
    path = tmp_path / "vocab.txt"
    path.write_bytes(text.encode())
    both(port, path, True)


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"vocab": "a\n", "lower": True}, "Error: The vocabulary of 1 lines has no"),
        ({"vocab": "\ufeff" + SPECIAL, "lower": True}, "byte order mark"),
        ({"vocab": SPECIAL + "a\nb\na", "lower": True}, '"a" on lines 6 and 8'),
        ({"vocab": None, "lower": True}, "TypeError: A vocabulary must be a string"),
        ({"words": [1]}, "TypeError: A text must be a string, not number"),
        ({"pairs": [["a", None, 2]]}, "maxLength is 2: it must be at least 3"),
        ({"pairs": [["a", None, 8.5]]}, "maxLength is 8.5"),
    ],
)
def test_what_is_refused(port, question, error):
    both(port, VOCAB, True)
    assert error in port.ask(**question)["error"]


def test_a_browser_gets_globals(port):
    program = (
        "const source = require('fs').readFileSync(process.argv[1], 'utf8');"
        "const page = {};"
        "require('vm').runInNewContext(source, page);"
        "console.log(Object.keys(page).sort().join());"
    )
    ran = subprocess.run(
        [NODE, "-e", program, str(make_tokenizer_js.SOURCE)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "BertTokenizer,loadCharacterTable\n"
