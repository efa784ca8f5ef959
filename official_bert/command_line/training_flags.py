"""The flags of every script that trains: batches, optimizer, devices, saving."""

import dataclasses
import math
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

HELP_TITLE = "Training, with batches, optimizer, devices, saving"

flags.DEFINE_string("output_dir", None, "Where checkpoints and the model go.")
flags.DEFINE_bool("do_train", False, "Whether to train.")
flags.DEFINE_bool("do_eval", False, "Whether to evaluate.")
define_positive("train_batch_size", 32, "Sequences per update, over all devices.")
define_positive("eval_batch_size", 8, "Sequences per evaluation batch.")
flags.DEFINE_integer(
    "micro_batch_size",
    0,
    "Sequences that a device handles at once, to save memory; the update is the "
    "same. 0: all of its share.",
    lower_bound=0,
)
flags.DEFINE_enum(
    "optimizer", "adam", ("adam", "lamb"), "adam: the original's; lamb: Keras' Lamb."
)
flags.DEFINE_bool(
    "bias_correction",
    False,
    "Adam with its bias correction, which the original leaves out: steadier where a "
    "run has a few hundred updates (docs/finetuning.md).",
)
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")
define_positive(
    "stop_at_step",
    None,
    "End after this update, before the last; a later run can go on.",
)
define_positive(
    "early_stopping_patience",
    None,
    "End after so many evaluations in a row without a better one; default: never. "
    "Fine-tuning leaves the best model then, pre-training the last.",
)
define_positive(
    "keep_checkpoint_max", 5, "Newest checkpoints to keep; the best is kept besides."
)
define_positive(
    "max_skipped_updates",
    20,
    "End the run after so many updates in a row whose gradient was not finite.",
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
    "Devices of this machine to train on; 0: all GPUs, or else the CPU. Without GPUs "
    "the CPU is split into so many, to try it.",
    lower_bound=0,
)
flags.DEFINE_bool(
    "per_replica_update",
    False,
    "Take means and clip on each device by itself, as the original did on TPUs.",
)
flags.DEFINE_enum(
    "precision",
    "float32",
    PRECISIONS,
    "Of products and activations (docs/pretraining.md, Memory and speed).",
)
flags.DEFINE_bool("xla", False, "Let XLA compile the forward and backward passes.")
flags.DEFINE_bool(
    "recompute",
    False,
    "Compute each layer again for its gradient instead of keeping it: less memory, "
    "more time.",
)
flags.DEFINE_bool(
    "deterministic",
    False,
    "Make GPUs repeat a run bit for bit, at some cost; CPUs always do.",
)
flags.DEFINE_bool(
    "allow_changed_settings",
    False,
    "Continue a run with another batch, schedule or data than it began with.",
)
flags.DEFINE_integer(
    "seed",
    12345,
    "Decides initial weights, the order of records, and dropout.",
    lower_bound=0,
    upper_bound=2**32 - 1,
)
flags.DEFINE_bool("use_tpu", False, "The same as --strategy=tpu.")
flags.DEFINE_string(
    "tpu_name", None, "Name or address of the TPU; default: that of this machine."
)
flags.DEFINE_string("tpu_zone", None, "Zone of the TPU, where it is not this one.")
flags.DEFINE_string(
    "gcp_project", None, "Google Cloud project of the TPU, where it is another."
)
flags.DEFINE_string("master", None, "For old commands; it has no effect.")
flags.DEFINE_integer("num_tpu_cores", 8, "For old commands; all cores are used.")


def require_one_of(*names: str) -> None:
    """Raise `UserError` if none of these flags is given: there is nothing to do."""
    if not any(FLAGS[name].value for name in names):
        *first, last = (f"--{name}" for name in names)
        raise UserError(f"At least one of {', '.join(first)} and {last} must be given.")


def check() -> None:
    """Raise `UserError` where these flags contradict each other."""
    if FLAGS.use_tpu and FLAGS.strategy not in ("auto", "tpu"):
        raise UserError(
            f"--use_tpu and --strategy={FLAGS.strategy} are given; give one of them."
        )
    if FLAGS.bias_correction and FLAGS.optimizer != "adam":
        raise UserError(
            f"--bias_correction is a variant of --optimizer=adam; {FLAGS.optimizer} "
            "always has it: leave it out."
        )
    if FLAGS.early_stopping_patience and not FLAGS.do_eval:
        raise UserError(
            "--early_stopping_patience counts evaluations; give --do_eval, too."
        )
    if not 0 < FLAGS.learning_rate < math.inf:
        raise UserError(
            f"--learning_rate is {FLAGS.learning_rate}: it must be a number above 0."
        )


def make_strategy() -> "tf.distribute.Strategy":
    """Return the `tf.distribute` strategy that the flags ask for."""
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
      settings_class: a dataclass. Its fields are flags of the same names, dataclasses
        of such fields, or have a default.
      **others: the fields that are no flags, or not as they were given.
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
    """Write the model card of a training, and `run.json`, into --output_dir.

    Args:
      data_flags: names of the flags that name the data, for the card.
      inputs: files, directories and checkpoints, for `run.json`.
      datasets: records of datasets that were read by name, for `run.json`.
    """
    if FLAGS.do_train:
        from official_bert.fine_tuning import model_card

        data = {name: FLAGS[name].value for name in data_flags if FLAGS[name].value}
        if not model_card.write(FLAGS.output_dir, data, in_users_form):
            print(f"{model_card.CARD_FILE} stays as somebody has changed it.")
    # An evaluation does not replace what is known of the training.
    name = "run.json" if FLAGS.do_train else "eval_run.json"
    write_run_json(os.path.join(FLAGS.output_dir, name), inputs, datasets)
