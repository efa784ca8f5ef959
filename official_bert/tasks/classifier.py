"""Fine-tuning a classifier (Sec. 4.1): the objective, the evaluation, the run."""

import dataclasses
import os
import zlib

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import model_directory
from official_bert.metrics import glue
from official_bert.modeling import classification
from official_bert.modeling.classification import ClassificationModel
from official_bert.tasks.classifier_batches import FeatureSet, ordered_batches
from official_bert.tasks.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from official_bert.training import runs, saving, strategies
from official_bert.training.step import Objective

TASK_FILE = "task.json"

_TERMS = {
    SINGLE_LABEL: ("classification_loss", classification.single_label_terms),
    MULTI_LABEL: ("classification_loss", classification.multi_label_terms),
    REGRESSION: ("regression_loss", classification.regression_terms),
}


@dataclasses.dataclass(frozen=True)
class ClassifierTask:
    """What a fine-tuned model is for; it is kept in `task.json`.

    Attributes:
      kind: "single_label", "multi_label" or "regression".
      labels: names of the classes in the order of their numbers; none for a
        regression task.
      metrics: names of `metrics.glue.METRICS`; by the first a model is the
        best. For labels of which several may hold: ("accuracy",), the share
        of texts all of whose labels are right.
      max_seq_length: tokens of a text at most.
    """

    kind: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    max_seq_length: int

    @property
    def num_outputs(self):
        """C: how many scores the model gives."""
        return 1 if self.kind == REGRESSION else len(self.labels)


def objective(task):
    """Return the `Objective` of a task: the mean loss over the texts."""
    name, terms = _TERMS[task.kind]

    def weights(features):
        rows = tf.shape(features["input_ids"])[0]
        return {name: tf.cast(rows, tf.float32)}

    return Objective({name: 0.0}, weights, terms, _describe)


def _describe(row):
    """Return the loss and the scores of a row, for people."""
    shown = [f"loss {row['loss']:.3f}"]
    shown += [f"{name} {row[name]:.4f}" for name in glue.METRICS if name in row]
    return "  ".join(shown)


def predict(model, features, batch_size, max_seq_length, break_off=lambda: False):
    """Return the scores of examples.

    Args:
      model: `ClassificationModel`.
      features: list of N `Features`.
      batch_size: examples that go through the model together.
      max_seq_length: see `ordered_batches`.
      break_off: function that tells whether to stop early.

    Returns:
      float32 logits [N, C] in the order of the examples; None if it broke off.
    """
    logits = np.empty((len(features), model.num_outputs), np.float32)
    for numbers, batch in ordered_batches(features, batch_size, max_seq_length):
        if break_off():
            return None
        names = ("input_ids", "input_mask", "segment_ids")
        inputs = {name: tf.constant(batch[name]) for name in names}
        logits[numbers] = _logits(model, inputs).numpy()
    return logits


@tf.function(reduce_retracing=True)
def _logits(model, inputs):
    return model(inputs)["logits"]


def evaluate(task, logits, features):
    """Return the mean loss and the task's scores.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      features: list of N `Features` with labels.

    Returns:
      dict of name -> float, `loss` among them.
    """
    labels = np.array([one.label_id for one in features])
    name, terms = _TERMS[task.kind]
    found = terms({"logits": tf.constant(logits)}, {"label_ids": tf.constant(labels)})
    total, weight = found[name]
    row = {"loss": float(total / weight)}
    if task.kind == MULTI_LABEL:
        total, weight = found["accuracy"]
        return row | {"accuracy": float(total / weight)}
    is_number = task.kind == REGRESSION
    predictions = logits[:, 0] if is_number else logits.argmax(axis=1)
    return row | glue.score(task.metrics, labels, predictions)


def only_class(task, logits, features):
    """Return the label that is predicted for every text, if that is a failure.

    Training that has diverged often ends so. It is none where the examples
    themselves have one label only.

    Returns:
      the label's name, or None.
    """
    if task.kind != SINGLE_LABEL:
        return None
    predicted = set(logits.argmax(axis=1).tolist())
    if len(predicted) > 1 or len({one.label_id for one in features}) == 1:
        return None
    return task.labels[predicted.pop()]


@dataclasses.dataclass(frozen=True)
class ClassifierSettings(runs.RunSettings):
    """The flags of `run_classifier.py`, under the same names."""

    vocab_file: str
    do_lower_case: bool
    eval_batch_size: int


def fine_tune(strategy, config, task, train_features, dev_features, settings):
    """Train a classifier; leave the best model in its output directory.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      task: `ClassifierTask`.
      train_features: list of `Features` to train on.
      dev_features: list of `Features` to choose the best model by.
      settings: `ClassifierSettings`.

    Returns:
      the row of scores of that model on the dev examples; None if the run was
      told to stop before its end.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, memory is short, or another worker is gone.
    """
    directory = settings.output_dir
    with (
        runs.opened_directory(strategy, directory),
        runs.device_errors(strategy, settings),
    ):
        state = runs.make_state(
            strategy,
            lambda: ClassificationModel(config, task.num_outputs, settings.recompute),
            settings,
        )

        def evaluate_now(break_off=lambda: False):
            size, length = settings.eval_batch_size, task.max_seq_length
            logits = predict(state.model, dev_features, size, length, break_off)
            if logits is None:
                return None
            label = only_class(task, logits, dev_features)
            if label is not None:
                print(
                    f"All {len(logits)} dev examples are predicted as {label!r}: "
                    "the training has learned nothing; try another --seed or a lower "
                    "--learning_rate.",
                    flush=True,
                )
            return evaluate(task, logits, dev_features)

        fixed = runs.fixed_settings(config, _identity(task, train_features), settings)
        run_id = runs.start(strategy, state, fixed, settings)
        complete = runs.train(
            strategy,
            state,
            objective(task),
            FeatureSet(train_features, task.max_seq_length),
            run_id,
            evaluate_now,
            settings,
            best_by=task.metrics[0],
        )
        if not complete:
            return None
        # Kept besides the newest, so it is there.
        best = saving.best_step(directory) or state.step
        saving.restore_state(directory, state, run_id, best)
        row = evaluate_now()
        if strategies.is_chief(strategy):
            _save(directory, state.model, task, settings)
        # No worker leaves while the chief still writes.
        strategies.from_chief(strategy, 0)
        return {"global_step": best, **row}


def _identity(task, features):
    """Return what tells a run's examples from others, as a dict."""
    digest = 0
    for one in features:
        for part in (one.input_ids, one.segment_ids, np.array(one.label_id)):
            digest = zlib.crc32(part.tobytes(), digest)
    return {
        # Lists, as they come back from JSON.
        "task": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(task).items()
        },
        "num_examples": len(features),
        "examples_crc32": digest,
    }


def _save(directory, model, task, settings):
    """Write the model directory, with `task.json`."""
    path = os.path.join(directory, TASK_FILE)
    files.write_json(path, {"task": "classifier", **dataclasses.asdict(task)})
    model_directory.save(directory, model, settings.vocab_file, settings.do_lower_case)
