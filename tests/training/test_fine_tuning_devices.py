"""Fine-tuning does not depend on how batches are padded, split and distributed."""

import json

import fine_tuning_table
import numpy as np
import processes
import pytest

from official_bert.checkpoints import any_format

pytestmark = pytest.mark.slow

RUNS = {
    "one": ["one", "padded:pad_to_max_seq_length=1", "split:micro_batch_size=2"],
    "mirrored": ["two_devices", "two_devices_split:micro_batch_size=1"],
}
# The only checkpoint is the best. The first worker saves it while the second evaluates.
WORKERS = "workers:evaluated=1,save_checkpoints_steps=8"
OTHERS = ["padded", "split", "two_devices", "two_devices_split", "workers"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder of the models, name -> number of traces of its step)."""
    folder = tmp_path_factory.mktemp("fine_tuned")
    script, traced = "fine_tuning_table.py", {}
    for kind, runs in RUNS.items():
        process = processes.start(script, kind, folder, *runs)
        with processes.running(process):
            traced |= json.loads(processes.finish(process).splitlines()[-1])
    started = [
        processes.start(script, "workers", folder, WORKERS, TF_CONFIG=config)
        for config in processes.cluster()
    ]
    with processes.running(*started):
        for process in started:
            processes.finish(process)
    return folder, traced


def weights(made, name):
    with any_format.opened(made[0] / name) as checkpoint:
        return checkpoint.tensors()


@pytest.mark.parametrize("name", OTHERS)
def test_the_same_weights(made, name):
    """With different dropout before the head only, they would differ by 0.06."""
    expected, found = weights(made, "one"), weights(made, name)
    assert set(expected) == set(found)
    difference = max(np.abs(expected[key] - found[key]).max() for key in expected)
    print(f"{name}: {difference:.1e}")
    assert difference < 1e-5


def test_batches_are_of_many_lengths():
    train_set = fine_tuning_table.classifier.make_job(
        fine_tuning_table.start_of(fine_tuning_table.CONFIG),
        fine_tuning_table.TASK,
        fine_tuning_table.examples(),
    ).train_set

    def lengths(train_set):
        batches = train_set.training_batches(4, 3, 0).take(8)
        return [batch["input_ids"].shape[1] for batch in batches]

    assert len(set(lengths(train_set))) > 3
    assert lengths(train_set.of_one_length()) == [128] * 8


def test_a_new_length_is_not_traced_anew(made):
    """After the second length, the step is traced for any length."""
    _, traced = made
    assert traced["padded"] == 1
    assert max(traced.values()) <= 3, traced
