"""Train a tiny BERT on the text inside this Python installation.

    python run_scripts/quickstart.py

The steps are: vocabulary, records, pre-training, held-out evaluation, fill-mask
examples, a figure of the curves, an endpoint with one HTTP query, and a TFLite file
with one prediction. They take about ten minutes on two cores. Each step prints its
command, so you can run it yourself. The last lines show how to open the model in a
browser.
"""

import json
import os
import re
import shlex
import shutil
import subprocess

from absl import flags

from official_bert import files
from official_bert.command_line.child_commands import (
    child_process,
    exit_at_sigterm,
    run_child,
)
from official_bert.command_line.command_table import shown_command
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ()
MOST_USED: tuple[str, ...] = ("output_dir",)

flags.DEFINE_string("output_dir", "output/quickstart", "Directory for all output.")

# Prompts and the expected word, fixed before any training. Each phrase ("greater than",
# "according to") occurs at least forty times in the training text. These sentences do
# not occur in it.
PROMPTS = (
    ("Return true if x is a string, [MASK] otherwise.", "false"),
    ("Convert the text to a floating [MASK] number.", "point"),
    ("The value must be greater [MASK] zero.", "than"),
    ("The names are sorted [MASK] to their length.", "according"),
    ("For more [MASK], see the documentation of the module.", "information"),
    ("It accepts types such [MASK] strings and numbers.", "as"),
    ("A new value is returned instead [MASK] the old one.", "of"),
    ("The default [MASK] is the empty string.", "value"),
    ("The method must [MASK] called before the file is closed.", "be"),
    ("Read up to n bytes [MASK] the file.", "from"),
)

# Minimum results of a model that has learned.
WANTED_ACCURACY_RATIO = 2.0
WANTED_GAIN = 1.0
WANTED_PROMPTS = 6

# Folder of the SavedModel in --output_dir.
EXPORT = "exports/quickstart"


def main() -> int:
    """Run each step as a command; return 1 if the model has not learned."""
    exit_at_sigterm()
    folder = FLAGS.output_dir
    files.make_directory(folder, "--output_dir")
    vocab, model = f"{folder}/vocab.txt", f"{folder}/model"
    _step("A vocabulary from the text that every Python installation contains.")
    _command(
        "vocab",
        "--input_file=builtin:python",
        "--vocab_size=8000",
        f"--output_file={vocab}",
    )
    _step("Training instances: sentence pairs with masked tokens, as TFRecords.")
    before = _hash_of(f"{folder}/train.tfrecord")
    for part, name in (("", "train"), (":heldout", "heldout")):
        _command(
            "records",
            f"--input_file=builtin:python{part}",
            f"--output_file={folder}/{name}.tfrecord",
            f"--vocab_file={vocab}",
            "--max_seq_length=64",
            "--max_predictions_per_seq=10",
            "--dupe_factor=3",
        )
    if before not in (None, _hash_of(f"{folder}/train.tfrecord")):
        print(
            "The text of this Python differs from last time: the model is trained "
            "again."
        )
        shutil.rmtree(model, ignore_errors=True)
    _step("Three instances, as readable text.")
    _command(
        "inspect",
        f"--input_file={folder}/heldout.tfrecord",
        f"--vocab_file={vocab}",
        "--num_instances=3",
    )
    _step("Pre-training: watch the masked-LM loss fall below the unigram entropy.")
    _command(
        "pretrain",
        "--flagfile=configs/quickstart.flags",
        f"--input_file={folder}/train.tfrecord",
        f"--dev_file={folder}/heldout.tfrecord",
        f"--vocab_file={vocab}",
        f"--output_dir={model}",
    )
    _step("What has the model learned? Ten prompts that were fixed before training.")
    answers = _command(
        "fill-mask",
        f"--model={model}",
        "--json",
        *(f"--text={text}" for text, _ in PROMPTS),
        capture=True,
    )
    right = _show_answers([json.loads(line) for line in answers.splitlines()])
    _step("An endpoint: raw text in, predictions out, over HTTP.")
    export = f"{folder}/{EXPORT}"
    _command("export", f"--model={model}", f"--export_dir={export}")
    _query_endpoint(export)
    _step("A file for devices, and its vector of a sentence.")
    tflite = f"{folder}/exports/on_device"
    shutil.rmtree(tflite, ignore_errors=True)
    _command(
        "export",
        f"--model={model}",
        f"--export_dir={tflite}",
        "--format=tflite",
    )
    _query_tflite(tflite)
    return _verdict(folder, right)


def _hash_of(path):
    """Return the SHA-256 of a file, or None if it does not exist."""
    return files.sha256_of(path) if os.path.exists(path) else None


def _step(title):
    print(f"\n== {title}", flush=True)


def _command(name, *arguments, capture=False):
    """Print and run a command; return its output if captured."""
    print(f"$ {shlex.join([*shown_command(name), *arguments])}", flush=True)
    status, output = run_child(
        name,
        arguments,
        stdout=subprocess.PIPE if capture else None,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    if status:
        raise UserError(f"{name} failed with status {status}. See its messages above.")
    return output


def _query_endpoint(export):
    """Serve an export during one query."""
    arguments = [f"--model={export}", "--port=0"]
    print(f"$ {shlex.join([*shown_command('serve'), *arguments])} &")
    with child_process("serve", arguments, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = re.search(r"(http://[^/]+)/v1/models/(\S+)", line)
        if not address:
            raise UserError("serve failed. See its messages above.")
        print(line, end="")
        _command(
            "query",
            f"--url={address[1]}",
            f"--model_name={address[2]}",
            "--signature_name=fill_mask",
            f"--text={PROMPTS[0][0]}",
        )
        server.terminate()


def _query_tflite(directory):
    """Print the vector that the `.tflite` of the pre-trained model computes."""
    question = f"{directory}/question.txt"
    files.write_text(question, "The file was opened for reading.\n")
    answer = _command(
        "predict",
        f"--model={directory}/model.tflite",
        f"--input_file={question}",
        capture=True,
    )
    vector = json.loads(answer)["pooled_output"]
    print(f"{len(vector)} numbers: {', '.join(map(str, vector[:4]))}, …")


def _show_answers(answers):
    """Print each prompt with its candidates; return the number of correct ones."""
    right = 0
    for (text, word), answer in zip(PROMPTS, answers, strict=True):
        tokens = [candidate["token"] for candidate in answer["masks"][0]]
        right += word in tokens
        mark = "yes" if word in tokens else "no "
        print(f"  {mark}  {text}\n         {', '.join(tokens)}   (expected: {word})")
    return right


def _verdict(folder, right):
    """Compare the results with the required ones; return the exit status."""
    model = f"{folder}/model"
    with open(f"{model}/metrics.jsonl", encoding="utf-8") as lines:
        last = json.loads(lines.readlines()[-1])
    accuracy, loss = last["eval_masked_lm_accuracy"], last["eval_masked_lm_loss"]
    share, entropy = last["eval_most_frequent_share"], last["eval_unigram_entropy"]
    ratio, gain = accuracy / share, entropy - loss
    checks = {
        f"held-out masked-LM accuracy {accuracy:.1%}, {ratio:.1f} x the accuracy of "
        f"always guessing the most frequent token ({share:.1%}); at least "
        f"{WANTED_ACCURACY_RATIO} x required": ratio >= WANTED_ACCURACY_RATIO,
        f"held-out masked-LM loss {loss:.2f} nats, {gain:.2f} below the unigram "
        f"entropy ({entropy:.2f}); at least {WANTED_GAIN} required": gain
        >= WANTED_GAIN,
        f"{right} of {len(PROMPTS)} prompts have the right word in the top five; at "
        f"least {WANTED_PROMPTS} required": right >= WANTED_PROMPTS,
    }
    _step("Result")
    for text, passed in checks.items():
        print(f"  {'yes' if passed else 'no '}  {text}")
    print(f"\nThe curves: {model}/training_curves.png")
    print(f"The model:  {model} (official_bert.load('{model}') in Python)")
    serve = shlex.join([*shown_command("serve"), f"--model={folder}/{EXPORT}"])
    print(f"\nTry it in a browser: {serve}\nThen open http://localhost:8501/")
    return 0 if all(checks.values()) else 1
