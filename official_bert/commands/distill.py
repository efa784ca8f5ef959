r"""Train a small classifier from a fine-tuned classifier (knowledge distillation).

    python run_scripts/distill.py --teacher=output/sst2 --model=uncased_L-2_H-128_A-2 \
        --task_name=SST-2 --data_dir=glue_data --output_dir=output/sst2_tiny

The student learns the labels, the teacher's logits and the teacher's hidden states.
Teacher and student must have the same vocabulary. The data and all other flags are
those of run_classifier.py. The output directory is an ordinary model of the student.
More in docs/recipes.md.
"""

from typing import TYPE_CHECKING

from absl import flags

from official_bert.command_line import found_models
from official_bert.command_line.flag_values import require
from official_bert.commands import run_classifier
from official_bert.errors import UserError

if TYPE_CHECKING:
    from official_bert.fine_tuning.job import FineTuningJob

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("teacher", "output_dir")
MOST_USED: tuple[str, ...] = (
    "model",
    "task_name",
    "data_dir",
    "train_file",
    "dev_file",
    "learning_rate",
    "num_train_epochs",
    "temperature",
    "label_weight",
    "hidden_weight",
)

flags.DEFINE_string(
    "teacher", None, "Fine-tuned classifier to learn from: a path or a name."
)
flags.DEFINE_float(
    "temperature",
    2.0,
    "Divides the logits of teacher and student in the loss on logits.",
    lower_bound=0.01,
)
flags.DEFINE_float(
    "label_weight",
    0.5,
    "Weight of the loss on labels. The loss on logits has the rest of 1.",
    0,
    1,
)
flags.DEFINE_float(
    "hidden_weight", 1.0, "Weight of the loss on hidden states.", lower_bound=0
)
FLAGS.set_default("do_train", True)
FLAGS.set_default("do_eval", True)


def main() -> None:
    """Check the flags and the data, then train and evaluate the student."""
    require(*REQUIRED)
    if FLAGS.bilstm:
        raise UserError("--bilstm does not work with distillation. Leave it out.")
    # Download the teacher before reading the data, so that errors appear early.
    found_models.find(FLAGS.teacher)
    run_classifier.run(_distilling)


def _distilling(job: "FineTuningJob") -> "FineTuningJob":
    """Return the job with the losses on the teacher's outputs."""
    from official_bert.command_line import training_flags
    from official_bert.tasks.classifier import distillation
    from official_bert.tasks.classifier.predictor import ClassifierPredictor

    teacher = ClassifierPredictor(
        found_models.find(FLAGS.teacher), FLAGS.eval_batch_size
    )
    settings = training_flags.settings(distillation.DistillationSettings)
    return distillation.distilling(job, teacher, settings)
