"""The fine-tuning run of every task: from examples to the best model."""

import contextlib
import dataclasses
import os
import zlib
from collections.abc import Callable

from official_bert.checkpoints import any_format, google, model_directory, names
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.fine_tuning import task_file
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size
from official_bert.training import runs, saving, strategies
from official_bert.training.step import Objective

# What a fine-tuned model is, the weights last.
MODEL_FILES = (
    task_file.TASK_FILE,
    google.CONFIG_FILE,
    google.VOCAB_FILE,
    google.TOKENIZER_FILE,
    f"{names.MODEL_PREFIX}.data-00000-of-00001",
    f"{names.MODEL_PREFIX}.index",
)


@dataclasses.dataclass(frozen=True)
class Start:
    """What a fine-tuning starts from, apart from the weights.

    Attributes:
      config: `BertConfig`.
      tokenizer: `FullTokenizer`.
      vocab_file: path of its vocabulary.
    """

    config: BertConfig
    tokenizer: FullTokenizer
    vocab_file: str

    def check_length(self, max_seq_length):
        """Raise `UserError` if the model cannot read so many tokens."""
        limit = self.config.max_position_embeddings
        if max_seq_length > limit:
            raise UserError(
                f"--max_seq_length is {max_seq_length}, and the model reads up to "
                f"{limit} tokens (max_position_embeddings); give a smaller one."
            )


@contextlib.contextmanager
def opened_start(
    init_checkpoint, config_file=None, vocab_file=None, do_lower_case=None
):
    """Open what a fine-tuning starts from; files of an archive last as long.

    Args:
      init_checkpoint: see `any_format.opened`; None starts from random weights.
      config_file: a `bert_config.json`; by default the checkpoint's own.
      vocab_file: a `vocab.txt`, likewise.
      do_lower_case: bool, likewise.

    Yields:
      `Start`.

    Raises:
      UserError: something is missing or does not fit.
    """
    with contextlib.ExitStack() as stack:
        checkpoint = model_directory.NO_CHECKPOINT
        if init_checkpoint:
            checkpoint = stack.enter_context(any_format.opened(init_checkpoint))
        config = model_directory.config_of(checkpoint, config_file)
        tokenizer = model_directory.tokenizer_of(checkpoint, vocab_file, do_lower_case)
        vocab_file = vocab_file or checkpoint.vocab_file
        check_vocab_size(tokenizer.vocab, config, vocab_file)
        yield Start(config, tokenizer, vocab_file)


@dataclasses.dataclass(frozen=True)
class FineTuningSettings(runs.RunSettings):
    """The flags of every fine-tuning command, under the same names."""

    vocab_file: str
    do_lower_case: bool
    eval_batch_size: int
    pad_to_max_seq_length: bool


@dataclasses.dataclass(frozen=True)
class FineTuning:
    """What a model is fine-tuned for, and on what.

    Attributes:
      config: `BertConfig`.
      written_config: the same as it is to be written, with names of labels.
      make_model: function: whether to recompute -> Keras model.
      objective: `step.Objective`.
      train_set: `FeatureSet`.
      identity: dict that tells task and examples from others.
      best_by: which measure tells the best model; see `saving.is_better`.
      make_evaluate: function: model -> function as `loop.train` takes it; None,
        and the last model is left.
      write_task: function: (directory, updates that the model has had, its row
        of scores); writes its `task.json`.
      trouble: function: row of scores -> a sentence about a model that is of no
        use, or None.
      reads_padding: whether what the model says of padding is part of the loss.
    """

    config: BertConfig
    written_config: BertConfig
    make_model: Callable
    objective: Objective
    train_set: FeatureSet
    identity: dict
    best_by: str
    make_evaluate: Callable | None
    write_task: Callable
    trouble: Callable = lambda row: None
    reads_padding: bool = False


def _holds(directory, step):
    """Tell whether a directory has the whole model of an update."""
    is_there = (os.path.exists(os.path.join(directory, name)) for name in MODEL_FILES)
    return all(is_there) and task_file.written_step(directory) == step


def _write_model(directory, model, work, settings):
    """Write the model; till its `task.json` follows, the directory has none."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(directory, task_file.TASK_FILE))
    model_directory.save(
        directory,
        model,
        settings.vocab_file,
        settings.do_lower_case,
        work.written_config,
    )


def crc32_of(arrays):
    """Return a number that tells arrays from others, for `FineTuning.identity`."""
    digest = 0
    for array in arrays:
        digest = zlib.crc32(array.tobytes(), digest)
    return digest


def fixed_settings(work, settings):
    """Return what must stay the same for a run to be continued, as a dict."""
    found = runs.fixed_settings(work.config, work.identity, settings)
    if settings.pad_to_max_seq_length:
        found["pad_to_max_seq_length"] = True
    return found


def fine_tune(strategy, work, settings):
    """Train; leave the best model in the output directory.

    Args:
      strategy: a `tf.distribute` strategy.
      work: `FineTuning`.
      settings: `FineTuningSettings`.

    Returns:
      dict: the `global_step` of that model and, where it was evaluated, its
      scores; None if the run was told to stop before its end.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, memory is short, or another worker is gone.
    """
    directory, train_set = settings.output_dir, work.train_set
    # Of a TPU each length would be another program.
    if settings.pad_to_max_seq_length or strategies.is_tpu(strategy):
        train_set = train_set.of_one_length()
    with (
        runs.opened_directory(strategy, directory),
        runs.device_errors(strategy, settings),
    ):
        state = runs.make_state(
            strategy, lambda: work.make_model(settings.recompute), settings
        )
        # Skipping padding saves work: half of the tokens in RTE's batches are padding.
        can_skip_padding = runs.can_skip_padding(strategy, settings)
        skip_padding = can_skip_padding and not work.reads_padding
        kernels = runs.choose_kernels(work.config, train_set, skip_padding, settings)
        evaluate = work.make_evaluate and work.make_evaluate(state.model)
        run_id = runs.start(strategy, state, fixed_settings(work, settings), settings)
        before = state.step
        complete = runs.train(
            strategy,
            state,
            work.objective,
            train_set,
            run_id,
            evaluate,
            settings,
            kernels,
            best_by=work.best_by,
        )
        if not complete:
            return None
        was_done = state.step == before and not settings.allow_changed_settings
        best, row = state.step, {}
        if evaluate:
            # Kept besides the newest, so it is there. The others wait until the chief,
            # which may still be saving, says which it is.
            best = saving.best_step(directory) or best
            best = strategies.from_chief(strategy, best)
            saving.restore_state(directory, state, run_id, best)
            row = evaluate()
        # A user, or a search, may have changed the threshold of one that was done.
        is_there = was_done and _holds(directory, best)
        if strategies.is_chief(strategy) and not is_there:
            _write_model(directory, state.model, work, settings)
            # It tells that the model is whole, so it comes last.
            work.write_task(directory, best, row)
        # No worker leaves while the chief still writes.
        strategies.end_together(strategy)
        return {"global_step": best, **row}
