"""Convert between checkpoint formats with a reader and a writer, without a model."""

import dataclasses
import os
import shutil
from collections.abc import Iterable

from official_bert import files
from official_bert.checkpoints import any_format, google, initialize, model_directory
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.huggingface import transformers_model
from official_bert.checkpoints.keras_hub import preset
from official_bert.constants import GOOGLE, HUGGINGFACE, KERAS_HUB

WRITERS = {
    GOOGLE: google.write_model,
    HUGGINGFACE: transformers_model.write_model,
    KERAS_HUB: preset.write_preset,
}


def convert(
    path: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    to: str,
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    along: Iterable[str | os.PathLike[str]] = (),
) -> tuple[Checkpoint, list[str]]:
    """Write a checkpoint's weights in another format, bit for bit.

    The output is a model, without optimizer slots and global step.

    Args:
      path: see `any_format.opened`.
      directory: the new model's directory, which must be empty or new.
      to: a key of `WRITERS`.
      config_file: a `bert_config.json`; by default the checkpoint's own.
      vocab_file: a `vocab.txt`; by default the checkpoint's own.
      do_lower_case: bool; default: the stated value, or a guess from the
        vocabulary.
      along: paths of files to copy into the directory.

    Returns:
      (the `Checkpoint`, closed; sentences that a user should read).

    Raises:
      UserError: the checkpoint cannot be read or contradicts its config, or
        the new format cannot hold it.
    """
    with any_format.opened(path) as checkpoint:
        config = model_directory.config_of(checkpoint, config_file)
        initialize.check_size(checkpoint, config)
        checkpoint = dataclasses.replace(checkpoint, config=config)
        notes = list(checkpoint.notes)
        if vocab_file or checkpoint.vocab_file:
            tokenizer = model_directory.tokenizer_of(
                checkpoint, vocab_file, do_lower_case
            )
            checkpoint = dataclasses.replace(
                checkpoint,
                vocab_file=vocab_file or checkpoint.vocab_file,
                do_lower_case=tokenizer.do_lower_case,
            )
        else:
            notes.append("The model has no vocab.txt. Use --vocab_file to add one.")
        with files.atomic_directory(directory, "--to") as temporary:
            notes += WRITERS[to](temporary, checkpoint)
            for source in along:
                shutil.copy(source, temporary)
    return checkpoint, notes
