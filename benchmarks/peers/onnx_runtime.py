"""ONNX Runtime: convert an encoder to its files, and run them.

`benchmarks/on_device.py` runs this module with MODEL FOLDER, in an environment
with the packages of `requirements.txt`. It converts the encoder of a Hugging
Face directory from PyTorch to FOLDER/float32.onnx, and this file to
FOLDER/int8.onnx. The 8-bit weights are those of the products, with a scale per
column, and of the embeddings; inputs of products are quantized dynamically. The
`.tflite` does the same.
"""

import os
import pathlib
import sys
import tempfile

import onnxruntime
import transformers

from benchmarks import workload

INPUTS = ("input_ids", "input_mask", "segment_ids")
OUTPUTS = ("sequence_output", "pooled_output")
OPSET = 17
# Together with the TorchScript exporter, this lets ONNX Runtime fuse the most.
PLAIN_ATTENTION = {"attn_implementation": "eager"}


def main():
    """Write both files."""
    model, folder = sys.argv[1:]
    plain = pathlib.Path(folder) / "float32.onnx"
    transformers.logging.set_verbosity_error()
    export(transformers.BertModel.from_pretrained(model, **PLAIN_ATTENTION), plain)
    quantize(plain, plain.with_name("int8.onnx"))


def versions():
    """Return library -> version."""
    return {"onnxruntime": onnxruntime.__version__}


def encoding(size, batch, quantized=False):
    """Return a function that computes the outputs of one full batch.

    Args:
      size: name of a released size; its weights are random.
      batch: sequences.
      quantized: whether products use 8 bits, with dynamically quantized inputs.
    """
    sizes = workload.size_of(size)
    config = transformers.BertConfig(**sizes, **PLAIN_ATTENTION)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "float32.onnx")
        export(transformers.BertModel(config), path)
        if quantized:
            quantize(path, os.path.join(folder, "int8.onnx"))
            path = os.path.join(folder, "int8.onnx")
        compute = open_model(path, os.cpu_count())
    values = workload.full_batch(sizes["vocab_size"], batch)
    inputs = {
        name: value.astype("int64") for name, value in zip(INPUTS, values, strict=True)
    }
    return lambda: compute(inputs)


def rows(path, **settings):
    """Return a function that computes rows; see `workload.row_calls`."""
    compute = open_model(path, settings.pop("threads"))
    return workload.row_calls(compute, "int64", **settings)


def export(encoder, path):
    """Write a `BertModel` as ONNX, for any batch size and row length."""
    import torch

    class Encoder(torch.nn.Module):
        """The encoder with inputs in our order, and a tuple of outputs."""

        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, *row):
            names = ("input_ids", "attention_mask", "token_type_ids")
            encoded = self.encoder(**dict(zip(names, row, strict=True)))
            return encoded.last_hidden_state, encoded.pooler_output

    row = torch.ones(1, 16, dtype=torch.int64)
    torch.onnx.export(
        Encoder().eval(),
        (row, row, row),
        str(path),
        input_names=INPUTS,
        output_names=OUTPUTS,
        dynamic_axes={
            OUTPUTS[1]: {0: "batch"},
            **{name: {0: "batch", 1: "length"} for name in (*INPUTS, OUTPUTS[0])},
        },
        opset_version=OPSET,
        dynamo=False,
    )


def quantize(plain, path):
    """Write an ONNX file again with 8-bit weights."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(
        plain,
        path,
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gather"],
    )


def open_model(path, threads):
    """Load an ONNX file.

    Returns:
      function: dict of `INPUTS` int64 [B, S] -> dict of `OUTPUTS` float32 [B, …].
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return lambda inputs: dict(zip(OUTPUTS, session.run(OUTPUTS, inputs), strict=True))


if __name__ == "__main__":
    main()
