"""Build the run that the flags of a training command describe, without its data."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from absl import flags

from official_bert.command_line import found_models, training_flags
from official_bert.command_line.flag_values import locate, require
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tables.datasets import parse_name
from official_bert.tables.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from official_bert.tasks.glue import tfds as glue_tfds
from official_bert.tasks.glue.tasks import find_task

if TYPE_CHECKING:
    from official_bert.training.plans.program import RunWithoutData
    from official_bert.training.runs import RunSettings

FLAGS = flags.FLAGS

PRETRAINING = "run_pretraining"
# Command -> flags that only this command has. They identify the command of a flag file.
OWN_FLAGS = {
    PRETRAINING: {
        *("input_file", "eval_input_file", "max_predictions_per_seq"),
        *("num_train_steps", "num_warmup_steps", "continue_from", "max_eval_steps"),
        *("next_sentence_prediction", "skip_padding", "pack"),
        *("learning_rate_schedule", "num_decay_steps", "batch_size_steps"),
        *("masked_lm_prob", "initializer"),
    },
    "run_classifier": {
        *("task_name", "tfds", "text_column", "text_b_column"),
        *("label_column", "label_kind", "label_separator", "has_header"),
        *("dev_fraction", "long_text", "glue_submission"),
    },
    "run_squad": {
        *("max_query_length", "n_best_size", "max_answer_length", "predict_file"),
        *("version_2_with_negative", "null_score_diff_threshold", "verbose_logging"),
    },
    "run_ner": {"one_sentence", "label_all_pieces", "feature_based"},
    "run_swag": {"leave_out_generated", "leave_out_damaged"},
}
# Flags that every fine-tuning command has, and that pre-training lacks.
FINE_TUNING_FLAGS = {
    *("num_train_epochs", "warmup_proportion", "pad_to_max_seq_length", "num_seeds"),
    *("grid", "do_predict", "predict_batch_size", "train_file"),
    *("layer_decay", "reinit_layers", "average_last"),
    *("dataset", "data_dir"),
}
# Sizes that normally come from the data, here those of the paper's tasks: tags of
# CoNLL-2003 (Sec. 5.3), endings of SWAG (Sec. 4.4), two classes.
NUM_TAGS, NUM_CHOICES, NUM_CLASSES = 9, 4, 2
DEFAULT_CONFIG = "configs/bert_base.json"


def command_of(arguments: Iterable[str]) -> str:
    """Return the command that the flags belong to.

    Args:
      arguments: a command line, with its flag files expanded. `--command` decides;
        otherwise flags that only one command has.

    Raises:
      UserError: the flags do not identify one command.
    """
    arguments = list(arguments)
    names = set()
    for number, argument in enumerate(arguments):
        match = re.fullmatch(r"--?(\w+)(?:=(.*))?", argument, re.DOTALL)
        if not match:
            continue
        name, value = match.groups()
        if name == "command":
            following = "".join(arguments[number + 1 : number + 2])
            named = following if value is None else value
            return named if named in OWN_FLAGS else PRETRAINING
        names |= {name, name.removeprefix("no")}
    telling = {
        command: min(own & names) for command, own in OWN_FLAGS.items() if own & names
    }
    if len(telling) == 1:
        return next(iter(telling))
    choices = ", ".join(f"--command={command}" for command in OWN_FLAGS)
    if telling:
        found = ", ".join(f"--{flag} of {name}.py" for name, flag in telling.items())
        raise UserError(
            f"The flags belong to several commands: {found}. Leave some of them out."
        )
    if names & FINE_TUNING_FLAGS:
        raise UserError(
            "Several fine-tuning commands have these flags. Add the command that you "
            f"will run: {choices.partition(', ')[2]}."
        )
    return PRETRAINING


def model_config() -> tuple[BertConfig, str]:
    """Return the config of the run, and the name of its file or checkpoint.

    Raises:
      UserError: flags name no model, or a file is missing.
    """
    if not FLAGS.bert_config_file and FLAGS.model:
        from official_bert.checkpoints import any_format, model_directory

        with any_format.opened(found_models.find(FLAGS.model)) as checkpoint:
            return model_directory.config_of(checkpoint), FLAGS.model
    if FLAGS.command == PRETRAINING:
        require("bert_config_file")
    name = FLAGS.bert_config_file or DEFAULT_CONFIG
    return BertConfig.from_json_file(locate(name)), name


def run_without_data(config: BertConfig) -> "RunWithoutData":
    """Return the run that the flags of the command describe.

    Raises:
      UserError: a flag is missing, or sequences are too long for the model.
    """
    make: Any = {
        PRETRAINING: _pretraining,
        "run_classifier": _classifier,
        "run_squad": _squad,
        "run_ner": _ner,
        "run_swag": _choice,
    }[FLAGS.command]
    run = make(config if FLAGS.dropout else config.without_dropout())
    limit = config.max_position_embeddings
    if run.max_seq_length > limit:
        raise UserError(
            f"--max_seq_length={run.max_seq_length} is too long: the model reads at "
            f"most {limit} tokens (max_position_embeddings). Use a smaller value."
        )
    return run


def run_settings(num_train_examples: int | None) -> "tuple[RunSettings, int, str]":
    """Return the settings of the run, its number of training steps, and a note on them.

    Args:
      num_train_examples: examples per epoch of fine-tuning; None if unknown. The number
        of steps is then 0.
    """
    if FLAGS.command == PRETRAINING:
        from official_bert.training.pretraining import PretrainingSettings

        settings = training_flags.settings(PretrainingSettings)
        steps, note = _remaining_steps(settings.last_step)
        if FLAGS.batch_size_steps:
            every = (
                f"if every batch had {max(batch_sizes())} sequences; some have fewer"
            )
            note = f"{note}; {every}" if note else every
        return settings, steps, note
    from official_bert.fine_tuning.job import FineTuningSettings

    steps, note = 0, "Give --num_train_examples to see the length of the run."
    if num_train_examples:
        epochs, size = FLAGS.num_train_epochs, FLAGS.train_batch_size
        steps = int(num_train_examples / size * epochs)
        note = "per run; --grid makes several" if FLAGS.grid else ""
    tuned = training_flags.settings(
        FineTuningSettings,
        num_train_steps=max(steps, 1),
        num_warmup_steps=int(steps * FLAGS.warmup_proportion),
        save_checkpoints_steps=FLAGS.save_checkpoints_steps or max(steps, 1),
        continue_from=None,
    )
    return tuned, steps, note


def batch_sizes() -> list[int]:
    """Return the batch sizes of the run; memory must suffice for the largest.

    Raises:
      UserError: --batch_size_steps is invalid.
    """
    sizes = [FLAGS.train_batch_size]
    if FLAGS.command == PRETRAINING:
        from official_bert.training.recipes.batch_sizes import parse

        sizes += [size for _, size in parse(FLAGS.batch_size_steps)]
    return sizes


def _remaining_steps(last_step):
    """Return the steps that remain after --continue_from ends, and a note."""
    path = locate(FLAGS.continue_from)
    if not path:
        return last_step, ""
    from official_bert.checkpoints import names

    done = names.numbered_checkpoints(path) if os.path.isdir(path) else []
    if not done:
        return last_step, "counted from the first step of --continue_from"
    return max(last_step - done[-1], 1), f"after the {done[-1]:,} of --continue_from"


def _pretraining(config):
    from official_bert.data.dynamic_masking import MaskingRate
    from official_bert.training.plans.program import pretraining_run

    require("max_seq_length", "max_predictions_per_seq")
    predictions = FLAGS.max_predictions_per_seq
    if FLAGS.masked_lm_prob:
        rate = MaskingRate.parse(FLAGS.masked_lm_prob, FLAGS.num_train_steps)
        predictions = rate.most_predictions(FLAGS.max_seq_length)
    return pretraining_run(
        config,
        FLAGS.max_seq_length,
        predictions,
        FLAGS.next_sentence_prediction,
        FLAGS.pack,
    )


def _classifier(config):
    import tensorflow as tf

    from official_bert.tasks.classifier import training as classifier
    from official_bert.tasks.classifier.task import ClassifierTask
    from official_bert.training.plans.program import RunWithoutData, zeros

    kind = FLAGS.label_kind or SINGLE_LABEL
    labels: tuple[str, ...] = tuple(map(str, range(NUM_CLASSES)))
    glue_task = None
    if FLAGS.task_name:
        glue_task = find_task(FLAGS.task_name)
    elif FLAGS.dataset:
        glue_task = glue_tfds.task_of(parse_name(FLAGS.dataset))
    if glue_task:
        labels = glue_task.labels
        kind = SINGLE_LABEL if labels else REGRESSION
    length = FLAGS.max_seq_length or 128
    labels = () if kind == REGRESSION else labels
    task = ClassifierTask(kind, labels, (), length, bilstm=FLAGS.bilstm)

    def features(rows):
        batch = zeros((rows, length), {"label_ids": (rows,)})
        if kind != SINGLE_LABEL:
            shape = (rows, len(labels)) if kind == MULTI_LABEL else (rows,)
            batch["label_ids"] = tf.zeros(shape)
        return batch

    return RunWithoutData(
        config,
        length,
        lambda recompute: classifier.make_model(config, task, recompute),
        lambda kernels: classifier.objective(task),
        features,
    )


def _squad(config):
    from official_bert.modeling.span_prediction import SpanModel
    from official_bert.tasks.squad import training as squad
    from official_bert.training.plans.program import RunWithoutData, zeros

    length = FLAGS.max_seq_length or squad.SquadTask().max_seq_length

    def features(rows):
        positions = ("start_positions", "end_positions")
        return zeros((rows, length), dict.fromkeys(positions, (rows,)))

    return RunWithoutData(
        config,
        length,
        lambda recompute: SpanModel(config, recompute),
        lambda kernels: squad.OBJECTIVE,
        features,
    )


def _ner(config):
    from official_bert.tasks.ner import training as ner
    from official_bert.training.plans.program import RunWithoutData, zeros

    tags = ("O", *(f"B-{number}" for number in range(1, NUM_TAGS)))
    length = FLAGS.max_seq_length or 128
    task = ner.NerTask(
        tags, length, feature_based=FLAGS.feature_based, bilstm=bool(FLAGS.bilstm)
    )
    return RunWithoutData(
        config,
        length,
        lambda recompute: ner.make_model(config, task, recompute),
        lambda kernels: ner.OBJECTIVE,
        lambda rows: zeros((rows, length), {"label_ids": (rows, length)}),
    )


def _choice(config):
    from official_bert.modeling.multiple_choice import MultipleChoiceModel
    from official_bert.tasks.choice import training as choice
    from official_bert.training.plans.program import RunWithoutData, zeros

    length = FLAGS.max_seq_length or choice.ChoiceTask().max_seq_length

    def features(rows):
        others = {"choice_mask": (rows, NUM_CHOICES), "label_ids": (rows,)}
        return zeros((rows, NUM_CHOICES, length), others)

    return RunWithoutData(
        config,
        length,
        lambda recompute: MultipleChoiceModel(config, recompute),
        lambda kernels: choice.OBJECTIVE,
        features,
        sequences_per_row=NUM_CHOICES,
    )
