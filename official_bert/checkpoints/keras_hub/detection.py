"""Recognize a KerasHub preset without importing TensorFlow, for flag checks."""

import os

from official_bert import files
from official_bert.errors import UserError

CONFIG_FILE = "config.json"
# Beginnings of `registered_name`. KerasHub was formerly called KerasNLP.
PACKAGES = ("keras_hub>", "keras_nlp>")


def is_preset(directory: str | os.PathLike[str]) -> bool:
    """Return whether a path is a directory with a KerasHub model, BERT or other."""
    path = os.path.join(directory, CONFIG_FILE)
    if not os.path.isfile(path):
        return False
    try:
        settings = files.read_json(path, "a config")
    except UserError:
        return False
    return str(settings.get("registered_name")).startswith(PACKAGES)
