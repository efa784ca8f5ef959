"""Servers of a text classifier with ONNX Runtime and with a transformers pipeline.

`benchmarks/serving_load.py` starts this module with KIND MODEL. MODEL is a Hugging Face
directory of a classifier. It prints its address and answers POST requests
{"instances": [text, ...]} with {"predictions": [[probability, ...], ...]}. HTTP is
aiohttp's, as in our server, and a pool of threads computes.

KIND is `onnx-2x1` (two requests at once, one thread each), `onnx-1x2` (one request at
a time with two threads), or `pipeline`.
"""

import asyncio
import concurrent.futures
import os
import sys
import tempfile

import numpy as np
import tokenizers
import torch
import transformers
from aiohttp import web

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def main():
    """Load the model and serve it until SIGTERM."""
    kind, model = sys.argv[1:]
    at_once, threads = 1, os.cpu_count()
    if kind.startswith("onnx-"):
        at_once, threads = map(int, kind.removeprefix("onnx-").split("x"))
        compute = onnx_runtime(model, threads)
    else:
        compute = pipeline(model, threads)
    pool = concurrent.futures.ThreadPoolExecutor(at_once)

    async def answer(request):
        texts = (await request.json())["instances"]
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(pool, compute, texts)
        return web.json_response({"predictions": found})

    async def start():
        app = web.Application(client_max_size=32 << 20)
        app.router.add_post("/predict", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        print(f"Serving at http://127.0.0.1:{port}/predict", flush=True)
        await asyncio.Event().wait()

    asyncio.run(start())


def onnx_runtime(model, threads):
    """Return a function of texts: `tokenizers`, then ONNX Runtime."""
    import onnxruntime

    transformers.logging.set_verbosity_error()
    network = transformers.AutoModelForSequenceClassification.from_pretrained(
        model, attn_implementation="eager"
    )
    length = min(network.config.max_position_embeddings, 512)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "classifier.onnx")
        _export(network, path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
    tokenizer = tokenizers.BertWordPieceTokenizer(os.path.join(model, "vocab.txt"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding()

    def compute(texts):
        rows = tokenizer.encode_batch(texts)
        values = [
            [row.ids for row in rows],
            [row.attention_mask for row in rows],
            [row.type_ids for row in rows],
        ]
        inputs = {
            name: np.array(value, np.int64)
            for name, value in zip(INPUTS, values, strict=True)
        }
        (logits,) = session.run(None, inputs)
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        return (powers / powers.sum(-1, keepdims=True)).tolist()

    return compute


def _export(network, path):
    class Logits(torch.nn.Module):
        """The network with inputs by position."""

        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *row):
            return self.network(**dict(zip(INPUTS, row, strict=True))).logits

    row = torch.ones(1, 16, dtype=torch.int64)
    axes = {name: {0: "batch", 1: "length"} for name in INPUTS}
    torch.onnx.export(
        Logits().eval(),
        (row, row, row),
        path,
        input_names=list(INPUTS),
        output_names=["logits"],
        dynamic_axes={**axes, "logits": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )


def pipeline(model, threads):
    """Return a function of texts: the pipeline of transformers in PyTorch."""
    torch.set_num_threads(threads)
    classify = transformers.pipeline("text-classification", model=model, top_k=None)
    names = classify.model.config.id2label

    def compute(texts):
        found = []
        with torch.inference_mode():
            for scores in classify(texts, batch_size=len(texts), truncation=True):
                by_name = {one["label"]: one["score"] for one in scores}
                found.append([by_name[names[number]] for number in range(len(names))])
        return found

    return compute


if __name__ == "__main__":
    main()
