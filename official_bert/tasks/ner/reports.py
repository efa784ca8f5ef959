"""Write a tagger's scores and predictions for complete files.

* `eval_results.txt`: entity-level scores, `key = value`;
* `test_predictions.jsonl`: a line per sentence, entities with offsets;
* `test_predictions.conll`: a word per line, with the predicted tag last, as
  `conlleval` reads it.
"""

import os
from collections.abc import Sequence

from official_bert.metrics import entities
from official_bert.tasks.ner import training
from official_bert.tasks.ner.conll import write_conll
from official_bert.tasks.ner.json_lines import write_entities
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.ner.sentences import Sentence
from official_bert.training.logs import eval_results


def evaluate(
    predictor: NerPredictor,
    documents: Sequence[Sequence[Sentence]],
    directory: str | os.PathLike[str],
    batch_size: int,
) -> None:
    """Score a tagged set; write `eval_results.txt`, print `conlleval`'s table.

    Args:
      predictor: `NerPredictor`.
      documents: list of lists of `Sentence` with tags.
      directory: folder of the file.
      batch_size: number of windows per batch.
    """
    tags = predictor.outputs(documents, predictor.features(documents), batch_size)
    scores = training.evaluate(documents, tags)
    row = training.row_of(scores)
    results = {f"eval_{name}": value for name, value in row.items()}
    if predictor.global_step is not None:
        results["global_step"] = predictor.global_step
    eval_results.write(directory, results)
    print(entities.conlleval_table(scores), flush=True)


def predict(
    predictor: NerPredictor,
    documents: Sequence[Sequence[Sentence]],
    directory: str | os.PathLike[str],
) -> None:
    """Write the entities of a set, and print its scores if it is tagged.

    Args:
      predictor: `NerPredictor`.
      documents: list of lists of `Sentence`.
      directory: folder of the files.
    """
    tags = predictor.outputs(documents, predictor.features(documents))
    path = os.path.join(directory, "test_predictions")
    write_entities(f"{path}.jsonl", documents, tags)
    write_conll(f"{path}.conll", documents, tags)
    print(f"Predictions: {path}.jsonl, {path}.conll", flush=True)
    if all(one.tags is not None for document in documents for one in document):
        print("Test set:")
        scores = training.evaluate(documents, tags)
        print(entities.conlleval_table(scores), flush=True)
