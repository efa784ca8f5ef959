"""The flags of every script that reads a model: what its files may not say."""

from typing import Any

from absl import flags

from official_bert.command_line import found_models
from official_bert.command_line.flag_values import locate, require
from official_bert.errors import UserError

HELP_TITLE = "The model's files"

flags.DEFINE_string(
    "bert_config_file", None, "bert_config.json; default: the checkpoint's own."
)
flags.DEFINE_string("vocab_file", None, "Vocabulary; default: the checkpoint's own.")
flags.DEFINE_bool(
    "do_lower_case",
    None,
    "Casing; default: what the checkpoint states, or its vocabulary looks like.",
)


def given_files() -> dict[str, Any]:
    """Return these flags as the arguments that `model_directory.load` calls them."""
    values = flags.FLAGS
    return {
        "config_file": locate(values.bert_config_file),
        "vocab_file": locate(values.vocab_file),
        "do_lower_case": values.do_lower_case,
    }


def define_model_path() -> None:
    """Define the two flags that `model_path` reads."""
    flags.DEFINE_string(
        "model_dir",
        None,
        "The model: a path in any format, or a name (docs/models.md).",
    )
    flags.DEFINE_string("init_checkpoint", None, "Another name of --model_dir.")


def model_path() -> str:
    """Return the path of the model that --model_dir or --init_checkpoint names."""
    values = flags.FLAGS
    if not values.init_checkpoint:
        require("model_dir")
    elif values.model_dir:
        raise UserError(
            "--model_dir and --init_checkpoint are two names of one flag; give one."
        )
    return found_models.find(values.model_dir or values.init_checkpoint)
