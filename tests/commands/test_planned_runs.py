"""The command that flags belong to, and its steps, which equal those of the tasks."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from places import ROOT
from record_files import MINI_CONFIG
from run_settings import FINE_TUNING, make

from official_bert.command_line import planned_runs
from official_bert.command_line.planned_runs import (
    FINE_TUNING_FLAGS,
    OWN_FLAGS,
    PRETRAINING,
    command_of,
)
from official_bert.errors import UserError
from official_bert.fine_tuning.job import FineTuningSettings
from official_bert.tasks.choice.features import pad_choice_features
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.tasks.ner.features import pad_ner_features
from official_bert.tasks.squad.features import pad_squad_features
from official_bert.training.plans import program

PRINT_FLAGS = """
import importlib, json, sys
command = importlib.import_module(f"official_bert.commands.{sys.argv[1]}")
print(json.dumps(list(command.FLAGS)))
"""


@pytest.fixture(scope="module")
def flags_of_commands():
    return {
        command: set(
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", PRINT_FLAGS, command],
                    cwd=ROOT,
                    capture_output=True,
                    check=True,
                ).stdout
            )
        )
        for command in OWN_FLAGS
    }


def test_own_flags_are_of_one_command(flags_of_commands):
    for command, own in OWN_FLAGS.items():
        assert own <= flags_of_commands[command]
        for other, flags in flags_of_commands.items():
            assert other == command or not own & flags, other
    for command, flags in flags_of_commands.items():
        if command == PRETRAINING:
            assert not FINE_TUNING_FLAGS & flags
        else:
            assert flags >= FINE_TUNING_FLAGS


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("--input_file=x --do_train", "run_pretraining"),
        ("--nonext_sentence_prediction", "run_pretraining"),
        ("--task_name MRPC", "run_classifier"),
        ("-max_query_length=64 --train_file=task_name", "run_squad"),
        ("--one_sentence", "run_ner"),
        ("--noleave_out_damaged --grid", "run_swag"),
        ("--command=run_ner --num_train_epochs=3", "run_ner"),
        ("--command run_swag --task_name=MRPC", "run_swag"),
        # Unknown, and not a fine-tuning.
        ("--topology=v5e:2x2", "run_pretraining"),
        # The flag's own error message lists the commands.
        ("--command=run_nothing", "run_pretraining"),
    ],
)
def test_command_of_flags(arguments, command):
    assert command_of(arguments.split()) == command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--do_predict --train_file=x", "Add the command that you will run: --command"),
        ("--task_name=x --n_best_size=3", "--task_name of run_classifier.py, --n_best"),
    ],
)
def test_flags_of_no_command(arguments, words):
    with pytest.raises(UserError) as caught:
        command_of(arguments.split())
    assert words in str(caught.value)


LENGTH = 16
IDS = np.zeros(5, np.int32)
ONE = Features(IDS, IDS, 1, 0)
SPAN = types.SimpleNamespace(
    input_ids=IDS, segment_ids=IDS, start_position=1, end_position=2
)
TAGGED = types.SimpleNamespace(input_ids=IDS, segment_ids=IDS, label_ids=IDS)
# Command and flags -> two rows as the task pads them.
BATCHES = {
    ("run_classifier", "MRPC", None): pad_features([ONE, ONE], LENGTH),
    ("run_classifier", "glue/mrpc", None): pad_features([ONE, ONE], LENGTH),
    ("run_classifier", "STS-B", None): pad_features(
        [ONE._replace(label_id=1.0)] * 2, LENGTH
    ),
    ("run_classifier", None, "multi_label"): pad_features(
        [ONE._replace(label_id=(0, 1))] * 2, LENGTH
    )
    | {"label_ids": np.zeros((2, 2), np.float32)},
    ("run_squad", None, None): pad_squad_features([SPAN, SPAN], LENGTH),
    ("run_ner", None, None): pad_ner_features([TAGGED, TAGGED], LENGTH),
    ("run_swag", None, None): pad_choice_features([[ONE] * 4] * 2, LENGTH),
}


@pytest.mark.parametrize("given", BATCHES, ids=str)
def test_a_batch_is_that_of_the_task(monkeypatch, given):
    command, task_name, label_kind = given
    flags = types.SimpleNamespace(
        command=command,
        # A name with a slash is a dataset.
        task_name=None if "/" in str(task_name) else task_name,
        dataset=task_name if "/" in str(task_name) else None,
        label_kind=label_kind,
        max_seq_length=LENGTH,
        bilstm=False,
        feature_based=None,
        dropout=True,
    )
    monkeypatch.setattr(planned_runs, "FLAGS", flags)
    run = planned_runs.run_without_data(MINI_CONFIG)
    wanted = BATCHES[given]
    batch = run.features(2)
    assert set(batch) == set(wanted)
    for name, value in wanted.items():
        assert (batch[name].shape, batch[name].dtype) == (
            value.shape,
            tf.as_dtype(value.dtype),
        ), name
    assert run.sequences_per_row == (4 if command == "run_swag" else 1)
    settings = make(FineTuningSettings, **FINE_TUNING)
    assert len(program.export_run(run, settings, 2, 1)) > 10_000


def test_too_long_for_the_model(monkeypatch):
    flags = types.SimpleNamespace(
        command="run_squad", max_seq_length=4096, dropout=True
    )
    monkeypatch.setattr(planned_runs, "FLAGS", flags)
    with pytest.raises(UserError, match="--max_seq_length=4096 is too long"):
        planned_runs.run_without_data(MINI_CONFIG)


@pytest.mark.parametrize("dropout", [True, False])
def test_a_plan_without_dropout(dropout, monkeypatch):
    flags = types.SimpleNamespace(
        command=PRETRAINING,
        max_seq_length=16,
        max_predictions_per_seq=2,
        masked_lm_prob=None,
        dropout=dropout,
        next_sentence_prediction=True,
        pack=False,
    )
    monkeypatch.setattr(planned_runs, "FLAGS", flags)
    monkeypatch.setattr(planned_runs, "require", lambda *names: None)
    rates = planned_runs.run_without_data(MINI_CONFIG).config
    assert bool(rates.hidden_dropout_prob) is dropout
    assert bool(rates.attention_probs_dropout_prob) is dropout
