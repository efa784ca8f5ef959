"""Exports for the playground's part of `make browser`, with Python's predictions.

    PYTHONPATH=.:tests python tests/export/web/playground_cases.py FOLDER [MODEL ...]

writes a SavedModel of each kind, and next to it a file of cases (`browser_cases.py`).
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

import numpy as np
import tiny_exports

from official_bert.export import expected
from official_bert.export.saved_model import exports, writer
from official_bert.export.saved_model.signatures import FILL_MASK, SERVING
from official_bert.pretrained.fill_mask import encode_with_masks

NUMBER = 20
LENGTHS = (16, 64)
TOLERANCE = 2e-5
# Several layers and heads, to choose an attention map.
CONFIG = dataclasses.replace(tiny_exports.CONFIG, num_hidden_layers=2)
# Name of the served model -> (kind of `tiny_exports`, method of the page's model).
MODELS = {
    "label": ("label", "classify"),
    "labels": ("labels", "classify"),
    "number": ("number", "classify"),
    "pairs": ("label of pairs", "classify"),
    "squad": ("squad 1.1", "answer"),
    "squad-2": ("squad 2.0", "answer"),
    "tags": ("tags", "tag"),
    "choice": ("choice", "choose"),
    "vectors": ("vectors", "encode"),
    "masks": ("masks", "fillMask"),
    "encoder": ("encoder", "encode"),
}


def main(folder, *chosen):
    """Write all models, or the chosen ones, and their cases into a new folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    tiny_exports.CONFIG = CONFIG
    with tempfile.TemporaryDirectory() as temporary:
        for name, (kind, method) in MODELS.items():
            if chosen and name not in chosen:
                continue
            models = pathlib.Path(temporary, name)
            models.mkdir()
            directory = tiny_exports.write_kind(models, kind)
            export = exports.open_export(
                directory, tiny_exports.KINDS[kind][1], LENGTHS
            )
            writer.write(folder / name, export, name)
            calls = calls_of(export, method, name)
            content = {"method": method, "tolerance": TOLERANCE, "calls": calls}
            (folder / f"{name}.cases.json").write_text(json.dumps(content), "utf-8")
            print(f"playground, {name}: {len(calls)} rows", flush=True)


def calls_of(export, method, name):
    """Return calls of a method, with the results of Python's model."""
    signature = FILL_MASK if method == "fillMask" else SERVING
    calls = []
    for values in rows_of(name, export):
        inputs = {key: [value] for key, value in values.items()}
        outputs = export.answers[signature](**inputs)
        outputs = {key: value[0] for key, value in outputs.items()}
        arguments = list(values.values())
        result = RESULTS[method](outputs, values, export)
        calls.append({"arguments": arguments, "expected": result})
    return calls


def rows_of(name, export):
    """Return inputs of a signature, with special characters among them."""
    # Without invalid characters, which JSON cannot hold.
    texts = tiny_exports.random_texts(NUMBER, name, 30)
    texts = [text.replace("\0", " ") for text in texts]
    others = tiny_exports.random_texts(NUMBER, f"{name} again", 30)
    if name == "masks":
        texts = [f"{text} [MASK] on [MASK]" for text in texts]
        sizes = [len(encode_with_masks(export.tokenizer, text)) for text in texts]
        pairs = zip(texts, sizes, strict=True)
        return [{"text": text} for text, size in pairs if size <= LENGTHS[-1]]
    first, *second = export.signatures[SERVING].specs
    if name == "choice":
        others = [[text, "horse", "\U0001f600 water"] for text in others]
    if not second:
        return [{first: text} for text in texts]
    return [
        {first: one, second[0]: two} for one, two in zip(texts, others, strict=True)
    ]


def classification(outputs, values, export):
    """Return the result of `classify` or `choose`."""
    if "value" in outputs:
        return {"value": float(outputs["value"])}
    if "choice" in outputs:
        labels = [outputs["choice"].decode()]
    else:
        names = outputs.get("labels", [outputs.get("label")])
        labels = [name.decode() for name in names if name]
    return {"labels": labels, "probabilities": outputs["probabilities"].tolist()}


def answer(outputs, values, export):
    """Return the result of `answer`, without candidates."""
    null = outputs.get("null_score")
    return {
        "text": outputs["answer"].decode(),
        **utf16(values["context"], outputs["start"], outputs["end"]),
        "score": float(outputs["score"]),
        "nullScore": None if null is None else float(null),
    }


def entities(outputs, values, export):
    """Return the result of `tag`, without probabilities."""
    names = ("entities", "labels", "starts", "ends")
    columns = [outputs[name] for name in names]
    return [
        {"text": text.decode(), "label": label.decode()}
        | utf16(values["text"], start, end)
        for text, label, start, end in zip(*columns, strict=True)
    ]


def masks(outputs, values, export):
    """Return the result of `fillMask`."""
    pairs = zip(outputs["tokens"], outputs["probabilities"], strict=True)
    return [
        [[token.decode(), float(value)] for token, value in zip(*one, strict=True)]
        for one in pairs
    ]


def vector(outputs, values, export):
    """Return the result of `encode`."""
    if "embedding" in outputs:
        return outputs["embedding"].tolist()
    _, mask = expected.token_rows(export.tokenizer, [values["text"]], LENGTHS[-1])
    vectors = outputs["sequence_output"][: mask.sum()].astype(np.float64)
    total = vectors.sum(0)
    return (total / np.linalg.norm(total)).tolist()


RESULTS = {
    "classify": classification,
    "choose": classification,
    "answer": answer,
    "tag": entities,
    "fillMask": masks,
    "encode": vector,
}


def utf16(text, start, end):
    """Return offsets in JavaScript's UTF-16 units."""
    units = [len(text[:at].encode("utf-16-le")) // 2 for at in (start, end)]
    return {"start": units[0], "end": units[1]}


if __name__ == "__main__":
    main(*sys.argv[1:])
