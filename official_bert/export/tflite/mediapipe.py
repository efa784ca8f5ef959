"""Write a `.tflite` for MediaPipe's `TextClassifier` or `TextEmbedder`.

MediaPipe tokenizes the text itself, with the vocabulary in the file. It requires one
subgraph, its own input names in the metadata, and one output.
"""

import dataclasses
import os
import pathlib

import numpy as np

from official_bert import files
from official_bert.checkpoints import google
from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export.saved_model.exports import takes_pairs
from official_bert.export.sources import LABELS_FILE
from official_bert.export.tflite import flatbuffer, writer
from official_bert.export.tflite.labeled_sets import LabeledSet
from official_bert.export.tflite.model import DeviceModel
from official_bert.export.tflite.writer import Report
from official_bert.fine_tuning.outputs import compile_model
from official_bert.fine_tuning.tflite_model import FILE, SIGNATURE, interpreter
from official_bert.tasks.classifier.predictor import ClassifierPredictor

CLASSIFIER, EMBEDDER = "TextClassifier", "TextEmbedder"
# Name of the output that MediaPipe reads -> MediaPipe's class.
CLASSES = {
    "probabilities": CLASSIFIER,
    "embedding": EMBEDDER,
    "pooled_output": EMBEDDER,
}
# Our names of the inputs -> MediaPipe's.
NAMES = dict(zip(INPUTS, ("ids", "mask", "segment_ids"), strict=True))
_SIGNATURE = "serving_default"


def write(
    directory: str | os.PathLike[str],
    model: DeviceModel,
    quantization: str,
    calibration: LabeledSet | None = None,
    dev_set: LabeledSet | None = None,
    max_drop: float = 1.0,
) -> Report:
    """Convert a model, test it, and write it for MediaPipe.

    The file has one row length, the model's longest.

    Args:
      directory: the new folder.
      model: `DeviceModel`.
      quantization: see `writer.write`.
      calibration: see `writer.write`.
      dev_set: see `writer.write`.
      max_drop: see `writer.write`.

    Returns:
      `Report`.

    Raises:
      UserError: MediaPipe has no class for the task or its inputs, or see
        `writer.write`. Nothing is written then.
    """
    _require_uncased(model)
    output = output_of(model)
    model = dataclasses.replace(model, lengths=model.lengths[-1:], others={})
    with files.atomic_directory(directory, "--export_dir") as temporary:
        folder = pathlib.Path(temporary)
        converted = folder / "converted"
        settings = quantization, calibration, dev_set, max_drop
        report = writer.write(converted, model, *settings)
        content = (converted / FILE).read_bytes()
        names = [google.VOCAB_FILE, google.TOKENIZER_FILE]
        names += [LABELS_FILE] * bool(model.labels)
        packed = {name: (converted / name).read_bytes() for name in names}
        write_file(folder / FILE, content, output, model.what, packed)
        _compare(converted / FILE, folder / FILE, model.lengths[0], output)
        for path in converted.iterdir():
            if path.name in packed:
                path.rename(folder / path.name)
            else:
                path.unlink()
        converted.rmdir()
        report = dataclasses.replace(report, size=os.path.getsize(folder / FILE))
        files.write_text(
            folder / "README.md", _readme(model, output, quantization, report)
        )
    return report


def _require_uncased(model):
    if not model.tokenizer.do_lower_case:
        raise UserError(
            "MediaPipe lowercases every text, but this model distinguishes upper and "
            "lower case. Use an uncased model, or --format=tflite with the tokenizer "
            "of this project."
        )


def output_of(model: DeviceModel) -> str:
    """Return the name of the output that MediaPipe reads.

    Raises:
      UserError: MediaPipe has no class for the model.
    """
    predictor = model.predictor
    if isinstance(predictor, ClassifierPredictor) and takes_pairs(predictor.task):
        raise UserError(
            "MediaPipe has no text task for pairs of texts, and this model is a "
            "classifier of pairs. Use --format=tflite."
        )
    row = {name: np.ones([1, 3], np.int32) for name in INPUTS}
    outputs = compile_model(model.compute)(row)
    for name in CLASSES:
        if name in outputs:
            return name
    raise UserError(
        f"MediaPipe has no text task for this model: {model.what} with the outputs "
        f"{', '.join(sorted(outputs))}. {CLASSIFIER} takes classifiers of one text, "
        f"and {EMBEDDER} takes sentence embeddings and encoders with a pooler. Use "
        "--format=tflite."
    )


def write_file(
    path: str | os.PathLike[str],
    content: bytes,
    output: str,
    what: str,
    packed: dict[str, bytes],
) -> None:
    """Write a `.tflite` of one signature in MediaPipe's form.

    Args:
      path: of the new file.
      content: the `.tflite` with the inputs `INPUTS`.
      output: name of the output to keep.
      what: description of the task.
      packed: dict of name -> bytes: `vocab.txt`, `tokenizer_config.json`, and
        `labels.txt` of a classifier.
    """
    model = flatbuffer.read(content)
    (signature,), (subgraph,) = model.signatureDefs, model.subgraphs
    for tensor in signature.inputs:
        tensor.name = NAMES[tensor.name.decode()].encode()
    signature.signatureKey = _SIGNATURE.encode()
    (kept,) = (one for one in signature.outputs if one.name.decode() == output)
    signature.outputs, subgraph.outputs = [kept], [kept.tensorIndex]
    tensors = {NAMES.get(name, name): text for name, text in writer.TENSORS.items()}
    # The usual text refers to task.json, which this file does not contain.
    tensors["embedding"] = "the text's vector"
    description = flatbuffer.Description(
        name=f"BERT, {what}",
        text=f"For MediaPipe's {CLASSES[output]}.",
        version="1",
        tensors=tensors,
        vocabulary=google.VOCAB_FILE,
        labels=LABELS_FILE if LABELS_FILE in packed else None,
        labeled=(output,),
        others={google.TOKENIZER_FILE: "whether text is lowercased"},
    )
    pathlib.Path(path).write_bytes(flatbuffer.with_metadata(model, description))
    flatbuffer.append_files(path, packed)


def _compare(before, after, length, output):
    """Check that the new file computes the same numbers."""
    row = (np.arange(3 * length, dtype=np.int32) % 2).reshape(3, 1, length)
    results = []
    for path, key, names in (
        (before, SIGNATURE.format(length), INPUTS),
        (after, _SIGNATURE, NAMES.values()),
    ):
        runner = interpreter(path, 1).get_signature_runner(key)
        results.append(runner(**dict(zip(names, row, strict=True)))[output])
    if not np.array_equal(*results):
        raise UserError(
            "The file for MediaPipe computes other numbers than the .tflite; nothing "
            "was written. Report this as an error of official_bert."
        )


def _readme(model, output, quantization, report):
    class_name = CLASSES[output]
    lines = [
        f"# {FILE}: {model.what}, {quantization}, for MediaPipe's {class_name}",
        "",
        "MediaPipe converts the text to ids itself, with the vocabulary in the file. "
        f"Texts are cut after {model.lengths[0]} tokens.",
        "",
        "```python",
        "from mediapipe.tasks.python import text",
        "",
        f'with text.{class_name}.create_from_model_path("{FILE}") as task:',
        f'    print(task.{"classify" if class_name == CLASSIFIER else "embed"}("…"))',
        "```",
        "",
        "MediaPipe's tokenizer changes some texts: accents stay, and only the letters "
        "A to Z become lower case. `docs/how_to/phone.md` of official_bert "
        "describes this.",
        "",
        report.on_samples(),
    ]
    if report.changes:
        lines += [report.scores(), *report.changes.lines()]
    return "\n".join(lines) + "\n"
