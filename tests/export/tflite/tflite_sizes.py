"""How large the constants of a `.tflite` are."""

import hashlib

from tensorflow.lite.python import schema_py_generated as schema


def constant_bytes(model):
    """Return the size of the constants in a model, and how much of it is repeated.

    Args:
      model: bytes, a `.tflite`.

    Returns:
      (int, int): bytes of all buffers; bytes of those that equal one before them.
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
