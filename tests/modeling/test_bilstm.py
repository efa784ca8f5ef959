"""The BiLSTM on top of a fine-tuned model (Table 5)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.checkpoints import names
from official_bert.modeling import bilstm
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.token_classification import TokenClassificationModel
from official_bert.tables.labels import SINGLE_LABEL
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.ner import training as ner

IDS = np.array([[2, 6, 3, 5, 7, 3], [2, 9, 3, 0, 0, 0]], np.int32)
MASK = (IDS > 0).astype(np.int32)
FEATURES = {"input_ids": IDS, "input_mask": MASK, "segment_ids": 0 * IDS}
CELLS = {
    f"bilstm/{direction}_lstm/lstm_cell/{weight}"
    for direction in ("forward", "backward")
    for weight in ("kernel", "recurrent_kernel", "bias")
}
CLASSIFIER = ClassifierTask(SINGLE_LABEL, ("a", "b", "c"), ("accuracy",), 8)
TAGGER = ner.NerTask(("O", "B-X", "I-X"))


def make(kind, with_bilstm=True):
    keras.utils.set_random_seed(0)
    return kind(
        {**MINI_CONFIG.to_dict(), "initializer_range": 0.3}, 3, False, with_bilstm
    )


@pytest.mark.parametrize("kind", [ClassificationModel, TokenClassificationModel])
def test_scores_are_those_of_the_bilstm(kind):
    model = make(kind)
    tokens = model.bert(FEATURES)["sequence_output"]
    # Each text alone has no padding to ignore.
    for row, length in enumerate((6, 3)):
        outputs = model.bilstm(tokens[row : row + 1, :length])
        expected = model.classifier(tf.reshape(outputs, [-1, 16]))
        found = model(FEATURES)["logits"][row]
        if kind is TokenClassificationModel:
            found = found[:length]
        np.testing.assert_allclose(found, np.squeeze(expected), atol=1e-5)
    assert np.abs(expected).max() > 1e-3


def test_one_output_of_a_text_is_both_ends():
    of_text = bilstm.make_bilstm(4, 3, return_sequences=False)
    of_tokens = bilstm.make_bilstm(4, 3)
    of_tokens.set_weights(of_text.get_weights())
    x = tf.random.stateless_normal([2, 6, 4], [1, 2])
    each = bilstm.read(of_tokens, x, MASK).numpy()
    ends = [
        np.concatenate([each[row, last, :3], each[row, 0, 3:]])
        for row, last in enumerate((5, 2))
    ]
    np.testing.assert_allclose(bilstm.read(of_text, x, MASK), ends, atol=1e-6)


@pytest.mark.parametrize("kind", [ClassificationModel, TokenClassificationModel])
@pytest.mark.parametrize("with_bilstm", [True, False])
def test_weights_have_names_and_the_pooler_rests(kind, with_bilstm):
    model = make(kind, with_bilstm)
    trained = {names.google_name(v) for v in model.trainable_variables}
    assert {name for name in trained if "bilstm" in name} == (
        CELLS if with_bilstm else set()
    )
    pooled = kind is ClassificationModel and not with_bilstm
    assert ("bert/pooler/dense/kernel" in trained) == pooled


@pytest.mark.parametrize("module, task", [(classifier, CLASSIFIER), (ner, TAGGER)])
def test_a_task_tells_of_it_where_it_is_there(module, task):
    kind = type(task)
    assert "bilstm" not in task.to_dict()
    assert kind.from_dict(task.to_dict()) == task
    values = {**task.to_dict(), "bilstm": True}
    read = kind.from_dict(values)
    assert read.bilstm and read.to_dict() == values
    assert module.make_model(MINI_CONFIG, read).bilstm is not None
    assert module.make_model(MINI_CONFIG, task).bilstm is None
    with pytest.raises(ValueError, match="bilstm is 1"):
        kind.from_dict({**values, "bilstm": 1})
