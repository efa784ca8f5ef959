"""A classifier of texts in a web server: ONNX Runtime, or transformers' pipeline.

`benchmarks/load.py` runs this module with `write MODEL FOLDER`, then with
`serve LIBRARY FOLDER MAX_BATCH THREADS`, in an environment with the packages of
`requirements.txt`. The web framework (aiohttp), the requests and the responses are
those of `serve.py`, so that only tokenizer, model and batching differ. A server prints
its URL.

MAX_BATCH 1 computes each request alone. Otherwise a free thread takes all waiting
requests, up to this number.
"""

import asyncio
import json
import pathlib
import queue
import socket
import sys
import threading

import numpy as np
import transformers
from aiohttp import web

from benchmarks.peers import onnx_runtime

ONNX, PIPELINE = "onnx", "pipeline"
FILE = "classifier.onnx"
MAX_LENGTH = 512


def main():
    """Write the files, or serve them until a signal arrives."""
    what, *arguments = sys.argv[1:]
    transformers.logging.set_verbosity_error()
    if what == "write":
        write(*arguments)
        return
    library, folder, max_batch, threads = arguments
    max_batch, threads = int(max_batch), int(threads)
    if library == ONNX:
        # Threads that compute at once share the cores.
        classify, workers = onnx_classifier(folder, threads), 2 // threads
    else:
        # A pipeline's tokenizer must not be called from two threads at once.
        classify, workers = pipeline_classifier(folder, threads, max_batch), 1
    serve(classify, max_batch, workers)


def write(model, folder):
    """Write a classifier as files of Hugging Face, and as ONNX next to them.

    Args:
      model: directory of a classifier or encoder in Hugging Face's format. An encoder
        gets a random head with two labels.
      folder: new folder.
    """
    import torch

    torch.manual_seed(0)
    classifier = transformers.BertForSequenceClassification.from_pretrained(
        model, **onnx_runtime.PLAIN_ATTENTION
    )
    classifier.eval().save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    tokenizer.model_max_length = MAX_LENGTH
    tokenizer.save_pretrained(folder)
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda one: one[1])
    text = "".join(f"{token}\n" for token, _ in vocab)
    pathlib.Path(folder, "vocab.txt").write_text(text, "utf-8")

    class Probabilities(torch.nn.Module):
        """The probabilities of the labels."""

        def __init__(self):
            super().__init__()
            self.classifier = classifier

        def forward(self, ids, mask, segments):
            logits = self.classifier(ids, mask, segments).logits
            return logits.softmax(-1)

    row = torch.ones(1, 16, dtype=torch.int64)
    torch.onnx.export(
        Probabilities().eval(),
        (row, row, row),
        str(pathlib.Path(folder, FILE)),
        input_names=onnx_runtime.INPUTS,
        output_names=("probabilities",),
        dynamic_axes={
            "probabilities": {0: "batch"},
            **{name: {0: "batch", 1: "length"} for name in onnx_runtime.INPUTS},
        },
        opset_version=onnx_runtime.OPSET,
        dynamo=False,
    )


def onnx_classifier(folder, threads):
    """Return a function: list of texts -> list of probabilities, lists of floats."""
    import onnxruntime
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_truncation(MAX_LENGTH)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        f"{folder}/{FILE}", options, providers=["CPUExecutionProvider"]
    )

    def classify(texts):
        rows = tokenizer.encode_batch(texts)
        values = (
            [one.ids for one in rows],
            [one.attention_mask for one in rows],
            [one.type_ids for one in rows],
        )
        inputs = {
            name: np.array(value, np.int64)
            for name, value in zip(onnx_runtime.INPUTS, values, strict=True)
        }
        return session.run(None, inputs)[0].tolist()

    return classify


def pipeline_classifier(folder, threads, max_batch):
    """Return a function: list of texts -> list of probabilities, lists of floats."""
    import torch

    torch.set_num_threads(threads)
    pipeline = transformers.pipeline(
        "text-classification", folder, top_k=None, device="cpu", truncation=True
    )
    labels = [name for _, name in sorted(pipeline.model.config.id2label.items())]

    def classify(texts):
        found = pipeline(texts, batch_size=max_batch)
        scores = [{one["label"]: one["score"] for one in row} for row in found]
        return [[row[label] for label in labels] for row in scores]

    return classify


def serve(classify, max_batch, workers):
    """Serve `classify` at a free port of this machine; print the URL."""
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    for _ in range(workers):
        arguments = (classify, waiting, max_batch)
        threading.Thread(target=_work, args=arguments, daemon=True).start()

    async def answer(request):
        texts = json.loads(await request.read())["instances"]
        done = asyncio.get_running_loop().create_future()
        waiting.put((texts, done))
        rows = [{"probabilities": row} for row in await done]
        return web.json_response({"predictions": rows})

    app = web.Application()
    app.router.add_post("/v1/models/peer:predict", answer)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/models/peer"
    web.run_app(
        app, sock=listener, access_log=None, print=lambda _: print(url, flush=True)
    )


def _work(classify, waiting, max_batch):
    """Compute waiting requests for ever."""
    while True:
        batch = [waiting.get()]
        rows = len(batch[0][0])
        while rows < max_batch:
            try:
                batch.append(waiting.get_nowait())
            except queue.Empty:
                break
            rows += len(batch[-1][0])
        try:
            found = classify([text for texts, _ in batch for text in texts])
        except Exception as error:
            for _, done in batch:
                done.get_loop().call_soon_threadsafe(done.set_exception, error)
            continue
        for texts, done in batch:
            part, found = found[: len(texts)], found[len(texts) :]
            done.get_loop().call_soon_threadsafe(done.set_result, part)


if __name__ == "__main__":
    main()
