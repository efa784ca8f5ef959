"""Define the flags of all commands that read a model, for facts its files may lack."""

from typing import Any

from absl import flags

from official_bert.command_line import found_models
from official_bert.command_line.flag_values import define_aliases, locate, require

HELP_TITLE = "Files of the model"

flags.DEFINE_string(
    "bert_config_file", None, "bert_config.json; default: the checkpoint's."
)
flags.DEFINE_string("vocab_file", None, "Vocabulary file; default: the checkpoint's.")
flags.DEFINE_bool(
    "do_lower_case",
    None,
    "Whether to lowercase text. Default: the checkpoint's setting, or a guess from "
    "its vocabulary.",
)


def given_files() -> dict[str, Any]:
    """Return these flags as keyword arguments of `model_directory.load`."""
    values = flags.FLAGS
    return {
        "config_file": locate(values.bert_config_file),
        "vocab_file": locate(values.vocab_file),
        "do_lower_case": values.do_lower_case,
    }


def define_model_path() -> None:
    """Define the flag that `model_path` reads."""
    flags.DEFINE_string(
        "model", None, "Model: a path in any format, or a name (docs/models.md)."
    )
    define_aliases("model", "model_dir", "init_checkpoint")


def model_path() -> str:
    """Return the path of the model that --model names.

    Raises:
      UserError: the flag is not given, or no model has that name.
    """
    require("model")
    return found_models.find(flags.FLAGS.model)
