"""Settings of a training command reach its model, its steps and its messages."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI_CONFIG
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.constants import IGNORED
from official_bert.data.records.record_set import check_agreement
from official_bert.errors import UserError
from official_bert.fine_tuning import job as fine_tuning
from official_bert.fine_tuning import sweep
from official_bert.modeling.kernels import whole_program
from official_bert.modeling.layers import LayerNorm
from official_bert.modeling.multiple_choice import NO_CHOICE
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.tables.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from official_bert.tasks.choice import training as choice
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.ner import training as ner
from official_bert.training import loop, run_manifest, runs, strategies
from official_bert.training.optimizer import BertAdam, BertLamb
from official_bert.training.schedule import WarmupLinearDecay

STRATEGY = tf.distribute.get_strategy()
SETTINGS = fine_tuning_settings()


def make_state(config=MINI_CONFIG, **changes):
    settings = changed(SETTINGS, **changes)
    return runs.make_state(STRATEGY, lambda: PretrainingModel(config), settings)


def layers_of(state):
    return list(state.model._flatten_layers(include_self=False))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_the_precision(precision):
    state = make_state(precision=precision)
    assert {layer.compute_dtype for layer in layers_of(state)} == {precision}
    assert state.guard.scaled == (precision == "float16")


def test_the_seed_draws_the_weights():
    one, again, other = (
        make_state(seed=seed).model.bert.embedding_table.numpy() for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert np.mean(one == other) < 0.01


@pytest.mark.parametrize(("name", "kind"), [("adam", BertAdam), ("lamb", BertLamb)])
def test_the_optimizer_follows_the_schedule(name, kind):
    optimizer = make_state(optimizer=name).optimizer
    assert type(optimizer) is kind and optimizer.weight_decay_rate == 0.01
    schedule = WarmupLinearDecay(3e-3, 60, 6)
    for step in (0, 1, 5, 30):
        optimizer.iterations.assign(step)
        assert float(optimizer.learning_rate) == pytest.approx(float(schedule(step)))


def test_the_epsilon_of_the_config_is_in_every_layer_norm():
    state = make_state(dataclasses.replace(MINI_CONFIG, layer_norm_eps=0.25))
    found = [layer for layer in layers_of(state) if isinstance(layer, LayerNorm)]
    # One of the embeddings, two of each block, one of the masked-LM head.
    assert len(found) == 2 + 2 * MINI_CONFIG.num_hidden_layers
    assert {layer.epsilon for layer in found} == {0.25}


class AskedDataSet:
    """Records the arguments of its calls."""

    tokens_per_row = 16

    def __init__(self):
        self.asked = []

    def training_batches(self, *arguments):
        self.asked.append(("batches", *arguments))

    def batch_records(self, *arguments):
        self.asked.append(("records", *arguments))
        return []


def test_what_the_flags_say_reaches_the_updates(monkeypatch, tmp_path):
    seen, dataset = [], AskedDataSet()
    monkeypatch.setattr(
        loop, "make_train_step", lambda *arguments: seen.append(arguments)
    )
    settings = changed(
        SETTINGS,
        output_dir=str(tmp_path),
        seed=7,
        micro_batch_size=2,
        per_replica_update=True,
        xla=True,
    )
    state = make_state()
    kernels = runs.choose_kernels(STRATEGY, MINI_CONFIG, dataset, True, settings)
    training = loop._Training(STRATEGY, state, settings, 1, None, "f1", None, None)
    with pytest.raises(TypeError):
        training.make_updates(ner.OBJECTIVE, dataset, kernels)
    *_, step, given = seen[0]
    # XLA compiles the whole step, so it uses the kernels for one program.
    assert given is kernels and kernels.attention is whole_program.attention
    assert (step.seed, step.micro_batch_size, step.per_replica_update, step.xla) == (
        (7, 2, True, True)
    )
    training._keep_batch(3, dataset)
    assert dataset.asked == [("batches", 16, 7, 0, (0, 16)), ("records", 16, 7, 3)]


ONE = Features(np.array([7, 8], np.int32), np.zeros(2, np.int32), 1, 0)
TASK = ClassifierTask(SINGLE_LABEL, ("no", "yes"), ("accuracy",), 16)


@pytest.mark.parametrize(
    "change",
    [
        {"train_batch_size": 8},
        {"optimizer": "lamb"},
        {"bias_correction": True},
        {"per_replica_update": True},
        {"learning_rate": 1e-3},
        {"num_train_steps": 61},
        {"num_warmup_steps": 7},
        {"seed": 4},
        {"init_checkpoint": "a"},
        {"continue_from": "a"},
        {"pad_to_max_seq_length": True},
    ],
    ids=str,
)
def test_what_makes_another_run(change):
    job = classifier.make_job(start_of(MINI_CONFIG), TASK, [ONE])
    known = fine_tuning.fingerprint(job, SETTINGS)
    assert fine_tuning.fingerprint(job, changed(SETTINGS, **change)) != known
    again = changed(SETTINGS, output_dir="b", iterations_per_loop=5)
    assert fine_tuning.fingerprint(job, again) == known


def numbers(*shape):
    return tf.constant(np.random.default_rng(1).normal(size=shape), tf.float32)


def objective_of(kind):
    labels = () if kind == REGRESSION else ("a", "b", "c")
    return classifier.objective(dataclasses.replace(TASK, kind=kind, labels=labels))


IDS = tf.zeros([4, 6], tf.int32)
# (objective, model outputs, features).
LOSSES = {
    "tags": (
        ner.OBJECTIVE,
        {"logits": numbers(2, 4, 3)},
        {"label_ids": tf.constant([[IGNORED, 0, 2, IGNORED], [IGNORED, 1, *[-1] * 2]])},
    ),
    "choice": (
        choice.OBJECTIVE,
        {"logits": tf.concat([numbers(4, 2), tf.fill([4, 1], NO_CHOICE)], 1)},
        {
            "input_ids": tf.zeros([4, 3, 6], tf.int32),
            "choice_mask": tf.constant([[1, 1, 0]] * 4),
            "label_ids": tf.constant([0, 1, 1, 0]),
        },
    ),
    SINGLE_LABEL: (
        objective_of(SINGLE_LABEL),
        {"logits": numbers(4, 3)},
        {"input_ids": IDS, "label_ids": tf.constant([0, 1, 2, 0])},
    ),
    MULTI_LABEL: (
        objective_of(MULTI_LABEL),
        {"logits": numbers(4, 3)},
        {"input_ids": IDS, "label_ids": tf.constant([[0, 1, 1]] * 4)},
    ),
    REGRESSION: (
        objective_of(REGRESSION),
        {"logits": numbers(4, 1)},
        {"input_ids": IDS, "label_ids": tf.constant([0.0, 1.5, 2.0, 3.0])},
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_divided_by_what_it_is_the_mean_over(name):
    """The log divides by the number of scored items, without padding."""
    objective, outputs, features = LOSSES[name]
    weights, terms = objective.weights(features), objective.terms(outputs, features)
    assert weights.keys() == objective.losses.keys()
    for loss, added in objective.losses.items():
        assert (
            float(weights[loss])
            == float(terms[loss][1])
            == (3 if name == "tags" else 4)
        )
        assert added == (1e-5 if name == "tags" else 0.0)


@pytest.mark.parametrize(
    ("name", "values"), [("do_lower_case", (True, False)), ("vocab_sha256", "01")]
)
def test_records_that_do_not_go_together(name, values):
    entries = {"a": {name: values[0]}, "x": {}, "b": {name: values[1]}}
    with pytest.raises(UserError, match=name):
        check_agreement(entries)
    assert check_agreement({"a": {name: values[0]}, "b": {name: values[0]}}) is None


def test_a_worker_that_does_not_see_the_output_directory(tmp_path, monkeypatch):
    """Its own folder of that name is empty, or has another run."""
    monkeypatch.setattr(runs, "SECONDS_TO_SEE_FILES", 1)
    run_id = run_manifest.open_run(str(tmp_path), {"seed": 1})
    runs._wait_for_run(STRATEGY, str(tmp_path), run_id)
    for other in (tmp_path / "other", tmp_path):
        with pytest.raises(
            UserError, match="does not see the files that the first worker"
        ):
            runs._wait_for_run(STRATEGY, str(other), run_id + 1)


@pytest.mark.parametrize(
    ("place", "agrees"),
    [("/scratch/a/bert_model.ckpt", True), ("/data/uncased", False), (None, False)],
)
def test_workers_may_have_their_files_in_other_folders(monkeypatch, place, agrees):
    chief = changed(SETTINGS, init_checkpoint="/data/b/bert_model.ckpt")
    own = changed(SETTINGS, init_checkpoint=place, output_dir="/scratch/output")
    told = []
    monkeypatch.setattr(
        strategies, "from_chief", lambda _, value: told.append(value) or told[0]
    )
    expected = contextlib.nullcontext()
    if not agrees:
        expected = pytest.raises(UserError, match="was started with other flags")
    with expected:
        for settings in (chief, own):
            fixed = runs.fingerprint(MINI_CONFIG, {"records": 1}, settings)
            runs.check_workers_agree(STRATEGY, fixed, settings)


def test_what_tensorflow_says_of_lost_workers(monkeypatch):
    monkeypatch.setattr(strategies, "is_multi_worker", lambda strategy: True)
    monkeypatch.setattr(strategies, "worker_number", lambda strategy: 0)

    def told(kind, message="Socket closed\n\nmore"):
        error = kind(None, None, message)
        with pytest.raises(UserError) as caught, runs.device_errors(STRATEGY, SETTINGS):
            raise error
        return str(caught.value)

    lost = told(tf.errors.UnavailableError)
    assert lost.startswith("Worker 0 lost another worker. Start all workers again")
    assert lost.endswith("TensorFlow says: Socket closed")
    traceback = (
        "Graph execution error:\n\nDetected at node CollectiveReduceV2_1 defined at "
        '(most recent call last):\n  File "train.py", line 11, in <module>\n\n'
    )
    unhealthy = (
        "Collective ops is aborted by: Collective ops is aborted by: Error reported "
        "from /job:worker/task:2: The following tasks are unhealthy (stopped sending "
        "heartbeats):\n/job:worker/replica:0/task:2\nThe tasks have crashed.\n"
    )
    lost = told(tf.errors.UnavailableError, traceback + unhealthy)
    assert lost.endswith(
        " TensorFlow says: Error reported from /job:worker/task:2: The following tasks "
        "are unhealthy (stopped sending heartbeats): /job:worker/replica:0/task:2"
    )
    assert told(tf.errors.UnavailableError, traceback).endswith("from step 0.")
    # Errors of a device, such as cuDNN's, have the same type.
    assert told(tf.errors.InternalError).startswith("Worker 0 failed, or lost")


def test_the_manifest_tells_how_a_run_computes(tmp_path):
    said = {
        "precision": "bfloat16",
        "recompute": True,
        "deterministic": True,
        "xla": True,
        "micro_batch_size": 2,
    }
    settings = changed(SETTINGS, output_dir=str(tmp_path), **said)
    runs.resume_or_begin(STRATEGY, make_state(), {"seed": 3}, settings)
    (part,) = json.loads((tmp_path / "training.json").read_text())["history"]
    assert said.items() <= part["environment"].items()


def test_shapes_on_a_tpu_do_not_depend_on_the_data(tmp_path, monkeypatch):
    """Padding is not skipped, and all batches of a fine-tuning have one length."""
    seen = []

    def train(*args, **kwargs):
        _, _, _, train_set, _, _, _, kernels, _ = args
        seen.append((kernels.pack is not None, train_set.length_step))

    monkeypatch.setattr(loop, "train", train)
    ids = np.array([2, 20, 3], np.int32)
    task = ClassifierTask(SINGLE_LABEL, ("no", "yes"), ("accuracy",), 32)
    one = Features(ids, np.zeros_like(ids), 0, 0)
    job = classifier.make_job(start_of(MINI_CONFIG), task, [one] * 8)
    for name in ("cpu", "tpu"):
        place = tmp_path / name
        place.mkdir()
        monkeypatch.setattr(strategies, "is_tpu", lambda _, it=name: it == "tpu")
        settings = changed(SETTINGS, output_dir=str(place))
        fine_tuning.fine_tune(STRATEGY, job, settings)
    assert seen == [(True, 16), (False, 32)]


@pytest.mark.parametrize("sweeps", [False, True])
def test_a_refused_fine_tuning_leaves_nothing(tmp_path, sweeps):
    """The error occurs after the run's first files were written."""
    (tmp_path / "model").mkdir()
    place = str(tmp_path / "model")
    settings = changed(
        SETTINGS, output_dir=str(tmp_path / "a/b"), init_checkpoint=place
    )
    job = classifier.make_job(start_of(MINI_CONFIG), TASK, [ONE], [[ONE]])
    with pytest.raises(UserError, match="contains no checkpoint"):
        if sweeps:
            sweep.run_trials(STRATEGY, job, [sweep.Trial(settings, 1.0)])
        else:
            fine_tuning.fine_tune(STRATEGY, job, settings)
    assert [path.name for path in tmp_path.rglob("*")] == ["model"]
