"""Write a fine-tuned classifier's scores and predictions for complete sets.

* `eval_results.txt`: scores as `key = value`, as in the original;
* `test_results.tsv`: a row of probabilities per test text, as in the original;
* `test_predictions.jsonl`: the same with label names;
* the files for the GLUE server.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert import files
from official_bert.tables.examples import Example
from official_bert.tables.labels import REGRESSION
from official_bert.tasks.classifier import training
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.glue import submission
from official_bert.tasks.glue.tasks import find_task
from official_bert.training.logs import eval_results


def evaluate(
    predictor: ClassifierPredictor,
    sets: Mapping[str, Sequence[Example]],
    directory: str | os.PathLike[str],
    batch_size: int,
) -> None:
    """Score dev sets; write and print `eval_results.txt`.

    The scores of the first set have the original's names. The names of others, such
    as MNLI's mismatched set, end with the set's name.

    Args:
      predictor: `ClassifierPredictor`.
      sets: dict of name -> list of labeled `Example`.
      directory: folder of the file.
      batch_size: batch size of the evaluation, see also `training.results`.
    """
    task = predictor.task
    results: dict[str, float] = {}
    if predictor.global_step is not None:
        results["global_step"] = predictor.global_step
    for number, (name, examples) in enumerate(sets.items()):
        windows = predictor.features(examples)
        logits = predictor.outputs(examples, windows, batch_size)
        label = training.only_class(task, logits, windows)
        if label is not None:
            print(training.one_class_warning(len(logits), label), flush=True)
        row = training.results(task, logits, windows, batch_size)
        ending = f"_{name}" if number else ""
        results |= {f"{key}{ending}": value for key, value in row.items()}
    eval_results.write(directory, results)


def predict(
    predictor: ClassifierPredictor,
    sets: Mapping[str, Sequence[Example]],
    directory: str | os.PathLike[str],
) -> dict[str, np.ndarray]:
    """Write the predictions of test sets, and print the paths.

    File names of the first set are the plain names; those of other sets end with
    the set's name. If all texts of a set have labels, its scores are printed.

    Args:
      predictor: `ClassifierPredictor`.
      sets: dict of name -> list of `Example`.
      directory: folder of the files.

    Returns:
      dict of name -> float32 logits [N, C].
    """
    task, logits_of_sets = predictor.task, {}
    for number, (name, examples) in enumerate(sets.items()):
        windows = predictor.features(examples)
        logits = logits_of_sets[name] = predictor.outputs(examples, windows)
        ending = f"_{name}" if number else ""
        results = os.path.join(directory, f"test_results{ending}.tsv")
        submission.write_test_results(results, training.probabilities(task, logits))
        named = os.path.join(directory, f"test_predictions{ending}.jsonl")
        write_predictions(named, examples, predictor.results(examples, logits))
        print(f"Predictions of {len(examples)} texts: {results}, {named}", flush=True)
        if all(example.label is not None for example in examples):
            row = training.evaluate(task, logits, windows)
            print(f"Test set {name}: {training.describe(row)}", flush=True)
    return logits_of_sets


def write_predictions(
    path: str | os.PathLike[str], examples: Iterable[Any], predictions: Iterable[Any]
) -> None:
    """Write the results of examples as JSON lines with their `guid`s.

    Args:
      path: the file.
      examples: list of N examples.
      predictions: list of N results with `to_dict()`.
    """
    records = (
        {"guid": example.guid, **prediction.to_dict()}
        for example, prediction in zip(examples, predictions, strict=True)
    )
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    files.write_text(path, "".join(lines))


def submit(
    logits: Mapping[str, np.ndarray],
    task: ClassifierTask,
    directory: str | os.PathLike[str],
) -> None:
    """Write the files of test sets for the GLUE server; zip them if all exist.

    Args:
      logits: dict of a GLUE task's name -> float32 [N, C], from `predict`. Each
        task has a `submission`.
      task: `ClassifierTask`.
      directory: folder of the files.
    """
    for name, values in logits.items():
        predictions = (
            values[:, 0] if task.kind == REGRESSION else np.argmax(values, axis=1)
        )
        glue_task = dataclasses.replace(find_task(name), labels=task.labels)
        path = submission.write_submission(directory, glue_task, predictions)
        print(f"For the GLUE server: {path}", flush=True)
    missing = submission.missing_submissions(directory)
    if missing:
        logging.info(
            "No archive for the GLUE server yet: %s are missing.", ", ".join(missing)
        )
    else:
        print(
            f"Archive for the server: {submission.zip_submission(directory)}",
            flush=True,
        )
