"""Run MediaPipe's text tasks; this file needs only the package `mediapipe`.

    python mediapipe_results.py REQUESTS.json ANSWERS.json

The requests are a list of `[path of a .tflite, name of the class, texts]`. The answers
are MediaPipe's version, and for each request a list with one value per text: a dict of
label name -> score, or a vector.
"""

import importlib.metadata
import json
import sys

from mediapipe.tasks.python import text


def classes(task, content):
    (head,) = task.classify(content).classifications
    return {one.category_name: one.score for one in head.categories}


def vector(task, content):
    (head,) = task.embed(content).embeddings
    return list(map(float, head.embedding))


FUNCTIONS = {"TextClassifier": classes, "TextEmbedder": vector}


def answers(path, class_name, texts):
    """Return the results for texts."""
    with getattr(text, class_name).create_from_model_path(path) as task:
        return [FUNCTIONS[class_name](task, one) for one in texts]


def main(requests_path, answers_path):
    with open(requests_path, encoding="utf-8") as file:
        requests = json.load(file)
    results = [answers(*request) for request in requests]
    with open(answers_path, "w", encoding="utf-8") as file:
        json.dump([importlib.metadata.version("mediapipe"), results], file)


if __name__ == "__main__":
    main(*sys.argv[1:])
