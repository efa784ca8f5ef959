"""Exports for `make browser`, with the TFLite interpreter's outputs for 200 rows each.

    PYTHONPATH=tests python tests/export/web/browser_cases.py FOLDER [PAGE ...]

writes a page for each kind of model, or only the named ones. Next to each page it
writes a file of cases that `browser.mjs` runs in the browser: {"method", "tolerance",
"calls": [{"arguments", "expected"}]}.
"""

import dataclasses
import json
import pathlib
import random
import sys
import tempfile

import numpy as np
import tiny_exports

from official_bert.checkpoints import model_directory
from official_bert.export.tflite.model import open_device_model
from official_bert.export.web import writer
from official_bert.fine_tuning.task_file import write_task
from official_bert.fine_tuning.tflite_model import TfliteModel, interpreter
from official_bert.pretrained.fill_mask import encode_with_masks
from official_bert.tasks.predictor import load

NUMBER = 200
LENGTHS = (16, 64)
# Wide enough that the converter stores weights with 8 bits.
CONFIG = dataclasses.replace(
    tiny_exports.CONFIG,
    hidden_size=128,
    intermediate_size=256,
    initializer_range=0.08,
)
# Maximum difference of numbers from the interpreter's, relative above 1. With 8
# bits, the last bit of a sum decides the rounding of an activation.
TOLERANCES = {"int8": 2e-2, "float32": 2e-5}
# Directory of the export -> (kind of `tiny_exports`, method of bert.js, quantization).
PAGES = {
    "label": ("label", "classify", "int8"),
    "pairs": ("label of pairs", "classify", "int8"),
    "pairs-float32": ("label of pairs", "classify", "float32"),
    "labels": ("labels", "classify", "int8"),
    "number": ("number", "classify", "int8"),
    "squad": ("squad 1.1", "answer", "int8"),
    "squad-float32": ("squad 1.1", "answer", "float32"),
    "squad-2": ("squad 2.0", "answer", "int8"),
    "squad-2-float32": ("squad 2.0", "answer", "float32"),
    "tags": ("tags", "tag", "int8"),
    "tags-columns": ("tags", "tag", "int8"),
    "vectors": ("vectors", "encode", "int8"),
    "vectors-float32": ("vectors", "encode", "float32"),
    "similarity-float32": ("vectors", "similarity", "float32"),
    "search": ("vectors", "search", "int8"),
    "masks": ("masks", "fillMask", "int8"),
    "encoder": ("encoder", "encode", "int8"),
}
# Words that columns keep as one, and words that they split.
COLUMN_TEXTS = (
    "U.S. horse-shoe 2,250 O'Neill's d'Italia AT&T he'll we're J. Smith .",
    "3.5-2 'tis her's . . . 12:30 a/b x_y me@home no-. -no it's.",
    "the horse's on water, in 1,000 years' time;",
    "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd's \U0001f600-\U0001f600",
)


def main(folder, *chosen):
    """Write all pages, or the chosen ones, and their cases into a new folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    tiny_exports.CONFIG = CONFIG
    with tempfile.TemporaryDirectory() as temporary:
        for name, (kind, method, quantization) in PAGES.items():
            if chosen and name not in chosen:
                continue
            models = pathlib.Path(temporary, name)
            models.mkdir()
            directory = tiny_exports.write_kind(models, kind)
            if name == "tags-columns":
                task = dataclasses.replace(
                    tiny_exports.KINDS[kind][0], words_as_columns=True
                )
                write_task(directory, task, 7)
            model = open_device_model(directory, LENGTHS)
            page = writer.Page(f"Test of {name}", tiny_exports.KINDS[kind][1])
            report = writer.write(folder / name, model, page, quantization)
            make_calls = CASES["vectors" if kind == "vectors" else method]
            calls = make_calls(folder / name, directory, name)
            tolerance = TOLERANCES[quantization]
            content = {"method": method, "tolerance": tolerance, "calls": calls}
            (folder / f"{name}.cases.json").write_text(json.dumps(content), "utf-8")
            print(f"{name}: {len(calls)} rows, {report.size / 1e3:.0f} kB", flush=True)


def classifier_cases(page, directory, name):
    """Return the calls of `classify`."""
    predictor = load(page)
    texts = texts_of(name)
    if tiny_exports.KINDS[PAGES[name][0]][1]:
        pairs = list(zip(texts, reversed(texts_of(f"{name} again")), strict=True))
        results, arguments = predictor.predict(pairs), pairs
    else:
        results, arguments = predictor.predict(texts), [[text] for text in texts]
    calls = []
    for values, result in zip(arguments, results, strict=True):
        if predictor.task.kind == "regression":
            expected = {"value": result.value}
        else:
            labels = result.label
            labels = [labels] if isinstance(labels, str) else list(labels)
            probabilities = list(result.probabilities.values())
            expected = {"labels": labels, "probabilities": probabilities}
        calls.append({"arguments": values, "expected": expected})
    return calls


def squad_cases(page, directory, name):
    """Return the calls of `answer`, the last with a context of 5,000 words."""
    contexts = [*texts_of(name, 120)[:-1], long_text(5000)]
    questions = texts_of(f"{name} again")
    values = list(zip(questions, contexts, strict=True))
    calls = []
    for (question, context), answer in zip(
        values, load(page).predict_all(values), strict=True
    ):
        expected = {
            "text": answer.text,
            **utf16(context, answer.start, answer.end),
            "score": answer.score,
            "probability": answer.probability,
            "nullScore": answer.null_score,
        }
        calls.append({"arguments": [question, context], "expected": expected})
    return calls


def tagger_cases(page, directory, name):
    """Return the calls of `tag`, the last with a text of 5,000 words."""
    texts = [*COLUMN_TEXTS, *texts_of(name)]
    texts = [*texts[: NUMBER - 1], long_text(5000)]
    return [
        {
            "arguments": [text],
            "expected": [
                {
                    "text": one.text,
                    **utf16(text, one.start, one.end),
                    "label": one.label,
                }
                for one in entities
            ],
        }
        for text, entities in zip(texts, load(page).predict(texts), strict=True)
    ]


def mask_cases(page, directory, name):
    """Return the calls of `fillMask`."""
    tokenizer = model_directory.load(directory, next_sentence=False).tokenizer
    model = TfliteModel(page / "model.tflite")
    head = interpreter(page / "model.tflite").get_signature_runner("fill_mask")
    draw, calls = random.Random(name), []
    while len(calls) < NUMBER:
        words = draw.choice(texts_of(name)).split(" ")[:20]
        for _ in range(draw.randrange(1, 3)):
            words.insert(draw.randrange(len(words) + 1), "[MASK]")
        text = " ".join(words)
        ids = np.array([encode_with_masks(tokenizer, text)], np.int32)
        if ids.shape[1] > LENGTHS[-1]:
            continue
        vectors = run(model, ids)["sequence_output"][0]
        expected = []
        for vector in vectors[ids[0] == tokenizer.vocab["[MASK]"]]:
            logits = head(vector=vector[None])["token_logits"][0].astype(np.float64)
            powers = np.exp(logits - logits.max())
            best = np.argsort(-logits, kind="stable")[:5]
            expected.append(
                [
                    [tokenizer.inv_vocab[int(i)], float(powers[i] / powers.sum())]
                    for i in best
                ]
            )
        calls.append({"arguments": [text, 5], "expected": expected})
    return calls


def encoder_cases(page, directory, name):
    """Return the calls of `encode`."""
    tokenizer = model_directory.load_encoder(directory).tokenizer
    model, calls = TfliteModel(page / "model.tflite"), []
    cls, sep = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]
    for text in texts_of(name):
        ids = [cls, *tokenizer.encode(text)[: LENGTHS[-1] - 2], sep]
        vectors = run(model, np.array([ids], np.int32))["sequence_output"][0]
        vector = vectors.astype(np.float64).sum(0)
        vector /= np.linalg.norm(vector)
        calls.append({"arguments": [text], "expected": vector.tolist()})
    return calls


def vector_cases(page, directory, name):
    """Return the calls of `encode`, `similarity` or `search` of an embedding model.

    The model reads at most 12 tokens, so most texts have windows.
    """
    method = PAGES[name][1]
    predictor, texts = load(page), texts_of(name)
    if method == "encode":
        vectors = predictor.vectors(texts)
        return [
            {"arguments": [text], "expected": vector.tolist()}
            for text, vector in zip(texts, vectors, strict=True)
        ]
    lists = [texts[at : at + 1] for at in range(NUMBER)]
    if method == "search":
        # A list of a few texts, one of them twice.
        lists = [[*texts[at : at + 3], texts[at]] for at in range(NUMBER)]
    calls = []
    for text, others in zip(texts_of(f"{name} again"), lists, strict=True):
        (cosines,) = predictor.similarity([text], others).tolist()
        if method == "similarity":
            calls.append({"arguments": [text, others[0]], "expected": cosines[0]})
        else:
            calls.append({"arguments": [text, others], "expected": cosines})
    return calls


CASES = {
    "vectors": vector_cases,
    "classify": classifier_cases,
    "answer": squad_cases,
    "tag": tagger_cases,
    "fillMask": mask_cases,
    "encode": encoder_cases,
}


def texts_of(name, longest=40):
    """Return `NUMBER` texts; special ones are among them."""
    number = NUMBER - len(tiny_exports.SPECIAL_TEXTS)
    return tiny_exports.random_texts(number, name, longest)


def long_text(number):
    """Return a text of many words, with emoji and right-to-left text."""
    draw = random.Random(number)
    words = "the horse is on water in Berlin \U0001f600 \u05e9\u05dc\u05d5\u05dd light "
    words += (
        "\u0645\u0631\u062d\u0628\u0627 \U0001f469\u200d\U0001f680 lighthouse e\u0301"
    )
    return " ".join(draw.choices(words.split(" "), k=number))


def run(model, ids):
    """Return the outputs for one row of ids, int32 [1, S]."""
    zeros = np.zeros_like(ids)
    return model({"input_ids": ids, "input_mask": zeros + 1, "segment_ids": zeros})


def utf16(text, start, end):
    """Return offsets in JavaScript's UTF-16 units."""
    units = [len(text[:at].encode("utf-16-le")) // 2 for at in (start, end)]
    return {"start": units[0], "end": units[1]}


if __name__ == "__main__":
    main(*sys.argv[1:])
