"""BERT (Devlin et al., 2019) on TensorFlow 2 and Keras 3.

Importing the package is fast: TensorFlow is loaded with the first name that needs it.
Import this package before TensorFlow to use oneDNN on every x86 processor.
"""

import importlib
import os
import platform
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from official_bert.config import BertConfig
    from official_bert.modeling.classification import ClassificationModel
    from official_bert.modeling.encoder import BertEncoder
    from official_bert.modeling.multiple_choice import MultipleChoiceModel
    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.modeling.span_prediction import SpanModel
    from official_bert.modeling.token_classification import TokenClassificationModel
    from official_bert.pretrained.bert import Bert, load, load_encoder
    from official_bert.tasks.predictor import Predictor
    from official_bert.tokenization.full import FullTokenizer
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.schedule import WarmupLinearDecay

__version__ = "0.2.0"

__all__ = [
    "Bert",
    "BertAdam",
    "BertConfig",
    "BertEncoder",
    "ClassificationModel",
    "FullTokenizer",
    "MultipleChoiceModel",
    "Predictor",
    "PretrainingModel",
    "SpanModel",
    "TokenClassificationModel",
    "WarmupLinearDecay",
    "load",
    "load_encoder",
]

_HOME = {
    "Bert": "official_bert.pretrained.bert",
    "BertAdam": "official_bert.training.optimizer",
    "BertConfig": "official_bert.config",
    "BertEncoder": "official_bert.modeling.encoder",
    "ClassificationModel": "official_bert.modeling.classification",
    "FullTokenizer": "official_bert.tokenization.full",
    "MultipleChoiceModel": "official_bert.modeling.multiple_choice",
    "Predictor": "official_bert.tasks.predictor",
    "PretrainingModel": "official_bert.modeling.pretraining",
    "SpanModel": "official_bert.modeling.span_prediction",
    "TokenClassificationModel": "official_bert.modeling.token_classification",
    "WarmupLinearDecay": "official_bert.training.schedule",
    "load": "official_bert.pretrained.bert",
    "load_encoder": "official_bert.pretrained.bert",
}

# TensorFlow reads this variable once, when it is imported. By default it enables oneDNN
# only on processors with AVX-512 VNNI or better, but oneDNN's kernels are also faster
# on others. The variable stays unchanged if the program set it or imported TensorFlow
# first.
if platform.machine() in ("x86_64", "AMD64") and "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
