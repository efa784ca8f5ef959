"""Spark on this machine writes the same bytes as the parallel mode."""

import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install pyspark")
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

from engines import small_corpus

from official_bert.data import instances
from official_bert.engines import parallel_data, word_counting
from official_bert.engines.spark import pipeline, session, word_counts
from official_bert.errors import UserError

SETTINGS = instances.InstanceSettings(max_seq_length=32, dupe_factor=2)


@pytest.fixture
def text_files(tmp_path):
    documents = small_corpus.documents()
    paths = [tmp_path / f"{number}.txt" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("\n\n".join(documents[20 * number : 20 * number + 20]))
    return [str(path) for path in paths]


def test_records_and_words(
    text_files, tmp_path, mini_tokenizer, mini_folder, monkeypatch
):
    small_corpus.leave_out_pictures(monkeypatch)
    small_corpus.make_small(monkeypatch)
    cluster = session.make_settings("local[2]")
    made = {}
    for name, create, how in [
        ("parallel", parallel_data.create_pretraining_data, {}),
        ("spark", pipeline.create_pretraining_data, {"cluster": cluster}),
    ]:
        folder = tmp_path / name
        folder.mkdir()
        outputs = [f"{folder}/{number}" for number in range(2)]
        vocab = str(mini_folder / "vocab.txt")
        create(text_files, outputs, mini_tokenizer, SETTINGS, vocab, **how)
        made[name] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert made["spark"] == made["parallel"]
    text = (text_files, "lines", True, True)
    found = word_counts.count_words(*text, cluster, str(tmp_path / "counts"))
    expected = word_counting.count_words(*text)
    assert [one.words() for one in found] == [one.words() for one in expected]
    (tmp_path / "half.txt").write_bytes(b"\xff\xfet\0h\0e\0")
    with pytest.raises(UserError, match="half.txt") as raised:
        word_counts.count_words(
            [str(tmp_path / "half.txt")], *text[1:], cluster, str(tmp_path / "counts")
        )
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "counts").exists()
