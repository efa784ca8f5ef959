r"""Plan a pre-training run on TPUs that are not attached.

    python run_scripts/plan_training.py --flagfile=configs/base.flags \
        --topology=v5e:4x4

It takes the flags of run_pretraining.py, compiles the run's training step with the
TPU's own compiler, and reports memory per chip, operations, bytes, the shortest
possible time of a step, and the days and chip hours of the run. It reads no data.
It needs the compiler: pip install 'official-bert[plan]'.
"""

import dataclasses
import json
import sys

from absl import flags

from official_bert.command_line import training_flags
from official_bert.command_line.flag_values import define_positive, locate, require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.commands import run_pretraining  # noqa: F401 # Its flags.
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.training.plans import plan, report
from official_bert.training.plans.chips import parse_topology

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "topology",
    None,
    "TPU slice, up to 64 chips: v4:2x2x1, v5e:4x4, v5p:2x2x1, v6e:2x2.",
)
define_positive("chips", None, "Chips of the slice that train; default: all.")
flags.DEFINE_bool("json", False, "Print the numbers as JSON.")


def main() -> None:
    """Compile the step; if it does not fit, find flags with which it does."""
    require("topology", "bert_config_file", "max_seq_length", "max_predictions_per_seq")
    slice_ = parse_topology(FLAGS.topology)
    if slice_.compiler_name is None:
        raise UserError(
            f"--topology={FLAGS.topology}: GPUs cannot be planned yet; give a TPU "
            "slice, such as v5e:4x4."
        )
    chips = FLAGS.chips or slice_.num_chips
    if chips > slice_.num_chips:
        raise UserError(
            f"--chips={chips}: {slice_.name} has {slice_.num_chips} chips; give that "
            "many at most, or a larger --topology."
        )
    batch_size = FLAGS.train_batch_size
    if batch_size % chips:
        raise UserError(
            f"--train_batch_size={batch_size} cannot be split over {chips} chips; give "
            "a multiple."
        )
    plan.require_compiler()
    config = BertConfig.from_json_file(locate(FLAGS.bert_config_file))
    start_tensorflow()
    from official_bert.training import pretraining

    settings = training_flags.settings(pretraining.PretrainingSettings)
    made = _compile(config, settings, slice_, chips)
    remedy = ""
    if not made.fits:
        remedy = _find_remedy(config, settings, slice_, chips)
    steps = settings.optimization.num_train_steps
    if FLAGS.json:
        run = {"num_train_steps": steps, "remedy": remedy}
        print(json.dumps(made.to_dict() | run))
    else:
        step = settings.step
        micro = step.micro_batch_size
        what = (
            f"{FLAGS.bert_config_file}: {batch_size} x {FLAGS.max_seq_length}"
            f"{f' in micro-batches of {micro}' if micro else ''}, {settings.precision}"
            f"{', recomputed' if settings.recompute else ''}"
        )
        print(report.screen(made, slice_, what, steps, remedy))


def _compile(config, settings, slice_, chips):
    """Return the `Plan` of a run with these settings."""
    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training import pretraining
    from official_bert.training.plans import program

    rows = settings.loop.train_batch_size // chips
    next_sentence = settings.next_sentence_prediction
    _say("Tracing the training step …")
    exported = program.export_step(
        lambda: PretrainingModel(config, settings.recompute, next_sentence),
        pretraining.make_objective(next_sentence),
        settings,
        program.pretraining_features(
            rows, FLAGS.max_seq_length, FLAGS.max_predictions_per_seq, FLAGS.pack
        ),
        chips,
    )
    made = plan.compile_plan(exported, slice_, chips, settings.precision, _progress)
    _say("")
    return made


def _find_remedy(config, settings, slice_, chips):
    """Return the first flags with which the step fits, or ""."""
    rows = settings.loop.train_batch_size // chips
    step = settings.step
    candidates = []
    size = step.micro_batch_size or rows
    while size % 2 == 0 and size > 1:
        size //= 2
        smaller = dataclasses.replace(step, micro_batch_size=size)
        candidates.append(
            (
                f"--micro_batch_size={size}",
                dataclasses.replace(settings, step=smaller),
            )
        )
    candidates.insert(1, ("--recompute", dataclasses.replace(settings, recompute=True)))
    if settings.precision == "float32":
        halved = dataclasses.replace(settings, precision="bfloat16")
        candidates.append(("--precision=bfloat16", halved))
    for flag, changed in candidates:
        _say(f"It does not fit. Trying {flag}.\n")
        if _compile(config, changed, slice_, chips).fits:
            return flag
    return ""


def _progress(seconds):
    if sys.stderr.isatty():
        _say(f"\rCompiling, {seconds:.0f} s")
    elif seconds % 30 < 1:
        _say(f"Compiling, {seconds:.0f} s\n")


def _say(text):
    if not FLAGS.json or sys.stderr.isatty():
        ending = "" if sys.stderr.isatty() else "\n" * (not text.endswith("\n"))
        print(text, end=ending, file=sys.stderr, flush=True)
