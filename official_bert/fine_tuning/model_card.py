"""`README.md` of a model directory: what the model is, as far as its files tell.

A template for Mitchell et al., "Model Cards for Model Reporting" (2019): what only
people know is left blank in it, and what people have written is never overwritten.
"""

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from official_bert import files
from official_bert.checkpoints import any_format, names
from official_bert.constants import (
    CLASSIFIER,
    EMBEDDING,
    GOOGLE,
    HUGGINGFACE,
    KERAS_HUB,
    MULTIPLE_CHOICE,
    NER,
    SQUAD,
)
from official_bert.fine_tuning.task_file import TASK_FILE, has_task
from official_bert.generated_files import write_unless_edited
from official_bert.training.logs import eval_results
from official_bert.training.run_manifest import MANIFEST_FILE

CARD_FILE = "README.md"

# What a model is asked with; its own place is not for others to know.
_PRETRAINED_COMMANDS = (
    'fill_mask.py --model=THIS_FOLDER --text="… [MASK] …"',
    "extract_features.py --model=THIS_FOLDER --input_file=… "
    "--sentence_vectors=vectors.npy",
    "run_classifier.py --model=THIS_FOLDER --train_file=… --output_dir=… "
    "--do_train --do_eval",
)
_FINE_TUNED_COMMANDS = (
    "predict.py --model=THIS_FOLDER --input_file=… --output_file=answers.jsonl",
    "export_model.py --model=THIS_FOLDER --export_dir=…",
)

# Format of a checkpoint -> its files, for people.
_FILES = {
    GOOGLE: f"`{names.MODEL_PREFIX}.*`, names of google-research/bert",
    HUGGINGFACE: "`model.safetensors`, as Hugging Face's transformers has it",
    KERAS_HUB: "`config.json` and `*.weights.h5`, a preset of KerasHub",
}

_BLANKS = """\
## For its author to fill in

* **Meant for:** …
* **Not meant for, known errors, biases of its texts:** …
* **Licence, of the weights and of the texts:** …
* **Contact:** …
"""


def write(
    directory: str | os.PathLike[str],
    data: Mapping[str, Any],
    in_users_form: Callable[[str], str] = str,
) -> bool:
    """Write the card of a model directory, unless a person has changed it.

    Args:
      directory: a finished model's. Its config, vocabulary, casing, weights,
        `training.json`, `task.json` and `eval_results.txt` are read; the last
        three may be missing.
      data: dict of flag -> str, the data that were given; of paths, the last
        part is shown, of `dataset` all.
      in_users_form: function: command that names a script -> the command as this user
        types it.

    Returns:
      whether it was written.

    Raises:
      UserError: a file of the model is damaged.
    """
    task = None
    if has_task(directory):
        path = os.path.join(directory, TASK_FILE)
        task = files.read_json(path, "the description of a fine-tuned model")
    with any_format.opened(directory) as checkpoint:
        config, shapes = checkpoint.config, checkpoint.shapes
        assert config is not None  # A finished model has one.
        sizes = _sizes(config, shapes, checkpoint.do_lower_case, checkpoint.format)
    title = _title_of_task(task) if task else _title_of_pretrained(config, shapes)
    lines = [f"# {title}", ""]
    if task:
        labels = task.get("labels") or task.get("tags")
        if labels:
            lines.append(f"Its labels: {_some(labels)}.")
        lines += [f"It reads {task['max_seq_length']} tokens at once.", ""]
    lines += [*_table(sizes), "", "## How it was trained", ""]
    rows = _training(directory, task)
    for flag, value in data.items():
        paths = [os.path.normpath(part) for part in value.split(",")]
        shown = [value] if flag == "dataset" else list(map(os.path.basename, paths))
        rows.append((f"`--{flag}`", _some(shown)))
    lines += _table(rows)
    lines += ["", *_scores(directory), "## How to use it", ""]
    commands = _FINE_TUNED_COMMANDS if task else _PRETRAINED_COMMANDS
    # A left-to-right model knows no [MASK], an encoder alone no words.
    fills = _has(shapes, "cls/predictions/") and not config.causal_attention
    for command in commands if task or fills else commands[1:]:
        lines.append(f"    {in_users_form(f'python run_scripts/{command}')}")
    text = "\n".join([*lines, "", _BLANKS])
    return write_unless_edited(os.path.join(directory, CARD_FILE), text, "<!-- {} -->")


def _has(shapes, prefix):
    return any(name.startswith(prefix) for name in shapes)


def _title_of_pretrained(config, shapes):
    if not _has(shapes, "cls/predictions/"):
        encoder_alone = all(name.startswith("bert/") for name in shapes)
        return "BERT, the encoder" if encoder_alone else "BERT with the head of a task"
    learned = "left to right" if config.causal_attention else "on masked words"
    if _has(shapes, "cls/seq_relationship/"):
        learned += " and next sentences"
    return f"BERT, pre-trained {learned}"


def _title_of_task(task):
    what = {
        CLASSIFIER: "classifier of texts",
        SQUAD: "answers to questions on contexts",
        NER: "tagger of words",
        MULTIPLE_CHOICE: "multiple choice",
        EMBEDDING: "sentence embeddings",
    }
    name = f" ({task['name']})" if task.get("name") else ""
    return f"BERT, fine-tuned: {what.get(task['task'], task['task'])}{name}"


def _some(names, most=20):
    """Return names with commas between them, of many the first ones."""
    shown = ", ".join(map(_cell, names[:most]))
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def _table(rows):
    yield "| | |"
    yield "|---|---|"
    for name, value in rows:
        yield f"| {name} | {value} |"


def _cell(value):
    """Return a value as it may stand in a table."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _sizes(config, shapes, casing, form):
    parameters = sum(map(math.prod, shapes.values()))
    case = {True: "lower-cased", False: "cased", None: "of unknown case"}[casing]
    return [
        ("layers", config.num_hidden_layers),
        ("hidden size", config.hidden_size),
        ("attention heads", config.num_attention_heads),
        ("feed-forward size", config.intermediate_size),
        ("longest sequence", f"{config.max_position_embeddings} tokens"),
        ("vocabulary", f"{config.vocab_size:,} word pieces, {case}"),
        ("parameters", f"{parameters:,}, heads included"),
        ("files", _FILES[form]),
    ]


def _training(directory, task):
    """Return rows of `training.json`, none if there is none."""
    path = os.path.join(directory, MANIFEST_FILE)
    if not files.exists(path):
        return []
    manifest = files.read_json(path, "the manifest of a run")
    run, environment = manifest["settings"], manifest["history"][-1]["environment"]
    steps, warmup = run["num_train_steps"], run["num_warmup_steps"]
    newest = max(names.numbered_checkpoints(directory), default=0)
    kept = task["global_step"] if task else newest or steps
    optimizer = run["optimizer"]
    if optimizer == "adam":
        optimizer += f", {'with' if run['bias_correction'] else 'no'} bias correction"
    packages = ("official_bert", "tensorflow", "keras", "python")
    start = run["init_checkpoint"] or run["continue_from"] or "random weights"
    rows = [
        ("started from", _cell(start)),
        ("updates", f"{steps:,}" if kept == steps else f"{kept:,} of {steps:,}"),
        ("sequences in an update", run["train_batch_size"]),
        (
            "learning rate",
            f"{run['learning_rate']:g}, warm-up over {warmup:,}, then linear to 0",
        ),
        ("optimizer", optimizer),
        ("seed", run["seed"]),
        ("precision", environment["precision"]),
        ("devices", f"{environment['replicas']} × {_cell(environment['device'])}"),
        ("versions", ", ".join(f"{name} {environment[name]}" for name in packages)),
    ]
    for name in ("num_records", "num_examples"):
        if name in run:
            rows.append((name.replace("num_", "training "), f"{run[name]:,}"))
    return rows


def _scores(directory):
    """Return the lines of `eval_results.txt` as a section, if there is one."""
    path = os.path.join(directory, eval_results.FILE)
    if not files.exists(path):
        return []
    text = files.read_text(path, "the results of an evaluation")
    rows = [line.split(" = ", 1) for line in text.splitlines() if " = " in line]
    rounded = [(name, _rounded(value)) for name, value in rows]
    return ["## Scores", "", *_table(rounded), ""]


def _rounded(value):
    """Return a number as text with four significant digits; integers in full."""
    return value if value.strip("-").isdecimal() else f"{float(value):.4g}"
