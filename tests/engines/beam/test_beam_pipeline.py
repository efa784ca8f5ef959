"""Records made by Apache Beam equal those of the parallel mode, byte for byte."""

import gzip
import json

import pytest
from engines import small_corpus

from official_bert.data import instances
from official_bert.engines import (
    arrivals,
    cluster_job,
    cluster_outputs,
    parallel_data,
    steps,
    word_counting,
    word_sums,
)
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import pipeline as beam_pipeline
from official_bert.engines.beam import runs as beam_runs
from official_bert.errors import UserError

pytest.importorskip(
    "apache_beam", reason="Apache Beam is not installed: pip install apache-beam"
)

from official_bert.engines.beam import word_counts as beam_word_counts

IN_THIS_PROCESS = "--runner=FnApiRunner"
TWO_PROCESSES = (
    "--runner=DirectRunner --direct_running_mode=multi_processing "
    "--direct_num_workers=2 --allow_unsafe_triggers"
)
SMALL = {"max_seq_length": 32, "max_predictions_per_seq": 5, "dupe_factor": 3}


@pytest.fixture(autouse=True)
def no_picture(monkeypatch):
    small_corpus.leave_out_pictures(monkeypatch)


@pytest.fixture
def small(monkeypatch):
    """Make blocks and pieces so small that little text has many."""
    small_corpus.make_small(monkeypatch)


@pytest.fixture
def text_files(tmp_path):
    documents = small_corpus.documents()
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    plain.write_text("\n\n".join(documents[:40]))
    packed.write_bytes(gzip.compress("\n\n".join(documents[40:]).encode()))
    return [str(plain), str(packed)]


@pytest.fixture
def create(tmp_path, mini_tokenizer, mini_folder):
    """Return a function that makes records in a folder, with a module or with Beam."""

    def _create(name, inputs, beam_options=None, outputs=("0", "1.gz"), **settings):
        folder = tmp_path / name  # Each engine creates it.
        arguments = (
            [f"{folder}/{output}" for output in outputs],
            mini_tokenizer,
            instances.InstanceSettings(**{**SMALL, **settings}),
            str(mini_folder / "vocab.txt"),
        )
        if beam_options is None:
            parallel_data.create_pretraining_data(inputs, *arguments)
        else:
            beam_pipeline.create_pretraining_data(
                inputs, *arguments, cluster=beam_runs.make_options(beam_options)
            )
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    return _create


@pytest.mark.parametrize(
    "settings",
    [{}, {"masking": "dynamic", "do_whole_word_mask": True, "dupe_factor": 1}],
    ids=["static", "dynamic"],
)
def test_the_files_are_those_of_the_parallel_mode(create, small, text_files, settings):
    expected = create("parallel", text_files, **settings)
    found = create("beam", text_files, IN_THIS_PROCESS, **settings)
    assert found == expected
    described = json.loads(found["manifest.json"])["files"]
    assert described.keys() == {"0", "1.gz"}
    assert min(entry["num_records"] for entry in described.values()) > 20
    assert sorted(found) == ["0", "0.report.txt", "1.gz", "manifest.json"]


@pytest.mark.slow
def test_several_processes_make_the_same(create, text_files):
    outputs = ["0", "1", "2"]
    expected = create("parallel", text_files, outputs=outputs)
    assert create("beam", text_files, TWO_PROCESSES, outputs=outputs) == expected


def test_files_may_be_where_only_beam_reaches(
    create, small, text_files, tmp_path, mini_tokenizer, mini_folder
):
    from remote_files import SCHEME, StandInFileSystem

    expected = create("parallel", text_files)
    StandInFileSystem.root = str(tmp_path)
    (tmp_path / "remote").mkdir()
    earlier = {"files": {"old": {"num_bytes": 1}}, "format": 1}
    (tmp_path / "remote" / "manifest.json").write_text(json.dumps(earlier))
    outputs = [f"{SCHEME}remote/0", f"{SCHEME}remote/1.gz"]
    cluster_outputs.check_output_files(outputs)
    beam_pipeline.create_pretraining_data(
        beam_files.find_inputs(f"{SCHEME}?.txt*"),
        outputs,
        mini_tokenizer,
        instances.InstanceSettings(**SMALL),
        str(mini_folder / "vocab.txt"),
        cluster=beam_runs.make_options(IN_THIS_PROCESS),
    )
    found = {path.name: path for path in (tmp_path / "remote").iterdir()}
    assert found.keys() == expected.keys()
    described = json.loads(found["manifest.json"].read_text())["files"]
    assert described.pop("old") == {"num_bytes": 1}
    assert described == json.loads(expected["manifest.json"])["files"]
    for name in ("0", "1.gz", "0.report.txt"):
        assert found[name].read_bytes() == expected[name]


def test_what_is_wrong_is_one_sentence_and_leaves_nothing(create, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "half.txt.gz").write_bytes(gzip.compress(b"the fish " * 99)[:-9])
    for name, words in [
        ("empty.txt", "contains no text"),
        ("half.txt.gz", "not a complete"),
    ]:
        with pytest.raises(UserError, match=words) as raised:
            create(f"out-{name}", [str(tmp_path / name)], IN_THIS_PROCESS)
        assert "while running" not in str(raised.value)
        assert "\n" not in str(raised.value)
        assert not (tmp_path / f"out-{name}").exists()


def test_another_run_at_work_is_not_disturbed(create, text_files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.beam").mkdir()
    taken = beam_files.temporary_folder(str(tmp_path / "out" / "0.beam"))
    with pytest.raises(UserError, match="0.beam .*no other run uses it"), taken:
        pytest.fail("the folder was another run's")
    assert (tmp_path / "out" / "0.beam").is_dir()


@pytest.mark.parametrize(
    "options, words",
    [
        ("--runner=Nonsense", "Unexpected pipeline runner: Nonsense"),
        ("--direct_num_workers=many", "--direct_num_workers: invalid int"),
        ("--runner='Direct", "No closing quotation"),
    ],
)
def test_options_that_beam_cannot_use(create, text_files, options, words):
    with pytest.raises(UserError, match=f"--beam_options: .*{words}"):
        create("out", text_files, options)


@pytest.mark.parametrize("options", [IN_THIS_PROCESS, TWO_PROCESSES])
def test_words_are_counted_as_by_the_local_engine(text_files, tmp_path, options):
    with open(text_files[0], "a") as file:
        file.write("\nbroken " + "x" * 201)
    expected = word_counting.count_words(text_files, "lines", True, True)
    found = beam_word_counts.count_words(
        text_files,
        "lines",
        True,
        True,
        beam_runs.make_options(options),
        str(tmp_path / "counts"),
    )
    for one, other in zip(expected, found, strict=True):
        assert one.words() == other.words() and one.words()
        assert one.num_too_long() == other.num_too_long()
    assert not (tmp_path / "counts").exists()


def lost_one(values):
    """Drop the last of the instances, which are tuples."""
    values = list(values)
    values.remove([value for value in values if isinstance(value, tuple)][-1])
    return values


def test_lost_data_is_noticed(create, small, text_files, monkeypatch):
    """Data lost between workers is noticed; some runners lose data."""
    write_piece = steps.write_piece
    monkeypatch.setattr(
        steps,
        "write_piece",
        lambda collected, *others: write_piece(
            (collected[0], lost_one(collected[1])), *others
        ),
    )
    with pytest.raises(UserError, match="cluster has lost data between its workers"):
        create("out", text_files, IN_THIS_PROCESS)


def test_lost_documents_and_text_are_noticed(text_files):
    layout = cluster_job.Layout({}, 2, 4, 2)
    whole = [None, 1, (0, 3, 0), 0]
    assert steps._complete_pairs(0, whole, layout) == [(0, 3, 0)]
    with pytest.raises(UserError, match="1 of 2 document passes"):
        steps._complete_pairs(0, whole[:3], layout)
    size = beam_files.size_of(text_files[0])
    arrivals.check_text_complete(size, text_files[:1], beam_files.size_of)
    arrivals.check_text_complete(
        1, text_files, beam_files.size_of
    )  # One file is compressed.
    with pytest.raises(UserError, match=f"1 of {size} bytes of text have arrived"):
        arrivals.check_text_complete(1, text_files[:1], beam_files.size_of)


def test_lost_words_are_noticed(text_files, tmp_path, monkeypatch):
    as_line = word_sums.as_line
    monkeypatch.setattr(
        word_sums,
        "as_line",
        lambda key, count: as_line(key, count - (key == b"tfish")),
    )
    with pytest.raises(UserError, match="words have arrived: the cluster has lost"):
        beam_word_counts.count_words(
            text_files,
            "lines",
            True,
            True,
            beam_runs.make_options(IN_THIS_PROCESS),
            str(tmp_path / "counts"),
        )
