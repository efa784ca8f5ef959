"""BERT (Devlin et al., 2019) on TensorFlow 2 and Keras 3.

Importing the package is cheap: TensorFlow is loaded with the first name that
needs it.
"""

import importlib

__version__ = "0.1.0"

_HOME = {
    "BertConfig": "official_bert.config",
    "FullTokenizer": "official_bert.tokenization.full",
    "BertEncoder": "official_bert.modeling.encoder",
    "load": "official_bert.checkpoints.model_directory",
    "load_encoder": "official_bert.checkpoints.model_directory",
    "Predictor": "official_bert.tasks.predictor",
}
__all__ = list(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
