"""Write the scores and predictions of an embedding model for complete sets.

* `eval_results.txt`: scores, `key = value`;
* `test_predictions.jsonl`: a line per example: two texts with their cosine, or one
  text with its vector.
"""

import itertools
import json
import os
from collections.abc import Mapping, Sequence

from official_bert import files
from official_bert.tasks.embedding.evaluation import Evaluation
from official_bert.tasks.embedding.files import EmbeddingExample
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.training.logs import eval_results

# Number of examples whose vectors are in memory at the same time.
CHUNK = 1024


def evaluate(
    predictor: EmbeddingPredictor,
    evaluation: Evaluation | None,
    corpus_scores: Mapping[str, float],
    directory: str | os.PathLike[str],
    batch_size: int,
) -> None:
    """Score a dev set; write and print `eval_results.txt`.

    Args:
      predictor: `EmbeddingPredictor`.
      evaluation: `Evaluation` of the dev set; None without one.
      corpus_scores: the result of `corpus.evaluate`; {} without a corpus.
      directory: folder of the file.
      batch_size: number of texts per batch.
    """
    results = dict(corpus_scores)
    if evaluation is not None:
        examples = [(text,) for text in evaluation.texts]
        windows = predictor.features(examples)
        vectors = predictor.outputs(examples, windows, batch_size)
        scores = evaluation.measure(vectors)
        results |= {f"eval_{name}": value for name, value in scores.items()}
    if predictor.global_step is not None:
        results["global_step"] = predictor.global_step
    eval_results.write(directory, results)


def predict(
    predictor: EmbeddingPredictor,
    examples: Sequence[EmbeddingExample],
    directory: str | os.PathLike[str],
) -> None:
    """Write the cosine of each pair, or the vector of each text; print the path.

    Args:
      predictor: `EmbeddingPredictor`.
      examples: list of `EmbeddingExample`, of which the first two texts are used.
      directory: folder of the file.
    """
    path = os.path.join(directory, "test_predictions.jsonl")
    rest = iter(examples)
    with (
        files.atomic_path(path) as temporary,
        open(temporary, "w", encoding="utf-8") as out,
    ):
        while chunk := list(itertools.islice(rest, CHUNK)):
            inputs = [example.texts[:2] for example in chunk]
            results = predictor.predict_all(inputs)
            for example, texts, result in zip(chunk, inputs, results, strict=True):
                value = texts if len(texts) == 2 else texts[0]
                record = {"guid": example.guid, **predictor.to_json(value, result)}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
    print(f"Predictions of {len(examples)} examples: {path}", flush=True)
