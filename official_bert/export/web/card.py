"""`model.json`: the description of a model for the page and `bert.js`."""

import os
from typing import Any

import numpy as np

from official_bert import __version__
from official_bert.constants import (
    CLASSIFIER,
    EMBEDDING,
    INPUTS,
    MULTIPLE_CHOICE,
    NER,
    SQUAD,
)
from official_bert.errors import UserError
from official_bert.export import samples
from official_bert.export.saved_model.exports import takes_pairs
from official_bert.export.saved_model.signatures import FILL_MASK
from official_bert.export.tflite.model import DeviceModel
from official_bert.export.tflite.writer import Report
from official_bert.export.web.runtime import CORE
from official_bert.fine_tuning.task_file import task_content
from official_bert.fine_tuning.tflite_model import TfliteModel
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import convert_example

FILE = "model.json"
# Kinds of pages: tasks, and these two for pre-trained models.
ENCODER = "encoder"
PAGES = (CLASSIFIER, SQUAD, NER, EMBEDDING, FILL_MASK, ENCODER)
MASKED_LM = "masked language model"
# Count of values per output that a browser compares after loading a model on a
# GPU.
_CHECKED = 16


def kind_of(model: DeviceModel) -> str:
    """Return the kind of the page, one of `PAGES`.

    Raises:
      UserError: the task has no page.
    """
    if model.predictor is None:
        return FILL_MASK if FILL_MASK in model.others else ENCODER
    kind = model.predictor.task.TASK
    if kind == MULTIPLE_CHOICE:
        raise UserError(
            "--format=web has no page for multiple choice. Use --format=tflite or "
            "--format=saved_model."
        )
    return kind


def pairs_of(model: DeviceModel, is_pair: bool | None) -> bool:
    """Return whether the page has two fields for texts.

    Args:
      model: `DeviceModel`.
      is_pair: value of the flag; None to follow the task.

    Raises:
      UserError: the flag is given and the model is not a classifier.
    """
    if kind_of(model) == CLASSIFIER:
        assert model.predictor is not None
        return takes_pairs(model.predictor.task) if is_pair is None else is_pair
    if is_pair is not None:
        raise UserError("--pairs is only for classifiers. Remove it.")
    return False


def describe(
    tflite_file: str | os.PathLike[str],
    model: DeviceModel,
    name: str,
    is_pair: bool,
    quantization: str,
    report: Report,
) -> dict[str, Any]:
    """Return the content of `model.json`.

    Args:
      tflite_file: the exported model.
      model: its source, a `DeviceModel`.
      name: title of the page.
      is_pair: whether a classifier takes two texts.
      quantization: one of `constants.QUANTIZATIONS`.
      report: from `tflite.writer.write`.
    """
    predictor, config = model.predictor, model.config
    score = None
    if report.metric:
        score = {
            "metric": report.metric,
            "before": report.before,
            "after": report.after,
            "same": report.same,
        }
    return {
        "name": name,
        "kind": kind_of(model),
        "what": MASKED_LM if kind_of(model) == FILL_MASK else model.what,
        "is_pair": is_pair,
        "task": task_content(predictor.task) if predictor else None,
        "labels": list(model.labels),
        "do_lower_case": model.tokenizer.do_lower_case,
        "lengths": list(model.lengths),
        "model_bytes": report.size,
        "quantization": quantization,
        "difference": report.difference,
        "score": score,
        "global_step": predictor.global_step if predictor else None,
        "architecture": {
            "layers": config.num_hidden_layers,
            "hidden_size": config.hidden_size,
            "heads": config.num_attention_heads,
            "vocabulary": len(model.tokenizer.vocab),
        },
        "made_with": f"official_bert {__version__}, {CORE.spec}",
        "check": _check_row(tflite_file, model),
    }


def _check_row(tflite_file, model):
    """Return a row of the shortest length with the interpreter's outputs."""
    length = model.lengths[0]
    example = Example(0, samples.TEXTS[0])
    row = convert_example(example, model.tokenizer, length)
    inputs = {name: np.zeros((1, length), np.int32) for name in INPUTS}
    inputs["input_ids"][0, : len(row.input_ids)] = row.input_ids
    inputs["input_mask"][0, : len(row.input_ids)] = 1
    outputs = TfliteModel(tflite_file)(inputs)
    return {
        "input_ids": row.input_ids.tolist(),
        "outputs": {
            name: value.ravel()[:_CHECKED].astype(float).tolist()
            for name, value in outputs.items()
            if value.dtype == np.float32
        },
    }
