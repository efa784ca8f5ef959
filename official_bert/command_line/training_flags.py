"""Define the flags of all training commands: batches, optimizer, devices, saving."""

import dataclasses
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from absl import flags

from official_bert.command_line.command_table import in_users_form
from official_bert.command_line.flag_values import define_positive
from official_bert.command_line.run_record import write_run_json
from official_bert.constants import PRECISIONS, STRATEGIES
from official_bert.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf
    from _typeshed import DataclassInstance

_Settings = TypeVar("_Settings", bound="DataclassInstance")

FLAGS = flags.FLAGS

HELP_TITLE = "Training (batches, optimizer, devices, saving)"

flags.DEFINE_string("output_dir", None, "Directory for checkpoints and the model.")
flags.DEFINE_bool("do_train", False, "Train the model.")
flags.DEFINE_bool("do_eval", False, "Evaluate the model.")
define_positive(
    "train_batch_size", 32, "Sequences per training step, over all devices."
)
define_positive("eval_batch_size", 8, "Sequences per evaluation batch.")
flags.DEFINE_integer(
    "micro_batch_size",
    0,
    "Sequences that a device processes at once, to save memory. The training step "
    "stays the same. 0: the device's whole share of the batch.",
    lower_bound=0,
)
flags.DEFINE_enum(
    "optimizer",
    "adam",
    ("adam", "lamb", "muon"),
    "adam: the original optimizer. lamb: for batches of thousands (You et al., 2020). "
    "muon: Muon of Keras for the matrices of the encoder, adam for the rest.",
)
flags.DEFINE_bool(
    "bias_correction",
    False,
    "Use Adam's bias correction, which the original leaves out. It makes runs of a "
    "few hundred training steps more stable (docs/concepts/stable_fine_tuning.md).",
)
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")
flags.DEFINE_bool(
    "dropout",
    True,
    "Use the dropout of bert_config.json. --nodropout turns it off, and the written "
    "config keeps its rates (docs/recipes.md).",
)
define_positive(
    "stop_at_step",
    None,
    "Stop after this training step. A later run can resume.",
)
define_positive(
    "early_stopping_patience",
    None,
    "Stop after this number of evaluations without a better score. Default: never. "
    "Fine-tuning then keeps the best model, pre-training the last.",
)
define_positive(
    "keep_checkpoint_max",
    5,
    "Number of newest checkpoints to keep. The best one is always kept.",
)
define_positive(
    "max_skipped_updates",
    20,
    "Stop after this number of consecutive training steps with a gradient that is "
    "not finite.",
)
flags.DEFINE_enum(
    "strategy",
    "auto",
    STRATEGIES,
    "auto: the workers of TF_CONFIG, or all GPUs, or one device.",
)
flags.DEFINE_integer(
    "num_devices",
    0,
    "Devices of this machine to train on. 0: all GPUs, or the CPU if it has none. "
    "Without GPUs, the CPU is split into this number of devices, for tests.",
    lower_bound=0,
)
flags.DEFINE_bool(
    "per_replica_update",
    False,
    "Compute means and clip gradients on each device separately, as the original "
    "does on TPUs.",
)
flags.DEFINE_enum(
    "precision",
    "float32",
    PRECISIONS,
    "Precision of matrix products and activations (docs/how_to/one_gpu.md, Fit the "
    "memory).",
)
flags.DEFINE_bool("xla", False, "Compile the forward and backward passes with XLA.")
flags.DEFINE_bool(
    "recompute",
    False,
    "Recompute each layer's activations for its gradient instead of storing them. "
    "Needs less memory and more time.",
)
flags.DEFINE_bool(
    "deterministic",
    False,
    "Make GPU runs bit-identical, which costs some speed. CPU runs always are.",
)
flags.DEFINE_bool(
    "allow_changed_settings",
    False,
    "Allow a resumed run to change batch size, schedule or data.",
)
flags.DEFINE_integer(
    "seed",
    12345,
    "Seed of initial weights, record order and dropout.",
    lower_bound=0,
    upper_bound=2**32 - 1,
)
flags.DEFINE_bool("use_tpu", False, "Same as --strategy=tpu.")
flags.DEFINE_string(
    "tpu_name", None, "Name or address of the TPU. Default: this machine's TPU."
)
flags.DEFINE_string(
    "tpu_zone", None, "Zone of the TPU, if it is not this machine's zone."
)
flags.DEFINE_string(
    "gcp_project",
    None,
    "Google Cloud project of the TPU, if it is not this machine's project.",
)
flags.DEFINE_string("master", None, "For old commands; has no effect.")
flags.DEFINE_integer(
    "num_tpu_cores", 8, "For old commands; has no effect: all cores are used."
)


def require_one_of(*names: str) -> None:
    """Raise `UserError` if none of these flags is given, so there is nothing to do."""
    if not any(FLAGS[name].value for name in names):
        *first, last = (f"--{name}" for name in names)
        raise UserError(f"Give at least one of {', '.join(first)} and {last}.")


def check() -> None:
    """Raise `UserError` if these flags contradict each other."""
    if FLAGS.use_tpu and FLAGS.strategy not in ("auto", "tpu"):
        raise UserError(
            f"--use_tpu and --strategy={FLAGS.strategy} contradict each other. Give "
            "only one of them."
        )
    if FLAGS.bias_correction and FLAGS.optimizer == "lamb":
        raise UserError(
            "--bias_correction does not work with --optimizer=lamb. Leave it out: lamb "
            "always corrects bias."
        )
    if FLAGS.early_stopping_patience and not FLAGS.do_eval:
        raise UserError("--early_stopping_patience counts evaluations. Add --do_eval.")
    if FLAGS.learning_rate <= 0:
        raise UserError(
            f"--learning_rate={FLAGS.learning_rate} is invalid. It must be above 0."
        )


def make_strategy() -> "tf.distribute.Strategy":
    """Return the `tf.distribute` strategy that the flags select."""
    import tensorflow as tf

    from official_bert.training import strategies

    if FLAGS.deterministic:
        tf.config.experimental.enable_op_determinism()
    return strategies.make_strategy(
        "tpu" if FLAGS.use_tpu else FLAGS.strategy,
        FLAGS.num_devices,
        FLAGS.tpu_name,
        FLAGS.tpu_zone,
        FLAGS.gcp_project,
    )


def settings(settings_class: type[_Settings], **others: Any) -> _Settings:
    """Return the settings of a run.

    Args:
      settings_class: a dataclass. Each field is a flag of the same name, a dataclass of
        such fields, or has a default.
      **others: fields that are not flags, or that override flag values.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings_class):
        if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
            values[field.name] = settings(field.type, **others)
        elif field.name in others:
            values[field.name] = others[field.name]
        elif field.name in FLAGS:
            values[field.name] = FLAGS[field.name].value
    return settings_class(**values)


def given(*names: str) -> dict[str, Any]:
    """Return a dict of those of these flags that are given."""
    values = {name: FLAGS[name].value for name in names}
    return {name: value for name, value in values.items() if value is not None}


def describe_run(
    data_flags: Iterable[str],
    inputs: Iterable[str | None],
    datasets: Iterable[dict[str, Any]] = (),
) -> None:
    """Write a training's model card, and `run.json`, to --output_dir.

    Args:
      data_flags: names of the flags that name the data, for the card.
      inputs: files, directories and checkpoints, for `run.json`.
      datasets: records of datasets that were read by name, for `run.json`.
    """
    if FLAGS.do_train:
        from official_bert.fine_tuning import model_card

        data = {name: FLAGS[name].value for name in data_flags if FLAGS[name].value}
        if not model_card.write(FLAGS.output_dir, data, in_users_form):
            print(
                f"Keeping {model_card.CARD_FILE} unchanged, because it was edited by "
                "hand."
            )
    # An evaluation must not replace the record of the training.
    name = "run.json" if FLAGS.do_train else "eval_run.json"
    write_run_json(os.path.join(FLAGS.output_dir, name), inputs, datasets)
