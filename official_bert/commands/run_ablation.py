r"""Run one of the paper's ablation tables: pre-train, fine-tune, evaluate, print it.

    python run_scripts/run_ablation.py --table=table5 --input_file=text.txt \
        --vocab_file=vocab.txt --glue_data_dir=glue_data --output_dir=output/ablations

The table's rows are flag files in configs/ablations. Its steps are ordinary commands.
Finished steps are recorded in results.jsonl. To resume a stopped run, repeat the
command. Tables with the same output directory share common steps. Prints our scores
next to the paper's, with means and standard deviations over the seeds.
docs/ablations.md describes the rows.
"""

import itertools
import os
import subprocess

from absl import flags

from official_bert import files, given_paths
from official_bert.ablations import heldout_text, reports, steps
from official_bert.ablations.tables import TABLES, TASKS, find_table
from official_bert.command_line import command_table
from official_bert.command_line.child_commands import exit_at_sigterm, run_child
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.run_record import write_run_json
from official_bert.config import BertConfig
from official_bert.corpus import readers
from official_bert.errors import UserError
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue import tasks as glue_tasks
from official_bert.tokenization.vocabulary import check_vocab_size, load_vocab

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("table", "input_file", "vocab_file", "output_dir")
MOST_USED: tuple[str, ...] = (
    "dev_file",
    "glue_data_dir",
    "ner_train_file",
    "ner_dev_file",
    "tasks",
    "rows",
    "num_train_steps",
    "num_seeds",
)

flags.DEFINE_enum("table", None, list(TABLES), "Table to run.")
flags.DEFINE_list(
    "rows", [], "Rows to run, by the names of their flag files. Default: all."
)
flags.DEFINE_list(
    "tasks",
    list(TASKS),
    "Tasks to fine-tune on. Only tasks of the table with data are used.",
)
flags.DEFINE_string(
    "input_file",
    None,
    "Text files to pre-train on: one sentence per line, a blank line between "
    "documents.",
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Text files to evaluate on. Default: one document in 20 of --input_file is held "
    "out.",
)
define_aliases("dev_file", "eval_input_file")
flags.DEFINE_string(
    "vocab_file",
    None,
    "Vocabulary with as many tokens as the models in configs/ablations: 8,000 "
    "(train_vocab.py --vocab_size=8000).",
)
flags.DEFINE_string(
    "glue_data_dir",
    None,
    "Folder of GLUE, with SST-2 and STS-B. Without it, both are skipped.",
)
flags.DEFINE_string(
    "ner_train_file", None, "Training file of CoNLL-2003. Without it, CoNLL is skipped."
)
flags.DEFINE_string("ner_dev_file", None, "Dev file of CoNLL-2003.")
flags.DEFINE_integer(
    "num_train_steps",
    None,
    "Training steps of each pre-training; the first tenth is warm-up. Default: as in "
    "configs/ablations/pretraining.flags.",
    lower_bound=10,
)
flags.DEFINE_integer(
    "num_seeds",
    3,
    "Fine-tuning runs of each model on each task. With 1, the table has no standard "
    "deviations.",
    lower_bound=1,
)
flags.DEFINE_string("output_dir", None, "Directory for all output.")


def main() -> None:
    """Check the flags, run the missing steps, print the table."""
    require(*REQUIRED)
    exit_at_sigterm()
    table = find_table(FLAGS.table, FLAGS.rows)
    data = _data(table)
    vocab_file = locate(FLAGS.vocab_file)
    config = BertConfig.from_json_file(locate(f"{steps.FOLDER}/bert_tiny.json"))
    check_vocab_size(load_vocab(vocab_file), config, vocab_file)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    with files.locked_directory(FLAGS.output_dir):
        texts = readers.find_inputs(FLAGS.input_file)
        study = _study(texts, data)
        journal = steps.Journal(
            study,
            _run_step,
            lambda path: files.read_text(locate(path), "a file of the ablations"),
        )
        results = steps.run_table(table, study, journal)
        lines = reports.lines_of(table, results)
        files.write_text(study.path(f"{FLAGS.table}.md"), "\n".join(lines) + "\n")
        print("", *lines, sep="\n", flush=True)
        if table.over_steps:
            picture = reports.draw(table, results, study.path(f"{FLAGS.table}.png"))
            print(f"\nPicture: {picture or 'none, matplotlib is missing'}")
        inputs = [*texts, *study.eval_input_file.split(","), study.vocab_file]
        inputs += map(locate, [FLAGS.ner_train_file, FLAGS.ner_dev_file])
        write_run_json(study.path(f"{FLAGS.table}.run.json"), inputs)


def _data(table):
    """Return the flags that name the files of each task of a table.

    Only tasks whose flags are given are returned. Missing files are reported here,
    hours before they are needed.
    """
    flags_of: dict[str, list[str]] = {}
    if FLAGS.glue_data_dir:
        folder = [f"--data_dir={locate(FLAGS.glue_data_dir)}"]
        flags_of |= {"sst-2": folder, "sts-b": folder}
    if bool(FLAGS.ner_train_file) != bool(FLAGS.ner_dev_file):
        raise UserError(
            "--ner_train_file and --ner_dev_file must be given together. Add the "
            "missing one."
        )
    if FLAGS.ner_train_file:
        own = []
        for name in ("train_file", "dev_file"):
            path = locate(getattr(FLAGS, f"ner_{name}"))
            given_paths.require_readable(path, f"--ner_{name}")
            own.append(f"--{name}={path}")
        flags_of |= {"conll": own, "conll_features": own}
    for name in FLAGS.tasks:
        if name not in TASKS:
            raise UserError(f"--tasks: {name!r} is not one of {', '.join(TASKS)}.")
    wanted = [name for name in table.tasks if name in flags_of and name in FLAGS.tasks]
    glue = [name for name in wanted if TASKS[name].script == "run_classifier.py"]
    for name, split in itertools.product(glue, ("train", "dev")):
        task, folder = glue_tasks.find_task(name), locate(FLAGS.glue_data_dir)
        if not glue_files.has_examples(task, folder, split):
            raise UserError(
                f"--glue_data_dir={folder} has no {split} set of {name} "
                f"({task.directory}/{split}.tsv). Give the folder of GLUE, or leave "
                f"{name} out with --tasks."
            )
    return {name: flags_of[name] for name in wanted}


def _study(texts, data):
    """Return the `Study`, and create its folders."""
    for name in ("text", "records", "logs"):
        files.make_directory(os.path.join(FLAGS.output_dir, name), "--output_dir")
    heldout = FLAGS.dev_file
    if not heldout:
        folder = os.path.join(FLAGS.output_dir, "text")
        train, heldout = heldout_text.split_off(texts, folder)
        texts = [train]
    return steps.Study(
        FLAGS.output_dir,
        ",".join(texts),
        heldout,
        locate(FLAGS.vocab_file),
        FLAGS.num_train_steps,
        FLAGS.num_seeds,
        data,
    )


def _run_step(step):
    """Run a step's command; write its output to a log."""
    log = os.path.join(FLAGS.output_dir, "logs", step.name.replace("/", "_") + ".log")
    command = command_table.of_module(step.script.removesuffix(".py"))
    print(command_table.in_users_form(f"{step.name}: {step.script}, {log}"), flush=True)
    with open(log, "a", encoding="utf-8") as output:
        # Errors of an earlier attempt are before this position.
        before = output.tell()
        status, _ = run_child(
            command.name,
            step.arguments,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    if status:
        with open(log, encoding="utf-8", errors="replace") as source:
            source.seek(before)
            errors = [line.rstrip() for line in source if line.startswith("error: ")]
        reason = errors[-1].removeprefix("error: ") if errors else f"see {log}."
        raise UserError(
            f"{step.script} for {step.name} failed with status {status}: {reason}"
        )
