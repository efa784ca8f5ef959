"""What goes wrong with a store is one sentence, and the run resumes without a loss.

test_store_clients.py runs this inside `private_store.py`.
"""

import time

import numpy as np
import pytest
import record_files
import store_client
import torture
import warm_python
from pretraining_runs import tensors
from record_files import MINI, MINI_CONFIG

from official_bert import files
from official_bert.checkpoints import names

BUCKET = "gs://bucket"
STEPS, EVERY = 300, 10
LIMIT = 600


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Children need not import TensorFlow."""

    def start_child(command, log, environment):
        log.write_bytes(b"")
        return warm_python.start(command, env=environment, log=log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torture, "start_child", start_child)
        yield


RECORDS = f"{BUCKET}/inputs/0.tfrecord"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The folder of the same records on this machine; they are in the store, too."""
    folder = tmp_path_factory.mktemp("records")
    record_files.write_mini(folder, manifest=True)
    (folder / "config.json").write_text(MINI_CONFIG.to_json_string())
    (folder / "vocab.txt").write_bytes((MINI / "vocab.txt").read_bytes())
    for path in folder.iterdir():
        files.copy(path, f"{BUCKET}/inputs/{path.name}")
    return folder


@pytest.fixture(autouse=True)
def no_faults():
    yield
    store_client.configure()


def flags_of(inputs, output, **changes):
    values = {
        "bert_config_file": f"{inputs}/config.json",
        "input_file": f"{inputs}/*.tfrecord",
        "vocab_file": f"{inputs}/vocab.txt",
        "output_dir": output,
        "do_train": True,
        "train_batch_size": 16,
        "learning_rate": 5e-3,
        "num_train_steps": STEPS,
        "num_warmup_steps": 10,
        "save_checkpoints_steps": EVERY,
        "iterations_per_loop": 1,
        **changes,
    }
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.fixture(scope="module")
def whole(inputs, tmp_path_factory):
    """The end of a local run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    store_client.run_well("run_pretraining", *flags_of(inputs, folder))
    return tensors(folder / f"model.ckpt-{STEPS}")


def sentence_of(status, output):
    """Return the one sentence that a refused command ends with."""
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    assert status == 1 and len(lines) == 1 and "Traceback" not in output, output[-3000:]
    return lines[0]


def refused(*flags):
    return sentence_of(*store_client.run("run_pretraining", *flags))


def interrupted(flags, log, change):
    """Start a run; change something after its second checkpoint; return its end."""
    line, give_up = f"step {2 * EVERY + 2}/".encode(), time.monotonic() + LIMIT
    with torture.started([str(torture.SCRIPT), *flags], log) as child:
        while line not in log.read_bytes():
            assert child.poll() is None and time.monotonic() < give_up, torture.tail(
                log
            )
            time.sleep(0.01)
        change()
        status = child.wait(timeout=LIMIT)
    return sentence_of(status, store_client.without_noise(log.read_text()))


def assert_resumes_without_a_loss(flags, output, whole):
    """The checkpoints are complete, and the same command ends as a local run does."""
    steps = names.numbered_checkpoints(output)
    assert steps and steps[-1] >= 2 * EVERY
    said = store_client.run_well("run_pretraining", *flags)
    assert f"resumes at step {steps[-1]}." in said
    ours = tensors(f"{output}/model.ckpt-{STEPS}")
    assert ours.keys() == whole.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


@pytest.mark.parametrize("flag", ["input_file", "vocab_file", "output_dir"])
def test_a_wrong_bucket(inputs, flag):
    wrong = {flag: "gs://no-such-bucket/x"}
    flags = flags_of(f"{BUCKET}/inputs", f"{BUCKET}/wrong")
    sentence = refused(*flags, *[f"--{n}={v}" for n, v in wrong.items()])
    assert "gs://no-such-bucket/x" in sentence
    remedies = {
        "input_file": ("check the bucket and the name", "no file matches"),
        "vocab_file": ("gs://no-such-bucket/x does not exist. Use the vocabulary of",),
        "output_dir": ("check the bucket and the name",),
    }
    assert any(words in sentence for words in remedies[flag])
    assert not names.numbered_checkpoints(f"{BUCKET}/wrong")


@pytest.mark.parametrize(
    "faults",
    [{"deny": {"inputs/": 403}}, {"deny_writes": {"forbidden/": 403}}],
    ids=["reading", "writing"],
)
def test_missing_permission(inputs, faults):
    store_client.configure(**faults)
    sentence = refused(*flags_of(f"{BUCKET}/inputs", f"{BUCKET}/forbidden"))
    assert "permission is denied: check the access rights" in sentence
    assert BUCKET in sentence


def test_missing_credentials(inputs):
    store_client.configure(token=True)
    sentence = refused(*flags_of(f"{BUCKET}/inputs", f"{BUCKET}/nobody"))
    assert "the store asks for credentials: log in" in sentence


def test_a_deleted_object(inputs, whole, tmp_path):
    output = f"{BUCKET}/deleted"
    flags = flags_of(f"{BUCKET}/inputs", output)
    try:
        sentence = interrupted(
            flags, tmp_path / "log", lambda: store_client.delete(RECORDS)
        )
    finally:
        files.copy(inputs / "0.tfrecord", RECORDS)
    assert f"{RECORDS}: it does not exist" in sentence
    assert_resumes_without_a_loss(flags, output, whole)


# name -> (what goes wrong during the run, what the sentence says).
DURING = {
    "changed records": ({"deny": {"0.tfrecord": 412}}, "changed it at the same time"),
    "quota of records": ({"deny": {"0.tfrecord": 429}}, "the quota of the store"),
    "quota of uploads": ({"deny_writes": {"": 429}}, "the quota of the store"),
    "no more permission": ({"deny_writes": {"": 403}}, "permission is denied"),
}


@pytest.mark.parametrize("name", DURING)
def test_during_a_run(inputs, whole, tmp_path, name):
    faults, words = DURING[name]
    output = f"{BUCKET}/{name.replace(' ', '-')}"
    flags = flags_of(f"{BUCKET}/inputs", output)
    sentence = interrupted(
        flags, tmp_path / "log", lambda: store_client.configure(**faults)
    )
    assert words in sentence and BUCKET in sentence
    store_client.configure()
    assert_resumes_without_a_loss(flags, output, whole)


def test_a_checkpoint_that_cannot_be_read_now_is_kept(inputs, whole, tmp_path):
    """A refused request does not show that a checkpoint is damaged."""
    output = f"{BUCKET}/unreadable"
    flags = flags_of(f"{BUCKET}/inputs", output)
    interrupted(flags, tmp_path / "log", lambda: store_client.delete(RECORDS))
    files.copy(inputs / "0.tfrecord", RECORDS)
    newest = names.numbered_checkpoints(output)[-1]
    store_client.configure(deny={f"model.ckpt-{newest}.data": 403})
    assert f"model.ckpt-{newest}" in refused(*flags)
    store_client.configure()
    assert names.numbered_checkpoints(output)[-1] == newest
    assert_resumes_without_a_loss(flags, output, whole)
