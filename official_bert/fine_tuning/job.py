"""The fine-tuning run of all tasks: from examples to the best model."""

import contextlib
import dataclasses
import functools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import any_format, google, model_directory, names
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.fine_tuning import task_file
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.outputs import compile_model, make_evaluate_rows
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size
from official_bert.training import loop, runs, saving, strategies
from official_bert.training.recipes import top_layers
from official_bert.training.recipes.stable_adam import averaged_weights
from official_bert.training.run_directory import opened_directory
from official_bert.training.step import Objective

# The files of a fine-tuned model: the task first, the weights last.
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
    """Everything that a fine-tuning starts from, except the weights.

    Attributes:
      config: `BertConfig`.
      tokenizer: `FullTokenizer`.
      vocab_file: path of the tokenizer's vocabulary.
      dropout: whether to train with the dropout of the config.
    """

    config: BertConfig
    tokenizer: FullTokenizer
    vocab_file: str
    dropout: bool = True

    @property
    def trained_config(self) -> BertConfig:
        """The config of the model while it trains."""
        return self.config if self.dropout else self.config.without_dropout()

    def check_length(self, max_seq_length: int) -> None:
        """Raise `UserError` if the model reads fewer tokens than `max_seq_length`."""
        limit = self.config.max_position_embeddings
        if max_seq_length > limit:
            raise UserError(
                f"--max_seq_length={max_seq_length} is too long: the model reads at "
                f"most {limit} tokens (max_position_embeddings). Give a smaller length."
            )


@contextlib.contextmanager
def opened_start(
    init_checkpoint: str | None,
    config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    dropout: bool = True,
) -> Iterator[Start]:
    """Open the config and tokenizer that a fine-tuning starts from.

    Files from an archive exist only inside the context.

    Args:
      init_checkpoint: see `any_format.opened`; None starts from random weights.
      config_file: a `bert_config.json`; by default the checkpoint's.
      vocab_file: a `vocab.txt`; by default the checkpoint's.
      do_lower_case: bool; by default the checkpoint's setting.
      dropout: whether to train with the dropout of the config.

    Yields:
      `Start`.

    Raises:
      UserError: a file is missing or does not match the others.
    """
    with contextlib.ExitStack() as stack:
        checkpoint = model_directory.NO_CHECKPOINT
        if init_checkpoint:
            checkpoint = stack.enter_context(any_format.opened(init_checkpoint))
        config = model_directory.config_of(checkpoint, config_file)
        tokenizer = model_directory.tokenizer_of(checkpoint, vocab_file, do_lower_case)
        vocab_file = vocab_file or checkpoint.vocab_file
        assert vocab_file is not None  # Otherwise `tokenizer_of` has failed.
        check_vocab_size(tokenizer.vocab, config, vocab_file)
        yield Start(config, tokenizer, vocab_file, dropout)


@dataclasses.dataclass(frozen=True)
class FineTuningSettings(runs.RunSettings):
    """The flags that all fine-tuning commands share, with the same names."""

    eval_batch_size: int
    pad_to_max_seq_length: bool
    reinit_layers: int = 0


@dataclasses.dataclass(frozen=True)
class DevSet:
    """The examples that decide which model is the best.

    Attributes:
      feature_set: `FeatureSet`.
      measure: function: list of the model's outputs for each example, dicts of
        arrays -> dict of scores.
      outputs_of: function: model -> function: batch of features -> the outputs
        that `measure` reads. By default these are all outputs.
    """

    feature_set: FeatureSet
    measure: Callable[[list[dict[str, np.ndarray]]], dict[str, float]]
    outputs_of: Callable[[keras.Model], Callable[..., Any]] = lambda model: model

    def make_evaluate(
        self, model: keras.Model, batch_size: int
    ) -> Callable[..., dict[str, float] | None]:
        """Return the function that evaluates a model; see `evaluation.make_evaluate`.

        Args:
          model: a Keras model.
          batch_size: number of examples per batch.
        """
        score = compile_model(self.outputs_of(model))
        return make_evaluate_rows(score, self.feature_set, batch_size, self.measure)


@dataclasses.dataclass(frozen=True)
class FineTuningJob:
    """Everything in which fine-tuning tasks differ: the model and the data.

    The function `make_job` of each task creates it from the examples.

    Attributes:
      start: `Start`.
      task: content of `task.json`. It has a name (`TASK`), `max_seq_length`,
        `to_dict()`, and `metrics`: names of scores. The first one selects
        the best model.
      written_config: `BertConfig` to write with the model, with names of labels.
      make_model: function: whether to recompute -> Keras model.
      objective: `step.Objective`.
      train_set: `FeatureSet`.
      fingerprint: dict that distinguishes this task and its examples from others.
      dev_set: `DevSet`; None keeps the last model.
      epoch_size: examples per epoch; None for the size of `train_set`.
      finished_task: function: (task, scores of the best model) -> task to write.
      trouble: function: dict of scores -> a sentence about a model that is not
        usable, or None.
      reads_padding: whether the loss includes the model's outputs at padding.
      written_model: function: trained model -> model to write, for models with parts
        that only training needs.
    """

    start: Start
    task: task_file.Task
    written_config: BertConfig
    make_model: Callable[[bool], keras.Model]
    objective: Objective
    train_set: FeatureSet
    fingerprint: dict[str, Any]
    dev_set: DevSet | None = None
    epoch_size: int | None = None
    finished_task: Callable[[Any, dict[str, float]], task_file.Task] = (
        lambda task, row: task
    )
    trouble: Callable[[Mapping[str, float]], str | None] = lambda row: None
    reads_padding: bool = False
    written_model: Callable[[keras.Model], keras.Model] = lambda model: model

    @property
    def best_by(self) -> str:
        """The name of the score that selects the best model."""
        return self.task.metrics[0]

    @property
    def num_examples(self) -> int:
        """The number of examples per epoch."""
        return self.epoch_size or len(self.train_set.features)


def _holds(directory, step):
    """Return whether a directory contains the complete model of a training step."""
    paths = [os.path.join(directory, name) for name in MODEL_FILES]
    try:
        task = files.read_json(paths[0], "a task")
    except UserError:  # It is missing or damaged.
        return False
    return all(map(files.exists, paths)) and task.get("global_step") == step


def _write_model(directory, model, job, step, row):
    """Write a model. The directory is incomplete until `task.json`, the last file."""
    with contextlib.suppress(FileNotFoundError):
        files.remove(os.path.join(directory, task_file.TASK_FILE))
    start, config = job.start, job.written_config
    casing = start.tokenizer.do_lower_case
    model_directory.save(directory, model, start.vocab_file, casing, config)
    task_file.write_task(directory, job.finished_task(job.task, row), step)


def crc32_of(arrays: Iterable[np.ndarray]) -> int:
    """Return a checksum of arrays, for `FineTuningJob.fingerprint`."""
    return functools.reduce(lambda crc, one: zlib.crc32(one.tobytes(), crc), arrays, 0)


def fingerprint(job: FineTuningJob, settings: FineTuningSettings) -> dict[str, Any]:
    """Return the settings that a resumed run must not change, as a dict."""
    values = runs.fingerprint(job.start.config, job.fingerprint, settings)
    if settings.pad_to_max_seq_length:
        values["pad_to_max_seq_length"] = True
    if not job.start.dropout:
        values["dropout"] = False
    if settings.reinit_layers:
        values["reinit_layers"] = settings.reinit_layers
    return values


def fine_tune(
    strategy: tf.distribute.Strategy, job: FineTuningJob, settings: FineTuningSettings
) -> dict[str, float] | None:
    """Train a model, and write the best one to the output directory.

    Args:
      strategy: a `tf.distribute` strategy.
      job: `FineTuningJob`.
      settings: `FineTuningSettings`.

    Returns:
      dict: the `global_step` of this model and its scores, if it was evaluated. None
      if a signal stopped the run before its end.

    Raises:
      UserError: the output directory contains another run, a checkpoint does not
        match, memory is insufficient, or another worker has stopped.
    """
    with (
        opened_directory(strategy, settings.output_dir),
        runs.device_errors(strategy, settings),
    ):
        state = runs.make_state(
            strategy, lambda: job.make_model(settings.recompute), settings
        )
        evaluate = None
        if job.dev_set:
            size = settings.eval_batch_size
            evaluate = _of_average(state, job.dev_set.make_evaluate(state.model, size))
        run_id = _resume_or_begin(strategy, state, job, settings)
        before, train_set = state.step, job.train_set
        # A TPU compiles a new program for each length.
        if settings.pad_to_max_seq_length or strategies.is_tpu(strategy):
            train_set = train_set.of_one_length()
        # Skipping padding saves work: half of the tokens in RTE's batches are padding.
        skip_padding = (
            runs.can_skip_padding(strategy, settings) and not job.reads_padding
        )
        kernels = runs.choose_kernels(
            strategy, job.start.trained_config, train_set, skip_padding, settings
        )
        if not loop.train(
            strategy,
            state,
            job.objective,
            train_set,
            settings,
            run_id,
            evaluate,
            kernels,
            job.best_by,
        ):
            return None
        was_done = state.step == before and not settings.allow_changed_settings
        best: int = state.step
        row: Any = {}
        if evaluate:
            best = _restore_best(strategy, state, run_id, settings.output_dir)
            row = evaluate()
        # After the run, a user or a threshold search may have edited the task. Keep it.
        is_there = was_done and _holds(settings.output_dir, best)
        if strategies.is_chief(strategy) and not is_there:
            with averaged_weights(state.model, state.optimizer):
                model = job.written_model(state.model)
                _write_model(settings.output_dir, model, job, best, row)
        # All workers wait until the chief has written the model.
        strategies.end_together(strategy)
        return {"global_step": best, **row}


def _resume_or_begin(strategy, state, job, settings):
    """Begin or resume a run, with new top layers if asked; return the run's id."""
    config, count = job.start.config, settings.reinit_layers
    values = top_layers.initial_values(state.model, config, count)
    values_of_run = fingerprint(job, settings)
    run_id = runs.resume_or_begin(strategy, state, values_of_run, settings)
    if not state.step:
        top_layers.assign(state.model, values)
    return run_id


def _of_average(state, evaluate):
    """Return a function that evaluates the averaged weights, if there are any."""

    def evaluate_average(*arguments):
        with averaged_weights(state.model, state.optimizer):
            return evaluate(*arguments)

    return evaluate_average


def _restore_best(strategy, state, run_id, directory):
    """Restore the best checkpoint of a run; return its step."""
    # This checkpoint is kept in addition to the newest one. The other workers wait
    # for its step, because the chief may still be saving.
    best = strategies.from_chief(strategy, saving.best_step(directory) or state.step)
    saving.restore_state(directory, state, run_id, best)
    return best
