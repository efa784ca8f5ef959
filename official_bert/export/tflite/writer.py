"""Write a `.tflite` and the files that a program on a device needs with it."""

import dataclasses
import hashlib
import os
import pathlib

import numpy as np

from official_bert import files
from official_bert.checkpoints import google
from official_bert.constants import FLOAT32, FULL_INT8, INPUTS
from official_bert.errors import UserError
from official_bert.export import samples
from official_bert.export.sources import LABELS_FILE, write_names
from official_bert.export.tflite import converter, flatbuffer, golden_tokens, readme
from official_bert.fine_tuning.outputs import compile_model
from official_bert.fine_tuning.task_file import TASK_FILE, write_task
from official_bert.fine_tuning.tflite_model import FILE, HASH_FILE, TfliteModel
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import convert_example

# The tokenizer in JavaScript.
TOKENIZER_JS = files.shipped("ports/js/tokenizer.js")
_OTHER_FILES = {
    google.TOKENIZER_FILE: "whether text is lower-cased",
    TASK_FILE: "what the model was fine-tuned for",
    HASH_FILE: "SHA-256 of all that is before these files",
}
# Added to the attention scores of padding where they have 8 bits: with the usual
# -10000 among them, scores less than 39 apart would be the same number. e^-40 is
# nothing beside what any token of a trained model gets.
CLIPPED_SCORE = -40.0
# More rows, of all parts of the file, tell hardly more about the sizes of numbers.
CALIBRATION_ROWS = 200
# How far a number may be from Python's where nothing is rounded; above 1, how large a
# part of it.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Report:
    """What is known of a `.tflite` that was written.

    Attributes:
      size: of the file, in bytes.
      difference: the greatest of any number from Python's, on the samples.
      metric: name of the task's score; None where there was no set to score.
      before: the score of the model in Python, in percent.
      after: that of the `.tflite`.
      same: share of the answers that are Python's, from 0 to 1; of a tagger, of the
        words' tags; None of numbers.
    """

    size: int
    difference: float
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    same: float | None = None

    def scores(self):
        """Return the scores on the dev set, a str for people."""
        text = f"{self.metric}: {self.before:.2f} in Python, {self.after:.2f} here"
        if self.same is None:
            return f"{text}."
        return f"{text}; {self.same:.1%} of the answers are the same."


def write(directory, model, quantization, calibration=None, dev_set=None, max_drop=1.0):
    """Convert a model, try it, and write it once it is good enough.

    Args:
      directory: the new folder.
      model: `DeviceModel`.
      quantization: one of `constants.QUANTIZATIONS`.
      calibration: for `constants.FULL_INT8`, a `LabeledSet`, whose answers do not
        matter.
      dev_set: `LabeledSet` to score the model on, before and after; or None.
      max_drop: of the score, in points.

    Returns:
      `Report`.

    Raises:
      UserError: something in the model has no op in TFLite; or the `.tflite` differs
        from Python, or scores worse than allowed. Then nothing is written.
    """
    rows = ()
    if calibration:
        step = -(-len(calibration.features) // CALIBRATION_ROWS)
        rows = _calibration_rows(calibration.features[::step], model.lengths)
    with files.atomic_directory(directory, "--export_dir") as folder:
        _write_side_files(folder, model)
        path = os.path.join(folder, FILE)
        _write_model(path, model, _convert(model, quantization, rows))
        report = Report(os.path.getsize(path), _difference(path, model))
        _check_difference(report.difference, quantization)
        if dev_set:
            report = _scored(report, path, model, dev_set, max_drop)
        outputs = TfliteModel(path).outputs()
        text = readme.text(model, quantization, report, outputs)
        files.write_text(os.path.join(folder, "README.md"), text)
    return report


def _check_difference(difference, quantization):
    """Raise `UserError` for a `.tflite` that is something else than the model."""
    if not np.isfinite(difference):
        raise UserError(
            "The .tflite gives NaN or infinity for plain texts; nothing was written. "
            "Python does so too if the training has failed."
        )
    if quantization == FLOAT32 and difference > TOLERANCE:
        raise UserError(
            f"The .tflite differs from Python by {difference:.1e}, and "
            f"{TOLERANCE:.0e} is allowed; nothing was written."
        )


def _convert(model, quantization, rows):
    """Return the flatbuffer; see `converter.convert`."""
    kernels = PLAIN
    if quantization == FULL_INT8:
        kernels = dataclasses.replace(kernels, masked_score=CLIPPED_SCORE)
    return converter.convert(model.with_fixed_lengths(kernels), quantization, rows)


def _write_side_files(folder, model):
    """Write what a program needs that makes ids and reads results."""
    tokenizer = model.tokenizer
    write_names(folder, tokenizer, model.labels)
    google.write_casing(folder, tokenizer.do_lower_case)
    if model.predictor:
        step = model.predictor.global_step or 0
        write_task(folder, model.predictor.task, step)
    files.copy(TOKENIZER_JS, os.path.join(folder, TOKENIZER_JS.name))
    golden_tokens.write(os.path.join(folder, golden_tokens.FILE_NAME), tokenizer)


def _write_model(path, model, content):
    """Write the flatbuffer with its metadata, and the files that it carries."""
    converted = flatbuffer.read(content)
    _check_operators(converted)
    description = flatbuffer.Description(
        name=f"BERT, {model.what}",
        text=f"Rows of {', '.join(map(str, model.lengths))} tokens, a signature each.",
        version="1",
        tensors=readme.TENSORS,
        vocabulary=google.VOCAB_FILE,
        labels=LABELS_FILE if model.labels else None,
        labeled=("probabilities", "logits", "tag_logits"),
        others=_OTHER_FILES,
    )
    folder = os.path.dirname(path)
    names = (google.VOCAB_FILE, LABELS_FILE, *_OTHER_FILES)
    sources = [pathlib.Path(folder, name) for name in names]
    carried = {one.name: one.read_bytes() for one in sources if one.exists()}
    content = flatbuffer.with_metadata(converted, description)
    carried[HASH_FILE] = hashlib.sha256(content).hexdigest().encode()
    pathlib.Path(path).write_bytes(content)
    flatbuffer.append_files(path, carried)


def _check_operators(model):
    """Raise `UserError` for what the runtime of a device may not have."""
    custom = flatbuffer.custom_operators(model)
    if custom:
        raise UserError(
            "The model cannot become a .tflite for any device: it needs the operators "
            f"{', '.join(custom)}, which are not TFLite's own."
        )
    dynamic = flatbuffer.dynamic_shapes(model)
    if dynamic:
        raise UserError(
            f"The model cannot become a .tflite for any device: {len(dynamic)} of its "
            f"tensors have no fixed shape, such as {dynamic[0]}."
        )


def _calibration_rows(features, lengths):
    """Return features as rows of each length, cut or padded; see `converter`."""
    return [_row(one, length) for length in lengths for one in features]


def unpadded_row(one):
    """Return features as Python reads them, a dict of `INPUTS` int32 [1, S]."""
    return _row(one, len(one.input_ids))


def _row(one, length):
    """Return features, cut or padded, as a dict of `INPUTS` int32 [1, length]."""
    size = min(len(one.input_ids), length)
    values = one.input_ids, np.ones(size), one.segment_ids
    return {
        name: np.pad(value[:size], (0, length - size))[None].astype(np.int32)
        for name, value in zip(INPUTS, values, strict=True)
    }


def _difference(path, model):
    """Return the greatest difference from Python, on samples of each length."""
    score, tflite_model = compile_model(model.compute), TfliteModel(path)
    texts = [*samples.TEXTS, *(samples.TEXTS[0] * (n // 16) for n in model.lengths)]
    pairs = zip(texts, [*texts[1:], None], strict=True)
    greatest = 0.0
    for pair in pairs:
        example = Example(0, *pair)
        one = convert_example(example, model.tokenizer, model.lengths[-1])
        row = unpadded_row(one)
        outputs = tflite_model(row)
        for name, expected in score(row).items():
            if expected.dtype == np.float32:
                error = np.abs(outputs[name] - expected)
                error /= np.maximum(1, np.abs(expected))
                # A NaN remains.
                greatest = np.maximum(greatest, error.max())
    return float(greatest)


def _scored(report, path, model, dev_set, max_drop):
    """Return the report with the scores before and after.

    Raises:
      UserError: the second is too low.
    """
    predictor = model.predictor
    expected, before = dev_set.evaluate(predictor)
    predictions, after = dev_set.evaluate(type(predictor)(path))
    if not before - after <= max_drop:
        raise UserError(
            f"The model's {dev_set.metric} falls from {before:.2f} to {after:.2f}, by "
            f"more than --max_accuracy_drop {max_drop:g}; nothing was written. Take "
            "another --quantization, or calibrate with texts like the model's own."
        )
    same = None
    if expected is not None:
        pairs = zip(expected, predictions, strict=True)
        same = sum(one == other for one, other in pairs) / len(expected)
    return dataclasses.replace(
        report, metric=dev_set.metric, before=before, after=after, same=same
    )
