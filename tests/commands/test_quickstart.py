"""The quickstart's steps; `make quickstart` runs them in ten minutes."""

import warm_python
from places import ROOT

# Replaces the commands by one that writes records with the text of the second argument,
# and stops before the training.
PROGRAM = """
import os, sys
from official_bert.commands import quickstart
from absl import flags

folder, text = sys.argv[1:]
flags.FLAGS(["quickstart.py", f"--output_dir={folder}"])

def command(name, *arguments, capture=False):
    if name == "pretrain":
        print(name, sorted(os.listdir(f"{folder}/model")))
        sys.exit()
    for argument in arguments:
        if argument.startswith("--output_file="):
            with open(argument.partition("=")[2], "w") as records:
                records.write(text)

assert callable(quickstart._command)
quickstart._command = command
os.makedirs(f"{folder}/model", exist_ok=True)
with open(f"{folder}/model/checkpoint", "w"):
    pass
try:
    quickstart.main()
except FileNotFoundError as error:
    print(error.filename == f"{folder}/model")
"""


def run(folder, text):
    done = warm_python.run(["-c", PROGRAM, str(folder), text], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_of_other_text_is_trained_anew(tmp_path):
    """The text of Python changes, for example, with an upgrade."""
    goes_on = "pretrain ['checkpoint']"
    assert run(tmp_path, "one").splitlines()[-1] == goes_on
    assert run(tmp_path, "one").splitlines()[-1] == goes_on
    lines = run(tmp_path, "two").splitlines()
    assert lines[-1] == "True" and not (tmp_path / "model").exists()
    assert (
        "The text of this Python differs from last time: the model is trained again."
        in (lines)
    )
