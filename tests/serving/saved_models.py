r"""A SavedModel with many signatures, which is created in a second.

To run the REST tests against TF Serving, which needs Docker:

    python tests/serving/saved_models.py build/served
    docker run -p 8501:8501 -v "$PWD/build/served/answers":/models/answers \
        -e MODEL_NAME=answers tensorflow/serving
    TF_SERVING_URL=http://127.0.0.1:8501 python -m pytest tests/serving
"""

import os
import sys

import tensorflow as tf

NAME = "answers"
STRINGS = tf.TensorSpec([None], tf.string)
FLOATS = tf.TensorSpec([None], tf.float32)
IDS = tf.TensorSpec([None, None], tf.int32)


def write(folder, version=1):
    """Write the model as a version below a folder, atomically."""
    module = tf.Module()
    # A variable and a table: both must live as long as a request needs them.
    module.version = tf.Variable(version, dtype=tf.int64)
    module.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["good", "bad"], [1.0, -1.0]), 0.0
    )
    signatures = {
        "serving_default": _texts(module),
        "lengths": tf.function(
            lambda text: {"length": tf.strings.length(text)}, [STRINGS]
        ),
        "pairs": tf.function(
            lambda text, text_b: {"joined": text + "|" + text_b}, [STRINGS, STRINGS]
        ),
        "tokens": tf.function(_tokens, [IDS, IDS, IDS]),
        "echo": tf.function(_echo, _ECHO_SPECS),
        "half": tf.function(
            lambda x: {"y": tf.cast(x, tf.float16)}, [tf.TensorSpec([None], tf.float16)]
        ),
        "logs": tf.function(lambda x: {"log": tf.math.log(x)}, [FLOATS]),
        "total": tf.function(lambda x: {"total": tf.reduce_sum(x)}, [FLOATS]),
        "joined": tf.function(
            lambda text: {"all": tf.strings.reduce_join(text)}, [STRINGS]
        ),
        "uneven": tf.function(lambda x: {"a": x, "b": tf.tile(x, [2])}, [FLOATS]),
        "picky": tf.function(_picky, [FLOATS]),
        "slow": tf.function(_slow, [FLOATS]),
    }
    concrete = {name: each.get_concrete_function() for name, each in signatures.items()}
    path = os.path.join(folder, str(version))
    tf.saved_model.save(module, path + ".tmp", concrete)
    os.rename(path + ".tmp", path)
    return path


def _texts(module):
    @tf.function(input_signature=[STRINGS])
    def texts(text):
        return {
            "score": module.table.lookup(text),
            "echo": text,
            "raw_bytes": text,
            "version": tf.fill(tf.shape(text), module.version),
        }

    return texts


def _tokens(input_ids, input_mask, segment_ids):
    picked = (input_ids + 1000 * segment_ids) * input_mask
    return {
        "sum": tf.reduce_sum(picked, axis=1),
        "vectors": tf.cast(picked, tf.float32)[:, :, tf.newaxis] / 10,
    }


_TYPES = {
    "whether": tf.bool,
    "byte": tf.int8,
    "whole": tf.int64,
    "natural": tf.uint64,
    "single": tf.float32,
    "double": tf.float64,
}
_ECHO_SPECS = [tf.TensorSpec([None], dtype, name) for name, dtype in _TYPES.items()]


def _echo(whether, byte, whole, natural, single, double):
    return {
        "out_whether": whether,
        "out_byte": byte,
        "out_whole": whole,
        "out_natural": natural,
        "out_single": single,
        "out_double": double,
    }


def _picky(x):
    with tf.control_dependencies([tf.debugging.assert_positive(x, "too small")]):
        return {"y": tf.identity(x)}


def _slow(x):
    """Wait for as many seconds as the largest number."""
    end = tf.timestamp() + tf.cast(tf.reduce_max(x), tf.float64)
    (spins,) = tf.while_loop(
        lambda n: tf.timestamp() < end, lambda n: (n + 1,), (tf.constant(0.0),)
    )
    return {"y": x + 0 * spins}


if __name__ == "__main__":
    write(os.path.join(sys.argv[1], NAME))
