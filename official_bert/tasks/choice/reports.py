"""Write the scores and predictions of a multiple-choice model for complete sets.

* `eval_results.txt`: scores, `key = value`;
* `test_predictions.jsonl`: a line per question, with the text of the choice.
"""

import os
from collections.abc import Sequence

from official_bert.tasks.choice import training
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier.reports import write_predictions
from official_bert.training.logs import eval_results


def evaluate(
    predictor: ChoicePredictor,
    examples: Sequence[ChoiceExample],
    directory: str | os.PathLike[str],
    batch_size: int,
) -> None:
    """Score a set; write and print `eval_results.txt`.

    Args:
      predictor: `ChoicePredictor`.
      examples: list of labeled `ChoiceExample`.
      directory: folder of the file.
      batch_size: batch size of the evaluation, see also `training.results`.
    """
    features = predictor.features(examples)
    logits = predictor.outputs(examples, features, batch_size)
    results = training.results(logits, features, batch_size)
    if predictor.global_step is not None:
        results["global_step"] = predictor.global_step
    eval_results.write(directory, results)


def predict(
    predictor: ChoicePredictor,
    examples: Sequence[ChoiceExample],
    directory: str | os.PathLike[str],
) -> None:
    """Write the answers to a set; print scores if all answers are known.

    Args:
      predictor: `ChoicePredictor`.
      examples: list of `ChoiceExample`.
      directory: folder of the file.
    """
    features = predictor.features(examples)
    logits = predictor.outputs(examples, features)
    path = os.path.join(directory, "test_predictions.jsonl")
    write_predictions(path, examples, predictor.results(examples, logits))
    print(f"Predictions of {len(examples)} examples: {path}", flush=True)
    if all(example.label is not None for example in examples):
        row = training.evaluate(logits, features)
        print(f"Test set: {training.describe(row)}", flush=True)
