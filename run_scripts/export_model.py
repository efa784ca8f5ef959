r"""Export a model as an endpoint that takes raw text.

    python run_scripts/export_model.py --model_dir=output/reviews \
        --export_dir=exports/reviews

    curl -d '{"instances": ["Wonderful!"]}' \
        http://127.0.0.1:8501/v1/models/reviews:predict

The export is a SavedModel for TensorFlow Serving, in a folder with a version number; a
README.md beside it tells how to start a server and ask it. Before it gets its name it
is asked itself, in a process that knows only TensorFlow, and must answer what Python
answers.
"""

import os
import re

from absl import flags
from command_line import locate, require, run, start_tensorflow

from official_bert import files
from official_bert.errors import UserError

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir",
    None,
    "Output directory of a finished fine-tuning, of any task; or a pre-trained model "
    "in any format.",
)
flags.DEFINE_string(
    "export_dir", None, "Folder of the versions; a new one goes beside those there."
)
flags.DEFINE_string(
    "model_name", None, "What a server calls it; default: the name of --export_dir."
)
flags.DEFINE_integer(
    "version", None, "Number of the version; default: the next one.", lower_bound=1
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
)
flags.DEFINE_string(
    "check_file",
    None,
    "Texts to compare with Python besides the built-in ones: JSON lines such as "
    '{"text": "…"}, with the names of the inputs.',
)


def main():
    """Load, export, compare; say what was written."""
    require("model_dir", "export_dir")
    lengths = _lengths()
    if FLAGS.check_file:
        files.require_readable(FLAGS.check_file, "--check_file")
    start_tensorflow()
    from official_bert.export import check_rows, exports, saved_model
    from official_bert.export.signatures import SERVING

    export = exports.open_export(
        locate(FLAGS.model_dir),
        FLAGS.pairs,
        lengths or exports.LENGTHS,
        FLAGS.max_seq_length,
    )
    rows = []
    if FLAGS.check_file:
        rows = check_rows.read(FLAGS.check_file, export.signatures[SERVING].specs)
    directory = os.path.normpath(FLAGS.export_dir)
    name = FLAGS.model_name or os.path.basename(os.path.abspath(directory))
    if not re.fullmatch(r"[\w.-]+", name):
        raise UserError(
            f"--model_name: {name!r} is part of a URL; use letters, digits, -, _ and "
            "dots."
        )
    path, found = saved_model.write(directory, export, name, FLAGS.version, rows)
    print(
        f"Exported to {path}: {export.what}\n"
        f"A fresh process answers the same as Python on {found['rows']} rows "
        f"(numbers differ by {found['difference']:.0e} at most)."
    )
    if not found["has_warmup"]:
        print(
            "Without requests to warm a server up: pip install tensorflow-serving-api "
            "and export again to have them."
        )
    print(
        f"{os.path.join(directory, 'README.md')} tells how to start and ask a server."
    )


def _lengths():
    try:
        lengths = [int(value) for value in FLAGS.lengths or ()]
    except ValueError as error:
        raise UserError(f"--lengths: {FLAGS.lengths} are not whole numbers.") from error
    if any(length < 3 for length in lengths):
        raise UserError("--lengths: no row is shorter than 3 tokens.")
    return lengths


if __name__ == "__main__":
    run(main)
