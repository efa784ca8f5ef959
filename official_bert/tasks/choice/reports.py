"""What a model that chooses says of whole sets, in files.

* `eval_results.txt`: scores, `key = value`;
* `test_predictions.jsonl`: a line for each question, with the text chosen.
"""

import json
import os

from official_bert import files
from official_bert.tasks.choice import training as choice
from official_bert.training.logs import eval_results


def evaluate(predictor, examples, directory, batch_size):
    """Score a set; write and print `eval_results.txt`.

    Args:
      predictor: `ChoicePredictor`.
      examples: list of labelled `ChoiceExample`.
      directory: for the file.
      batch_size: see `choice.results`.
    """
    features = predictor.features(examples)
    found = choice.results(predictor.logits(features), features, batch_size)
    if predictor.global_step is not None:
        found["global_step"] = predictor.global_step
    eval_results.write(directory, found)


def predict(predictor, examples, directory):
    """Write the answers to a set; print scores where all answers are known.

    Args:
      predictor: `ChoicePredictor`.
      examples: list of `ChoiceExample`.
      directory: for the file.
    """
    features = predictor.features(examples)
    logits = predictor.logits(features)
    answers = predictor.name(logits, examples)
    lines = [
        json.dumps({"guid": example.guid, **as_json(answer)}, ensure_ascii=False)
        for example, answer in zip(examples, answers, strict=True)
    ]
    path = os.path.join(directory, "test_predictions.jsonl")
    files.write_text(path, "\n".join(lines) + "\n")
    print(f"Predictions of {len(examples)} examples: {path}", flush=True)
    if all(example.label is not None for example in examples):
        row = choice.evaluate(logits, features)
        print(f"Test set: {choice.describe(row)}", flush=True)


def as_json(answer):
    """Return a `ChoiceAnswer` as a dict for JSON; probabilities to six places."""
    rounded = [round(value, 6) for value in answer.probabilities]
    return {"index": answer.index, "choice": answer.choice, "probabilities": rounded}
