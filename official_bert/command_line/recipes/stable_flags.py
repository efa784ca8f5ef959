"""Define the flags of stable fine-tuning. Each is off by default."""

from absl import flags

from official_bert.errors import UserError

FLAGS = flags.FLAGS

HELP_TITLE = "Stable fine-tuning (docs/recipes.md)"
# Flags of the optimizer, with the values that change nothing.
OFF = {"layer_decay": 1.0, "average_last": 0.0}

flags.DEFINE_float(
    "layer_decay",
    1.0,
    "Factor of the learning rate from each layer to the next lower one, such as 0.9.",
    0,
    1,
)
flags.DEFINE_integer(
    "reinit_layers",
    0,
    "Number of top layers that start from random weights, with the pooler if the task "
    "trains it.",
    lower_bound=0,
)
flags.DEFINE_float(
    "average_last",
    0.0,
    "Average the weights over this last fraction of the training steps, such as 0.5. "
    "Evaluations and the model use the average.",
    0,
    1,
)


def check() -> None:
    """Raise `UserError` if these flags contradict other flags."""
    if not FLAGS.layer_decay:
        raise UserError(
            "--layer_decay=0 trains only the heads. Give a number above 0, up to 1."
        )
    changed = [name for name, off in OFF.items() if FLAGS[name].value != off]
    if changed and FLAGS.optimizer != "adam":
        raise UserError(
            f"--{changed[0]} works only with --optimizer=adam. Leave one of the two "
            "out."
        )
    if FLAGS.reinit_layers and not FLAGS.model:
        raise UserError(
            "--reinit_layers replaces layers of a pre-trained model. Give --model, or "
            "leave the flag out."
        )
