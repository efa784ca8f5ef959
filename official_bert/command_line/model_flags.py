"""The flags of every script that reads a model: what its files may not say."""

from typing import Any

from absl import flags

from official_bert.command_line import found_models
from official_bert.command_line.flag_values import define_aliases, locate, require

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
    """Define the flag that `model_path` reads."""
    flags.DEFINE_string(
        "model", None, "The model: a path in any format, or a name (docs/models.md)."
    )
    define_aliases("model", "model_dir", "init_checkpoint")


def model_path() -> str:
    """Return the path of the model that --model names.

    Raises:
      UserError: it was not given, or no model has that name.
    """
    require("model")
    return found_models.find(flags.FLAGS.model)
