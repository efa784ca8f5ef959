r"""Export a model for servers, for devices, or as a web page.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews

    curl -d '{"instances": ["Wonderful!"]}' \
        http://127.0.0.1:8501/v1/models/reviews:predict

The first command writes a SavedModel for TensorFlow Serving, in a folder with a version
number. The served model takes raw text. A README.md next to it explains how to start
and query a server. Before publishing, a process that imports only TensorFlow runs test
inputs. The export fails if its outputs differ from Python's.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews_on_device --format=tflite --dev_file=dev.csv

This writes a model.tflite with 8-bit weights and all files that it needs. It takes
token ids and returns predictions.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews_page --format=web

This writes a folder for any static web host. Its page runs the model in the browser.

    python run_scripts/export_model.py --model=output/reviews \
        --export_dir=exports/reviews_mediapipe --format=mediapipe

This writes a model.tflite for MediaPipe's TextClassifier or TextEmbedder. It takes
raw text.
"""

import os
import re

from absl import flags

from official_bert import files, given_paths
from official_bert.command_line import command_table, found_models
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.constants import (
    CORE_OPS,
    FLOAT32,
    FULL_INT8,
    INT8,
    QUANTIZATIONS,
    TOKENIZER_OPS,
)
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
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
MEDIAPIPE = "mediapipe"
# Sequence lengths for browsers. Each length takes memory there.
WEB_LENGTHS = (32, 128)

flags.DEFINE_enum(
    "format",
    SAVED_MODEL,
    [SAVED_MODEL, TFLITE, WEB, MEDIAPIPE],
    "saved_model: for servers. tflite: for devices. web: a page for browsers. "
    "mediapipe: a .tflite for MediaPipe's TextClassifier or TextEmbedder.",
)
flags.DEFINE_string(
    "model",
    None,
    "Output directory of a finished fine-tuning of any task, a fine-tuned model of "
    "Hugging Face, or a pre-trained model. Give a path or a name.",
)
define_aliases("model", "model_dir", "init_checkpoint")
flags.DEFINE_string(
    "export_dir",
    None,
    "For servers: folder of the versions; a new version is added to it. For devices "
    "and browsers: a new folder.",
)
flags.DEFINE_string(
    "model_name",
    None,
    "Name of the model on the server. Default: the name of --export_dir.",
)
flags.DEFINE_integer(
    "version",
    None,
    "Version number. Default: the next one.",
    lower_bound=1,
    upper_bound=2**63 - 1,
)
flags.DEFINE_bool(
    "pairs",
    None,
    "Whether a classifier takes pairs of texts. Default: as in its fine-tuning.",
)
flags.DEFINE_list(
    "lengths",
    None,
    "Sequence lengths. A request is padded to the smallest length that fits its "
    "longest text. Default: multiples of 8 to 64, of 16 to 256 and of 32 to 512 on "
    "servers; 16,32,64,128,256,512 on devices; up to the model's maximum.",
)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens per text of a pre-trained model; longer texts are cut. Default: "
    "the model's maximum.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "tokenizer_ops",
    CORE_OPS,
    TOKENIZER_OPS,
    "Operations of the tokenizer. core: only TensorFlow's; every server has them. "
    "tf_text: also TensorFlow Text's faster ones, for texts that they split exactly. "
    "The ids are the same.",
)
flags.DEFINE_string(
    "check_file",
    None,
    "More texts to compare with Python, in addition to the built-in ones: JSON lines "
    'such as {"text": "…"}, with the names of the inputs.',
)
flags.DEFINE_enum(
    "quantization",
    INT8,
    QUANTIZATIONS,
    "Quantization of a .tflite. float16 and int8: 16-bit or 8-bit weights, a half or "
    "a quarter of the size. full_int8: also 8-bit computation, for integer-only "
    "chips.",
)
flags.DEFINE_string(
    "calibration_file",
    None,
    "For full_int8: at least a hundred texts like those that the model will see, in "
    "the format of --dev_file.",
)
flags.DEFINE_string(
    "dev_file",
    None,
    "For a .tflite: labeled texts in the format of the fine-tuning data. They are "
    "scored before and after the conversion.",
)
flags.DEFINE_float(
    "max_accuracy_drop",
    1.0,
    "Reject a .tflite that scores more than this number of points lower on --dev_file.",
    lower_bound=0.0,
)
flags.DEFINE_string(
    "web_runtime",
    None,
    "For --format=web: folder with the two files of `npm pack` of LiteRT.js. "
    "Default: npm downloads them.",
)


def main() -> None:
    """Load the model, export it, compare outputs and report the result."""
    require(*REQUIRED)
    try:
        lengths = [int(value) for value in FLAGS.lengths or ()]
    except ValueError as error:
        raise UserError(f"--lengths: {FLAGS.lengths} must be whole numbers.") from error
    if any(length < 3 for length in lengths):
        raise UserError("--lengths: every length must be at least 3 tokens.")
    _check_flags()
    files.require_possible_directory(FLAGS.export_dir, "--export_dir")
    found_models.find(FLAGS.model)
    if FLAGS.format in (TFLITE, WEB, MEDIAPIPE):
        _export_tflite(lengths)
    else:
        _export_saved_model(lengths)


def _check_flags():
    if FLAGS.format == SAVED_MODEL:
        _model_name()
    only_for = {
        (SAVED_MODEL,): ("version", "check_file", "tokenizer_ops"),
        (SAVED_MODEL, WEB): ("model_name", "pairs"),
        # A file for MediaPipe has one length, the model's.
        (SAVED_MODEL, TFLITE, WEB): ("lengths",),
        (TFLITE, WEB, MEDIAPIPE): (
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
            raise UserError(
                f"{', '.join(given)} works only with {allowed}. Leave it out."
            )
    for name in ("check_file", "calibration_file", "dev_file"):
        if FLAGS[name].value:
            given_paths.require_readable(locate(getattr(FLAGS, name)), f"--{name}")
    is_full = FLAGS.quantization == FULL_INT8
    if is_full and not (FLAGS.calibration_file and FLAGS.dev_file):
        raise UserError(
            "--quantization=full_int8 needs --calibration_file, texts like those "
            "that the model will see, and --dev_file, to measure the loss of "
            "accuracy."
        )
    if FLAGS.calibration_file and not is_full:
        raise UserError(
            "--calibration_file needs --quantization=full_int8. Leave it out."
        )


def _export_tflite(lengths):
    start_tensorflow()
    from official_bert.export import sources
    from official_bert.export.tflite import labeled_sets, writer
    from official_bert.export.tflite.model import open_device_model
    from official_bert.fine_tuning.tflite_model import FILE

    usual = {WEB: WEB_LENGTHS, MEDIAPIPE: ()}.get(FLAGS.format, sources.LENGTHS)
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
                f"--{name}: {FLAGS.model} is a pre-trained model without a task, so "
                f"it has no score. Leave --{name} out."
            )
        sets.append(labeled_sets.read(model.predictor, path, f"--{name}"))
    # Show the converter's messages only if it fails.
    settings = FLAGS.quantization, *sets, FLAGS.max_accuracy_drop
    if FLAGS.format == WEB:
        from official_bert.export.web import writer as web_writer

        page = web_writer.Page(_title(), FLAGS.pairs, locate(FLAGS.web_runtime))
        report = start_tensorflow(
            lambda: web_writer.write(FLAGS.export_dir, model, page, *settings)
        )
    else:
        from official_bert.export.tflite import mediapipe

        write = mediapipe.write if FLAGS.format == MEDIAPIPE else writer.write
        report = start_tensorflow(lambda: write(FLAGS.export_dir, model, *settings))
    path = os.path.join(FLAGS.export_dir, FILE)
    print(
        f"Exported to {path}: {model.what}, {FLAGS.quantization}, "
        f"{report.size / 1e6:.1f} MB\nOn sample texts, outputs differ from Python's "
        f"by at most {report.difference:.0e}.\n{report.on_samples()}"
    )
    if report.changes:
        print(f"{FLAGS.dev_file}: {report.scores()}")
        print(*report.changes.lines(), sep="\n")
    elif model.predictor and FLAGS.quantization != FLOAT32:
        print("The loss of accuracy was not measured. Give --dev_file to measure it.")
    print(
        f"{os.path.join(FLAGS.export_dir, 'README.md')} describes the inputs and "
        "outputs."
    )
    if FLAGS.format == WEB:
        serve = " ".join(command_table.shown_command("serve"))
        print(f"Open it in a browser: {serve} --model={FLAGS.export_dir}")


def _export_saved_model(lengths):
    start_tensorflow()
    from official_bert.export import sources
    from official_bert.export.saved_model import check_rows, exports, writer
    from official_bert.export.saved_model.signatures import SERVING

    export = exports.open_export(
        found_models.find(FLAGS.model),
        FLAGS.pairs,
        lengths or sources.SERVER_LENGTHS,
        FLAGS.max_seq_length,
        FLAGS.tokenizer_ops,
    )
    rows = []
    if FLAGS.check_file:
        specs = export.signatures[SERVING].specs
        rows = check_rows.read(locate(FLAGS.check_file), specs)
    directory = files.normal(FLAGS.export_dir)
    path, report = writer.write(directory, export, _model_name(), FLAGS.version, rows)
    print(
        f"Exported to {path}: {export.what}\nA new process gives the same outputs as "
        f"Python for {report['rows']} inputs (largest difference "
        f"{report['difference']:.0e})."
    )
    if not report["has_warmup"]:
        print(
            "The export has no warm-up requests. To add them, run pip install "
            "'official-bert[serving-api]' and export again."
        )
    for changed in report["changed"]:
        print(f"Keeping {changed} unchanged, because it was edited by hand.")
    print(
        f"{os.path.join(directory, 'README.md')} explains how to start and query a "
        "server."
    )


def _title():
    """Return the title of a page."""
    return FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.export_dir))


def _model_name():
    """Return the name of the model on a server."""
    name = FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.export_dir))
    if not re.fullmatch(r"[\w.-]+", name):
        raise UserError(
            f"--model_name={name!r} cannot be part of a URL. Use letters, digits, -, "
            "_ and dots."
        )
    return name
