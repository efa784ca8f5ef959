"""Files by URL, with the file system for `file://`."""

import gzip

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")

from official_bert.engines.spark import files as spark_files
from official_bert.errors import UserError


@pytest.fixture
def url(tmp_path):
    for name in ("a/1.txt", "a/2.txt", "b/1.txt", "b/c/1.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return f"file://{tmp_path}"


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("a/*.txt", ["a/1.txt", "a/2.txt"]),
        ("*/1.txt", ["a/1.txt", "b/1.txt"]),
        ("b/1.txt", ["b/1.txt"]),
        ("a/[2-9].txt", ["a/2.txt"]),
    ],
)
def test_globs(url, pattern, names):
    found = spark_files.find_inputs(f"{url}/{pattern}")
    assert found == [f"{url}/{name}" for name in names]


def test_what_matches_nothing_is_an_error(url):
    for pattern in ("a/3*", "none/*"):
        with pytest.raises(UserError, match="--input_file: .*(no file|cannot list)"):
            spark_files.find_inputs(f"{url}/{pattern}")
    with pytest.raises(UserError, match="--runner=spark cannot read the standard"):
        spark_files.find_inputs("-")


def test_a_file_gets_its_name_when_it_is_whole(url, tmp_path):
    with spark_files.written(f"{url}/new") as file:
        file.write(b"one")
        assert not (tmp_path / "new").exists()
    with open(tmp_path / "two", "wb") as target:
        spark_files.append(f"{url}/new", target)
    assert (tmp_path / "two").read_bytes() == b"one"
    assert spark_files.size_of(f"{url}/new") == 3
    with pytest.raises(RuntimeError), spark_files.written(f"{url}/half") as file:
        file.write(b"half")
        raise RuntimeError
    assert not list(tmp_path.glob("half*"))
    with (
        pytest.raises(UserError, match="Cannot write .*none/new"),
        spark_files.written(f"{url}/none/new"),
    ):
        pass


def test_text_is_unpacked(url, tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"text"))
    for path in (f"{url}/t.gz", str(tmp_path / "t.gz")):
        with spark_files.open_text(path) as source:
            assert source.read() == b"text"


def test_a_folder_of_another_run_stays(url, tmp_path):
    with spark_files.temporary_folder(f"{url}/work") as path:
        assert (tmp_path / "work").is_dir()
        with (
            pytest.raises(UserError, match="work already exists"),
            spark_files.temporary_folder(path),
        ):
            pytest.fail("the folder was another run's")
        (tmp_path / "work" / "file").write_text("")
    assert not (tmp_path / "work").exists()
