r"""Distill a fine-tuned teacher into small models: scores, sizes and milliseconds.

    python benchmarks/distillation.py --teacher=all-MiniLM-L6-v2 \
        --student=tiny:output/tiny --student=mini:output/mini \
        --data_dir=glue_data --output=output/distillation

The teacher is fine-tuned once per task. Each student is trained with several seeds:
alone, from the labels only, and distilled. Both have the same start, epochs and
learning rate. --output is a folder for the models and for `distillation_runs.jsonl`,
one line per result. Repeat the command to resume. With --time, it also measures the
time of one text, which needs an idle machine.
"""

import functools
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import compared_runs  # noqa: E402
from official_bert.command_line.flag_values import define_positive, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402
from official_bert.training.logs import eval_results  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("teacher", None, "Model with the students' vocabulary.")
flags.DEFINE_multi_string("student", [], "NAME:PATH of a pre-trained small model.")
flags.DEFINE_string("data_dir", None, "Folder that contains the folders of GLUE.")
flags.DEFINE_string("output", None, "Folder for models and results.")
define_positive("num_seeds", 3, "Runs of each student.")
flags.DEFINE_bool("time", False, "Measure milliseconds; the machine must be idle.")

# Task -> (score, epochs of a student).
TASKS = {"mrpc": ("f1", 10), "sst-2": ("accuracy", 1)}
flags.DEFINE_multi_enum("task", list(TASKS), list(TASKS), "Tasks.")

TEACHER, ALONE, DISTILLED = "teacher", "alone", "distilled"
# Sentences whose time is measured, one at a time.
NUM_TIMED = 200


def main():
    """Train what is missing."""
    require("teacher", "student", "data_dir", "output")
    os.makedirs(FLAGS.output, exist_ok=True)
    students = [each.partition(":")[::2] for each in FLAGS.student]
    for task in FLAGS.task:
        _train_all(task, students)
    if FLAGS.time:
        for task in FLAGS.task:
            for model in (TEACHER, *(name for name, _ in students)):
                key = {"part": "time", "task": task, "model": model}
                _record(key, functools.partial(_measure_time, task, model))


def _train_all(task, students):
    key = _key(task, TEACHER, ALONE, 1)
    teacher = _folder(key)
    _record(key, functools.partial(_train_teacher, task, teacher))
    for seed in range(1, FLAGS.num_seeds + 1):
        for name, start in students:
            for how in (ALONE, DISTILLED):
                key = _key(task, name, how, seed)
                _record(key, functools.partial(_train_student, key, start, teacher))


def _key(task, model, how, seed):
    """Return what identifies the score of a model, a dict."""
    return {"part": "score", "task": task, "model": model, "how": how, "seed": seed}


def _folder(key):
    """Return the folder of a model."""
    return _path(key["task"], f"{key['model']}_{key['how']}", str(key["seed"]))


def _path(*parts):
    return os.path.join(FLAGS.output, *parts)


def _record(key, make_run):
    compared_runs.run_missing(_path("distillation_runs.jsonl"), key, make_run)


def _train_teacher(task, folder):
    """Fine-tune the teacher with the paper's three epochs; return its result."""
    rate = "--learning_rate=5e-5"
    _command("run_classifier", task, folder, 1, f"--model={FLAGS.teacher}", rate)
    return _result(task, folder)


def _train_student(key, start, teacher):
    """Train a student; return its result."""
    task, how = key["task"], key["how"]
    folder = _folder(key)
    script, own = "run_classifier", []
    if how == DISTILLED:
        script, own = "distill", [f"--teacher={teacher}"]
    # Small models need a larger learning rate than the teacher.
    settings = "--learning_rate=3e-4", f"--num_train_epochs={TASKS[task][1]}"
    _command(script, task, folder, key["seed"], f"--model={start}", *settings, *own)
    return _result(task, folder)


def _command(script, task, folder, seed, *further):
    command = [
        *(sys.executable, ROOT / "run_scripts" / f"{script}.py"),
        *("--do_train", "--do_eval", "--bias_correction", "--max_seq_length=128"),
        *(f"--task_name={task}", f"--data_dir={FLAGS.data_dir}", f"--seed={seed}"),
        f"--output_dir={folder}",
        *further,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{script}.py failed: {done.stderr[-500:]}")


def _result(task, folder):
    """Return score and number of parameters."""
    score = TASKS[task][0]
    variables = _predictor(folder).model.trainable_variables
    return {
        "score": eval_results.read(folder)[f"eval_{score}"],
        "parameters": sum(int(one.shape.num_elements()) for one in variables),
    }


def _measure_time(task, model):
    """Return the median milliseconds of one text."""
    predictor = _predictor(_folder(_key(task, model, ALONE, 1)))
    texts = _texts(task)
    predictor.predict(texts)
    times = []
    for text in texts:
        started = time.perf_counter()
        predictor.predict([text])
        times.append(1000 * (time.perf_counter() - started))
    return {"milliseconds": round(statistics.median(times), 2)}


def _predictor(folder):
    # Imported late, because TensorFlow is slow to import.
    from official_bert.tasks.classifier.predictor import ClassifierPredictor

    return ClassifierPredictor(folder, 1)


def _texts(task):
    """Return the first texts of a task's dev set."""
    from official_bert.tasks.glue import files, tasks

    examples = files.read_examples(tasks.find_task(task), FLAGS.data_dir, "dev")
    pairs = [(one.text_a, one.text_b) for one in examples[:NUM_TIMED]]
    return [first if not second else (first, second) for first, second in pairs]


if __name__ == "__main__":
    run(main)
