"""Fine-tuning a classifier (Sec. 4.1): the objective, the evaluation, the run."""

import contextlib
import dataclasses
import zlib

import numpy as np
import tensorflow as tf

from official_bert.checkpoints import any_format, model_directory
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.metrics import glue
from official_bert.modeling import classification
from official_bert.modeling.classification import ClassificationModel
from official_bert.tasks.classifier_batches import FeatureSet, ordered_batches
from official_bert.tasks.classifier_task import config_with_labels, write_task
from official_bert.tasks.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import check_vocab_size
from official_bert.training import runs, saving, strategies
from official_bert.training.step import Objective

_TERMS = {
    SINGLE_LABEL: ("classification_loss", classification.single_label_terms),
    MULTI_LABEL: ("classification_loss", classification.multi_label_terms),
    REGRESSION: ("regression_loss", classification.regression_terms),
}


def objective(task):
    """Return the `Objective` of a `ClassifierTask`: the mean loss over texts."""
    name, terms = _TERMS[task.kind]

    def weights(features):
        rows = tf.shape(features["input_ids"])[0]
        return {name: tf.cast(rows, tf.float32)}

    return Objective({name: 0.0}, weights, terms, describe)


def describe(row):
    """Return the loss and the scores of a row, for people."""
    shown = [f"loss {row['loss']:.3f}"]
    shown += [f"{name} {row[name]:.4f}" for name in glue.METRICS if name in row]
    return "  ".join(shown)


def make_scorer(model):
    """Return the compiled function from a batch of features to logits.

    It is traced once, for any shape, and may be called from several threads.

    Args:
      model: `ClassificationModel`.

    Returns:
      function: dict of int32 [B, S] `input_ids`, `input_mask`, `segment_ids` ->
      float32 tensor [B, C].
    """
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids], autograph=False)
    def score(input_ids, input_mask, segment_ids):
        features = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": segment_ids,
        }
        return model(features)["logits"]

    def score_batch(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        return score(*(tf.constant(batch[name]) for name in names))

    return score_batch


def predict(score, windows, batch_size, max_seq_length, break_off=lambda: False):
    """Return the logits of examples, each the mean of those of its windows.

    Args:
      score: what `make_scorer` returned.
      windows: list of N lists of `Features`, as of `classifier_features.encode`.
      batch_size: windows that go through the model together.
      max_seq_length: see `ordered_batches`.
      break_off: function that tells whether to stop early.

    Returns:
      float32 logits [N, C] in the order of the examples; None if it broke off.
    """
    flat = [one for each in windows for one in each]
    parts, order = [], []
    for numbers, batch in ordered_batches(flat, batch_size, max_seq_length):
        if break_off():
            return None
        parts.append(score(batch).numpy())
        order.append(numbers)
    logits = np.concatenate(parts)
    logits[np.concatenate(order)] = logits.copy()
    counts = np.array([len(each) for each in windows])
    firsts = np.cumsum(counts) - counts
    return np.add.reduceat(logits, firsts) / counts[:, np.newaxis].astype(np.float32)


def evaluate(task, logits, windows):
    """Return the mean loss and the task's scores.

    Where several labels may hold, `f1` is of all texts and labels together
    (micro-averaged) and `accuracy` the share of texts all of whose labels are
    right.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.

    Returns:
      dict of name -> float, `loss` among them.
    """
    labels = _label_ids(windows)
    row = {"loss": _mean_loss(task, logits, labels)}
    if task.kind == MULTI_LABEL:
        predicted = (probabilities(task, logits) >= task.threshold).astype(int)
        right = (predicted == labels).all(axis=1)
        found = {
            "f1": glue.f1(labels.ravel(), predicted.ravel()),
            "accuracy": float(right.mean()),
        }
        return row | {name: found[name] for name in task.metrics}
    is_number = task.kind == REGRESSION
    predictions = logits[:, 0] if is_number else logits.argmax(axis=1)
    return row | glue.score(task.metrics, labels, predictions)


def results(task, logits, windows, batch_size):
    """Return what `eval_results.txt` says of a set, beside `global_step`.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.
      batch_size: of the evaluation in the original, over whose batches its
        `loss` is the mean.

    Returns:
      dict of name -> float: the original's `eval_loss`, `loss` and, except of a
      regression task, `eval_accuracy`; and `eval_…` for each of the task's
      metrics.
    """
    row = evaluate(task, logits, windows)
    labels = _label_ids(windows)
    batches = [slice(n, n + batch_size) for n in range(0, len(logits), batch_size)]
    losses = [_mean_loss(task, logits[part], labels[part]) for part in batches]
    found = {"eval_loss": row.pop("loss"), "loss": float(np.mean(losses))}
    if task.kind == SINGLE_LABEL:
        found["eval_accuracy"] = glue.accuracy(labels, logits.argmax(axis=1))
    return found | {f"eval_{name}": value for name, value in row.items()}


def probabilities(task, logits):
    """Return what logits mean, float32 [N, C].

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].

    Returns:
      the probability of each label; of a regression task the number itself.
    """
    if task.kind == SINGLE_LABEL:
        return tf.nn.softmax(logits).numpy()
    return tf.nn.sigmoid(logits).numpy() if task.kind == MULTI_LABEL else logits


def _label_ids(windows):
    return np.array([each[0].label_id for each in windows])


def _mean_loss(task, logits, labels):
    name, terms = _TERMS[task.kind]
    found = terms({"logits": tf.constant(logits)}, {"label_ids": tf.constant(labels)})
    total, weight = found[name]
    return float(total / weight)


def only_class(task, logits, windows):
    """Return the label that is predicted for every text, if that is a failure.

    Training that has diverged often ends so. It is none where the examples
    themselves have one label only.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.

    Returns:
      the label's name, or None.
    """
    if task.kind != SINGLE_LABEL:
        return None
    predicted = set(logits.argmax(axis=1).tolist())
    if len(predicted) > 1 or len(set(_label_ids(windows).tolist())) == 1:
        return None
    return task.labels[predicted.pop()]


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
class ClassifierSettings(runs.RunSettings):
    """The flags of `run_classifier.py`, under the same names."""

    vocab_file: str
    do_lower_case: bool
    eval_batch_size: int


def fine_tune(strategy, config, task, train_features, dev_windows, settings):
    """Train a classifier; leave the best model in its output directory.

    Args:
      strategy: a `tf.distribute` strategy.
      config: `BertConfig`.
      task: `ClassifierTask`.
      train_features: list of `Features` to train on.
      dev_windows: list of lists of `Features` to choose the best model by; or
        None, and the last model is left.
      settings: `ClassifierSettings`.

    Returns:
      dict: the `global_step` of that model and, with dev examples, its scores
      and `only_class`, see there; None if the run was told to stop before its
      end.

    Raises:
      UserError: the output directory holds something else, a checkpoint does
        not fit, memory is short, or another worker is gone.
    """
    directory = settings.output_dir
    with (
        runs.opened_directory(strategy, directory),
        runs.device_errors(strategy, settings),
    ):
        state = runs.make_state(
            strategy,
            lambda: ClassificationModel(config, task.num_outputs, settings.recompute),
            settings,
        )
        score = make_scorer(state.model)
        sizes = settings.eval_batch_size, task.max_seq_length

        def evaluate_now(break_off):
            logits = predict(score, dev_windows, *sizes, break_off)
            return None if logits is None else evaluate(task, logits, dev_windows)

        data = identity(task, train_features)
        fixed = runs.fixed_settings(config, data, settings)
        run_id = runs.start(strategy, state, fixed, settings)
        complete = runs.train(
            strategy,
            state,
            objective(task),
            FeatureSet(train_features, task.max_seq_length),
            run_id,
            None if dev_windows is None else evaluate_now,
            settings,
            best_by=task.metrics[0],
        )
        if not complete:
            return None
        best, row = state.step, {}
        if dev_windows is not None:
            # Kept besides the newest, so it is there.
            best = saving.best_step(directory) or best
            saving.restore_state(directory, state, run_id, best)
            logits = predict(score, dev_windows, *sizes)
            row = evaluate(task, logits, dev_windows)
            row["only_class"] = only_class(task, logits, dev_windows)
        if strategies.is_chief(strategy):
            write_task(directory, task, best)
            # Whatever labels the model had that it was made from.
            state.model.config = config_with_labels(config, task)
            model_directory.save(
                directory, state.model, settings.vocab_file, settings.do_lower_case
            )
        # No worker leaves while the chief still writes.
        strategies.from_chief(strategy, 0)
        return {"global_step": best, **row}


def one_class_warning(count, label):
    """Return the sentence about a model that says the same of all texts."""
    return (
        f"All {count} dev examples are predicted as {label!r}: the training has "
        "learned nothing; try another --seed, a lower --learning_rate or "
        "--bias_correction."
    )


def identity(task, features):
    """Return what tells a run's task and examples from others, as a dict."""
    digest = 0
    for one in features:
        for part in (one.input_ids, one.segment_ids, np.array(one.label_id)):
            digest = zlib.crc32(part.tobytes(), digest)
    return {
        "task": task.to_dict(),
        "num_examples": len(features),
        "examples_crc32": digest,
    }
