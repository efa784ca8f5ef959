r"""Export a model: as an endpoint that takes raw text, or for a device.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews

    curl -d '{"instances": ["Wonderful!"]}' \
        http://127.0.0.1:8501/v1/models/reviews:predict

is a SavedModel for TensorFlow Serving, in a folder with a version number; a README.md
beside it tells how to start a server and ask it. Before it gets its name it is asked
itself, in a process that knows only TensorFlow, and must answer what Python answers.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews_on_device --format=tflite --dev_file=dev.csv

is a model.tflite, ids in, results out, with 8-bit weights and all that goes with it.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews_page --format=web

writes a folder for any static host: a page that runs this model in the browser.
"""

import os
import re

from absl import flags

from official_bert import files, given_paths
from official_bert.command_line import found_models
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.constants import FLOAT32, FULL_INT8, INT8, QUANTIZATIONS
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# What the help shows first.
REQUIRED: tuple[str, ...] = ("model", "export_dir")
MOST_USED: tuple[str, ...] = (
    "format",
    "dev_file",
    "quantization",
    "calibration_file",
    "max_seq_length",
    "lengths",
    "pairs",
    "check_file",
    "model_name",
    "version",
)

SAVED_MODEL, TFLITE, WEB = "saved_model", "tflite", "web"
# Lengths of rows in a browser: each takes memory there.
WEB_LENGTHS = (32, 128)

flags.DEFINE_enum(
    "format",
    SAVED_MODEL,
    [SAVED_MODEL, TFLITE, WEB],
    "For servers, for devices, or a page for browsers.",
)
flags.DEFINE_string(
    "model",
    None,
    "Output directory of a finished fine-tuning, of any task; a fine-tuned model of "
    "Hugging Face; or a pre-trained model, by its path or name.",
)
define_aliases("model", "model_dir", "init_checkpoint")
flags.DEFINE_string(
    "export_dir",
    None,
    "For servers, the folder of the versions; a new one goes beside those there. For "
    "devices, a new folder.",
)
flags.DEFINE_string(
    "model_name", None, "What a server calls it; default: the name of --export_dir."
)
flags.DEFINE_integer(
    "version",
    None,
    "Number of the version; default: the next one.",
    lower_bound=1,
    upper_bound=2**63 - 1,
)
flags.DEFINE_bool(
    "pairs",
    None,
    "Whether a classifier takes two texts; default: what it was fine-tuned on.",
)
flags.DEFINE_list(
    "lengths",
    None,
    "Rows are padded to the first of these that fits the longest of a request; "
    "default: 16,32,64,128,256,512, as far as the model reads.",
)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Of a pre-trained model: longer texts are cut; default: all that it reads.",
    lower_bound=3,
)
flags.DEFINE_string(
    "check_file",
    None,
    "Texts to compare with Python besides the built-in ones: JSON lines such as "
    '{"text": "…"}, with the names of the inputs.',
)
flags.DEFINE_enum(
    "quantization",
    INT8,
    QUANTIZATIONS,
    "Of a .tflite. float16 and int8: weights of 16 or 8 bits, a half or a quarter of "
    "the size; full_int8: the computation too, for chips that know nothing else.",
)
flags.DEFINE_string(
    "calibration_file",
    None,
    "For full_int8: texts like those that the model will see, in the form of "
    "--dev_file; a hundred or more.",
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Of a .tflite: texts with answers, in the form that the model was fine-tuned on, "
    "to score it before and after.",
)
flags.DEFINE_float(
    "max_accuracy_drop",
    1.0,
    "A .tflite that scores so many points less on --dev_file is refused.",
    lower_bound=0.0,
)
flags.DEFINE_string(
    "web_runtime",
    None,
    "For --format=web: folder with the two files of `npm pack` of LiteRT.js; default: "
    "npm downloads them.",
)


def main() -> None:
    """Load, export, compare; say what was written."""
    require(*REQUIRED)
    try:
        lengths = [int(value) for value in FLAGS.lengths or ()]
    except ValueError as error:
        raise UserError(f"--lengths: {FLAGS.lengths} are not whole numbers.") from error
    if any(length < 3 for length in lengths):
        raise UserError("--lengths: no row is shorter than 3 tokens.")
    _check_flags()
    files.require_possible_directory(FLAGS.export_dir, "--export_dir")
    found_models.find(FLAGS.model)
    if FLAGS.format in (TFLITE, WEB):
        _export_tflite(lengths)
    else:
        _export_saved_model(lengths)


def _check_flags():
    if FLAGS.format == SAVED_MODEL:
        _model_name()
    only_for = {
        (SAVED_MODEL,): ("version", "check_file"),
        (SAVED_MODEL, WEB): ("model_name", "pairs"),
        (TFLITE, WEB): (
            "quantization",
            "calibration_file",
            "dev_file",
            "max_accuracy_drop",
        ),
        (WEB,): ("web_runtime",),
    }
    for formats, names in only_for.items():
        given = [f"--{name}" for name in names if FLAGS[name].present]
        if given and FLAGS.format not in formats:
            allowed = " and ".join(f"--format={one}" for one in formats)
            raise UserError(f"{', '.join(given)}: for {allowed} only; leave it out.")
    for name in ("check_file", "calibration_file", "dev_file"):
        if FLAGS[name].value:
            given_paths.require_readable(locate(getattr(FLAGS, name)), f"--{name}")
    is_full = FLAGS.quantization == FULL_INT8
    if is_full and not (FLAGS.calibration_file and FLAGS.dev_file):
        raise UserError(
            "--quantization=full_int8 needs --calibration_file, texts like those that "
            "the model will see, and --dev_file, to see what is lost."
        )
    if FLAGS.calibration_file and not is_full:
        raise UserError("--calibration_file is for --quantization=full_int8 alone.")


def _export_tflite(lengths):
    start_tensorflow()
    from official_bert.export import sources
    from official_bert.export.tflite import labeled_sets, writer
    from official_bert.export.tflite.model import open_device_model
    from official_bert.fine_tuning.tflite_model import FILE

    usual = WEB_LENGTHS if FLAGS.format == WEB else sources.LENGTHS
    model = open_device_model(
        found_models.find(FLAGS.model), lengths or usual, FLAGS.max_seq_length
    )
    sets: list[labeled_sets.LabeledSet | None] = []
    for name in ("calibration_file", "dev_file"):
        path = locate(getattr(FLAGS, name))
        if not path:
            sets.append(None)
            continue
        if not model.predictor:
            raise UserError(
                f"--{name}: {FLAGS.model} is pre-trained, and has no task to "
                "score; leave it out."
            )
        sets.append(labeled_sets.read(model.predictor, path, f"--{name}"))
    # What the converter says on its way is for nobody, unless it fails.
    settings = FLAGS.quantization, *sets, FLAGS.max_accuracy_drop
    if FLAGS.format == WEB:
        from official_bert.export.web import writer as web_writer

        page = web_writer.Page(_title(), FLAGS.pairs, locate(FLAGS.web_runtime))
        report = start_tensorflow(
            lambda: web_writer.write(FLAGS.export_dir, model, page, *settings)
        )
    else:
        report = start_tensorflow(
            lambda: writer.write(FLAGS.export_dir, model, *settings)
        )
    path = os.path.join(FLAGS.export_dir, FILE)
    print(
        f"Exported to {path}: {model.what}, {FLAGS.quantization}, "
        f"{report.size / 1e6:.1f} MB\n"
        f"Numbers differ from Python's by {report.difference:.0e} at most on samples."
        f"\n{report.on_samples()}"
    )
    if report.changes:
        print(f"{FLAGS.dev_file}: {report.scores()}")
        print(*report.changes.lines(), sep="\n")
    elif model.predictor and FLAGS.quantization != FLOAT32:
        print("What it costs in accuracy was not measured: give --dev_file.")
    print(f"{os.path.join(FLAGS.export_dir, 'README.md')} tells what goes in and out.")
    if FLAGS.format == WEB:
        print(
            "Open it in a browser: python run_scripts/serve.py "
            f"--model={FLAGS.export_dir}"
        )


def _export_saved_model(lengths):
    start_tensorflow()
    from official_bert.export import sources
    from official_bert.export.saved_model import check_rows, exports, writer
    from official_bert.export.saved_model.signatures import SERVING

    export = exports.open_export(
        found_models.find(FLAGS.model),
        FLAGS.pairs,
        lengths or sources.LENGTHS,
        FLAGS.max_seq_length,
    )
    rows = []
    if FLAGS.check_file:
        specs = export.signatures[SERVING].specs
        rows = check_rows.read(locate(FLAGS.check_file), specs)
    directory = files.normal(FLAGS.export_dir)
    path, report = writer.write(directory, export, _model_name(), FLAGS.version, rows)
    print(
        f"Exported to {path}: {export.what}\n"
        f"A fresh process answers the same as Python on {report['rows']} rows "
        f"(numbers differ by {report['difference']:.0e} at most)."
    )
    if not report["has_warmup"]:
        print(
            "Without requests to warm a server up: pip install "
            "'official-bert[serving-api]' and export again to have them."
        )
    for changed in report["changed"]:
        print(f"{changed} stays as somebody has changed it.")
    print(
        f"{os.path.join(directory, 'README.md')} tells how to start and ask a server."
    )


def _title():
    """Return the title of a page."""
    return FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.export_dir))


def _model_name():
    """Return what a server calls the model."""
    name = FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.export_dir))
    if not re.fullmatch(r"[\w.-]+", name):
        raise UserError(
            f"--model_name: {name!r} is part of a URL; use letters, digits, -, _ and "
            "dots."
        )
    return name
