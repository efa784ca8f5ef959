"""The steps of Spark's workers, without Spark, write the parallel mode's files."""

import contextlib
import gzip

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")

from engines import small_corpus
from tables_in_memory import Session, Table

from official_bert.data import instances
from official_bert.engines import parallel_data, word_counting
from official_bert.engines.spark import pipeline, session, word_counts
from official_bert.errors import UserError

SMALL = {"max_seq_length": 32, "max_predictions_per_seq": 5, "dupe_factor": 3}
CLUSTER = session.SparkSettings("spark://host:7077")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make blocks and pieces so small that little text has many."""
    small_corpus.leave_out_pictures(monkeypatch)
    small_corpus.make_small(monkeypatch)


@pytest.fixture
def spark(monkeypatch):
    """Run the engine on tables in memory."""
    spark = Session()
    monkeypatch.setattr(
        session, "running", lambda *arguments: contextlib.nullcontext(spark)
    )
    return spark


@pytest.fixture
def text_files(tmp_path):
    documents = small_corpus.documents()
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    plain.write_text("\n\n".join(documents[:40]))
    packed.write_bytes(gzip.compress("\n\n".join(documents[40:]).encode()))
    return [str(plain), str(packed)]


@pytest.fixture
def create(tmp_path, mini_tokenizer, mini_folder):
    """Return a function that makes records in a folder, with one engine."""

    def _create(engine, inputs, prefix="", outputs=("0", "1.gz"), **settings):
        folder = tmp_path / engine.__name__.rpartition(".")[2]
        folder.mkdir()
        how = {"cluster": CLUSTER} if engine is pipeline else {}
        engine.create_pretraining_data(
            inputs,
            [f"{prefix}{folder}/{output}" for output in outputs],
            mini_tokenizer,
            instances.InstanceSettings(**{**SMALL, **settings}),
            str(mini_folder / "vocab.txt"),
            **how,
        )
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    return _create


@pytest.mark.parametrize(
    "settings",
    [{}, {"masking": "dynamic", "do_whole_word_mask": True, "dupe_factor": 1}],
    ids=["static", "dynamic"],
)
def test_the_files_are_those_of_the_parallel_mode(create, spark, text_files, settings):
    expected = create(parallel_data, text_files, **settings)
    assert create(pipeline, text_files, **settings) == expected
    assert sorted(expected) == ["0", "0.report.txt", "1.gz", "manifest.json"]
    assert spark.shuffled > 100


def test_more_pieces_than_texts(create, spark, tmp_path):
    (tmp_path / "one.txt").write_text("the fish\nwalked quiet\n")
    paths, outputs = [str(tmp_path / "one.txt")], ["0", "1", "2", "3", "4"]
    expected = create(parallel_data, paths, outputs=outputs)
    assert create(pipeline, paths, outputs=outputs) == expected


def test_outputs_may_be_urls(create, spark, text_files):
    expected = create(parallel_data, text_files)
    found = create(pipeline, text_files, prefix="file://")
    for name in ("0", "1.gz", "0.report.txt"):
        assert found[name] == expected[name]
    assert found.keys() == expected.keys()


def test_words_are_counted_as_by_the_local_engine(spark, text_files, tmp_path):
    with open(text_files[0], "a") as file:
        file.write("\nbroken " + "x" * 201)
    text = (text_files, "lines", True, True)
    found = word_counts.count_words(*text, CLUSTER, str(tmp_path / "counts"))
    for one, other in zip(word_counting.count_words(*text), found, strict=True):
        assert one.words() == other.words() and one.words()
        assert one.num_too_long() == other.num_too_long()
    assert not (tmp_path / "counts").exists()


def test_lost_rows_are_noticed(create, spark, text_files, monkeypatch, tmp_path):
    repartition = Table.repartition

    def lose_one(table, *arguments):
        whole = repartition(table, *arguments)
        next(part for part in whole.parts if len(part) > 1).pop()
        return whole

    monkeypatch.setattr(Table, "repartition", lose_one)
    with pytest.raises(UserError, match="the cluster has lost data"):
        create(pipeline, text_files)
    assert not list((tmp_path / "pipeline").iterdir())


def test_no_text_is_one_sentence_and_leaves_nothing(create, spark, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(UserError, match="contains no text"):
        create(pipeline, [str(tmp_path / "empty.txt")])
    assert not list((tmp_path / "pipeline").iterdir())
