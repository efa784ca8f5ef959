"""What a tagger says of whole files.

* `eval_results.txt`: entity-level scores, `key = value`;
* `test_predictions.jsonl`: a line for each sentence, entities with offsets;
* `test_predictions.conll`: a word a line, with the predicted tag last, as
  `conlleval` reads it.
"""

import os

from official_bert.metrics import entities
from official_bert.tasks.ner import conll as ner_conll
from official_bert.tasks.ner import json_lines as ner_json
from official_bert.tasks.ner import training as ner
from official_bert.training.logs import eval_results


def evaluate(predictor, documents, directory):
    """Score a tagged set; write `eval_results.txt`, print `conlleval`'s table.

    Args:
      predictor: `NerPredictor`.
      documents: list of lists of `Sentence` with tags.
      directory: for the file.
    """
    scores = ner.evaluate(documents, predictor.tags(documents))
    found = {f"eval_{name}": value for name, value in ner.row_of(scores).items()}
    if predictor.global_step is not None:
        found["global_step"] = predictor.global_step
    eval_results.write(directory, found)
    print(entities.conlleval_table(scores), flush=True)


def predict(predictor, documents, directory):
    """Write the entities of a set, and its scores where it is tagged.

    Args:
      predictor: `NerPredictor`.
      documents: list of lists of `Sentence`.
      directory: for the files.
    """
    tags = predictor.tags(documents)
    place = os.path.join(directory, "test_predictions")
    ner_json.write_entities(f"{place}.jsonl", documents, tags)
    ner_conll.write_conll(f"{place}.conll", documents, tags)
    print(f"Predictions: {place}.jsonl, {place}.conll", flush=True)
    if all(one.tags is not None for document in documents for one in document):
        print("Test set:")
        scores = ner.evaluate(documents, tags)
        print(entities.conlleval_table(scores), flush=True)
