"""BERT (Devlin et al., 2019) on TensorFlow 2 and Keras 3.

Importing the package is cheap: TensorFlow is loaded with the first name that
needs it. Import it before TensorFlow to compute with oneDNN on every x86 processor.
"""

import importlib
import os
import platform
import sys

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

# TensorFlow reads this once, while it is imported, and by itself enables oneDNN only
# on processors with AVX-512 VNNI or better. oneDNN's kernels are faster on the others,
# too. A program that imported TensorFlow first, or set the variable, has chosen.
if platform.machine() in ("x86_64", "AMD64") and "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
