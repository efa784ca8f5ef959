r"""Plan a training run on TPUs or GPUs that are not attached.

    python run_scripts/plan_training.py --flagfile=configs/base.flags \
        --topology=v5e:4x4

    python run_scripts/plan_training.py --flagfile=configs/glue/mrpc.flags \
        --topology=v5e:2x2

It takes the flags of a training command (pre-training, a classifier, SQuAD, NER or
SWAG) and reads no data. For TPUs, the TPU's own compiler compiles the training step
(pip install 'official-bert[plan]'). For GPUs, the plan is an estimate. The report shows
memory per chip, operations, bytes, the shortest possible time of a step, and the days
and chip hours of the run. If the step does not fit into memory, the command searches
for flags with which it fits. More in docs/how_to/pretraining.md.
"""

import dataclasses
import importlib
import json
import sys

from absl import flags

from official_bert.command_line import planned_runs, training_flags
from official_bert.command_line.flag_values import define_positive, require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError
from official_bert.training.plans import compiled, remedy, report
from official_bert.training.plans.chips import parse_topology
from official_bert.training.plans.estimate import estimate
from official_bert.training.plans.workload import Workload

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("topology",)
MOST_USED: tuple[str, ...] = (
    "flagfile",
    "command",
    "chips",
    "bert_config_file",
    "train_batch_size",
    "micro_batch_size",
    "max_seq_length",
    "precision",
    "recompute",
    "num_train_examples",
)

flags.DEFINE_string(
    "topology",
    None,
    "TPU slice of up to 64 chips (v4:2x2x1, v5e:4x4, v5p:2x2x1, v6e:2x2), or GPUs "
    "(h200, h100, 8xh100, a100, l4, v100, t4).",
)
define_positive(
    "chips", None, "Number of chips of the topology that train. Default: all."
)
flags.DEFINE_enum(
    "command",
    None,
    list(planned_runs.OWN_FLAGS),
    "Command that the flags belong to. Default: the command that has these flags.",
)
define_positive(
    "num_train_examples",
    None,
    "Number of fine-tuning examples, to compute the length of the run; the plan "
    "reads no data. Default: report 1,000 steps.",
)
flags.DEFINE_bool("json", False, "Print the report as JSON.")


def define_flags(arguments: list[str]) -> None:
    """Define the flags of the command that the arguments belong to."""
    command = planned_runs.command_of(arguments)
    importlib.import_module(f"official_bert.commands.{command}")
    FLAGS["command"].default = FLAGS["command"].value = command


def main() -> None:
    """Make the plan; if the step does not fit, search for flags with which it fits."""
    require(*REQUIRED)
    slice_ = parse_topology(FLAGS.topology)
    chips = _chips(slice_)
    config, config_name = planned_runs.model_config()
    training_flags.check()
    if slice_.compiler_name:
        compiled.require_compiler()
    start_tensorflow()
    from official_bert.training import strategies

    for size in planned_runs.batch_sizes():
        strategies.check_split(
            chips,
            size,
            FLAGS.micro_batch_size,
            must_be_even=slice_.compiler_name is not None,
        )
    run = planned_runs.run_without_data(config)
    settings, steps, note = planned_runs.run_settings(FLAGS.num_train_examples)
    work = _workload(run, slice_, chips)

    def make_plan(changed):
        if slice_.compiler_name:
            return _compile(run, settings, changed, slice_, chips)
        return estimate(changed, slice_, chips)

    made, found = make_plan(work), None
    if not made.fits:
        found = remedy.find(work, made, slice_, make_plan, _announce)
    if FLAGS.json:
        print(json.dumps(_numbers(made, found, steps)))
    else:
        what = _describe(work, config_name)
        print(report.screen(made, slice_, what, steps, found, note))


def _chips(slice_):
    chips = FLAGS.chips or slice_.num_chips
    if chips > slice_.num_chips:
        raise UserError(
            f"--chips={chips}, but {slice_.name} has only {slice_.num_chips} chips. "
            "Use a smaller number, or a larger --topology."
        )
    half = slice_.chip.half
    if FLAGS.precision == "bfloat16" != half:
        raise UserError(
            f"--precision={FLAGS.precision}: the matrix units of {slice_.chip.name} "
            f"do not support {FLAGS.precision}. Use --precision={half}."
        )
    return chips


def _workload(run, slice_, chips):
    return Workload(
        run.config,
        # The chip with the largest share of the batch decides.
        -(-max(planned_runs.batch_sizes()) // chips),
        run.max_seq_length,
        run.predictions_per_seq,
        FLAGS.precision,
        FLAGS.micro_batch_size,
        FLAGS.recompute,
        FLAGS.xla or slice_.compiler_name is not None,
        run.sequences_per_row,
    )


def _compile(run, settings, work, slice_, chips):
    """Return the `Plan` that the compiler makes for a workload."""
    import tensorflow as tf

    from official_bert.training.plans import program

    _say("Tracing the training step …")
    changed = dataclasses.replace(
        settings,
        step=dataclasses.replace(settings.step, micro_batch_size=work.micro_batch_size),
        precision=work.precision,
        recompute=work.recompute,
    )
    try:
        exported = program.export_run(run, changed, work.rows, chips)
    except tf.errors.OpError as error:
        problem = error.message.strip().partition("\n")[0]
        return compiled.refused(slice_, chips, work, f"TensorFlow reports: {problem}")
    made = compiled.compile_plan(exported, slice_, chips, work, _make_progress())
    _say("")
    return made


def _numbers(made, found, steps):
    """Return the dict that --json prints."""
    num_steps = steps or report.USUAL_STEPS
    numbers = made.to_dict() | {
        "command": FLAGS.command,
        "num_train_steps": num_steps,
        "days": report.run_seconds(made, num_steps) / 86400,
        "chip_hours": report.chip_hours(made, num_steps),
        "remedy": found.flags if found else "",
    }
    return numbers | ({"remedy_plan": found.plan.to_dict()} if found else {})


def _describe(work, config_name):
    """Return a description of the step, for the first line of the report."""
    choices = f" x {work.sequences_per_row}" if work.sequences_per_row > 1 else ""
    micro = work.micro_batch_size
    parts = [
        f"{config_name}: {max(planned_runs.batch_sizes())}{choices} x "
        f"{work.max_seq_length}{f' in micro-batches of {micro}' if micro else ''}",
        work.precision,
        *(["recomputed"] if work.recompute else []),
    ]
    return ", ".join(parts)


def _announce(candidate):
    _say(f"It does not fit. Trying {candidate}.\n")


def _make_progress():
    """Return the function that shows the seconds of a compilation."""
    half_minutes = 0

    def progress(seconds):
        nonlocal half_minutes
        if sys.stderr.isatty() or seconds // 30 > half_minutes:
            _say(f"Compiling, {seconds:.0f} s")
        half_minutes = seconds // 30

    return progress


def _say(text):
    """Show progress on stderr; on a terminal, overwrite the same line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text.rstrip("\n"), file=sys.stderr, flush=True)
