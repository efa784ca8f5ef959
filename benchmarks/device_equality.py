r"""Compare a `.tflite` with Python on a real dev set.

    python benchmarks/device_equality.py --model_dir=output/mrpc --dev_file=dev.tsv
    python benchmarks/device_equality.py --model_dir=all-MiniLM-L6-v2 --texts=texts.txt

The model is converted to a `.tflite` for each of --quantizations, and both
predict every row of the dev set. With a pre-trained model, --texts are encoded
instead, and their vectors are compared by the cosine.
"""

import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags, logging  # noqa: E402

from official_bert.command_line.flag_values import locate, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir",
    None,
    "Directory of a fine-tuned model of any task, or of a pre-trained model.",
)
flags.DEFINE_string(
    "dev_file", None, "Dev set of a fine-tuned model, as for export_model.py."
)
flags.DEFINE_string("texts", None, "Texts for a pre-trained model, one per line.")
flags.DEFINE_list("quantizations", ["float32", "int8"], "Formats.")
flags.DEFINE_list("lengths", None, "Row lengths, as for export_model.py.")


def main():
    """Convert, predict with both, and print a line for each format."""
    require("model_dir")
    start_tensorflow()
    logging.set_verbosity(
        logging.ERROR
    )  # Hide repeated warnings about truncated texts.
    from official_bert.export import sources
    from official_bert.export.tflite import labeled_sets, writer
    from official_bert.export.tflite.model import open_device_model

    lengths = tuple(map(int, FLAGS.lengths)) if FLAGS.lengths else sources.LENGTHS
    model = open_device_model(locate(FLAGS.model_dir), lengths)
    dev_set = None
    if model.predictor:
        require("dev_file")
        path = locate(FLAGS.dev_file)
        dev_set = labeled_sets.read(model.predictor, path, "--dev_file")
        features = dev_set.features
    else:
        require("texts")
        features = _features(model, locate(FLAGS.texts))
    for name in FLAGS.quantizations:
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "model")
            found = writer.write(place, model, name, None, dev_set, max_drop=100.0)
            told = _compare(model, os.path.join(place, "model.tflite"), features)
        scores = f"; {found.scores()}" if dev_set else ""
        print(
            f"{model.what}, {name}, {found.size / 1e6:.1f} MB, {len(features)} rows: "
            f"{told}{scores}",
            flush=True,
        )


def _features(model, path):
    from official_bert.tables.examples import Example
    from official_bert.tasks.classifier.features import convert_examples

    with open(path, encoding="utf-8") as lines:
        examples = [Example(number, line.strip()) for number, line in enumerate(lines)]
    return convert_examples(examples, model.tokenizer, model.lengths[-1])


def _compare(model, path, features):
    """Return the differences of the numbers of all rows, a str."""
    import numpy as np

    from official_bert.fine_tuning.outputs import compile_model
    from official_bert.fine_tuning.tflite_model import TfliteModel
    from official_bert.tokenization.model_inputs import pad_rows

    score, answering = compile_model(model.compute), TfliteModel(path)
    greatest, cosines = 0.0, []
    for one in features:
        row = pad_rows([one], len(one.input_ids))
        given, wanted = answering(row), score(row)
        for name, value in wanted.items():
            if value.dtype == np.float32:
                greatest = max(greatest, float(np.abs(given[name] - value).max()))
        if "pooled_output" in wanted:
            pair = [each["sequence_output"][0].mean(axis=0) for each in (given, wanted)]
            cosines.append(_cosine(*pair))
    told = f"numbers differ by at most {greatest:.1e}"
    if cosines:
        told += f", cosine of the mean vectors at least {min(cosines):.4f}"
    return told


def _cosine(one, other):
    return float(one @ other / (one @ one * (other @ other)) ** 0.5)


if __name__ == "__main__":
    run(main)
