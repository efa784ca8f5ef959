r"""Convert a BERT checkpoint from any format to any other.

    python run_scripts/convert_checkpoint.py --model=uncased_L-12_H-768_A-12.zip \
        --to=bert-base-uncased --format=huggingface

--model accepts Google's directories, prefixes, .index and zip files, the output
directory of a training run, Model Garden checkpoints, Hugging Face directories and
KerasHub presets. Weights stay bit-identical, including heads. A fine-tuned model's
task.json is copied; optimizer state is not. An embedding model in Hugging Face's format
gets the files of sentence-transformers. Without --to, the command lists the tensors of
the model. More in docs/how_to/conversion.md.
"""

import os

from absl import flags

from official_bert.command_line import found_models
from official_bert.command_line.command_table import in_users_form
from official_bert.command_line.flag_values import define_aliases, require
from official_bert.command_line.model_flags import given_files
from official_bert.command_line.run_record import write_run_json
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.constants import CHECKPOINT_FORMATS, GOOGLE, KERAS_HUB
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model",)
MOST_USED: tuple[str, ...] = (
    "to",
    "format",
    "bert_config_file",
    "vocab_file",
    "do_lower_case",
)

flags.DEFINE_string("model", None, "Checkpoint to read: a path or a name.")
define_aliases("model", "from", "init_checkpoint")
flags.DEFINE_string("to", None, "Directory to write. It must be new or empty.")
flags.DEFINE_enum("format", None, CHECKPOINT_FORMATS, "Format to write.")


def main() -> None:
    """Convert a checkpoint, or list its tensors."""
    require(*REQUIRED)
    if bool(FLAGS.to) != bool(FLAGS.format):
        raise UserError(
            "--to and --format must be given together. Add the missing one, or leave "
            "out both."
        )
    source = found_models.find(FLAGS.model)
    start_tensorflow()
    if FLAGS.to:
        _convert(source)
        return
    from official_bert.checkpoints import any_format

    with any_format.opened(source) as checkpoint:
        for name, shape in checkpoint.shapes.items():
            print(f"{name}  {list(shape)}")
        for note in checkpoint.notes:
            print(note)
        print(f"{len(checkpoint.shapes)} tensors, {checkpoint.format}.")


def _convert(source):
    from official_bert.checkpoints.convert import convert
    from official_bert.fine_tuning import model_card

    given, along = given_files(), _task_files(source)
    task_stays = along and FLAGS.format == KERAS_HUB
    checkpoint, notes = convert(
        source, FLAGS.to, FLAGS.format, **given, along=[] if task_stays else along
    )
    notes += _describe_embedding(source, FLAGS.to)
    if task_stays:
        notes.append(
            "task.json is not copied: a KerasHub preset has a different file of that "
            "name."
        )
    inputs = [source, given["config_file"], given["vocab_file"]]
    write_run_json(os.path.join(FLAGS.to, "run.json"), inputs)
    model_card.write(FLAGS.to, {"model": FLAGS.model}, in_users_form)
    for note in notes:
        print(note)
    print(
        f"Wrote {len(checkpoint.shapes)} tensors of {source} ({checkpoint.format}) to "
        f"{FLAGS.to} ({FLAGS.format})."
    )


def _describe_embedding(source, directory):
    """Write the files that describe how an embedding model makes vectors.

    In Hugging Face's format these are the files of sentence-transformers, in Google's
    format `task.json`.

    Returns:
      Notes for the user, a list of str.
    """
    from official_bert.tasks.embedding import directories

    task = directories.described_task(source)
    if task is None or FLAGS.format == KERAS_HUB:
        return []
    if FLAGS.format == GOOGLE:
        directories.write_missing_task(directory, task)
        return []
    return directories.write_sentence_files(directory, task)


def _task_files(source):
    """Return a list with the path of a fine-tuned model's `task.json`, if it exists.

    `task.json` describes the finished model, not the numbered checkpoints next to it.
    """
    from official_bert.checkpoints.names import MODEL_PREFIX
    from official_bert.fine_tuning.task_file import TASK_FILE, has_task

    folder, name = os.path.split(source)
    if os.path.isdir(source):
        folder = source
    elif name not in (MODEL_PREFIX, f"{MODEL_PREFIX}.index"):
        return []
    return [os.path.join(folder, TASK_FILE)] if has_task(folder) else []
