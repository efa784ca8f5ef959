"""Define the flags of newer pre-training recipes. Each is off by default."""

from typing import TYPE_CHECKING, Any

from absl import flags, logging

from official_bert.command_line.flag_values import define_positive
from official_bert.errors import UserError

if TYPE_CHECKING:
    from official_bert.data.records.record_set import RecordSet

FLAGS = flags.FLAGS

HELP_TITLE = "Recipes that are newer than the paper (docs/recipes.md)"

flags.DEFINE_enum(
    "learning_rate_schedule",
    "linear",
    ("linear", "constant_decay"),
    "linear: the original's linear decay. constant_decay: constant after warm-up, with "
    "a decay to 0 over the last --num_decay_steps; such a run can be extended.",
)
define_positive(
    "num_decay_steps",
    None,
    "Training steps of the decay with --learning_rate_schedule=constant_decay.",
)
flags.DEFINE_list(
    "batch_size_steps",
    [],
    "Larger batches later in the run: STEP:SIZE,… Example: 1000:128,2000:256 trains "
    "with --train_batch_size up to step 1000, then with 128, and after step 2000 with "
    "256.",
)
flags.DEFINE_string(
    "masked_lm_prob",
    None,
    "Share of masked tokens in training: 0.4, or 0.30:0.15 for a linear change over "
    "the run. Needs records with --masking=dynamic. Evaluations keep the rate of the "
    "records, which is the default.",
)
flags.DEFINE_enum(
    "initializer",
    "original",
    ("original", "residual", "fan_in"),
    "Initial weights. residual: smaller kernels before residual sums. fan_in: standard "
    "deviation 1/sqrt(inputs) in the encoder.",
)


def check() -> None:
    """Raise `UserError` if these flags contradict each other or other flags."""
    if (FLAGS.learning_rate_schedule == "constant_decay") != bool(
        FLAGS.num_decay_steps
    ):
        raise UserError(
            "--learning_rate_schedule=constant_decay and --num_decay_steps need each "
            "other. Give both, or leave both out."
        )
    steps = max(0, FLAGS.num_train_steps - FLAGS.num_warmup_steps)
    if FLAGS.num_decay_steps and FLAGS.num_decay_steps > steps:
        raise UserError(
            f"--num_decay_steps={FLAGS.num_decay_steps} is too large: "
            f"--num_train_steps={FLAGS.num_train_steps} leaves only {steps} steps "
            "after warm-up. Give fewer decay or warm-up steps, or more training steps."
        )
    if FLAGS.initializer != "original" and (FLAGS.model or FLAGS.continue_from):
        raise UserError(
            "--initializer sets the weights of a new model, but --model and "
            "--continue_from load weights. Use only one of them, or add "
            "--initializer=original."
        )


def settings() -> dict[str, Any]:
    """Return the fields of `PretrainingSettings` that need parsing."""
    from official_bert.training.recipes import batch_sizes

    steps = batch_sizes.parse(FLAGS.batch_size_steps)
    if steps and steps[-1][0] >= FLAGS.num_train_steps:
        logging.warning(
            "--batch_size_steps=%s: the last steps are after the end of the run.",
            ",".join(FLAGS.batch_size_steps),
        )
    return {"batch_size_steps": steps}


def with_masking_rate(records: "RecordSet") -> "RecordSet":
    """Return training records with the masking rate of the flags.

    Raises:
      UserError: the rate is invalid, or the records have stored masks.
    """
    if FLAGS.masked_lm_prob is None:
        return records
    from official_bert.data.dynamic_masking import MaskingRate

    rate = MaskingRate.parse(FLAGS.masked_lm_prob, FLAGS.num_train_steps)
    return records.masked_at(rate)
