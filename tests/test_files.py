"""Finding inputs and writing outputs atomically."""

import contextlib
import errno
import hashlib
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tomllib

import filelock
import pytest
from places import ROOT

from official_bert import files, given_paths
from official_bert.errors import UserError


def one_sentence(error, *words):
    text = str(error.value)
    assert "\n" not in text and text.endswith(".")
    for word in words:
        assert str(word) in text


def test_shipped_files_of_a_checkout_and_of_a_wheel(tmp_path, monkeypatch):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name, in_wheel in wheel["force-include"].items():
        assert files.shipped(name) == ROOT / name and files.shipped(name).exists()
        installed = tmp_path / in_wheel
        installed.parent.mkdir(parents=True, exist_ok=True)
        installed.touch()
        with monkeypatch.context() as patch:
            patch.setattr(files, "_PACKAGE", tmp_path / "official_bert")
            assert files.shipped(name) == installed
    assert "ports/js/tokenizer.js" in wheel["force-include"]


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        ("", []),
        (",", []),
        (["a,b", " c "], ["a,b", "c"]),
    ],
)
def test_split_list(value, parts):
    assert given_paths.split_list(value) == parts


def test_split_list_takes_paths(tmp_path):
    assert given_paths.split_list([tmp_path]) == [str(tmp_path)]


def test_patterns_keep_their_order_and_globs_are_sorted(tmp_path):
    for name in ("b.txt", "a.txt", "c.txt", "d[1].txt"):
        (tmp_path / name).write_text("")
    found = given_paths.find_input_files(f"{tmp_path}/c.txt,{tmp_path}/[ab].txt")
    assert [os.path.basename(path) for path in found] == ["c.txt", "a.txt", "b.txt"]
    # A file with exactly this name takes precedence over the glob.
    bracketed = f"{tmp_path}/d[1].txt"
    assert given_paths.find_input_files([bracketed]) == [bracketed]


def test_find_input_files_says_what_is_wrong(tmp_path):
    with pytest.raises(UserError) as error:
        given_paths.find_input_files(f"{tmp_path}/*.txt")
    one_sentence(error, "--input_file", f"{tmp_path}/*.txt")
    with pytest.raises(UserError) as error:
        given_paths.find_input_files(" , ", "--train_file")
    one_sentence(error, "--train_file", "empty")
    with pytest.raises(UserError) as error:
        given_paths.find_input_files([tmp_path])
    one_sentence(error, tmp_path, "is a directory", f"{tmp_path}/*")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(UserError) as error:
        given_paths.require_readable(path, "--vocab_file")
    one_sentence(error, "--vocab_file", path, "Permission denied")


def test_require_readable(tmp_path):
    with pytest.raises(UserError) as error:
        given_paths.require_readable(tmp_path / "none", "--vocab_file")
    one_sentence(error, "--vocab_file", tmp_path / "none", "No such file")
    (tmp_path / "some").write_text("")
    given_paths.require_readable(tmp_path / "some", "--vocab_file")


def test_require_parent(tmp_path, monkeypatch):
    given_paths.require_parent(tmp_path / "new", "--output_file")
    with pytest.raises(UserError) as error:
        given_paths.require_parent(tmp_path / "no" / "new", "--output_file")
    one_sentence(error, "--output_file", f"mkdir -p {tmp_path / 'no'}")
    with pytest.raises(UserError) as error:
        given_paths.require_parent(tmp_path, "--output_file")
    one_sentence(error, tmp_path, "is a directory")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError) as error:
        given_paths.require_parent(tmp_path / "pipe", "--output_file")
    one_sentence(error, tmp_path / "pipe", "not a regular file")
    monkeypatch.chdir(tmp_path)
    given_paths.require_parent("new", "--output_file")
    monkeypatch.setattr(files.os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(UserError) as error:
        given_paths.require_parent("new", "--output_file")
    one_sentence(error, tmp_path, "not writable")


def test_missing_folders_are_created_and_stay_only_without_an_error(tmp_path):
    paths = [tmp_path / "a/b/1", tmp_path / "a/c/2", tmp_path / "3"]
    for path in paths:
        given_paths.require_possible_file(path, "--output_file")
    assert given_paths.existing_parent(paths[0]) == str(tmp_path)
    with (
        pytest.raises(ZeroDivisionError),
        given_paths.made_parents(paths, "--output_file"),
    ):
        assert (tmp_path / "a/b").is_dir() and (tmp_path / "a/c").is_dir()
        (tmp_path / "a/c/finished").touch()
        raise ZeroDivisionError
    # Finished files are kept.
    assert sorted(tmp_path.rglob("*")) == [
        tmp_path / name for name in ("a", "a/c", "a/c/finished")
    ]
    with given_paths.made_parents(paths, "--output_file"):
        pass
    assert (tmp_path / "a/b").is_dir()
    with pytest.raises(UserError) as error:
        given_paths.require_possible_file(tmp_path / "a/c/finished/1", "--output_file")
    one_sentence(error, "--output_file", "finished is a file")
    with pytest.raises(UserError) as error:
        given_paths.require_possible_file(tmp_path / "a", "--output_file")
    one_sentence(error, tmp_path / "a", "is a directory")


def test_of_many_files_three_are_named():
    assert given_paths.named(iter("abc")) == "a, b, c"
    assert given_paths.named(map(str, range(11_000))) == "0, 1, 2 and 10997 more"


def test_an_output_that_is_an_input(tmp_path):
    (tmp_path / "text").write_text("")
    os.symlink(tmp_path / "text", tmp_path / "link")
    outputs = [str(tmp_path / "new"), str(tmp_path / "link")]
    given_paths.require_no_input(outputs, [], "--output_file")
    with pytest.raises(UserError) as error:
        given_paths.require_no_input(outputs, [str(tmp_path / "text")], "--output_file")
    one_sentence(error, "--output_file", tmp_path / "link", "is also an input")


def test_make_directory(tmp_path):
    files.make_directory(tmp_path / "a" / "b", "--output_dir")
    files.make_directory(tmp_path / "a" / "b", "--output_dir")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(UserError) as error:
            files.make_directory(path, "--output_dir")
        one_sentence(error, "--output_dir", path)


def test_a_directory_that_is_possible_is_not_made(tmp_path):
    files.require_possible_directory(tmp_path / "a" / "b", "--output_dir")
    assert not (tmp_path / "a").exists()


def test_writes_appear_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError), files.atomic_path(path) as temporary:
        with open(temporary, "w") as output:
            output.write("ne")
        assert path.read_text() == "old"
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]
    with files.atomic_path(path) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)  # One file system.
        with open(temporary, "w") as output:
            output.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_the_users_to_mend(tmp_path, monkeypatch, number):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(number, "full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(UserError) as error:
        files.write_text(path, "new")
    one_sentence(error, "No space left", path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_other_failures_of_a_write_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.write_text(tmp_path / "no" / "out.txt", "new")


def test_text_is_the_same_bytes_everywhere(tmp_path):
    files.write_text(tmp_path / "a", "é\nb\r\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\nb\r\n"
    files.write_json(tmp_path / "b", {"é": [1, 2.5]})
    assert (tmp_path / "b").read_bytes() == (
        b'{\n  "\xc3\xa9": [\n    1,\n    2.5\n  ]\n}\n'
    )
    assert files.read_json(tmp_path / "b", "x") == {"é": [1, 2.5]}


def test_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}")
    assert files.read_text(tmp_path / "a", "a text") == "{}"
    assert files.read_json(tmp_path / "a", "a config") == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": 1,\n "b" 2}', ["line 2"]),
        (b"[1]", ["not a JSON object"]),
        (b'"\xff"', ["not UTF-8"]),
        (b"", ["line 1"]),
        (None, ["No such file"]),
    ],
)
def test_json_that_is_none_names_the_file(tmp_path, data, words):
    path = tmp_path / "bert_config.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UserError) as error:
        files.read_json(path, "a BERT config")
    one_sentence(error, path, "a BERT config", *words)


def test_sha256_of(tmp_path):
    data = os.urandom(3 * 2**20 + 1)
    (tmp_path / "a").write_bytes(data)
    digest = files.sha256_of(tmp_path / "a")
    assert digest == hashlib.sha256(data).hexdigest()


# A process that locks a directory until it is told to end.
HOLDER = """
import sys
from official_bert.files import locked_directory
with locked_directory(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def held(directory):
    """Lock a directory in another process; yield it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_directory_is_held_by_one_process(tmp_path):
    with held(tmp_path) as holder:
        for flag in ("--output_dir", "--data_dir"):
            with (
                pytest.raises(UserError) as error,
                files.locked_directory(tmp_path, flag),
            ):
                pytest.fail("the block began")
            one_sentence(error, flag, tmp_path, "another process")
        holder.communicate("go\n")
        assert holder.returncode == 0
    with files.locked_directory(tmp_path):
        pass


def test_the_other_process_is_refused_too(tmp_path):
    with files.locked_directory(tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", HOLDER, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    assert done.stdout == ""
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("official_bert.errors.UserError: --output_dir: ")
    assert str(tmp_path) in last_line


def test_a_lock_goes_with_a_process_that_is_killed(tmp_path):
    with held(tmp_path) as holder:
        holder.kill()
        assert holder.wait() == -signal.SIGKILL
        with files.locked_directory(tmp_path):
            pass


def test_a_disk_without_locks(tmp_path, monkeypatch):
    def acquire(lock, timeout):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with pytest.raises(UserError) as caught, files.locked_directory(tmp_path):
        pass
    one_sentence(caught, "--output_dir", tmp_path, "No locks available")


def test_an_error_within_is_none_of_the_lock(tmp_path):
    with pytest.raises(FileNotFoundError), files.locked_directory(tmp_path):
        (tmp_path / "gone").read_text()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_disk_that_does_not_sync_directories(tmp_path, monkeypatch, number):
    """The file exists anyway; other errors are raised."""

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, "told")

    monkeypatch.setattr(files.os, "fsync", fsync)
    path = tmp_path / "text"
    told = pytest.raises(OSError) if number == errno.EIO else contextlib.nullcontext()
    with told:
        files.write_text(path, "whole")
    assert path.read_text() == "whole"


def test_a_lock_goes_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), files.locked_directory(tmp_path):
        raise RuntimeError
    with files.locked_directory(tmp_path):
        pass


def test_other_directories_are_free(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with (
        files.locked_directory(tmp_path / "one"),
        files.locked_directory(tmp_path / "other"),
    ):
        pass


def test_only_leftovers_of_writers_are_removed(tmp_path):
    directory = tmp_path / "run [1]"
    kept = {
        "model.ckpt-3.index",
        "a.tmp",
        "a.tmp.",
        "a.tmp.txt",
        "a.tmp.12x",
        "a.tmp.1-2",
        "tmp.12",
        "a.12",
        "deep/b.tmp.12",
    }
    removed = {
        "a.tmp.12",
        "model.ckpt-3.index.tmp.7",
        "b.tmp.txt.34",
        "half.tmp.1/file",
    }
    for name in kept | removed:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("")
    files.remove_leftovers(directory)
    left = {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}
    assert left == kept
    assert not (directory / "half.tmp.1").exists()


def test_what_a_killed_writer_leaves_is_a_leftover(tmp_path):
    """`remove_leftovers` matches the temporary names of `atomic_path`."""
    with files.atomic_path(tmp_path / "out.txt") as temporary:
        open(temporary, "w").close()
        files.remove_leftovers(tmp_path)
        assert os.listdir(tmp_path) == []
        open(temporary, "w").close()
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.fixture
def synced(monkeypatch):
    """Return the arguments of `os.fsync`, as (device, inode) pairs."""
    found, plain = [], os.fsync

    def note(descriptor):
        found.append(identity(os.fstat(descriptor)))
        plain(descriptor)

    monkeypatch.setattr(files.os, "fsync", note)
    return found


def identity(status):
    return status.st_dev, status.st_ino


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="no such system")
def test_a_written_file_and_then_its_name_are_synced(tmp_path, synced, monkeypatch):
    files.write_text(tmp_path / "out.txt", "new")
    places = [tmp_path / "out.txt", tmp_path]
    assert synced == [identity(os.stat(place)) for place in places]
    # A file name without a folder is in the working directory.
    monkeypatch.chdir(tmp_path)
    files.sync_directory("")
    assert synced[2:] == [identity(os.stat(tmp_path))]


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="no such system")
def test_syncing_a_directory_keeps_nothing_open(tmp_path, monkeypatch):
    def fail(descriptor):
        descriptors.append(descriptor)
        raise OSError

    descriptors = []
    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError):
        files.sync_directory(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(*descriptors)


def test_systems_that_cannot_sync_a_directory(tmp_path, synced, monkeypatch):
    monkeypatch.delattr(files.os, "O_DIRECTORY", raising=False)
    files.sync_directory(tmp_path)
    assert synced == []


def test_what_is_written_can_be_read_by_whoever_reads_other_files(tmp_path):
    (tmp_path / "plain").touch()
    with files.atomic_path(tmp_path / "out") as temporary:
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(UserError, match="pipe exists but is not a regular file"),
        files.atomic_path(tmp_path / "pipe"),
    ):
        raise AssertionError("nothing is to be written")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert not (tmp_path / "pipe").is_file()


def test_a_number_in_a_name_stands_for_so_many_files():
    assert given_paths.split_shards("a@2.tfrecord.gz, d/b, c@1") == [
        "a-00000-of-00002.tfrecord.gz",
        "a-00001-of-00002.tfrecord.gz",
        "d/b",
        "c-00000-of-00001",
    ]
    # These are ordinary names.
    names = ["me@home.tfrecord", "x@3/b.tfrecord", "a@0.tfrecord", "a@3b"]
    assert given_paths.split_shards(",".join(names)) == names


def fill(path):
    """Write a directory as a command does; return its temporary path."""
    with files.atomic_directory(path, "--to") as folder:
        (pathlib.Path(folder) / "deep").mkdir()
        (pathlib.Path(folder) / "deep" / "a").write_text("a")
        (pathlib.Path(folder) / "b").write_text("b")
    return pathlib.Path(folder)


def listed(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_directory_appears_whole(tmp_path):
    temporary = fill(tmp_path / "new")
    assert temporary.parent == tmp_path
    assert listed(tmp_path) == ["new", "new/b", "new/deep", "new/deep/a"]


@pytest.mark.parametrize("given", ["empty", ".", "link", "link/", "dangling"])
def test_a_directory_may_be_there_if_it_is_empty(tmp_path, monkeypatch, given):
    """The directory itself is kept: it may be a mount point."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "dangling").symlink_to("other")
    monkeypatch.chdir(tmp_path / "empty" if given == "." else tmp_path)
    before = os.stat(tmp_path / "empty").st_ino
    temporary = fill(given)
    place = tmp_path / ("other" if given == "dangling" else "empty")
    assert listed(place) == ["b", "deep", "deep/a"]
    assert os.stat(tmp_path / "empty").st_ino == before
    if given != "dangling":
        assert temporary.parent == place


@pytest.mark.parametrize("name", ["new", "empty"])
def test_of_a_directory_that_failed_nothing_is_left(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with (
        pytest.raises(ZeroDivisionError),
        files.atomic_directory(tmp_path / name, "--to") as folder,
    ):
        (pathlib.Path(folder) / "half").touch()
        1 / 0  # noqa: B018
    assert listed(tmp_path) == ["empty"]


def test_a_directory_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.tmp.1").touch()
    with pytest.raises(UserError) as error:
        fill(tmp_path / "full")
    one_sentence(error, "--to", "not an empty directory")
    assert listed(tmp_path) == ["full", "full/mine.tmp.1"]
    (tmp_path / "full" / "mine.tmp.1").rename(tmp_path / "full" / "unfinished.tmp.1")
    with pytest.raises(UserError) as error:
        fill(tmp_path / "full")
    one_sentence(error, "unfinished.tmp.1", "was killed")


def test_names_that_are_not_utf_8_are_written_escaped(tmp_path):
    """Old archives have such names; Python reads them with halves of pairs."""
    name = os.fsdecode(b"caf\xe9.txt")
    files.write_json(tmp_path / "a.json", {"inputs": {name: 1}})
    assert files.read_json(tmp_path / "a.json", "a list") == {"inputs": {name: 1}}
    files.write_text(tmp_path / "a.txt", f"{name} é")
    assert (tmp_path / "a.txt").read_bytes() == b"caf\\udce9.txt \xc3\xa9"
