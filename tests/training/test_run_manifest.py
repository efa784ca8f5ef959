"""`training.json`: changes that are allowed, refused, or only reported."""

import json

import numpy as np
import pytest

from official_bert.checkpoints import google
from official_bert.errors import UserError
from official_bert.training import run_manifest, runs

SETTINGS = {"bert_config": {"hidden_size": 16}, "learning_rate": 1e-4, "seed": 3}
HERE = {"replicas": 1, "intra_op_threads": 2, "tensorflow": "2.21.0"}


def save(directory, step=1):
    google.write_checkpoint(str(directory / f"model.ckpt-{step}"), {"a": np.ones(2)})


def note(directory, step, environment):
    run_manifest.note_start(directory, step, SETTINGS, environment)


def manifest(directory):
    return json.loads((directory / "training.json").read_text())


def test_same_settings_continue(tmp_path):
    run_id = run_manifest.open_run(tmp_path, SETTINGS)
    save(tmp_path)
    assert run_manifest.open_run(tmp_path, dict(SETTINGS)) == run_id
    assert manifest(tmp_path)["run_id"] == run_id


@pytest.mark.parametrize("name", list(SETTINGS))
def test_other_settings_are_refused(tmp_path, name):
    run_manifest.open_run(tmp_path, SETTINGS)
    save(tmp_path)
    before = (tmp_path / "training.json").read_bytes()
    with pytest.raises(UserError, match=f"--output_dir: .* a run with {name}"):
        run_manifest.open_run(tmp_path, {**SETTINGS, name: 5})
    assert (tmp_path / "training.json").read_bytes() == before


def test_a_run_of_another_task_is_told_as_one(tmp_path):
    run_manifest.open_run(tmp_path, SETTINGS)
    save(tmp_path)
    for_squad = {**SETTINGS, "task": {"task": "squad", "doc_stride": 128}}
    wanted = (
        r"holds a run of another task \(pre-training\)\. Choose another directory\.$"
    )
    for allow_changes in (False, True):
        with pytest.raises(UserError, match=wanted):
            run_manifest.open_run(tmp_path, for_squad, allow_changes)


def test_other_data_are_told_as_such(tmp_path):
    run_manifest.open_run(tmp_path, {"examples_crc32": 7})
    save(tmp_path)
    wanted = r"a run with other data \(examples_crc32 7, and now it is 8\)"
    with pytest.raises(UserError, match=wanted):
        run_manifest.open_run(tmp_path, {"examples_crc32": 8})


def test_a_setting_that_is_gone_is_a_difference(tmp_path):
    run_manifest.open_run(tmp_path, SETTINGS)
    save(tmp_path)
    with pytest.raises(UserError, match="a run with seed 3, and now it is None"):
        run_manifest.open_run(tmp_path, {k: SETTINGS[k] for k in list(SETTINGS)[:2]})


def test_other_settings_go_on_when_told_to(tmp_path, capsys):
    run_id = run_manifest.open_run(tmp_path, SETTINGS)
    save(tmp_path)
    other = {**SETTINGS, "bert_config": {"hidden_size": 32}, "seed": 4}
    assert run_manifest.open_run(tmp_path, other, allow_changes=True) == run_id
    said = capsys.readouterr().out
    assert (
        "changed settings: bert_config: hidden_size was 16 and is 32; seed was 3"
        in said
    )
    # The settings in the file change only when the run really continues.
    assert manifest(tmp_path)["settings"] == SETTINGS
    run_manifest.note_start(tmp_path, 1, other, HERE)
    assert run_manifest.open_run(tmp_path, other) == run_id
    with pytest.raises(UserError, match="seed 4, and now it is 3"):
        run_manifest.open_run(tmp_path, {**other, "seed": 3})


def test_long_lists_of_files_make_no_long_sentence(tmp_path):
    names = [f"{number}.tfrecord" for number in range(500)]
    run_manifest.open_run(tmp_path, {"input_files": names})
    save(tmp_path)
    with pytest.raises(UserError) as caught:
        run_manifest.open_run(tmp_path, {"input_files": names[1:]})
    assert "input_files ['0.tfrecord', " in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_run_that_never_saved_may_change(tmp_path):
    run_manifest.open_run(tmp_path, SETTINGS)
    run_manifest.open_run(tmp_path, {**SETTINGS, "seed": 4})
    save(tmp_path)
    run_manifest.open_run(tmp_path, {**SETTINGS, "seed": 4})


@pytest.mark.parametrize("trained_here", [True, False])
def test_a_model_without_its_run_is_not_overwritten(tmp_path, trained_here):
    if trained_here:
        run_manifest.open_run(tmp_path, SETTINGS)
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), {"a": np.ones(2)})
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError, match="holds a model .*Choose another directory"):
        run_manifest.open_run(tmp_path, SETTINGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("weights", ["model.safetensors", "tf_model.h5"])
def test_a_model_of_another_library_is_not_overwritten(tmp_path, weights):
    """This happens if --output_dir is the folder of --init_checkpoint."""
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / weights).write_bytes(b"precious")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError, match="holds a model .*Choose another directory"):
        run_manifest.open_run(tmp_path, SETTINGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_same_environment_is_noted_once_and_not_told(tmp_path, capsys):
    run_manifest.open_run(tmp_path, SETTINGS)
    for step in (0, 10, 20):
        note(tmp_path, step, HERE)
    assert manifest(tmp_path)["history"] == [{"from_step": 0, "environment": HERE}]
    assert capsys.readouterr().out == ""


def test_another_environment_is_told_and_noted(tmp_path, capsys):
    run_manifest.open_run(tmp_path, SETTINGS)
    note(tmp_path, 0, HERE)
    other = HERE | {"intra_op_threads": 4, "tensorflow": "2.20.0"}
    note(tmp_path, 10, other)
    assert capsys.readouterr().out == (
        "Resuming, not bit-exact because intra_op_threads was 2 and is 4; tensorflow "
        "was '2.21.0' and is '2.20.0'.\n"
    )
    note(tmp_path, 20, other)
    assert capsys.readouterr().out == ""
    history = manifest(tmp_path)["history"]
    assert history == [
        {"from_step": 0, "environment": HERE},
        {"from_step": 10, "environment": other},
    ]


def test_what_an_older_version_did_not_record_is_no_difference(tmp_path, capsys):
    """It is recorded from then on, and later changes are reported."""
    run_manifest.open_run(tmp_path, SETTINGS)
    note(tmp_path, 0, HERE)
    note(tmp_path, 10, HERE | {"onednn": True})
    assert capsys.readouterr().out == ""
    note(tmp_path, 20, HERE | {"onednn": False})
    assert capsys.readouterr().out == (
        "Resuming, not bit-exact because onednn was True and is False.\n"
    )
    note(tmp_path, 30, {**HERE, "replicas": 2})
    assert "onednn was False and is None" in capsys.readouterr().out


def test_steps_that_were_lost_take_their_environment_with_them(tmp_path, capsys):
    """Two threads up to step 10, four until a kill before 20, two from 10 again."""
    run_manifest.open_run(tmp_path, SETTINGS)
    note(tmp_path, 0, HERE)
    note(tmp_path, 10, HERE | {"intra_op_threads": 4})
    capsys.readouterr()
    note(tmp_path, 10, HERE)
    assert capsys.readouterr().out == ""
    assert manifest(tmp_path)["history"] == [{"from_step": 0, "environment": HERE}]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (None, None),
        ("", ""),
        ("models/uncased", "uncased"),
        ("/x/uncased/", "uncased"),
        ("y/uncased_L-12.zip", "uncased_L-12.zip"),
        ("/x/uncased/bert_model.ckpt", "uncased/bert_model.ckpt"),
        ("whole_word/bert_model.ckpt.index", "whole_word/bert_model.ckpt.index"),
        ("run/model.ckpt-20000", "run/model.ckpt-20000"),
        ("a/model.safetensors", "a/model.safetensors"),
        ("a/b/../tf_model.h5", "a/tf_model.h5"),
        ("/x/my_ckpt", "my_ckpt"),
        ("/x/model.ckpt-old", "model.ckpt-old"),
        (f"/x/models--a--b/snapshots/{'0' * 40}", f"a/b@{'0' * 40}"),
        (
            "/x/models/keras/bert/keras/bert_base_en/3",
            "keras/bert/keras/bert_base_en/3",
        ),
    ],
)
def test_a_checkpoint_is_told_by_a_name_that_is_its_own(path, name):
    """The name does not depend on the location; every release has a bert_model.ckpt."""
    assert runs._short_name(path) == name


def test_files_in_the_working_directory_have_its_name(tmp_path, monkeypatch):
    (tmp_path / "uncased").mkdir()
    monkeypatch.chdir(tmp_path / "uncased")
    assert runs._short_name("bert_model.ckpt") == "uncased/bert_model.ckpt"


def test_a_damaged_manifest_is_one_sentence(tmp_path):
    """If somebody edited the file, the run does not continue as another run."""
    run_manifest.open_run(tmp_path, SETTINGS)
    content = manifest(tmp_path)
    del content["run_id"]
    (tmp_path / "training.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="training.json is not the manifest of a run"):
        run_manifest.note_start(tmp_path, 0, SETTINGS, {})
    assert run_manifest.run_id_of(tmp_path) is None
