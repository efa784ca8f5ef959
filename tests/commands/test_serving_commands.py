"""The commands of docs/how_to/serving.md and README.md, run as they are printed."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

import keras
import pytest
import tiny_model
from code_blocks import blocks_of
from places import ROOT
from record_files import MINI_CONFIG

from official_bert.checkpoints import model_directory
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling.classification import ClassificationModel
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask

pytestmark = pytest.mark.slow


def commands(page):
    """Return the commands of a page that export, serve and query a classifier."""
    lines = [
        line
        for block in blocks_of(ROOT / page)
        if block.is_shell
        for line in block.commands()
    ]
    starts = ("official-bert export", "official-bert serve", "curl")
    return [next(line for line in lines if line.startswith(start)) for start in starts]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def model_dir(tmp_path):
    """Return the page's `output/reviews`, in a folder next to the scripts."""
    (tmp_path / "run_scripts").symlink_to(ROOT / "run_scripts")
    path = tmp_path / "output" / "reviews"
    path.mkdir(parents=True)
    keras.utils.set_random_seed(3)
    model = ClassificationModel(MINI_CONFIG, 2)
    model_directory.save(str(path), model, str(tiny_model.VOCAB), True)
    task = ClassifierTask("single_label", ("1", "5"), ("accuracy",), 32)
    write_task(str(path), task, 7)
    return path


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(line, folder):
    done = subprocess.run(
        line.replace("official-bert", f"{sys.executable} -m official_bert"),
        shell=True,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_from_a_directory_to_an_answer_in_three_commands(model_dir, tmp_path):
    export, serve, curl = commands("docs/how_to/serving.md")
    assert "the same outputs as Python" in run(export, tmp_path)
    text = re.search(r'\["(.*)"\]', curl)[1]
    port = free_port()
    words = serve.removeprefix("official-bert ").removesuffix(" &").split()
    server = subprocess.Popen(
        [sys.executable, "-m", "official_bert", *words, f"--port={port}"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert "Serving version 1" in server.stdout.readline()
        if shutil.which("curl"):
            answer = run(curl.replace("8501", str(port)) + " -s", tmp_path)
        else:
            body = re.search(r"-d '(.*?)'", curl)[1].encode()
            url = re.search(r"http://\S+", curl)[0].replace("8501", str(port))
            answer = urllib.request.urlopen(url, body).read()
        (expected,) = ClassifierPredictor(str(model_dir)).predict([text])
        (found,) = json.loads(answer)["predictions"]
        assert found["label"] == expected.label
        assert found["probabilities"] == pytest.approx(
            list(expected.probabilities.values()), abs=1e-5
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 0


def test_the_readme_says_the_same():
    assert commands("README.md")[:2] == commands("docs/how_to/serving.md")[:2]
