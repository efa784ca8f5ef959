import dataclasses
import errno
import gzip
import hashlib
import io
import json
import logging
import os
import shutil
import sys

import filelock
import pytest
import small_corpus

from official_bert import files
from official_bert.corpus import text_blocks
from official_bert.data import instances
from official_bert.data.records import examples
from official_bert.engines import (
    corpus_encoding,
    parallel_data,
    record_pieces,
    shards,
)
from official_bert.errors import UserError


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make blocks and pieces so small that little text has many."""
    small_corpus.make_small(monkeypatch)
    small_corpus.leave_out_pictures(monkeypatch)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def text():
    return "\n\n".join(small_corpus.documents()) + "\n"


@pytest.fixture
def create(tmp_path, text, mini_tokenizer, mini_folder):
    (tmp_path / "text.txt").write_text(text)

    def _create(
        name="out",
        inputs=("text.txt",),
        outputs=("0.tfrecord", "1.tfrecord"),
        num_workers=1,
        **settings,
    ):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        defaults = {
            "max_seq_length": 32,
            "max_predictions_per_seq": 5,
            "dupe_factor": 3,
        }
        return parallel_data.create_pretraining_data(
            [p if p == "-" else str(tmp_path / p) for p in inputs],
            [str(folder / output) for output in outputs],
            mini_tokenizer,
            instances.InstanceSettings(**{**defaults, **settings}),
            str(mini_folder / "vocab.txt"),
            num_workers=num_workers,
        )

    return _create


@pytest.fixture
def digests(tmp_path):
    def _digests(name="out"):
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (tmp_path / name).iterdir()
            if ".tfrecord" in path.name and path.suffix != ".png"
        }

    return _digests


def test_any_number_of_workers_gives_the_same_bytes(create, digests, tmp_path):
    entries = [create("one"), create("two", num_workers=2)]
    assert digests("one") == digests("two") != {}
    one, two = (list(found.values()) for found in entries)
    assert one == two
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == [
        "0.tfrecord",
        "0.tfrecord.report.txt",
        "1.tfrecord",
        "manifest.json",
    ]


def test_the_manifest_says_what_is_in_the_files(create, tmp_path):
    entries = create()
    num_random = num_records = 0
    for path, entry in entries.items():
        found = list(examples.read_examples(path))
        assert len(found) == entry["num_records"] > 50
        assert entry["num_documents"] == 60 and entry["dupe_factor"] == 3
        num_records += len(found)
        for example in found:
            (label,) = example.features.feature["next_sentence_labels"].int64_list.value
            num_random += label
    assert entry["share_random_next"] == num_random / num_records
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]
    assert manifest["1.tfrecord"]["num_records"] == entry["num_records"]


def test_records_are_those_of_each_pass_over_each_document(
    create, text, mini_tokenizer
):
    """The first words of documents occur as often as expected in every pass."""
    entries = create(dupe_factor=7, short_seq_prob=0.0)
    total = sum(
        sum(example.features.feature["input_mask"].int64_list.value) - 3
        for path in entries
        for example in examples.read_examples(path)
    )
    tokens = sum(len(mini_tokenizer.encode(line)) for line in text.splitlines())
    # Some tokens are truncated, and random texts are used twice.
    assert 6 * tokens < total < 11 * tokens


@pytest.mark.parametrize("kind", ["gz", "stdin", "blocks"])
def test_the_way_in_does_not_matter(create, digests, tmp_path, text, kind, monkeypatch):
    create("plain")
    inputs = ["text.txt"]
    if kind == "gz":
        inputs = ["text.txt.gz"]
        (tmp_path / inputs[0]).write_bytes(gzip.compress(text.encode()))
    elif kind == "stdin":
        inputs = ["-"]
        source = io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", source)
    else:
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 700)
    create("other", inputs)
    assert digests("plain") == digests("other")


def test_compressed_files_hold_the_same_records(create, tmp_path):
    create("plain")
    create("packed", outputs=("0.tfrecord.gz", "1.tfrecord.gz"))
    for name in ("0.tfrecord", "1.tfrecord"):
        packed = (tmp_path / "packed" / f"{name}.gz").read_bytes()
        assert gzip.decompress(packed) == (tmp_path / "plain" / name).read_bytes()


def test_unmasked_whole_words_are_made_as_well(create, tmp_path):
    create(do_whole_word_mask=True, masking="dynamic", dupe_factor=1)
    example = next(examples.read_examples(str(tmp_path / "out" / "0.tfrecord")))
    features = example.features.feature
    assert "masked_lm_ids" not in features
    assert set(features["continues_word"].int64_list.value) == {0, 1}
    assert max(features["input_ids"].int64_list.value) < 1000


class _Killed(BaseException):
    pass


def _kill_after(monkeypatch, number):
    """Stop the run at its n-th write or rename, without any cleanup."""
    calls = 0

    def counted(function):
        def call(*arguments, **named):
            nonlocal calls
            calls += 1
            if calls == number:
                raise _Killed
            return function(*arguments, **named)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_text", counted(files.write_text))
        patch.setattr(os, "replace", counted(os.replace))
        patch.setattr(os, "remove", counted(os.remove))
        patch.setattr(shutil, "copyfileobj", counted(shutil.copyfileobj))
        patch.setattr(parallel_data, "_leave", lambda folder: None)
        yield


def test_a_run_that_was_killed_anywhere_goes_on(create, digests, tmp_path, monkeypatch):
    create("whole")
    expected = digests("whole")
    kills = 0
    for number in range(1, 2000, 5):
        killed = _kill_after(monkeypatch, number)
        next(killed)
        try:
            create("out")
        except _Killed:
            kills += 1
            continue
        finally:
            next(killed, None)
        break
    assert kills > 3
    assert digests() == expected
    assert not (tmp_path / "out" / "0.tfrecord.work").exists()


@pytest.mark.parametrize("share", [0.5, 1])
def test_a_piece_that_was_appended_in_part_is_not_there_twice(
    create, digests, monkeypatch, share
):
    create("whole")

    def copy(source, target, length):
        data = source.read()
        target.write(data[: int(len(data) * share)])
        target.flush()
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", copy)
        with pytest.raises(_Killed):
            create()
    create()
    assert digests() == digests("whole")


def _made(monkeypatch):
    """Return a list that gets the number of each piece that is made."""
    numbers = []
    write = record_pieces._write

    def counted(piece, found):
        numbers.append(piece.number)
        return write(piece, found)

    monkeypatch.setattr(record_pieces, "_write", counted)
    return numbers


def _stop_at_piece(monkeypatch, create, number, **options):
    """Stop a run with a full disk when it writes a piece."""
    write = record_pieces._write

    def full(piece, found):
        if piece.number == number:
            raise UserError("The disk is full.")
        return write(piece, found)

    with monkeypatch.context() as patch:
        patch.setattr(record_pieces, "_write", full)
        with pytest.raises(UserError, match="The disk is full"):
            create(**options)


def test_finished_shards_are_kept(create, digests, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="absl")
    create("whole")
    _stop_at_piece(monkeypatch, create, 6)
    assert "Repeat the command to resume from there" in caplog.text
    first = tmp_path / "out" / "0.tfrecord"
    time = first.stat().st_mtime_ns
    assert not (tmp_path / "out" / "1.tfrecord").exists()
    numbers = _made(monkeypatch)
    create()
    assert numbers[0] == 6 and len(numbers) < 7
    assert first.stat().st_mtime_ns == time
    assert digests() == digests("whole")
    assert "starting again" not in caplog.text


@pytest.mark.parametrize(
    "changed", ["settings", "text", "deleted", "replaced", "ids", "partial"]
)
def test_what_has_changed_is_made_anew(
    create, digests, tmp_path, monkeypatch, caplog, changed
):
    caplog.set_level(logging.INFO, logger="absl")
    is_whole = changed in ("deleted", "replaced")
    _stop_at_piece(monkeypatch, create, 7 if is_whole else 2)
    settings = {}
    if changed == "settings":
        settings = {"random_seed": 6}
    elif changed == "text":
        source = tmp_path / "text.txt"
        source.write_text(source.read_text().replace("quiet", "old", 1))
    elif changed == "deleted":
        (tmp_path / "out" / "0.tfrecord").unlink()
    elif changed == "replaced":
        (tmp_path / "out" / "0.tfrecord").write_text("others")
    elif changed == "ids":
        (tmp_path / "out" / "0.tfrecord.work" / "blocks" / "000001.ids").unlink()
    else:
        pieces = tmp_path / "out" / "0.tfrecord.work" / "pieces"
        with open(pieces / "00000.partial", "r+b") as file:
            file.truncate(10)
    create(**settings)
    assert ("starting again" in caplog.text) == (changed in ("settings", "text"))
    create("whole", **settings)
    assert digests() == digests("whole")


def test_a_smaller_corpus_leaves_nothing_of_the_larger(
    create, digests, tmp_path, monkeypatch, text
):
    _stop_at_piece(monkeypatch, create, 2)
    (tmp_path / "text.txt").write_text(text[:1000])
    create()
    create("whole")
    assert digests() == digests("whole")


def test_a_second_run_on_the_same_output_is_refused(create, tmp_path):
    work = tmp_path / "out" / "0.tfrecord.work"
    work.mkdir(parents=True)
    with filelock.FileLock(work / ".lock"):
        with pytest.raises(UserError, match="another process is using"):
            create()
        assert work.exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("\n\n", {}, "contains no text"),
        (
            "one\n",
            {"next_sentence_fix": True},
            "No sentence is followed by another one",
        ),
        ("one\n", {"num_workers": 0}, "--num_workers is 0"),
        ("one\n", {"outputs": ("../text.txt/a",)}, "text.txt is a file"),
        # The folder `none` does not exist, and is removed again.
        ("\n\n", {"outputs": ("none/a",)}, "contains no text"),
        ("one\n", {"outputs": ("../text.txt",)}, "is also an input"),
    ],
)
def test_bad_input_is_a_sentence(create, tmp_path, text, options, message):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        create(**options)
    assert os.listdir(tmp_path / "out") == []


def test_a_work_folder_that_cannot_be_made_is_a_sentence(create, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.tfrecord.work").write_text("")
    with pytest.raises(UserError, match="0.tfrecord.work is not a folder"):
        create()


def test_text_that_cannot_be_read_leaves_no_work_folder(create, tmp_path):
    (tmp_path / "bad.txt.gz").write_bytes(gzip.compress(b"text\n" * 999)[:30])
    with pytest.raises(UserError, match="is not a complete gzip file"):
        create(inputs=("bad.txt.gz",))
    assert os.listdir(tmp_path / "out") == []


def test_a_file_on_another_disk_than_the_pieces(create, digests, monkeypatch):
    create("whole")
    replace, refused = os.replace, []

    def other_disk(source, target):
        if str(target).endswith("1.tfrecord") and ".partial" in str(source):
            refused.append(target)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return replace(source, target)

    monkeypatch.setattr(os, "replace", other_disk)
    create()
    assert len(refused) == 1 and digests() == digests("whole")


@pytest.mark.parametrize("output", ["pipe", "../vocab.txt"])
def test_what_no_records_may_replace(create, tmp_path, mini_folder, output):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "pipe")
    if output == "../vocab.txt":
        (tmp_path / "vocab.txt").symlink_to(mini_folder / "vocab.txt")
    with pytest.raises(UserError, match="is not a regular file|is also an input"):
        create(outputs=["0.tfrecord", output])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["pipe"]


def test_the_counts_of_pieces_are_not_kept_in_memory(create, monkeypatch):
    """Counts (a megabyte per piece) are not kept: large corpora have many pieces."""
    made = []
    describe, make_shards = parallel_data.describe, shards.make_shards

    def look(pieces, *others):
        assert iter(pieces) is pieces  # They are read one after another.
        return describe(pieces, *others)

    def remember(*arguments):
        made.extend(make_shards(*arguments))
        return made

    monkeypatch.setattr(parallel_data, "describe", look)
    monkeypatch.setattr(shards, "make_shards", remember)
    create()
    kept = [facts for shard in made for facts in shard.facts]
    assert len(kept) > 4 and all(facts.num_records for facts in kept)
    assert not any(facts.labels or facts.lengths for facts in kept)


def test_what_a_block_s_ids_depend_on():
    part = text_blocks.TextPart("text.txt", 1, b"the light\n", False)
    block = text_blocks.TextBlock(0, 0, (part,), 0)
    one = corpus_encoding.Encoding("vocab.txt", "sha", True, False, "lines", 32, 1)

    def digest(**changes):
        return dataclasses.replace(one, **changes).digest_of(block)

    assert digest(vocab_file="copy/vocab.txt") == digest()
    for name in ("vocab_sha256", "input_format"):
        assert digest(**{name: "other"}) != digest()
    assert len({digest(), digest(do_lower_case=False), digest(whole_words=True)}) == 3
