r"""Measure the memory and time for converting BERT-base to a `.tflite`.

    python benchmarks/base_on_device.py --vocab_file=vocab.txt

export_model.py exports a model with random weights and the size in
--bert_config_file. Each export is a separate process, whose peak resident
memory is printed.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import locate, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "bert_config_file", "configs/bert_base.json", "Config file with the size."
)
flags.DEFINE_string(
    "vocab_file", None, "Vocabulary with as many tokens as the config states."
)
flags.DEFINE_list("quantizations", ["float32", "float16", "int8"], "Formats.")
flags.DEFINE_list("lengths", ["128"], "Row lengths, as for export_model.py.")


def main():
    """Make the model, export it, and print a line for each format."""
    require("vocab_file")
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        _write_model(model)
        for name in FLAGS.quantizations:
            # The system reports one maximum for all children, so each has its
            # own parent.
            done = subprocess.run(
                [sys.executable, __file__, "--measure", *_command(model, folder, name)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise UserError(f"export_model.py failed: {done.stderr[-500:]}")
            size = os.path.getsize(os.path.join(folder, name, "model.tflite"))
            print(f"{name:8} {size / 1e6:6.1f} MB  {done.stdout.splitlines()[-1]}")


def _write_model(directory):
    """Write an encoder with random weights."""
    start_tensorflow()
    import keras

    from official_bert.checkpoints import model_directory
    from official_bert.config import BertConfig
    from official_bert.modeling.encoder import BertEncoder

    keras.utils.set_random_seed(1)
    os.mkdir(directory)
    config = BertConfig.from_json_file(locate(FLAGS.bert_config_file))
    encoder = BertEncoder(config)
    model_directory.save(directory, encoder, locate(FLAGS.vocab_file), True)


def _command(model, folder, name):
    return [
        sys.executable,
        str(ROOT / "run_scripts" / "export_model.py"),
        f"--model_dir={model}",
        f"--export_dir={os.path.join(folder, name)}",
        "--format=tflite",
        f"--quantization={name}",
        f"--lengths={','.join(FLAGS.lengths)}",
        f"--max_seq_length={max(map(int, FLAGS.lengths))}",
    ]


def _measure(command):
    """Run a command; print its peak memory and its time."""
    start = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"peak {peak:.2f} GB, {time.monotonic() - start:.0f} s")
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        sys.exit(_measure(sys.argv[2:]))
    run(main)
