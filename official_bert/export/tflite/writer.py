"""Write a `.tflite` and the files that a program on a device needs with it."""

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
    google.TOKENIZER_FILE: "whether text is lower-cased",
    TASK_FILE: "what the model was fine-tuned for",
    HASH_FILE: "SHA-256 of all that is before these files",
}
# Name of an input or output of a signature -> what it is.
TENSORS = {
    "input_ids": "ids of the tokens, then 0",
    "input_mask": "1 for each token, then 0",
    "segment_ids": "1 for the tokens of a second text, 0 for others",
    "logits": "scores, before the softmax or sigmoid",
    "probabilities": "of the labels, in the order of labels.txt",
    "start_logits": "of each token, to be the answer's first; the first: no answer",
    "end_logits": "of each token, to be the answer's last; the first: no answer",
    "tags": "number of each token's tag, a line of labels.txt, counted from 0",
    "tag_logits": "of each token, the scores of all tags, before the softmax",
    "pooled_output": "a vector for the whole text",
    "embedding": "the vector of the text, of length 1 if task.json says normalize",
    "sequence_output": "a vector for each token",
    "vector": "the row of sequence_output of one [MASK]",
    "token_logits": "of each line of vocab.txt, the score to be the masked token",
}
# Added to the attention scores of padding where they have 8 bits: with the usual
# -10000 among them, scores less than 39 apart would be the same number. e^-40 is
# nothing beside what any token of a trained model gets.
CLIPPED_SCORE = -40.0
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
      changes: `Changes` of the answers to that set; of a tagger, of the words' tags.
      outputs: dict of each output's name -> the greatest difference of its numbers
        from Python's, on the samples.
      num_samples: how many samples there are.
      other_labels: how many of them have another label or tags than in Python; None
        of tasks that have none.
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
        """Share of the answers that are Python's, from 0 to 1; None of numbers."""
        return self.changes.share_same if self.changes else None

    def scores(self) -> str:
        """Return the scores on the dev set, a str for people."""
        text = f"{self.metric}: {self.before:.2f} in Python, {self.after:.2f} here"
        if self.same is None:
            return f"{text}."
        return f"{text}; {self.same:.1%} of the answers are the same."

    def on_samples(self) -> str:
        """Return how outputs differ on the samples, a str for people."""
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
    rows: list[dict[str, np.ndarray]] = []
    if calibration:
        # More than 200, of all parts of the file, tell hardly more about sizes.
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
    # What the runtime of a device may not have.
    custom = flatbuffer.custom_operators(converted)
    if custom:
        raise UserError(
            "The model cannot become a .tflite for any device: it needs the operators "
            f"{', '.join(custom)}, which are not TFLite's own."
        )
    dynamic = flatbuffer.dynamic_shapes(converted)
    if dynamic:
        raise UserError(
            f"The model cannot become a .tflite for any device: {len(dynamic)} of its "
            f"tensors have no fixed shape, such as {dynamic[0]}."
        )
    description = flatbuffer.Description(
        name=f"BERT, {model.what}",
        text=f"Rows of {', '.join(map(str, model.lengths))} tokens, a signature each.",
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
    """Return features, cut or padded, as a dict of `INPUTS` int32 [1, length]."""
    length = length or len(one.input_ids)
    values = one.input_ids, np.ones(len(one.input_ids)), one.segment_ids
    inputs = {name: np.zeros((1, length), np.int32) for name in INPUTS}
    for row, value in zip(inputs.values(), values, strict=True):
        row[0, : len(value)] = value[:length]
    return inputs


def _on_samples(path, model, quantization):
    """Return the `Report` of samples of each length; refuse a model that is wrong."""
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
                # A NaN remains.
                greatest = np.maximum(greatest, error.max())
        if model.labels:
            pair = _labels(model, outputs), _labels(model, wanted)
            same_labels.append(np.array_equal(*pair))
    if not np.isfinite(greatest):
        raise UserError(
            "The .tflite gives NaN or infinity for plain texts; nothing was written. "
            "Python does so too if the training has failed."
        )
    if quantization == FLOAT32 and greatest > TOLERANCE:
        raise UserError(
            f"The .tflite differs from Python by {greatest:.1e}, and "
            f"{TOLERANCE:.0e} is allowed; nothing was written."
        )
    return Report(
        os.path.getsize(path),
        float(greatest),
        outputs=differences,
        num_samples=len(texts),
        other_labels=same_labels.count(False) if model.labels else None,
    )


def _labels(model, outputs):
    """Return what outputs of a classifier or tagger mean, an array."""
    if "tags" in outputs:
        return outputs["tags"]
    task = model.predictor.task
    if task.kind == MULTI_LABEL:
        return outputs["probabilities"] >= task.threshold
    return np.argmax(outputs["logits"], axis=-1)


def _scored(report, path, model, dev_set, max_drop):
    """Return the report with the scores before and after, if the second will do."""
    predictor = model.predictor
    expected = dev_set.evaluate(predictor)
    found = dev_set.evaluate(type(predictor)(path))
    before, after = expected.score, found.score
    if not before - after <= max_drop:
        raise UserError(
            f"The model's {dev_set.metric} falls from {before:.2f} to {after:.2f}, by "
            f"more than --max_accuracy_drop {max_drop:g}; nothing was written. Take "
            "another --quantization, or calibrate with texts like the model's own."
        )
    return dataclasses.replace(
        report,
        metric=dev_set.metric,
        before=before,
        after=after,
        changes=compare(expected, found),
    )


def _readme(model, quantization, report, outputs):
    """Return the README's text; `outputs` are those of the shortest signature."""
    names = ", ".join(f"`{SIGNATURE.format(n)}`" for n in model.lengths)
    first = SIGNATURE.format(model.lengths[0])
    lines = [
        f"# {FILE}: {model.what}, {quantization}",
        "",
        f"Signatures: {names}. Take the shortest that has room for all tokens.",
        "",
        f"Each takes `input_ids`, `input_mask` and `segment_ids`, int32 [1, length]; "
        f"`{first}` returns",
        "",
        "| result | | |",
        "|---|---|---|",
        *(
            f"| `{name}` | {dtype} {list(shape)} | {TENSORS[name]} |"
            for name, (dtype, shape) in sorted(outputs.items())
        ),
        "",
        *_fill_mask_lines(model),
        "Text becomes ids by `vocab.txt` and `tokenizer_config.json`, as "
        "`docs/tokenizer.md` of official_bert tells; `tokenizer.js` does it in "
        "JavaScript. Check another port with `golden_tokens.json`.",
        "",
        f"Numbers differ from Python's by {report.difference:.1e} at most on a few "
        f"texts. {report.on_samples()}",
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
