"""Pre-training: what is minimised, and the run from records to a model."""

import dataclasses
import functools
import os

import keras
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import google, initialize, model_directory
from official_bert.data import input_pipeline
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training import curves, loop, saving
from official_bert.training.optimizer import BertAdam
from official_bert.training.schedule import WarmupLinearDecay
from official_bert.training.step import Objective


def _weights(features):
    rows = tf.shape(features["next_sentence_labels"])[0]
    return {
        "masked_lm_loss": tf.reduce_sum(features["masked_lm_weights"]),
        "next_sentence_loss": tf.cast(rows, tf.float32),
    }


# The sum of both mean losses, without a weight between them (App. A.2). The
# original adds 1e-5 to the number of masked words, so that a batch without
# any has a loss of 0.
PRETRAINING = Objective(
    losses={"masked_lm_loss": 1e-5, "next_sentence_loss": 0.0},
    weights=_weights,
    terms=pretraining_terms,
)

# What `eval_results.txt` holds beside `global_step`, as the original's.
RESULTS = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """The flags of `run_pretraining.py`, under the same names."""

    output_dir: str
    init_checkpoint: str | None
    vocab_file: str | None
    do_train: bool
    do_eval: bool
    train_batch_size: int
    eval_batch_size: int
    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int
    save_checkpoints_steps: int
    iterations_per_loop: int
    max_eval_steps: int
    num_devices: int
    seed: int


def run(config, train_set, eval_set, settings):
    """Train and evaluate as the settings say; leave a model directory.

    Args:
      config: `BertConfig`.
      train_set: `RecordSet` to train on.
      eval_set: `RecordSet` to evaluate on.
      settings: `PretrainingSettings`.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, or a record is bad.
    """
    try:
        _run(config, train_set, eval_set, settings)
    except tf.errors.OpError as error:
        sets = (train_set, eval_set)
        found = [input_pipeline.user_error(error, s.index, s.format) for s in sets]
        for sentence in filter(None, found):
            raise sentence from error
        raise


def _run(config, train_set, eval_set, settings):
    directory = settings.output_dir
    strategy = loop.one_or_all_devices(settings.num_devices)
    keras.utils.set_random_seed(settings.seed)
    with strategy.scope():
        model = PretrainingModel(config)
        optimizer = _optimizer(settings)
        optimizer.build(model.trainable_variables)
    # Later, a run continues from its own checkpoints and not from here.
    if settings.init_checkpoint and not google.numbered_checkpoints(directory):
        print(initialize.load_weights(model, settings.init_checkpoint), flush=True)
    unigram = functools.cache(lambda: _without_context(train_set, eval_set))
    evaluate = _make_evaluate(strategy, model, eval_set, unigram, settings)
    if settings.do_train:
        saving.check_settings(directory, _settled(config, train_set, settings))
        _train(strategy, model, optimizer, train_set, settings, evaluate)
        _finish(model, train_set, unigram, settings)
    else:
        step = saving.restore_state(directory, model, optimizer)
        if not step and not settings.init_checkpoint:
            raise UserError(
                f"--output_dir: {directory} holds no checkpoint to evaluate "
                "(model.ckpt-N); train first, or give --init_checkpoint."
            )
    if settings.do_eval:
        _write_results(directory, int(optimizer.iterations.numpy()), evaluate())


def _without_context(train_set, eval_set):
    """Return the loss and the accuracy that knowing no context gives.

    The loss is the unigram entropy of the training words: that of a few
    held-out ones would be too low, because rare words are missing there. The
    accuracy is of always giving the held-out data's most frequent token.
    """
    return train_set.label_statistics()[0], eval_set.label_statistics()[1]


def _make_evaluate(strategy, model, eval_set, unigram, settings):
    """Return a function: () -> row of metrics and of what no context gives."""
    evaluate = loop.make_evaluate(
        strategy,
        model,
        PRETRAINING,
        eval_set.evaluation_batches(settings.eval_batch_size, settings.max_eval_steps),
    )

    def evaluate_beside_unigram():
        entropy, share = unigram()
        return {
            **evaluate(),
            "unigram_entropy": entropy,
            "most_frequent_share": share,
        }

    return evaluate_beside_unigram


def _finish(model, train_set, unigram, settings):
    """Draw the curves and write the model directory."""
    path = curves.draw(settings.output_dir, unigram()[0])
    print(f"Curves: {path}" if path else "No curves: matplotlib is missing.")
    casing = train_set.manifest.get("do_lower_case")
    model_directory.save(settings.output_dir, model, settings.vocab_file, casing)
    if not settings.vocab_file:
        print("The model directory has no vocab.txt: give --vocab_file.")


def _optimizer(settings):
    return BertAdam(
        WarmupLinearDecay(
            settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
        )
    )


def _train(strategy, model, optimizer, train_set, settings, evaluate):
    loop.train(
        strategy,
        model,
        optimizer,
        PRETRAINING,
        lambda first: train_set.training_batches(
            settings.train_batch_size, settings.seed, first
        ),
        loop.LoopSettings(
            num_train_steps=settings.num_train_steps,
            save_checkpoints_steps=settings.save_checkpoints_steps,
            log_steps=settings.iterations_per_loop,
            batch_size=settings.train_batch_size,
            seed=settings.seed,
        ),
        settings.output_dir,
        evaluate if settings.do_eval else None,
    )


def _settled(config, train_set, settings):
    """Return what must stay the same for a run to be continued."""
    return {
        "bert_config": config.to_dict(),
        "train_batch_size": settings.train_batch_size,
        "learning_rate": settings.learning_rate,
        "num_train_steps": settings.num_train_steps,
        "num_warmup_steps": settings.num_warmup_steps,
        "seed": settings.seed,
        "input_files": [os.path.basename(path) for path in train_set.index.files],
        "input_bytes": [os.path.getsize(path) for path in train_set.index.files],
        "num_records": train_set.index.num_records,
    }


def _write_results(directory, step, row):
    """Write `eval_results.txt` as the original does: sorted `key = value`."""
    result = {"global_step": step, **{name: row[name] for name in RESULTS}}
    lines = [f"{name} = {result[name]}" for name in sorted(result)]
    files.write_text(
        os.path.join(directory, "eval_results.txt"), "\n".join(lines) + "\n"
    )
    print("***** Eval results *****", *lines, sep="\n  ")
    print(
        f"Without any context: masked_lm_loss {row['unigram_entropy']:.3f} (unigram "
        f"entropy), masked_lm_accuracy {row['most_frequent_share']:.4f} (always the "
        "most frequent token).",
        flush=True,
    )
