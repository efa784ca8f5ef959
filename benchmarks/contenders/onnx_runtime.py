"""ONNX Runtime's side of the benchmarks. See `contender.py`."""

import os
import sys
import tempfile

import onnxruntime
import transformers

from contenders import shared

sys.path.append(str(shared.ROOT / "benchmarks" / "peers"))


def versions():
    """Return library -> version."""
    return {"onnxruntime": onnxruntime.__version__}


def encoding(size, batch, quantized=False):
    """The encoder of random weights on one batch of full sequences.

    Args:
      size: name of a released size.
      batch: sequences.
      quantized: whether products are of 8 bits, what they read rounded as it comes.
    """
    import onnx_runtime as peer

    sizes = shared.size_of(size)
    config = transformers.BertConfig(**sizes, **peer.PLAIN_ATTENTION)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "float32.onnx")
        peer.export(transformers.BertModel(config), path)
        if quantized:
            peer.quantize(path, os.path.join(folder, "int8.onnx"))
            path = os.path.join(folder, "int8.onnx")
        compute = peer.open_model(path, os.cpu_count())
    values = shared.full_batch(sizes["vocab_size"], batch)
    inputs = {
        name: value.astype("int64")
        for name, value in zip(peer.INPUTS, values, strict=True)
    }
    return lambda: compute(inputs)
