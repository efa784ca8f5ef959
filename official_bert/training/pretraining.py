"""Pre-training: its objective, and a run from records to a model."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import model_directory
from official_bert.config import BertConfig
from official_bert.data import record_parsing
from official_bert.data.records.record_set import RecordSet
from official_bert.errors import UserError
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels
from official_bert.modeling.pretraining import (
    PretrainingModel,
    num_sentence_pairs,
    pretraining_terms,
)
from official_bert.training import loop, runs, strategies
from official_bert.training.evaluation import make_loss_evaluate
from official_bert.training.logs import curves, eval_results
from official_bert.training.recipes import batch_sizes, initial_values
from official_bert.training.run_directory import opened_directory
from official_bert.training.step import Objective
from official_bert.training.stopping import StopRequest


def describe(row: Mapping[str, float]) -> str:
    """Return the losses and accuracies of a row as text for a log line."""
    text = f"loss {row['loss']:.3f}"
    for task, name in (("masked_lm", "mlm"), ("next_sentence", "nsp")):
        if f"{task}_loss" in row:
            loss, accuracy = row[f"{task}_loss"], row[f"{task}_accuracy"]
            text += f"  {name} {loss:.3f} ({accuracy:.1%})"
    return text


def make_objective(
    next_sentence_prediction: bool = True, kernels: Kernels = WITH_GRADIENTS
) -> Objective:
    """Return the `Objective` of pre-training.

    The loss is the sum of both mean losses, without weights (App. A.2). As in the
    original, 1e-5 is added to the number of masked tokens, so that a batch without
    masked tokens has a loss of 0.

    Args:
      next_sentence_prediction: False omits that loss (Table 5, "No NSP").
      kernels: `Kernels`.
    """
    losses = {"masked_lm_loss": 1e-5}
    if next_sentence_prediction:
        losses["next_sentence_loss"] = 0.0

    def weights(features):
        sums = {"masked_lm_loss": tf.reduce_sum(features["masked_lm_weights"])}
        if next_sentence_prediction:
            sums["next_sentence_loss"] = num_sentence_pairs(features)
        return sums

    terms = functools.partial(pretraining_terms, cross_entropy=kernels.cross_entropy)
    return Objective(losses, weights, terms, describe)


PRETRAINING = make_objective()

# Scores that the original does not write to `eval_results.txt`.
BASELINE = ("unigram_entropy", "most_frequent_share")


@dataclasses.dataclass(frozen=True)
class PretrainingSettings(runs.RunSettings):
    """The flags of `run_pretraining.py`, with the same names.

    Attributes:
      batch_size_steps: (first step, size) of each later batch size; see `batch_sizes`.
      dropout: False trains without dropout; the written config keeps its rates.
      initializer: one of `initial_values.VARIANTS`.
    """

    vocab_file: str | None
    do_train: bool
    do_eval: bool
    eval_batch_size: int
    max_eval_steps: int
    skip_padding: bool | None = None
    next_sentence_prediction: bool = True
    batch_size_steps: batch_sizes.BatchSizeSteps = ()
    dropout: bool = True
    initializer: str = initial_values.ORIGINAL


def run(
    strategy: tf.distribute.Strategy,
    config: BertConfig,
    train_set: RecordSet,
    eval_set: RecordSet,
    settings: PretrainingSettings,
) -> bool:
    """Train and evaluate according to the settings; write a model directory.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      train_set: `RecordSet` to train on.
      eval_set: `RecordSet` to evaluate on.
      settings: `PretrainingSettings`.

    Returns:
      whether the run is complete; False after SIGTERM.

    Raises:
      UserError: the output directory belongs to another run, a checkpoint does not
        fit, a record is invalid, memory is too small, or another worker is lost.
    """
    with contextlib.ExitStack() as stack:
        if settings.do_train:
            stack.enter_context(opened_directory(strategy, settings.output_dir))
        stack.enter_context(runs.device_errors(strategy, settings))
        try:
            return _train_and_evaluate(strategy, config, train_set, eval_set, settings)
        except tf.errors.OpError as error:
            for records in (eval_set, train_set):
                user_error = record_parsing.user_error(
                    error, records.index, records.format
                )
                if user_error:
                    raise user_error from error
            raise


def _train_and_evaluate(strategy, config, train_set, eval_set, settings):
    next_sentence = settings.next_sentence_prediction
    can_skip_padding = runs.can_skip_padding(strategy, settings)
    if settings.skip_padding and not can_skip_padding:
        raise UserError(
            "--skip_padding makes tensor shapes depend on the data. XLA (--xla, and "
            "every TPU) cannot compile such a step. Use only one of the two."
        )
    for records in (train_set, eval_set):
        records.check_next_sentence_prediction(next_sentence)
    trained = config if settings.dropout else config.without_dropout()

    def make_model():
        model = PretrainingModel(trained, settings.recompute, next_sentence)
        initial_values.apply(model, trained, settings.initializer)
        return model

    state = runs.make_state(strategy, make_model, settings)
    # Packed rows contain little padding to skip.
    may_skip = can_skip_padding and not train_set.packing
    skip_padding = may_skip and settings.skip_padding is not False
    # Loss and accuracy of the unigram baseline. The loss is the unigram entropy of the
    # training tokens. That of a few held-out tokens would be too low, because rare
    # tokens are missing. The accuracy is that of always predicting the most frequent
    # token of the held-out data.
    unigram = functools.cache(
        lambda: (train_set.label_statistics()[0], eval_set.label_statistics()[1])
    )
    evaluate = _make_evaluate(strategy, state.model, eval_set, unigram, settings)
    runs.check_workers_agree(strategy, _fingerprint(eval_set, settings), settings)
    if settings.do_train:
        data = _fingerprint(train_set, settings)
        fingerprint = runs.fingerprint(config, data, settings)
        run_id = runs.resume_or_begin(strategy, state, fingerprint, settings)
        kernels = runs.choose_kernels(
            strategy, trained, train_set, skip_padding, settings
        )
        parts = batch_sizes.parts_from(settings, settings.batch_size_steps, state.step)
        with StopRequest() as request:
            for part in parts:
                if not loop.train(
                    strategy,
                    state,
                    make_objective(next_sentence, kernels),
                    train_set,
                    part,
                    run_id,
                    evaluate if settings.do_eval else None,
                    kernels,
                    request=request,
                ):
                    return False
    else:
        runs.restore_to_evaluate(state, settings)
    row = evaluate() if settings.do_eval else None
    if strategies.is_chief(strategy):
        _write_outputs(state, config, train_set, unigram, row, settings)
    # All workers wait until the chief has written its files.
    strategies.end_together(strategy)
    return True


def _fingerprint(records, settings):
    """Return the part of a run's fingerprint that describes records and recipes."""
    values = {
        "input_files": [os.path.basename(path) for path in records.index.files],
        "input_bytes": [files.size(path) for path in records.index.files],
        "num_records": records.index.num_records,
    }
    # The bytes of unmasked records do not show how they will be masked.
    if records.format.masking:
        values["masking"] = records.format.masking.to_dict()
    if records.packing:
        values["sequences_per_row"] = records.packing.max_sequences
    if settings.skip_padding is False:
        values["skip_padding"] = False
    if not settings.next_sentence_prediction:
        values["next_sentence_prediction"] = False
    return values | _recipes(records, settings)


def _recipes(records, settings):
    """Return the recipes that are on, for the fingerprint."""
    values: dict[str, Any] = {}
    if records.masking_rate:
        values["masked_lm_prob"] = str(records.masking_rate)
    if settings.batch_size_steps:
        # As JSON returns them.
        values["batch_size_steps"] = list(map(list, settings.batch_size_steps))
    if not settings.dropout:
        values["dropout"] = False
    if settings.initializer != initial_values.ORIGINAL:
        values["initializer"] = settings.initializer
    return values


def _make_evaluate(strategy, model, eval_set, unigram, settings):
    """Return a function that evaluates the model and adds the unigram baseline."""
    evaluate = make_loss_evaluate(
        strategy,
        model,
        make_objective(settings.next_sentence_prediction),
        eval_set.evaluation_batches(settings.eval_batch_size, settings.max_eval_steps),
    )

    def evaluate_beside_unigram(break_off=lambda: False):
        row = evaluate(break_off)
        return row and row | dict(zip(BASELINE, unigram(), strict=True))

    return evaluate_beside_unigram


def _write_outputs(state, config, train_set, unigram, row, settings):
    """Write curves and model after training; write and print the evaluation."""
    directory = settings.output_dir
    if settings.do_train:
        path = curves.draw(directory, unigram()[0])
        print(f"Curves: {path}" if path else "No curves: matplotlib is not installed.")
        casing = train_set.do_lower_case
        vocab_file = settings.vocab_file
        model_directory.save(directory, state.model, vocab_file, casing, config)
    if row:
        scores = {name: row[name] for name in row if name not in BASELINE}
        files.make_directory(directory, "--output_dir")
        eval_results.write(directory, {"global_step": state.step, **scores})
        print(
            f"Unigram baseline: masked_lm_loss {row['unigram_entropy']:.3f} (unigram "
            f"entropy), masked_lm_accuracy {row['most_frequent_share']:.4f} (always "
            "predicting the most frequent token).",
            flush=True,
        )
