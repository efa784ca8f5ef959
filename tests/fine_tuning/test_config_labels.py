"""A config describes the task of the last fine-tuning, and no other."""

import dataclasses

import numpy as np
import pytest
from record_files import MINI_CONFIG as CONFIG
from run_settings import start_of

from official_bert.checkpoints.huggingface import config_json
from official_bert.fine_tuning.config_labels import architecture_of, labels_of
from official_bert.modeling.embedding.losses import LossSettings
from official_bert.tasks.choice import training as choice
from official_bert.tasks.classifier import task as classifier_task
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.embedding import training as embedding
from official_bert.tasks.embedding.features import TrainingFeatures
from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.squad import training as squad

LABELS = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 128)
TAGS = NerTask(("O", "B-X", "I-X"))
ONE = Features(np.array([1]), np.array([0]), 0, 0)
OUTPUTS = (3, 8)  # Shape of a head's weights.


def make_job(task, start):
    """Return the job of a task."""
    if isinstance(task, ClassifierTask):
        return classifier.make_job(start, task, [ONE])
    if isinstance(task, NerTask):
        return ner.make_job(start, task, [])
    if isinstance(task, EmbeddingTask):
        loss = LossSettings("info_nce")
        pair = TrainingFeatures((ONE, ONE), (0, 1), 0.0)
        return embedding.make_job(start, task, loss, [pair])
    if isinstance(task, squad.SquadTask):
        return squad.make_job(start, task, [])
    return choice.make_job(start, task, [[ONE]])


def written_by(task, config):
    """Return the config that a fine-tuning writes, without training."""
    return make_job(task, start_of(config)).written_config


TASKS = {
    "BertForSequenceClassification": (LABELS, ("no", "yes"), "output_weights"),
    "BertForTokenClassification": (TAGS, TAGS.tags, "output_weights"),
    "BertModel": (EmbeddingTask(), (), "bert/pooler/dense/bias"),
    "BertForMultipleChoice": (choice.ChoiceTask(), (), "output_weights"),
    "BertForQuestionAnswering": (squad.SquadTask(), (), "cls/squad/output_weights"),
}


@pytest.mark.parametrize("before", TASKS)
@pytest.mark.parametrize("name", TASKS)
def test_the_task_of_the_last_fine_tuning(name, before):
    """The initial model's task does not matter."""
    config = dataclasses.replace(CONFIG, extra={"mine": 1})
    (first, _, _), (task, labels, head) = TASKS[before], TASKS[name]
    found = written_by(task, written_by(first, config))
    assert found == written_by(task, config)
    assert found.extra["mine"] == 1 and labels_of(found) == labels
    shapes = {head: OUTPUTS, "bert/embeddings/word_embeddings": (9, 8)}
    converted = config_json.to_dict(found, shapes)
    assert converted["architectures"] == [name]
    if labels and len(labels) == OUTPUTS[0]:
        assert tuple(converted["id2label"].values()) == labels


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_told_of_its_own_config_alone(name):
    found = written_by(TASKS[name][0], CONFIG)
    as_classifier = classifier_task.task_of(found)
    assert (as_classifier is not None) == (name == "BertForSequenceClassification")
    as_tagger = ner.task_of(found)
    assert (as_tagger is not None) == (name == "BertForTokenClassification")
    if as_tagger:
        assert as_tagger.tags == TAGS.tags


@pytest.mark.parametrize("name", TASKS)
def test_a_model_trains_without_dropout_and_keeps_its_rates(name):
    start = dataclasses.replace(start_of(CONFIG), dropout=False)
    job = make_job(TASKS[name][0], start)
    assert job.make_model(False).config == CONFIG.without_dropout() != CONFIG
    for rate in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        assert getattr(job.written_config, rate) == getattr(CONFIG, rate) > 0


@pytest.mark.parametrize("stated", [None, [], "BertModel", {}])
def test_a_config_without_an_architecture(stated):
    config = dataclasses.replace(CONFIG, extra={"architectures": stated})
    assert architecture_of(config) is None
