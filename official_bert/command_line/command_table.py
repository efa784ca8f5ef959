"""List the commands of `official-bert`: names, modules, groups and summaries.

This module needs only Python, so the list appears on any machine.
"""

import dataclasses
import difflib
import os
import re
import sys

from official_bert.errors import UserError

PROGRAM = "official-bert"


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the program.

    Attributes:
      name: the name that the user types after `official-bert`.
      module: module in `official_bert.commands`; `run_scripts/MODULE.py` also starts
        it.
      group: title in the list of commands.
      summary: one line that says what the command does.
    """

    name: str
    module: str
    group: str
    summary: str


START = "Start here"
RECORDS = "Text to training records"
PRETRAINING = "Pre-training"
FINE_TUNING = "Fine-tuning"
USE = "Use a model"
MODELS = "Models and checkpoints"
SERVING = "Servers and devices"

COMMANDS = (
    Command("doctor", "doctor", START, "Check Python, packages, memory, disk and GPU."),
    Command("quickstart", "quickstart", START, "Pre-train a tiny BERT in ten minutes."),
    Command("vocab", "train_vocab", RECORDS, "Train a WordPiece vocabulary on text."),
    Command(
        "records",
        "create_pretraining_data",
        RECORDS,
        "Create pre-training records from text.",
    ),
    Command(
        "inspect", "inspect_instances", RECORDS, "Show pre-training records as text."
    ),
    Command(
        "pretrain",
        "run_pretraining",
        PRETRAINING,
        "Pre-train with masked LM and next-sentence prediction.",
    ),
    Command(
        "plan",
        "plan_training",
        PRETRAINING,
        "Plan a run on TPUs or GPUs that you do not have.",
    ),
    Command(
        "ablation", "run_ablation", PRETRAINING, "Run an ablation table of the paper."
    ),
    Command(
        "classify",
        "run_classifier",
        FINE_TUNING,
        "Fine-tune a classifier on GLUE or on your table.",
    ),
    Command("squad", "run_squad", FINE_TUNING, "Fine-tune on SQuAD 1.1 or 2.0."),
    Command(
        "evaluate-squad", "evaluate_squad", FINE_TUNING, "Score answers to SQuAD files."
    ),
    Command("ner", "run_ner", FINE_TUNING, "Fine-tune to tag named entities."),
    Command(
        "swag", "run_swag", FINE_TUNING, "Fine-tune on SWAG or other multiple choice."
    ),
    Command("embed", "run_embedding", FINE_TUNING, "Train sentence embeddings."),
    Command(
        "distill",
        "distill",
        FINE_TUNING,
        "Train a small classifier from a fine-tuned one.",
    ),
    Command("predict", "predict", USE, "Run a fine-tuned model of any task."),
    Command("fill-mask", "fill_mask", USE, "Predict masked tokens, or score a text."),
    Command("features", "extract_features", USE, "Write vectors of tokens or texts."),
    Command("attention", "show_attention", USE, "Draw the attention of each head."),
    Command("models", "models", MODELS, "List the models that you can use by name."),
    Command(
        "fetch-small-model",
        "fetch_small_model",
        MODELS,
        "Download a small pre-trained model with pip.",
    ),
    Command("describe", "describe_model", MODELS, "Show a model's parameter counts."),
    Command(
        "convert", "convert_checkpoint", MODELS, "Convert a checkpoint between formats."
    ),
    Command(
        "extend-vocab", "extend_vocab", MODELS, "Add words of your domain to a model."
    ),
    Command("export", "export_model", SERVING, "Export a SavedModel or a TFLite file."),
    Command("serve", "serve", SERVING, "Serve an export over HTTP."),
    Command("query", "query", SERVING, "Query a served model."),
)

_MODULES = {command.module: command for command in COMMANDS}
# Matches scripts: `python run_scripts/run_ner.py` or `run_ner.py`, but not the end of
# another path or word.
_SCRIPT = re.compile(
    r"(?<![\w/.='-])(?P<whole>(?:python )?run_scripts/)?"
    rf"(?P<module>{'|'.join(_MODULES)})\.py\b"
)


def find(name: str) -> Command:
    """Return the command with this name.

    Raises:
      UserError: no command has this name.
    """
    for command in COMMANDS:
        if command.name == name:
            return command
    # A user of the scripts may type `run_classifier` or `run_classifier.py`.
    module = name.removesuffix(".py").replace("-", "_")
    names = [command.name for command in COMMANDS]
    nearest = [_MODULES[module].name] if module in _MODULES else []
    nearest += difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {PROGRAM} {nearest[0]}? " if nearest else ""
    raise UserError(
        f"{name!r} is not a command. {hint}Run {PROGRAM} without arguments for a list."
    )


def of_module(module: str) -> Command:
    """Return the command for a module of `official_bert.commands`."""
    return _MODULES[module]


def listing() -> str:
    """Return the grouped list of commands, one line per command."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"{PROGRAM} COMMAND --flag=value ..."]
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines += ["", f"{group}:"]
        lines += [
            f"  {command.name:{width}}  {command.summary}"
            for command in COMMANDS
            if command.group == group
        ]
    lines += [
        "",
        f"{PROGRAM} COMMAND -h shows the most used flags, --help shows all flags.",
        f"{PROGRAM} --version shows the version.",
    ]
    return "\n".join(lines)


def started_as() -> str | None:
    """Return the words that the user typed before the command, or None for a script.

    They are "official-bert" or "python -m official_bert".
    """
    name = os.path.basename(sys.argv[0])
    if name == "__main__.py":
        return "python -m official_bert"
    return PROGRAM if name.removesuffix(".exe") == PROGRAM else None


def in_users_form(text: str) -> str:
    """Return a text with its commands written as the user of this process types them.

    Help and messages name scripts: `python run_scripts/run_ner.py` or `run_ner.py`.
    Users of `official-bert` do not have these files; they see `official-bert ner`.
    """
    program = started_as()
    if program is None:
        return text

    def typed(match):
        name = _MODULES[match["module"]].name
        return f"{program if match['whole'] else PROGRAM} {name}"

    return _SCRIPT.sub(typed, text)


def shown_command(name: str) -> list[str]:
    """Return the words that the user of this process types to start a command."""
    program = started_as()
    if program is None:
        return ["python", f"run_scripts/{find(name).module}.py"]
    return [*program.split(), name]
