"""Pre-training: what is minimized, and the run from records to a model."""

import contextlib
import dataclasses
import functools
import os

import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import model_directory
from official_bert.data import input_pipeline
from official_bert.errors import UserError
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training import loop, runs, strategies
from official_bert.training.evaluation import make_loss_evaluate
from official_bert.training.logs import curves, eval_results
from official_bert.training.run_directory import opened_directory
from official_bert.training.step import Objective


def _masked_lm_weights(features):
    return {"masked_lm_loss": tf.reduce_sum(features["masked_lm_weights"])}


def _weights(features):
    rows = tf.shape(features["next_sentence_labels"])[0]
    return _masked_lm_weights(features) | {
        "next_sentence_loss": tf.cast(rows, tf.float32)
    }


def describe(row):
    """Return the losses and accuracies of a row, for people."""
    text = (
        f"loss {row['loss']:.3f}  mlm {row['masked_lm_loss']:.3f} "
        f"({row['masked_lm_accuracy']:.1%})"
    )
    if "next_sentence_loss" not in row:
        return text
    return (
        f"{text}  nsp {row['next_sentence_loss']:.3f} "
        f"({row['next_sentence_accuracy']:.1%})"
    )


def make_objective(next_sentence_prediction=True, kernels=WITH_GRADIENTS):
    """Return the `Objective` of pre-training.

    It is the sum of both mean losses, without a weight between them (App. A.2). The
    original adds 1e-5 to the number of masked words, so that a batch without
    any has a loss of 0.

    Args:
      next_sentence_prediction: False leaves that loss out (Table 5, "No NSP").
      kernels: `Kernels`.
    """
    losses, weights = {"masked_lm_loss": 1e-5}, _masked_lm_weights
    if next_sentence_prediction:
        losses, weights = losses | {"next_sentence_loss": 0.0}, _weights
    terms = functools.partial(pretraining_terms, cross_entropy=kernels.cross_entropy)
    return Objective(losses, weights, terms, describe)


PRETRAINING = make_objective()

# What `eval_results.txt` holds beside `global_step`, as the original's; without
# next-sentence prediction the last two are not there.
RESULTS = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


@dataclasses.dataclass(frozen=True)
class PretrainingSettings(runs.RunSettings):
    """The flags of `run_pretraining.py`, under the same names."""

    vocab_file: str | None
    do_train: bool
    do_eval: bool
    eval_batch_size: int
    max_eval_steps: int
    skip_padding: bool | None = None
    next_sentence_prediction: bool = True


def run(strategy, config, train_set, eval_set, settings):
    """Train and evaluate as the settings say; leave a model directory.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      train_set: `RecordSet` to train on.
      eval_set: `RecordSet` to evaluate on.
      settings: `PretrainingSettings`.

    Returns:
      whether it came to its end; not after SIGTERM.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, a record is bad, memory is short, or another worker is gone.
    """
    with contextlib.ExitStack() as stack:
        if settings.do_train:
            directory = opened_directory(strategy, settings.output_dir)
            stack.enter_context(directory)
        stack.enter_context(runs.device_errors(strategy, settings))
        for records in (train_set, eval_set):
            stack.enter_context(_record_errors(records))
        return _train_and_evaluate(strategy, config, train_set, eval_set, settings)


@contextlib.contextmanager
def _record_errors(records):
    """Turn what goes wrong with a data set's records into a `UserError`."""
    try:
        yield
    except tf.errors.OpError as error:
        found = input_pipeline.user_error(error, records.index, records.format)
        if found:
            raise found from error
        raise


def _train_and_evaluate(strategy, config, train_set, eval_set, settings):
    can_skip_padding = runs.can_skip_padding(strategy, settings)
    if settings.skip_padding and not can_skip_padding:
        raise UserError(
            "--skip_padding makes shapes that depend on the data, which XLA (--xla, "
            "and every TPU) cannot compile: leave one of the two out."
        )
    for records in (train_set, eval_set):
        records.check_next_sentence_prediction(settings.next_sentence_prediction)
    state = runs.make_state(
        strategy,
        lambda: PretrainingModel(
            config, settings.recompute, settings.next_sentence_prediction
        ),
        settings,
    )
    skip_padding = can_skip_padding and settings.skip_padding is not False
    unigram = functools.cache(lambda: _without_context(train_set, eval_set))
    evaluate = _make_evaluate(strategy, state.model, eval_set, unigram, settings)
    runs.check_workers_agree(strategy, _fingerprint(eval_set, settings), settings)
    if settings.do_train:
        data = _fingerprint(train_set, settings)
        fingerprint = runs.fingerprint(config, data, settings)
        run_id = runs.resume_or_begin(strategy, state, fingerprint, settings)
        kernels = runs.choose_kernels(config, train_set, skip_padding, settings)
        if not loop.train(
            strategy,
            state,
            make_objective(settings.next_sentence_prediction, kernels),
            train_set,
            settings,
            run_id,
            evaluate if settings.do_eval else None,
            kernels,
        ):
            return False
    else:
        runs.restore_to_evaluate(state, settings)
    row = evaluate() if settings.do_eval else None
    if strategies.is_chief(strategy):
        if settings.do_train:
            _finish(state.model, train_set, unigram, settings)
        if row:
            _write_results(settings.output_dir, state.step, row)
    # No worker leaves while the chief still writes.
    strategies.end_together(strategy)
    return True


def _fingerprint(records, settings):
    """Return what distinguishes records and their dropout from others, as a dict."""
    values = {
        "input_files": [os.path.basename(path) for path in records.index.files],
        "input_bytes": [os.path.getsize(path) for path in records.index.files],
        "num_records": records.index.num_records,
    }
    # The bytes of unmasked records do not tell how they are masked.
    if records.format.masking:
        values["masking"] = records.format.masking.to_dict()
    if settings.skip_padding is False:
        values["skip_padding"] = False
    if not settings.next_sentence_prediction:
        values["next_sentence_prediction"] = False
    return values


def _without_context(train_set, eval_set):
    """Return the loss and the accuracy that knowing no context gives.

    The loss is the unigram entropy of the training words: that of a few
    held-out ones would be too low, because rare words are missing there. The
    accuracy is of always giving the held-out data's most frequent token.
    """
    return train_set.label_statistics()[0], eval_set.label_statistics()[1]


def _make_evaluate(strategy, model, eval_set, unigram, settings):
    """Return the function that evaluates, with what no context gives beside it."""
    evaluate = make_loss_evaluate(
        strategy,
        model,
        make_objective(settings.next_sentence_prediction),
        eval_set.evaluation_batches(settings.eval_batch_size, settings.max_eval_steps),
    )

    def evaluate_beside_unigram(break_off=lambda: False):
        row = evaluate(break_off)
        if row is None:
            return None
        entropy, share = unigram()
        return row | {"unigram_entropy": entropy, "most_frequent_share": share}

    return evaluate_beside_unigram


def _finish(model, train_set, unigram, settings):
    """Draw the curves and write the model directory."""
    path = curves.draw(settings.output_dir, unigram()[0])
    print(f"Curves: {path}" if path else "No curves: matplotlib is missing.")
    model_directory.save(
        settings.output_dir, model, settings.vocab_file, train_set.do_lower_case
    )


def _write_results(directory, step, row):
    """Write `eval_results.txt`; print it and what knowing no context gives.

    Args:
      directory: it is created if it does not exist.
      step: of the model.
      row: of the evaluation.
    """
    scores = {name: row[name] for name in RESULTS if name in row}
    results = {"global_step": step, **scores}
    files.make_directory(directory, "--output_dir")
    eval_results.write(directory, results)
    print(
        f"Without any context: masked_lm_loss {row['unigram_entropy']:.3f} (unigram "
        f"entropy), masked_lm_accuracy {row['most_frequent_share']:.4f} (always the "
        "most frequent token).",
        flush=True,
    )
