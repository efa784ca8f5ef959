"""Runs both signatures of a SavedModel on texts, with only TensorFlow.

python tokenize_saved.py SAVED_MODEL TEXTS ANSWERS; the last two are pickles.
"""

import pathlib
import pickle
import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
texts = tf.constant(pickle.loads(pathlib.Path(sys.argv[2]).read_bytes()))
answers = {}
for name in ("uncased", "cased"):
    found = model.signatures[name](texts)
    answers[name] = {key: value.numpy().tolist() for key, value in found.items()}
lower = tf.strings.lower("TITLE", encoding="utf-8")
answers["lower"] = lower.numpy().decode("utf-8")
answers["imported"] = [
    name for name in ("official_bert", "tensorflow_text") if name in sys.modules
]
pathlib.Path(sys.argv[3]).write_bytes(pickle.dumps(answers))
