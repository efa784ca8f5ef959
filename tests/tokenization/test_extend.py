"""Adding words to a vocabulary."""

import collections
import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from official_bert.errors import UserError
from official_bert.tokenization import (
    FullTokenizer,
    WordpieceTokenizer,
    extend,
    load_vocab,
)
from official_bert.tokenization.word_counts import WordCounter

HEADER = ["[PAD]", "[unused3]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
PIECES = ["bi", "##o", "##lo", "##logy", "##l", "##s", "##x", "heart", "ab", "##ab"]
CASED = ["É", "b", "##b"]


@pytest.fixture
def make_tokenizer(tmp_path):
    """Return a function: pieces -> `FullTokenizer` with the header and these pieces."""

    def make(pieces, do_lower_case=True):
        path = tmp_path / "vocab.txt"
        path.write_text("".join(f"{t}\n" for t in HEADER + pieces), encoding="utf-8")
        return FullTokenizer(path, do_lower_case)

    return make


@pytest.fixture
def tokenizer(make_tokenizer):
    return make_tokenizer(PIECES)


def counted(counts, do_lower_case=True):
    """Return a `WordCounter` with the counts of a dict."""
    counter = WordCounter(do_lower_case)
    for word, count in counts.items():
        for _ in range(count):
            counter.add(word)
    return counter


def suggested(counts, tokenizer, num_words=100, min_frequency=1, **options):
    counter = counted(counts, tokenizer.do_lower_case)
    return extend.suggest_words(counter, tokenizer, num_words, min_frequency, **options)


# Suggestions.


def test_score_is_count_times_pieces_saved(tokenizer):
    found = suggested({"bio": 7, "biologys": 3, "bilos": 4, "heart": 99}, tokenizer)
    assert [(one.word, one.count, one.pieces, one.saved) for one in found] == [
        ("biologys", 3, ("bi", "##o", "##logy", "##s"), 9),
        ("bilos", 4, ("bi", "##lo", "##s"), 8),
        ("bio", 7, ("bi", "##o"), 7),
    ]


def test_ties_go_by_count_and_then_by_word(tokenizer):
    counts = {"bis": 4, "bilox": 2, "hearts": 4, "bio": 4, "bios": 2}
    orders = [
        [one.word for one in suggested(dict(order), tokenizer)]
        for order in itertools.permutations(counts.items())
    ]
    assert orders[0] == ["bio", "bis", "hearts", "bilox", "bios"]
    assert all(order == orders[0] for order in orders)


def test_rare_words_and_all_beyond_the_number_wanted_are_left_out(tokenizer):
    counts = {"bio": 5, "bilos": 4, "hearts": 6}
    found = suggested(counts, tokenizer, min_frequency=5)
    assert [one.word for one in found] == ["hearts", "bio"]
    assert [one.word for one in suggested(counts, tokenizer, 1)] == ["bilos"]


def test_what_cannot_or_need_not_be_added_is_not_suggested(make_tokenizer):
    tokenizer = make_tokenizer(["heart", "q", "##\ud7ff", "##s", "#", "a", "##b"])
    counter = counted({"heart": 9, "zzz": 9, "q\ud7ff": 1, "ab": 1})
    # Half of a surrogate pair cannot be written as UTF-8.
    tokenizer.vocab["##\ud800"] = len(tokenizer.vocab)
    counter.add("q\ud800 q\ud800")
    assert counter.words()["q\ud800"] == 2
    found = extend.suggest_words(counter, tokenizer, 9, 1)
    assert [one.word for one in found] == ["ab", "q\ud7ff"]


def test_words_that_lower_casing_changes_once_more_are_not_suggested(tokenizer):
    """Text could never contain them. No such word is known, so the test fakes one."""
    counter = counted({"bio": 3})
    counter.words()["Bios"] = 3
    tokenizer.vocab["B"] = len(tokenizer.vocab)
    tokenizer.vocab["##i"] = len(tokenizer.vocab)
    assert len(tokenizer.wordpiece_tokenizer.tokenize_word("Bios")) > 1
    assert [w.word for w in extend.suggest_words(counter, tokenizer, 9, 1)] == ["bio"]


def test_unknown_words_are_told_of(tokenizer):
    counter = counted({"zz": 2, "bio": 5, "bioz": 3, "aa": 2, "z\ud800": 1})
    assert extend.unknown_words(counter, tokenizer) == [
        ("bioz", 3),
        ("aa", 2),
        ("zz", 2),
    ]


# The list of words.


def test_suggestions_can_be_given_back(tokenizer, tmp_path):
    found = suggested({"bio": 7, "biologys": 3, "bilos": 4}, tokenizer)
    text = extend.suggestions_text(found)
    assert text.splitlines() == [
        "word\tcount\tpieces\tsaved\tcut",
        "biologys\t3\t4\t9\tbi ##o ##logy ##s",
        "bilos\t4\t3\t8\tbi ##lo ##s",
        "bio\t7\t2\t7\tbi ##o",
    ]
    path = tmp_path / "words.tsv"
    path.write_text(text)
    words = ["biologys", "bilos", "bio"]
    assert extend.read_words(path, tokenizer) == (words, [])
    lines = text.splitlines()
    path.write_bytes("\r\n".join(["", lines[0], lines[3], "bix", "  "]).encode())
    assert extend.read_words(path, tokenizer) == (["bio", "bix"], [])


def read(tmp_path, tokenizer, *lines):
    path = tmp_path / "words.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return extend.read_words(path, tokenizer)


def test_every_mistake_of_a_list_is_told_at_once(tokenizer, tmp_path):
    mistakes = {
        "covid-19": "('covid-19') is 3 words: covid - 19",
        "deep learning": "('deep learning') is 2 words: deep learning",
        "##ology": "('##ology') contains ##, but only whole words",
        "bio##logy": "('bio##logy') contains ##, but",
        "[MASK]": "('[MASK]') is 3 words: [ mask ]",
        "血压": "('血压') is 2 words: 血 压",
        "\t12\t3": "('') is empty after tokenization",
        "\u200b": "is empty after tokenization",
        "a" * 201: f"('{'a' * 40}…') has 201 characters; words with more than 200",
        "a, b, c, d": "is 7 words: a , b , c and 2 more",
    }
    good = ["bio", "a" * 200]
    with pytest.raises(UserError) as caught:
        read(tmp_path, tokenizer, *good, *mistakes, *good)
    message = str(caught.value)
    for number, problem in enumerate(mistakes.values(), 3):
        assert f"line {number} {problem}" in message or (
            f"line {number} (" in message and problem in message
        )
    assert f"words.txt: {len(mistakes)} of its 14 words cannot become" in message
    assert "line 1 " not in message and "line 2 " not in message


def test_the_wrong_file_does_not_fill_the_screen(tokenizer, tmp_path):
    with pytest.raises(UserError, match="120 of its 120 .* and 20 more") as caught:
        read(tmp_path, tokenizer, *["one line of prose"] * 120)
    assert "line 100 " in str(caught.value) and "line 101 " not in str(caught.value)


def test_words_are_taken_as_the_tokenizer_writes_them(make_tokenizer, tmp_path):
    words, notes = read(tmp_path, make_tokenizer(PIECES), "COVID", "Résumé", "bio")
    assert words == ["covid", "resume", "bio"]
    assert [note.split("words.txt: ")[1] for note in notes] == [
        "changed to the tokenizer's form: COVID as covid (line 1), Résumé as resume "
        "(line 2)."
    ]
    words, notes = read(tmp_path, make_tokenizer(CASED, False), "COVID", "Résumé")
    assert (words, notes) == (["COVID", "Résumé"], [])


def test_words_that_are_there_are_passed_over(tokenizer, tmp_path):
    words, notes = read(tmp_path, tokenizer, "Heart", "bio", "ab", "Bio", "bio")
    assert words == ["bio"]
    assert [note.split("words.txt: ")[1] for note in notes] == [
        "already in the vocabulary, skipped: Heart (line 1), ab (line 3).",
        "repeated, skipped: Bio (line 4), bio (line 5).",
    ]


@pytest.mark.parametrize("lines", [[], ["", " "], ["word\tcount\tpieces\tsaved\tcut"]])
def test_an_empty_list(tokenizer, tmp_path, lines):
    with pytest.raises(UserError, match="words.txt contains no new word"):
        read(tmp_path, tokenizer, *lines)


def test_a_list_of_words_that_are_there(tokenizer, tmp_path):
    with pytest.raises(UserError, match="no new word.*already in the voc.*heart"):
        read(tmp_path, tokenizer, "heart")


def test_a_list_that_is_not_there_or_no_text(tokenizer, tmp_path):
    with pytest.raises(UserError, match="Cannot read a list of words from .*none"):
        extend.read_words(tmp_path / "none", tokenizer)
    (tmp_path / "latin").write_bytes("café".encode("latin-1"))
    with pytest.raises(UserError, match="latin is not a list of words.*UTF-8"):
        extend.read_words(tmp_path / "latin", tokenizer)


# The ids of the words.


def test_unused_tokens_are_taken_first_by_their_ids(tokenizer):
    size = len(tokenizer.vocab)
    words = ["w1", "w2", "w3", "w4"]
    # First the ids of [unused3] and [unused1], then ids after the last token.
    assert extend.place_words(tokenizer.vocab, words) == {
        "w1": 1, "w2": 6, "w3": size, "w4": size + 1,
    }  # fmt: skip
    assert extend.place_words(tokenizer.vocab, words[:1], use_unused=False) == {
        "w1": size
    }


def test_only_tokens_that_are_named_so_are_unused():
    names = ["[unused]", "[unused1x]", "unused1", "[unused12]", "x[unused1]"]
    vocab = {name: index for index, name in enumerate(names)}
    assert extend.place_words(vocab, ["w1", "w2"]) == {"w1": 3, "w2": 5}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["\n", ""])
def test_the_new_vocabulary(tmp_path, end, last):
    """Old lines keep their bytes; a released vocabulary has a line with U+2028."""
    old = [*HEADER, "\u2028", " ab ", "heart"]
    path = tmp_path / "vocab.txt"
    path.write_bytes((end.join(old) + last).encode())
    ids = extend.place_words(load_vocab(path), ["w1", "wé", "w3"])
    data = extend.extended_vocab(path, ids)
    path.write_bytes(data)
    expected = ["[PAD]", "w1", *HEADER[2:6], "wé", "", "ab", "heart", "w3"]
    assert load_vocab(path) == {token: i for i, token in enumerate(expected)}
    lines = data.decode().split("\n")
    assert lines[7].strip("\r") == "\u2028" and lines[8].strip("\r") == " ab "
    assert data.endswith(b"heart\nw3\n")


# Effects on other words.


def test_words_that_begin_with_a_new_one_may_be_cut_differently(tokenizer):
    words = collections.Counter(
        {"bio": 5, "biology": 2, "bios": 3, "bi": 9, "abbio": 1, "heart": 4, "biz": 8}
    )
    changes = extend.changed_words(words, tokenizer, ["bio", "he"])
    assert [(c.word, c.count, c.before, c.after) for c in changes] == [
        ("bios", 3, ["bi", "##o", "##s"], ["bio", "##s"]),
        ("biology", 2, ["bi", "##o", "##logy"], ["bio", "##logy"]),
    ]
    # New words are not reported, even if they begin with another new word.
    changes = extend.changed_words(words, tokenizer, ["bio", "bios"])
    assert [c.word for c in changes] == ["biology"]
    # "biolo" is longer than "bio", and "heart" than "he".
    tokenizer.vocab["biolo"] = len(tokenizer.vocab)
    tokenizer.vocab["##gy"] = len(tokenizer.vocab)
    changes = extend.changed_words(words, tokenizer, ["bio", "he"])
    assert [c.word for c in changes] == ["bios"]


def test_a_word_can_become_unknown_and_known(tokenizer):
    words = {"bilox": 1, "zab": 2}
    changes = extend.changed_words(words, tokenizer, ["bil", "z"])
    assert [(c.word, c.before, c.after) for c in changes] == [
        ("zab", ["[UNK]"], ["z", "##ab"]),
        ("bilox", ["bi", "##lo", "##x"], ["bil", "##o", "##x"]),
    ]
    del tokenizer.vocab["##o"]
    (change,) = extend.changed_words({"bilox": 1}, tokenizer, ["bil"])
    assert change.after == ["[UNK]"]


def test_words_that_change_others_can_be_left_out(tokenizer):
    counts = {"bio": 9, "bios": 3, "bilo": 4, "heartx": 2, "bilox": 1, "heartxz": 1}
    assert [one.word for one in suggested(counts, tokenizer)] == [
        "bio", "bios", "bilo", "heartx", "bilox",
    ]  # fmt: skip
    kept = suggested(counts, tokenizer, keep_others=True)
    # "bios" and "bilox" are new words now, so they do not change. "heartxz" is [UNK]
    # with and without "heartx".
    assert [one.word for one in kept] == ["bio", "bios", "bilo", "heartx", "bilox"]
    kept = suggested(counts, tokenizer, num_words=3, keep_others=True)
    # "bilox" does not fit in, so "bilo" is omitted.
    assert [one.word for one in kept] == ["bio", "bios", "heartx"]
    kept = suggested({**counts, "biosl": 1}, tokenizer, min_frequency=2, keep_others=1)
    # "biosl" is kept, so "bios" is omitted, and therefore "bio".
    assert [one.word for one in kept] == ["heartx"]


LETTERS = st.text("abc", min_size=1, max_size=5)


@settings(max_examples=300, deadline=None)
# "bc" alone would change "bcbc". With "bcb" it stays [UNK].
@example(first=set(), inner={"bc"}, new={"bc", "bcb"}, text=["bcbc"], most=1)
@given(
    first=st.sets(LETTERS, max_size=6),
    inner=st.sets(LETTERS, max_size=6),
    new=st.sets(LETTERS, min_size=1, max_size=5),
    text=st.lists(LETTERS, max_size=20),
    most=st.integers(1, 5),
)
def test_ids_change_where_and_only_where_it_is_said(first, inner, new, text, most):
    """A tokenizer with the new words in its vocabulary confirms each prediction."""
    pieces = first | {f"##{piece}" for piece in inner}
    new -= pieces
    before = WordpieceTokenizer(frozenset(pieces))
    after = WordpieceTokenizer(frozenset(pieces | new))
    changed = {w for w in text if before.tokenize_word(w) != after.tokenize_word(w)}
    # The rule in the module's docstring.
    for word in changed:
        begun = [n for n in new if word.startswith(n)]
        head = before.tokenize_word(word)[0]
        assert any(head == "[UNK]" or len(n) > len(head) for n in begun)
    told = extend.changed_words(collections.Counter(text), _Tokenizer(before), new)
    assert {change.word for change in told} == changed - new
    ranked = sorted(new)
    kept = extend.harmless_words(set(text), _Tokenizer(before), ranked, most)
    assert len(kept) <= most and kept == [word for word in ranked if word in kept]
    with_kept = WordpieceTokenizer(frozenset(pieces.union(kept)))
    for word in set(text).difference(kept):
        assert with_kept.tokenize_word(word) == before.tokenize_word(word)
    if not changed - new:
        assert extend.harmless_words(set(text), _Tokenizer(before), ranked, 9) == ranked


class _Tokenizer:
    """A `FullTokenizer` without a file."""

    def __init__(self, wordpiece_tokenizer):
        self.wordpiece_tokenizer = wordpiece_tokenizer
        self.vocab = wordpiece_tokenizer.vocab


def test_a_new_word_is_one_token_and_old_ids_stay(tokenizer, tmp_path):
    words = ["bio", "resume"]
    ids = extend.place_words(tokenizer.vocab, words)
    path = tmp_path / "vocab.txt"
    path.write_bytes(extend.extended_vocab(path, ids))
    extended = FullTokenizer(path)
    assert extended.tokenize("Bio, Résumé BI") == ["bio", "[UNK]", "resume", "bi"]
    for token, index in tokenizer.vocab.items():
        if not token.startswith("[unused"):
            assert extended.vocab[token] == index
    text = "bi heart ab abab bilos hearts"
    assert extended.encode(text) == tokenizer.encode(text)
