"""Measure this project. See `benchmarks/contender.py`."""

import itertools
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

from benchmarks import workload
from official_bert.config import BertConfig


def versions():
    """Return library -> version."""
    return {"tensorflow": tf.__version__, "keras": keras.__version__}


def product():
    """Return a function that multiplies two [1536, 1536] float32 matrices."""
    a = tf.random.normal([workload.PRODUCT_SIZE] * 2)
    multiply = tf.function(lambda: tf.reduce_sum(tf.matmul(a, a)))
    return lambda: float(multiply())


def products(size, batch):
    """Return a function that computes only the matrix products of a pre-training step.

    Args:
      size: name of a released size.
      batch: full sequences of `workload.LENGTH`.
    """
    # Each matrix has its own memory, as in a model.
    factors = [
        tuple(map(tf.random.normal, pair))
        for pair in product_shapes(BertConfig.named(size), batch)
    ]
    gradients = [left @ right for left, right in factors]

    def multiply():
        # Eager mode, because TensorFlow removes unused results from a graph.
        for (left, right), gradient in zip(factors, gradients, strict=True):
            tf.matmul(left, right)
            tf.matmul(gradient, right, transpose_b=True)
            last = tf.matmul(left, gradient, transpose_a=True)
        return float(last[0, 0])

    return multiply


def product_shapes(config, batch):
    """Return the (left, right) shapes of the products of a forward pass."""
    tokens, h = batch * workload.LENGTH, config.hidden_size
    heads = (batch, config.num_attention_heads)
    maps = (*heads, workload.LENGTH, workload.LENGTH)
    values = (*heads, workload.LENGTH, config.head_size)
    layer = [((tokens, h), (h, h))] * 4
    layer += [((tokens, h), (h, config.intermediate_size))]
    layer += [((tokens, config.intermediate_size), (config.intermediate_size, h))]
    # Queries by keys, and attention probabilities by values.
    layer += [(values, (*heads, config.head_size, workload.LENGTH)), (maps, values)]
    words = (batch * workload.PREDICTIONS, h)
    head = [(words, (h, h)), (words, (h, config.vocab_size))]
    return layer * config.num_hidden_layers + head


def training(
    size,
    batch,
    shortest=workload.SHORTEST,
    length=workload.LENGTH,
    precision="float32",
    recompute=False,
    skip_padding=True,
    **settings,
):
    """Return a function that runs one pre-training step like `run_pretraining.py`.

    Args:
      size: name of a released size.
      batch: sequences.
      shortest: see `workload.pretraining_batch`.
      length: see `workload.pretraining_batch`.
      precision: like the flag of `run_pretraining.py`.
      recompute: like the flag of `run_pretraining.py`.
      skip_padding: like the flag of `run_pretraining.py`.
      **settings: attributes of `StepSettings`.
    """
    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training.precision import computing_in

    config = BertConfig.named(size)
    features = workload.pretraining_batch(config.vocab_size, batch, shortest, length)
    with computing_in(precision):
        model = PretrainingModel(config, recompute)
    skip_padding = skip_padding and not settings.get("xla")
    step = _pretraining_step(model, skip_padding, **settings)
    endless = iter(tf.data.Dataset.from_tensors(features).repeat())
    return lambda: float(step(next(endless))["masked_lm_loss"])


def _pretraining_step(model, skip_padding, **settings):
    """Return the pre-training step; see `_train_step`."""
    from official_bert.training.pretraining import make_objective

    kernels = _kernels(model, skip_padding, settings.get("xla", False))
    return _train_step(
        model, make_objective(kernels=kernels), 1e-4, kernels, **settings
    )


def _kernels(model, skip_padding, xla=False):
    """Return the kernels that the run scripts choose for a long run."""
    from official_bert.modeling.kernels.choose import for_training

    return for_training(model.config, model.compute_dtype, 10**9, skip_padding, xla)


def _train_step(model, objective, learning_rate, kernels, **settings):
    """Return the training step, made like in the run scripts."""
    from official_bert.training.guard import Guard
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.schedule import WarmupLinearDecay
    from official_bert.training.step import StepSettings, make_train_step

    optimizer = BertAdam(WarmupLinearDecay(learning_rate, 1_000_000, 10_000))
    optimizer.build(model.trainable_variables)
    return make_train_step(
        tf.distribute.get_strategy(),
        model,
        optimizer,
        Guard(),
        objective,
        StepSettings(seed=1, **settings),
        kernels,
    )


def encoding(size, batch):
    """Return a function that computes the encoder's outputs of one full batch."""
    from official_bert.constants import INPUTS
    from official_bert.fine_tuning import outputs
    from official_bert.modeling.encoder import BertEncoder

    config = BertConfig.named(size)
    encoder = BertEncoder(config)

    def compute(features, kernels):
        encoded = encoder(features, kernels=kernels)
        return {name: encoded[name] for name in ("sequence_output", "pooled_output")}

    score = outputs.compile_model(compute)
    values = workload.full_batch(config.vocab_size, batch)
    features = dict(zip(INPUTS, values, strict=True))
    return lambda: score(features)


def fine_tuning(config, texts, batch, num_outputs, padded=False):
    """Return a function that runs training steps on all batches of real texts.

    Args:
      config: dict of a `BertConfig`.
      texts: path; see `workload.read_texts`.
      batch: texts per training step.
      num_outputs: number of labels of the task; 1 for regression.
      padded: whether to pad all batches to the longest length, instead of each
        to its longest text.
    """
    from official_bert.modeling.classification import ClassificationModel
    from official_bert.tables.labels import REGRESSION, SINGLE_LABEL
    from official_bert.tasks.classifier import training as classifier
    from official_bert.tasks.classifier.task import ClassifierTask

    if num_outputs == 1:
        task = ClassifierTask(REGRESSION, (), ("pearson",), workload.LENGTH)
    else:
        labels = tuple(map(str, range(num_outputs)))
        task = ClassifierTask(SINGLE_LABEL, labels, ("accuracy",), workload.LENGTH)
    objective = classifier.objective(task)
    [loss] = objective.losses
    model = ClassificationModel(BertConfig.from_dict(config), num_outputs)
    step = _train_step(model, objective, 5e-5, _kernels(model, not padded))
    batches = _batches(texts, batch, padded)
    count = len(batches)
    signature = {
        name: tf.TensorSpec([batch, *[None] * (value.ndim - 1)], value.dtype)
        for name, value in batches[0].items()
    }
    endless = iter(
        tf.data.Dataset.from_generator(
            lambda: itertools.cycle(batches), output_signature=signature
        ).prefetch(1)
    )

    def update_all():
        for _ in range(count):
            float(step(next(endless))[loss])

    return update_all


def embedding_training(model, train_file, loss, temperature, batch, calls, compiled):
    """Return a function that runs training steps of sentence embeddings.

    Args:
      model: directory of the config and vocabulary.
      train_file: pairs, with scores for `cosent`.
      loss: like the flag of `run_embedding.py`.
      temperature: like the flag of `run_embedding.py`.
      batch: pairs per training step.
      calls: training steps per call.
      compiled: whether XLA compiles element-wise work, as in long runs.
    """
    from official_bert.fine_tuning.job import opened_start
    from official_bert.modeling.embedding.losses import LossSettings
    from official_bert.modeling.kernels.choose import training_kernels
    from official_bert.tasks.embedding import features, files, training
    from official_bert.tasks.embedding.task import EmbeddingTask

    task = EmbeddingTask()
    with opened_start(model) as start:
        encoder = training.make_model(start.config, task)  # Random weights.
        examples = files.read_examples(train_file, "--train_file")
        rows = features.convert_training(examples, start.tokenizer, task, loss)
    objective = training.objective_of(LossSettings(loss, temperature))
    kernels = training_kernels(compiled, skip_padding=True)
    step = _train_step(encoder, objective, 2e-5, kernels)
    batches = training.feature_set(rows, task.max_seq_length).training_batches(
        batch, seed=1, first_batch=0
    )
    endless = iter(batches.prefetch(1))

    def update():
        for _ in range(calls):
            float(step(next(endless))[training.LOSS])

    return update


def _batches(path, batch, padded):
    """Return all complete batches of texts, padded as in fine-tuning."""
    from official_bert.fine_tuning import batches
    from official_bert.tasks.classifier import features as classifier_features

    features = [
        classifier_features.Features(ids, segments, label, num_cut=0)
        for ids, segments, label in workload.read_texts(path)
    ]
    step = batches.LENGTH_STEP
    made = []
    for start in range(0, len(features) - batch + 1, batch):
        chosen = features[start : start + batch]
        longest = max(len(one.input_ids) for one in chosen)
        length = workload.LENGTH if padded else -(-longest // step) * step
        made.append(classifier_features.pad_features(chosen, length))
    return made


def windows(config, texts, batch, padded_to=None):
    """Return a function that computes the span logits of all windows.

    Args:
      config: dict of a `BertConfig`.
      texts: path; see `workload.read_texts`; labels are ignored.
      batch: windows per batch; windows of similar length are grouped.
      padded_to: tokens of every window; default: the longest window of the
        batch.
    """
    from official_bert.fine_tuning import outputs
    from official_bert.fine_tuning.batches import FeatureSet
    from official_bert.modeling.span_prediction import SpanModel
    from official_bert.tasks.classifier.features import Features, pad_features

    score = outputs.compile_model(SpanModel(BertConfig.from_dict(config)))
    features = [
        Features(ids, segments, 0, 0) for ids, segments, _ in workload.read_texts(texts)
    ]

    def pad(chosen, length):
        return pad_features(chosen, padded_to or length)

    feature_set = FeatureSet(features, padded_to or 10**6, pad)
    return lambda: outputs.run_examples(score, feature_set, batch)


def tflite(size, vocab_file, quantization):
    """Return a function that runs a random `.tflite` on one full sequence."""
    from benchmarks import ours_tflite
    from official_bert.checkpoints import model_directory
    from official_bert.constants import INPUTS
    from official_bert.export.tflite import converter
    from official_bert.export.tflite.model import open_device_model
    from official_bert.modeling.encoder import BertEncoder

    config = BertConfig.named(size)
    with tempfile.TemporaryDirectory() as folder:
        model_directory.save(folder, BertEncoder(config), vocab_file, True)
        model = open_device_model(folder, (workload.LENGTH,), workload.LENGTH)
        path = os.path.join(folder, "model.tflite")
        with open(path, "wb") as written:
            written.write(converter.convert(model.with_fixed_lengths(), quantization))
        compute = ours_tflite.open_model(path, os.cpu_count())
    values = workload.full_batch(config.vocab_size, 1)
    row = dict(zip(INPUTS, values, strict=True))
    return lambda: compute(row)


def tokenization(lines_file, vocab_file, seen):
    """Return a function that computes the ids of all lines.

    Args:
      lines_file: text, one sentence per line.
      vocab_file: vocabulary of an uncased model.
      seen: whether the tokenizer has processed the same text before.
    """
    from official_bert.tokenization.full import FullTokenizer

    lines = workload.read_lines(lines_file)
    tokenizer = FullTokenizer(vocab_file, True)

    def encode_all():
        used = tokenizer if seen else FullTokenizer(vocab_file, True)
        for line in lines:
            used.encode(line)

    return encode_all


def instances(lines_file, vocab_file, dupe_factor):
    """Return a function that makes all instances of a text, in the exact mode."""
    from official_bert.data.instances import InstanceSettings
    from official_bert.data.pretraining_data import create_pretraining_data
    from official_bert.tokenization.full import FullTokenizer

    settings = InstanceSettings(dupe_factor=dupe_factor)

    def create():
        with tempfile.TemporaryDirectory() as folder:
            create_pretraining_data(
                [lines_file],
                [os.path.join(folder, "train.tfrecord")],
                FullTokenizer(vocab_file, True),
                settings,
                vocab_file,
            )

    return create


def batches(records, batch, count):
    """Return a function that reads the next batches of a record file."""
    endless = _record_batches(records, batch)

    def take():
        for _ in range(count):
            next(endless)

    return take


def _record_batches(records, batch):
    """Return an endless iterator over the batches of a record file."""
    from official_bert.data.records.record_set import open_record_set

    opened = open_record_set(records, BertConfig.named("tiny"))
    return iter(opened.training_batches(batch, seed=1, first_batch=0))


def updates(records, batch, count):
    """Return a function that runs training steps of a tiny BERT on a record file."""
    from official_bert.modeling.pretraining import PretrainingModel

    model = PretrainingModel(BertConfig.named("tiny"))
    step = _pretraining_step(model, skip_padding=True)
    endless = _record_batches(records, batch)

    def update():
        for _ in range(count):
            float(step(next(endless))["masked_lm_loss"])

    return update


def help_text(script):
    """Return a function that prints a run script's `--help`, in a new process."""
    command = [sys.executable, str(workload.ROOT / "run_scripts" / script), "--help"]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
