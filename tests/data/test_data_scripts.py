"""Run the two scripts like a user; only a few runs, because each takes seconds."""

import json
import subprocess
import sys

import pytest

from official_bert.data.records import examples


@pytest.fixture
def script(pytestconfig, tmp_path):
    def _script(name, *arguments):
        path = pytestconfig.rootpath / "run_scripts" / name
        return subprocess.run(
            [sys.executable, str(path), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return _script


def test_create_then_inspect(script, mini, tmp_path):
    recorded = json.loads((mini / "instances.json").read_text())["plain"]
    settings = [f"--{key}={value}" for key, value in recorded["settings"].items()]
    vocabulary = f"--vocab_file={mini / 'vocab.txt'}"
    made = script(
        "create_pretraining_data.py",
        f"--input_file={mini / 'tex*.txt'}",
        "--output_file=0.tfrecord,1.tfrecord",
        vocabulary,
        *settings,
    )
    assert made.returncode == 0, made.stderr
    assert "of text: expect about" in made.stderr
    assert made.stdout.startswith((tmp_path / "0.tfrecord.report.txt").read_text())
    (tmp_path / "0.tfrecord.report.png").unlink(
        missing_ok=True
    )  # Exists only with matplotlib.
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.tfrecord",
        "0.tfrecord.report.txt",
        "0.tfrecord.run.json",
        "1.tfrecord",
        "manifest.json",
    ]
    manifest = json.loads((tmp_path / "manifest.json").read_text())["files"]
    counts = [manifest[f"{number}.tfrecord"]["num_records"] for number in range(2)]
    assert counts == [len(records) for records in recorded["files"]]
    run = json.loads((tmp_path / "0.tfrecord.run.json").read_text())
    # The recorded settings use the original's name.
    assert "--random_seed=7" in settings
    assert run["flags"]["seed"] == 7 and "random_seed" not in run["flags"]
    assert len(run["inputs"]) == 2

    shown = script(
        "inspect_instances.py",
        "--input_file=*.tfrecord",
        vocabulary,
        "--num_instances=2",
        "--skip=1",
    )
    assert shown.returncode == 0, shown.stderr
    assert "0.tfrecord: record 1:" in shown.stdout
    assert "[MASK]«" in shown.stdout and "\033" not in shown.stdout


@pytest.mark.parametrize(
    ("flag", "status", "message"),
    [
        ("--max_predictions_per_seq=200", 1, "it must be from 1 to 125"),
        ("--output_file=.", 1, ". is a directory. Name a file in it"),
        ("--input_format=xml", 2, "--input_format=xml"),
        ("--input_file=*.text", 1, "no file matches '*.text'"),
    ],
)
def test_bad_input_is_one_sentence(script, mini, tmp_path, flag, status, message):
    made = script(
        "create_pretraining_data.py",
        f"--input_file={mini / 'text.txt'}",
        "--output_file=out.tfrecord",
        f"--vocab_file={mini / 'vocab.txt'}",
        flag,
    )
    assert made.returncode == status
    assert made.stderr.startswith("error: ") and made.stderr.count("\n") == 1
    assert message in made.stderr
    assert list(tmp_path.iterdir()) == []


def test_unmasked_records_of_words_without_spaces(script, tmp_path):
    """One pass is the default, and the segmented copy defines the words."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"使用语言模型。"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "plain.txt").write_text(
        "使用语言。\n模型。\n\n模型使用语言。\n使用。\n"
    )
    (tmp_path / "words.txt").write_text(
        "使用 语言 。\n模型 。\n\n模型 使用 语言 。\n使用 。\n"
    )
    made = script(
        "create_pretraining_data.py",
        "--input_file=plain.txt",
        "--output_file=out.tfrecord",
        "--vocab_file=vocab.txt",
        "--max_seq_length=20",
        "--max_predictions_per_seq=4",
        "--masking=dynamic",
        "--word_boundaries=words.txt",
    )
    assert made.returncode == 0, made.stderr
    entry = json.loads((tmp_path / "manifest.json").read_text())["files"][
        "out.tfrecord"
    ]
    assert (entry["masking"], entry["dupe_factor"]) == ("dynamic", 1)
    assert entry["do_whole_word_mask"] and entry["mask_id"] == 4
    written = list(examples.read_examples(str(tmp_path / "out.tfrecord")))
    assert 2 <= len(written) == entry["num_records"] <= 8
    for example in written:
        features = example.features.feature
        ids = examples.feature_values(features["input_ids"])
        continues = examples.feature_values(features["continues_word"])
        # 用, 言 and 型 are the second characters of the words.
        second = [int(tokens[index] in "用言型") for index in ids]
        assert list(continues) == second and 4 not in ids


def test_two_workers_read_a_pipe(script, pytestconfig, mini, tmp_path):
    path = pytestconfig.rootpath / "run_scripts" / "create_pretraining_data.py"
    flags = [f"--vocab_file={mini / 'vocab.txt'}", "--dupe_factor=3"]
    command = [sys.executable, str(path), *flags, "--num_workers=2"]
    made = subprocess.run(
        [*command, "--input_file=-", "--output_file=piped@2.tfrecord.gz"],
        input=(mini / "text.txt").read_bytes(),
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stderr
    assert b"records in piped-00000-of-00002.tfrecord.gz, piped-00001" in made.stderr
    assert len(list(tmp_path.glob("piped*.gz"))) == 2
    assert not list(tmp_path.glob("*.work"))

    refused = script(
        "create_pretraining_data.py",
        *flags,
        "--input_file=-",
        "--output_file=out.tfrecord",
    )
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: --input_file=- (standard input) needs --num_workers; --num_workers=1 "
        "is enough.\n"
    )
