"""What a fine-tuned classifier says of whole sets, in files.

* `eval_results.txt`: scores, `key = value` as the original has it;
* `test_results.tsv`: a row of probabilities for each test text, likewise;
* `test_predictions.jsonl`: the same with the labels' names;
* what GLUE's server wants to be sent.
"""

import dataclasses
import json
import os

import numpy as np
from absl import logging

from official_bert import files
from official_bert.tables.labels import REGRESSION
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.glue import submission as glue_submission
from official_bert.tasks.glue.tasks import find_task
from official_bert.training.logs import eval_results


def evaluate(predictor, sets, directory, batch_size):
    """Score dev sets; write and print `eval_results.txt`.

    The first set's scores have the original's names. Those of further ones
    (MNLI's mismatched) end with the set's name.

    Args:
      predictor: `ClassifierPredictor`.
      sets: dict of name -> list of labelled `Example`.
      directory: for the file.
      batch_size: see `classifier.results`.
    """
    found = {}
    if predictor.global_step is not None:
        found["global_step"] = predictor.global_step
    for number, (name, examples) in enumerate(sets.items()):
        row = _score(predictor, examples, batch_size)
        ending = f"_{name}" if number else ""
        found |= {f"{key}{ending}": value for key, value in row.items()}
    eval_results.write(directory, found)


def _score(predictor, examples, batch_size):
    task = predictor.task
    windows = classifier_features.encode(task, examples, predictor.tokenizer)
    logits = predictor.logits(windows)
    label = classifier.only_class(task, logits, windows)
    if label is not None:
        print(classifier.one_class_warning(len(logits), label), flush=True)
    return classifier.results(task, logits, windows, batch_size)


def predict(predictor, sets, directory):
    """Write the predictions of test sets, and print where.

    The files of the first set have the plain names; those of further ones end
    with the set's name. Where all texts of a set have labels, its scores are
    printed.

    Args:
      predictor: `ClassifierPredictor`.
      sets: dict of name -> list of `Example`.
      directory: for the files.

    Returns:
      dict of name -> float32 logits [N, C].
    """
    task, found = predictor.task, {}
    for number, (name, examples) in enumerate(sets.items()):
        windows = classifier_features.encode(task, examples, predictor.tokenizer)
        logits = found[name] = predictor.logits(windows)
        ending = f"_{name}" if number else ""
        place = os.path.join(directory, "test_")
        results = f"{place}results{ending}.tsv"
        probabilities = classifier.probabilities(task, logits)
        glue_submission.write_test_results(results, probabilities)
        named = f"{place}predictions{ending}.jsonl"
        _write_predictions(named, examples, predictor.name(logits))
        print(f"Predictions of {len(examples)} texts: {results}, {named}", flush=True)
        if all(example.label is not None for example in examples):
            row = classifier.evaluate(task, logits, windows)
            print(f"Test set {name}: {classifier.describe(row)}", flush=True)
    return found


def _write_predictions(path, examples, predictions):
    rows = [
        {"guid": example.guid, **as_json(prediction)}
        for example, prediction in zip(examples, predictions, strict=True)
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    files.write_text(path, "".join(lines))


def as_json(prediction):
    """Return a `Prediction` as a dict for JSON; numbers to six places."""
    rounded = {
        name: round(value, 6) for name, value in prediction.probabilities.items()
    }
    label = prediction.label
    if isinstance(label, float):
        return {"label": round(label, 6)}
    label = list(label) if isinstance(label, tuple) else label
    return {"label": label, "probabilities": rounded}


def submit(logits, task, directory):
    """Write the GLUE server's files of test sets; zip all once none is missing.

    Args:
      logits: dict of a GLUE task's name -> float32 [N, C], as of `predict`; every
        task has a `submission`.
      task: `ClassifierTask`.
      directory: for the files.
    """
    for name, found in logits.items():
        answers = found[:, 0] if task.kind == REGRESSION else np.argmax(found, axis=1)
        glue_task = dataclasses.replace(find_task(name), labels=task.labels)
        path = glue_submission.write_submission(directory, glue_task, answers)
        print(f"For the GLUE server: {path}", flush=True)
    missing = glue_submission.missing_submissions(directory)
    if missing:
        logging.info(
            "No archive for the server yet: %s are missing.", ", ".join(missing)
        )
    else:
        print(f"All together: {glue_submission.zip_submission(directory)}", flush=True)
