"""Write a `.tflite` and the files that a program on a device needs."""

import dataclasses
import hashlib
import itertools
import os
import pathlib

import numpy as np

from official_bert import files
from official_bert.checkpoints import google
from official_bert.constants import FLOAT32, FULL_INT8, INPUTS
from official_bert.errors import UserError
from official_bert.export import samples
from official_bert.export.saved_model.signatures import FILL_MASK
from official_bert.export.sources import LABELS_FILE, write_names
from official_bert.export.tflite import converter, flatbuffer, golden_tokens
from official_bert.export.tflite.changes import Changes, compare
from official_bert.export.tflite.labeled_sets import LabeledSet
from official_bert.export.tflite.model import DeviceModel
from official_bert.fine_tuning.outputs import compile_model
from official_bert.fine_tuning.task_file import TASK_FILE, write_task
from official_bert.fine_tuning.tflite_model import (
    FILE,
    HASH_FILE,
    SIGNATURE,
    TfliteModel,
)
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.tables.examples import Example
from official_bert.tables.labels import MULTI_LABEL
from official_bert.tasks.classifier.features import convert_example

# The tokenizer in JavaScript.
TOKENIZER_JS = files.shipped("ports/js/tokenizer.js")
_OTHER_FILES = {
    google.TOKENIZER_FILE: "whether text is lowercased",
    TASK_FILE: "the task of the fine-tuned model",
    HASH_FILE: "SHA-256 of all bytes before these files",
}
# Name of an input or output of a signature -> description.
TENSORS = {
    "input_ids": "token ids, then 0",
    "input_mask": "1 for each token, then 0",
    "segment_ids": "1 for tokens of a second text, else 0",
    "logits": "scores before the softmax or sigmoid",
    "probabilities": "probabilities of the labels, in the order of labels.txt",
    "start_logits": "score of each token as the answer's first; position 0: no answer",
    "end_logits": "score of each token as the answer's last; position 0: no answer",
    "tags": "tag number of each token: a line of labels.txt, counted from 0",
    "tag_logits": "scores of all tags for each token, before the softmax",
    "pooled_output": "a vector for the whole text",
    "embedding": "the text's vector, of length 1 if task.json says normalize",
    "sequence_output": "a vector for each token",
    "vector": "the row of sequence_output of one [MASK]",
    "token_logits": "score of each line of vocab.txt as the masked token",
}
# Added to 8-bit attention scores of padding. With the usual -10000, the 8-bit
# steps would be 39 wide, and smaller score differences would vanish. e^-40 is
# negligible compared with the weights of tokens in a trained model.
CLIPPED_SCORE = -40.0
# Maximum difference from Python without quantization: absolute up to 1,
# relative above.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Report:
    """Measurements of a written `.tflite`.

    Attributes:
      size: of the file, in bytes.
      difference: the greatest difference of any number from Python's, on the
        samples.
      metric: name of the task's score; None without a set to score.
      before: score of the Python model, in percent.
      after: score of the `.tflite`, in percent.
      changes: `Changes` of the predictions on that set; for taggers, of the
        words' tags.
      outputs: dict of output name -> greatest difference of its numbers from
        Python's, on the samples.
      num_samples: number of samples.
      other_labels: number of samples with another label or other tags than in
        Python; None for tasks without labels.
    """

    size: int
    difference: float
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    changes: Changes | None = None
    outputs: dict[str, float] = dataclasses.field(default_factory=dict)
    num_samples: int = 0
    other_labels: int | None = None

    @property
    def same(self) -> float | None:
        """Share of predictions equal to Python's, from 0 to 1; None for numbers."""
        return self.changes.share_same if self.changes else None

    def scores(self) -> str:
        """Return a sentence with the scores on the dev set."""
        text = (
            f"{self.metric}: {self.before:.2f} in Python, {self.after:.2f} in this file"
        )
        if self.same is None:
            return f"{text}."
        return f"{text}; {self.same:.1%} of the predictions are equal."

    def on_samples(self) -> str:
        """Return a sentence with the outputs' differences on the samples."""
        parts = [f"{name} {most:.1e}" for name, most in self.outputs.items()]
        text = f"Largest difference on {self.num_samples} samples: {', '.join(parts)}"
        if self.other_labels is None:
            return f"{text}."
        return f"{text}; {self.other_labels} samples have another label."


def write(
    directory: str | os.PathLike[str],
    model: DeviceModel,
    quantization: str,
    calibration: LabeledSet | None = None,
    dev_set: LabeledSet | None = None,
    max_drop: float = 1.0,
) -> Report:
    """Convert a model, test it, and write it if it is accurate enough.

    Args:
      directory: the new folder.
      model: `DeviceModel`.
      quantization: one of `constants.QUANTIZATIONS`.
      calibration: for `constants.FULL_INT8`, a `LabeledSet`; its labels are not
        used.
      dev_set: `LabeledSet` to score the model before and after; or None.
      max_drop: maximum loss of the score, in points.

    Returns:
      `Report`.

    Raises:
      UserError: TFLite has no op for a part of the model, or the `.tflite`
        differs from Python or scores too low. Nothing is written then.
    """
    rows: list[dict[str, np.ndarray]] = []
    if calibration:
        # About 200 examples from all parts of the file are enough for
        # calibration.
        step = -(-len(calibration.features) // 200)
        features = calibration.features[::step]
        rows = [_row(one, length) for length in model.lengths for one in features]
    kernels = PLAIN
    if quantization == FULL_INT8:
        kernels = dataclasses.replace(kernels, masked_score=CLIPPED_SCORE)
    fixed = model.with_fixed_lengths(kernels)
    with files.atomic_directory(directory, "--export_dir") as folder:
        _write_side_files(folder, model)
        path = os.path.join(folder, FILE)
        _write_model(path, model, converter.convert(fixed, quantization, rows))
        report = _on_samples(path, model, quantization)
        if dev_set:
            report = _scored(report, path, model, dev_set, max_drop)
        outputs = TfliteModel(path).outputs()
        text = _readme(model, quantization, report, outputs)
        files.write_text(os.path.join(folder, "README.md"), text)
    return report


def _write_side_files(folder, model):
    """Write the files for converting text to ids and for reading results."""
    tokenizer = model.tokenizer
    write_names(folder, tokenizer, model.labels)
    google.write_casing(folder, tokenizer.do_lower_case)
    if model.predictor:
        step = model.predictor.global_step or 0
        write_task(folder, model.predictor.task, step)
    files.copy(TOKENIZER_JS, os.path.join(folder, TOKENIZER_JS.name))
    golden_tokens.write(os.path.join(folder, golden_tokens.FILE_NAME), tokenizer)


def _write_model(path, model, content):
    """Write the flatbuffer with its metadata and packed files."""
    converted = flatbuffer.read(content)
    # A device's runtime may lack these operators.
    custom = flatbuffer.custom_operators(converted)
    if custom:
        raise UserError(
            "Cannot convert the model to a .tflite for all devices: it needs "
            f"the operators {', '.join(custom)}, which are not part of TFLite."
        )
    dynamic = flatbuffer.dynamic_shapes(converted)
    if dynamic:
        raise UserError(
            "Cannot convert the model to a .tflite for all devices: "
            f"{len(dynamic)} tensors have no fixed shape, such as {dynamic[0]}."
        )
    description = flatbuffer.Description(
        name=f"BERT, {model.what}",
        text="One signature for each row length: "
        f"{', '.join(map(str, model.lengths))} tokens.",
        version="1",
        tensors=TENSORS,
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


def _row(one, length=None):
    """Return features, truncated or padded, as a dict of `INPUTS` int32 [1, length]."""
    length = length or len(one.input_ids)
    values = one.input_ids, np.ones(len(one.input_ids)), one.segment_ids
    inputs = {name: np.zeros((1, length), np.int32) for name in INPUTS}
    for row, value in zip(inputs.values(), values, strict=True):
        row[0, : len(value)] = value[:length]
    return inputs


def _on_samples(path, model, quantization):
    """Return the `Report` for samples of each length.

    Raises:
      UserError: an output is not finite, or differs without quantization.
    """
    score, tflite_model = compile_model(model.compute), TfliteModel(path)
    texts = [*samples.TEXTS, *(samples.TEXTS[0] * (n // 16) for n in model.lengths)]
    greatest, same_labels = 0.0, []
    differences: dict[str, float] = {}
    for pair in itertools.pairwise([*texts, None]):
        example = Example(0, *pair)
        row = _row(convert_example(example, model.tokenizer, model.lengths[-1]))
        outputs, wanted = tflite_model(row), score(row)
        for name, expected in wanted.items():
            if expected.dtype == np.float32:
                error = np.abs(outputs[name] - expected)
                before = differences.get(name, 0.0)
                differences[name] = float(np.maximum(before, error.max()))
                error = error / np.maximum(1, np.abs(expected))
                # `np.maximum` keeps NaN.
                greatest = np.maximum(greatest, error.max())
        if model.labels:
            pair = _labels(model, outputs), _labels(model, wanted)
            same_labels.append(np.array_equal(*pair))
    if not np.isfinite(greatest):
        raise UserError(
            "The .tflite returns NaN or infinity for plain texts; nothing was "
            "written. Check the model in Python: failed training also causes "
            "this."
        )
    if quantization == FLOAT32 and greatest > TOLERANCE:
        raise UserError(
            f"The .tflite differs from Python by {greatest:.1e}, above the "
            f"allowed {TOLERANCE:.0e}; nothing was written."
        )
    return Report(
        os.path.getsize(path),
        float(greatest),
        outputs=differences,
        num_samples=len(texts),
        other_labels=same_labels.count(False) if model.labels else None,
    )


def _labels(model, outputs):
    """Return the labels or tags of outputs as an array."""
    if "tags" in outputs:
        return outputs["tags"]
    task = model.predictor.task
    if task.kind == MULTI_LABEL:
        return outputs["probabilities"] >= task.threshold
    return np.argmax(outputs["logits"], axis=-1)


def _scored(report, path, model, dev_set, max_drop):
    """Return the report with both scores; raise `UserError` for a large drop."""
    predictor = model.predictor
    expected = dev_set.evaluate(predictor)
    found = dev_set.evaluate(type(predictor)(path))
    before, after = expected.score, found.score
    if not before - after <= max_drop:
        raise UserError(
            f"The model's {dev_set.metric} falls from {before:.2f} to "
            f"{after:.2f}, more than --max_accuracy_drop={max_drop:g}; nothing "
            "was written. Choose another --quantization, or calibrate with "
            "texts like the model's own."
        )
    return dataclasses.replace(
        report,
        metric=dev_set.metric,
        before=before,
        after=after,
        changes=compare(expected, found),
    )


def _readme(model, quantization, report, outputs):
    """Return the README text; `outputs` belong to the shortest signature."""
    names = ", ".join(f"`{SIGNATURE.format(n)}`" for n in model.lengths)
    first = SIGNATURE.format(model.lengths[0])
    lines = [
        f"# {FILE}: {model.what}, {quantization}",
        "",
        f"Signatures: {names}. Use the shortest that fits all tokens.",
        "",
        "Each takes `input_ids`, `input_mask` and `segment_ids`, int32 [1, "
        f"length]. `{first}` returns:",
        "",
        "| result | | |",
        "|---|---|---|",
        *(
            f"| `{name}` | {dtype} {list(shape)} | {TENSORS[name]} |"
            for name, (dtype, shape) in sorted(outputs.items())
        ),
        "",
        *_fill_mask_lines(model),
        "`vocab.txt` and `tokenizer_config.json` define how text becomes ids; "
        "`docs/reference/tokenizer.md` of official_bert describes the steps. "
        "`tokenizer.js` implements them in JavaScript. Check other ports with "
        "`golden_tokens.json`.",
        "",
        "On a few texts, numbers differ from Python's by at most "
        f"{report.difference:.1e}. {report.on_samples()}",
    ]
    if report.changes:
        lines += [report.scores(), *report.changes.lines()]
    return "\n".join(lines) + "\n"


def _fill_mask_lines(model):
    if FILL_MASK not in model.others:
        return []
    return [
        f"Signature `{FILL_MASK}` takes `vector` float32 [1, hidden], "
        f"{TENSORS['vector']}. It returns `token_logits` float32 [1, vocabulary], "
        f"{TENSORS['token_logits']}.",
        "",
    ]
