"""The size of the constants of a `.tflite`."""

import hashlib

from tensorflow.lite.python import schema_py_generated as schema


def constant_bytes(model):
    """Return the size of a model's constants, and the repeated part of it.

    Args:
      model: bytes, a `.tflite`.

    Returns:
      (int, int): bytes of all buffers; bytes of those that equal an earlier
      one.
    """
    model = schema.Model.GetRootAs(model)
    total, repeated, seen = 0, 0, set()
    for i in range(model.BuffersLength()):
        buffer = model.Buffers(i)
        if not buffer.DataLength():
            continue
        digest = hashlib.sha256(buffer.DataAsNumpy()).digest()
        total += buffer.DataLength()
        repeated += buffer.DataLength() if digest in seen else 0
        seen.add(digest)
    return total, repeated
