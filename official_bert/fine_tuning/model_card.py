"""Write `README.md` of a model directory, with everything that its files say.

A template for Mitchell et al., "Model Cards for Model Reporting" (2019). Facts that
only people know stay blank. A card that a person has edited is never overwritten.
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

# Commands that use the model. They do not show its path, which others do not have.
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

# Format of a checkpoint -> description of its files.
_FILES = {
    GOOGLE: f"`{names.MODEL_PREFIX}.*`, with the names of google-research/bert",
    HUGGINGFACE: "`model.safetensors`, as in Hugging Face's transformers",
    KERAS_HUB: "`config.json` and `*.weights.h5`, a KerasHub preset",
}

_BLANKS = """\
## To be filled in by the author

* **Intended use:** …
* **Not intended for, known errors, biases of the training texts:** …
* **License of the weights and of the texts:** …
* **Contact:** …
"""


def write(
    directory: str | os.PathLike[str],
    data: Mapping[str, Any],
    in_users_form: Callable[[str], str] = str,
) -> bool:
    """Write the card of a model directory, unless a person has edited it.

    Args:
      directory: directory of a finished model. Its config, vocabulary, casing and
        weights are read, and `training.json`, `task.json` and `eval_results.txt`
        if they exist.
      data: dict of flag -> str, the data of the run. Of paths, only the last part
        is shown; of `dataset`, all.
      in_users_form: function: command that names a script -> the command as this
        user types it.

    Returns:
      whether the card was written.

    Raises:
      UserError: a file of the model is damaged.
    """
    task = None
    if has_task(directory):
        path = os.path.join(directory, TASK_FILE)
        task = files.read_json(path, "the description of a fine-tuned model")
    with any_format.opened(directory) as checkpoint:
        config, shapes = checkpoint.config, checkpoint.shapes
        assert config is not None  # Each finished model has a config.
        sizes = _sizes(config, shapes, checkpoint.do_lower_case, checkpoint.format)
    title = _title_of_task(task) if task else _title_of_pretrained(config, shapes)
    lines = [f"# {title}", ""]
    if task:
        labels = task.get("labels") or task.get("tags")
        if labels:
            lines.append(f"Labels: {_some(labels)}.")
        lines += [f"Maximum length: {task['max_seq_length']} tokens.", ""]
    lines += [*_table(sizes), "", "## How it was trained", ""]
    rows = _training(directory, task)
    for flag, value in data.items():
        paths = [os.path.normpath(part) for part in value.split(",")]
        shown = [value] if flag == "dataset" else list(map(os.path.basename, paths))
        rows.append((f"`--{flag}`", _some(shown)))
    lines += _table(rows)
    lines += ["", *_scores(directory), "## How to use it", ""]
    commands = _FINE_TUNED_COMMANDS if task else _PRETRAINED_COMMANDS
    # A left-to-right model has no [MASK], and an encoder without a head predicts no
    # words.
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
        return "BERT encoder" if encoder_alone else "BERT with a task head"
    learned = "left to right" if config.causal_attention else "on masked words"
    if _has(shapes, "cls/seq_relationship/"):
        learned += " and next sentences"
    return f"BERT, pre-trained {learned}"


def _title_of_task(task):
    what = {
        CLASSIFIER: "text classification",
        SQUAD: "question answering",
        NER: "named entity recognition",
        MULTIPLE_CHOICE: "multiple choice",
        EMBEDDING: "sentence embeddings",
    }
    name = f" ({task['name']})" if task.get("name") else ""
    return f"BERT, fine-tuned: {what.get(task['task'], task['task'])}{name}"


def _some(names, most=20):
    """Join names with commas; show only the first ones if there are many."""
    shown = ", ".join(map(_cell, names[:most]))
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def _table(rows):
    yield "| | |"
    yield "|---|---|"
    for name, value in rows:
        yield f"| {name} | {value} |"


def _cell(value):
    """Return a value in a form that a table cell may contain."""
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
        ("vocabulary", f"{config.vocab_size:,} WordPiece tokens, {case}"),
        ("parameters", f"{parameters:,}, including heads"),
        ("files", _FILES[form]),
    ]


def _training(directory, task):
    """Return rows with facts of `training.json`; empty if it does not exist."""
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
        (
            "training steps",
            f"{steps:,}" if kept == steps else f"{kept:,} of {steps:,}",
        ),
        ("batch size (sequences)", run["train_batch_size"]),
        (
            "learning rate",
            f"{run['learning_rate']:g}, warm-up over {warmup:,}, then {_decay(run)}",
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


def _decay(run):
    """Return the course of the learning rate after warm-up, in words."""
    if run.get("num_decay_steps"):
        return f"constant, with a decay to 0 over the last {run['num_decay_steps']:,}"
    return "linear to 0"


def _scores(directory):
    """Return a section with the lines of `eval_results.txt`, if it exists."""
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
