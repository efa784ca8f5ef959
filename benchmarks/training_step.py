r"""Our training step beside KerasHub's, in turns, in one run.

    python benchmarks/training_step.py --sizes=tiny,mini --output=steps.json

A step is forward, backward, clipping and update on one batch, dropout on. Ours
is that of `run_pretraining.py`: masked LM and next sentence. KerasHub's is the
step `fit` compiles for `BertBackbone` with `MaskedLMHead` on the same masked
positions and Keras' `AdamW` with the same clipping, without a next-sentence
head; once as `fit` runs it by default, once with `jit_compile=True`. With
--variants it is our own step under --xla, --recompute and so on.

Absolute times depend on what else the machine does; the ratios, each of two
steps measured within seconds of each other, much less. Beside them stands what
the machine's own matrix product reaches meanwhile.
"""

import os
import pathlib
import platform
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "run_scripts"))

from absl import flags  # noqa: E402
from command_line import run  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.config import SIZES, BertConfig  # noqa: E402
from official_bert.errors import UserError  # noqa: E402
from official_bert.parameter_count import training_flops  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_list("sizes", ["tiny", "mini", "base"], "Released sizes to measure.")
flags.DEFINE_integer("rounds", 15, "Turns of every contender.", 2)
flags.DEFINE_integer("steps", 3, "Steps in a turn; the fastest of them counts.", 1)
flags.DEFINE_bool("jit", True, "Whether to measure KerasHub under XLA too.")
flags.DEFINE_bool(
    "variants", False, "Measure ours with its own flags instead of KerasHub's."
)
flags.DEFINE_integer("shortest", 64, "Tokens of the shortest sequences.", 5, 128)
flags.DEFINE_string("output", None, "JSON file for all figures.")

LENGTH, PREDICTIONS = 128, 20
PRODUCT_SIZE = 1536
BATCH = {"tiny": 32, "mini": 32, "small": 16, "medium": 16, "base": 8, "large": 4}
OURS, DEFAULT, JIT, PRODUCT = "ours", "KerasHub", "KerasHub jit", "sgemm"


def main():
    """Measure every size and print one table of ratios."""
    if unknown := set(FLAGS.sizes) - set(SIZES):
        raise UserError(f"--sizes: {min(unknown)!r} is none of {', '.join(SIZES)}.")
    machine = _machine()
    print("\n".join(f"{key}: {value}" for key, value in machine.items()), flush=True)
    results = {}
    for size in FLAGS.sizes:
        results[size] = _summary(size, _measure(_contenders(size)))
        print("\n".join(_lines(size, results[size])), flush=True)
    if FLAGS.output:
        files.write_json(FLAGS.output, {"machine": machine, "results": results})


def _contenders(size):
    """Return name -> function that makes one step and waits for it."""
    config, batch = BertConfig.named(size), BATCH[size]
    features = _features(config, batch)
    steps = {OURS: _our_step(config, features)}
    if FLAGS.variants:
        steps |= _variants(config, features, batch)
    else:
        steps[DEFAULT] = _kerashub_step(config, features, "auto")
        if FLAGS.jit:
            steps[JIT] = _kerashub_step(config, features, True)
    return {**steps, PRODUCT: _matrix_product()}


def _variants(config, features, batch):
    """Return our step under the flags of `run_pretraining.py`."""
    return {
        "--xla": _our_step(config, features, xla=True),
        "--skip_padding": _our_step(config, features, skip_padding=True),
        "--recompute": _our_step(config, features, recompute=True),
        "bfloat16": _our_step(config, features, precision="bfloat16"),
        "micro-batches": _our_step(config, features, micro_batch_size=batch // 4),
    }


def _features(config, batch):
    """Return random records with realistic padding and masking."""
    import numpy as np

    rng = np.random.default_rng(0)
    mask = np.arange(LENGTH) < rng.integers(FLAGS.shortest, LENGTH + 1, (batch, 1))
    ids = rng.integers(1000, config.vocab_size, (batch, LENGTH)) * mask
    shape = (batch, PREDICTIONS)
    return {
        "input_ids": ids.astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": ((np.arange(LENGTH) > LENGTH // 3) & mask).astype(np.int32),
        "masked_lm_positions": rng.integers(1, FLAGS.shortest, shape).astype(np.int32),
        "masked_lm_ids": rng.integers(1000, config.vocab_size, shape).astype(np.int32),
        "masked_lm_weights": np.ones(shape, np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1)).astype(np.int32),
    }


def _our_step(
    config,
    features,
    precision="float32",
    recompute=False,
    skip_padding=False,
    **settings,
):
    import tensorflow as tf

    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training.guard import Guard
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.precision import computing_in
    from official_bert.training.pretraining import PRETRAINING
    from official_bert.training.schedule import WarmupLinearDecay
    from official_bert.training.step import StepSettings, make_train_step

    with computing_in(precision):
        model = PretrainingModel(config, recompute)
    model.bert.skip_padding = skip_padding
    optimizer = BertAdam(WarmupLinearDecay(1e-4, 1_000_000, 10_000))
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    step = make_train_step(
        strategy,
        model,
        optimizer,
        Guard(),
        PRETRAINING,
        StepSettings(seed=1, **settings),
    )
    batches = iter(tf.data.Dataset.from_tensors(features).repeat())
    return lambda: float(step(next(batches))["masked_lm_loss"])


def _kerashub_step(config, features, jit_compile):
    import keras
    import tensorflow as tf

    model = _kerashub_model(config)
    model.compile(
        keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
        "mask_positions": features["masked_lm_positions"],
    }
    batch = inputs, features["masked_lm_ids"], features["masked_lm_weights"]
    # Builds the loss and the optimizer, and leaves the function `fit` calls.
    model.train_on_batch(*batch)
    model.make_train_function(force=True)
    batches = iter(tf.data.Dataset.from_tensors(batch).repeat())
    return lambda: float(model.train_function(batches)["loss"])


def _kerashub_model(config):
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
    )
    positions = keras.Input((PREDICTIONS,), dtype="int32", name="mask_positions")
    logits = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        # The tanh form, as in the backbone and in our head.
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
    )(backbone.output["sequence_output"], mask_positions=positions)
    return keras.Model({**backbone.input, "mask_positions": positions}, logits)


def _matrix_product():
    """Return a product of two [1536, 1536] float32 matrices: 7.2 GFLOP."""
    import tensorflow as tf

    a = tf.random.normal([PRODUCT_SIZE, PRODUCT_SIZE])
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(a, a)))
    return lambda: float(product())


def _measure(contenders):
    """Return name -> the fastest step of each round, in seconds."""
    for step in contenders.values():
        step()
        step()
    seconds = {name: [] for name in contenders}
    for _ in range(FLAGS.rounds):
        for name, step in contenders.items():
            seconds[name].append(min(_timed(step) for _ in range(FLAGS.steps)))
    return seconds


def _timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _summary(size, seconds):
    """Return medians, and the spread of the ratios of each round."""
    config, batch = BertConfig.named(size), BATCH[size]
    flops = batch * training_flops(config, LENGTH, PREDICTIONS)
    ceiling = 2 * PRODUCT_SIZE**3 / statistics.median(seconds[PRODUCT])
    ours = statistics.median(seconds[OURS])
    ratios = {
        name: [theirs / own for theirs, own in zip(times, seconds[OURS], strict=True)]
        for name, times in seconds.items()
        if name not in (OURS, PRODUCT)
    }
    return {
        "batch": batch,
        "milliseconds": {
            name: 1000 * statistics.median(times) for name, times in seconds.items()
        },
        "theirs_over_ours": {
            name: dict(
                zip(
                    ("lower_quartile", "median", "upper_quartile"),
                    statistics.quantiles(values, n=4),
                    strict=True,
                )
            )
            for name, values in ratios.items()
        },
        "sequences_per_second": batch / ours,
        "sgemm_gflops": ceiling / 1e9,
        "share_of_sgemm": flops / ours / ceiling,
        "seconds": seconds,
    }


def _lines(size, result):
    """Return what is printed about one size."""
    yield (
        f"\n{size}, batch {result['batch']}, length {LENGTH}, {PREDICTIONS} predictions"
    )
    for name, milliseconds in result["milliseconds"].items():
        line = f"  {name:13}{milliseconds:9.1f} ms"
        if name in result["theirs_over_ours"]:
            low, middle, high = result["theirs_over_ours"][name].values()
            line += f"   {middle:5.2f} x ours (quartiles {low:.2f} to {high:.2f})"
        yield line
    yield (
        f"  ours: {result['sequences_per_second']:.1f} sequences/s, "
        f"{result['share_of_sgemm']:.0%} of the {result['sgemm_gflops']:.0f} GFLOP/s "
        "of the matrix product"
    )


def _machine():
    import keras
    import keras_hub
    import tensorflow as tf

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "keras_hub": keras_hub.__version__,
    }


def _processor():
    """Return the processor's name where Linux tells it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    run(main)
