r"""Measure the cost of the training loop as a share of a BERT-tiny step on the CPU.

    python benchmarks/loop_cost.py

The loop is `training.loop.train`: it reads batches, distributes them, counts
FLOPs, calls the training step, and writes a log line every
--iterations_per_loop steps. It runs alternately with the training step of tiny
and with a function that returns the same report immediately; the latter time is
the loop's cost. Batches come from memory; `input_pipeline.py` measures record
files.
"""

import os
import pathlib
import statistics
import sys
import tempfile
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
from absl import flags  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_integer("batch_size", 32, "Sequences per step.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Tokens per sequence.", 5)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Masked tokens.", 1)
flags.DEFINE_integer("iterations_per_loop", 100, "Steps between two log lines.", 1)
flags.DEFINE_integer("steps", 20, "Steps of tiny in each round.", 1)
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.DEFINE_string("output", None, "JSON file for the numbers.")


class Batches:
    """Random batches in memory, with the interface of a data set for `loop.train`."""

    tokens_per_row = 128

    def __init__(self, config, batch_size, length, predictions, count=16):
        draw = np.random.default_rng(0)

        def integers(limit, *shape):
            return draw.integers(0, limit, (count, batch_size, *shape)).astype(np.int32)

        self._features = {
            "input_ids": integers(config.vocab_size, length),
            "input_mask": np.ones_like(integers(2, length)),
            "segment_ids": integers(2, length),
            "masked_lm_positions": integers(length, predictions),
            "masked_lm_ids": integers(config.vocab_size, predictions),
            "masked_lm_weights": np.ones_like(integers(2, predictions), np.float32),
            "next_sentence_labels": integers(2, 1),
        }

    def training_batches(self, batch_size, seed, first_batch, rows):
        """Return the batches, repeated endlessly."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(self._features).repeat().prefetch(2)


def main() -> None:
    """Print the time of the loop, of a step, and their ratio."""
    start_tensorflow()
    found = measure(
        FLAGS.batch_size,
        FLAGS.max_seq_length,
        FLAGS.max_predictions_per_seq,
        FLAGS.iterations_per_loop,
        FLAGS.steps,
        FLAGS.rounds,
    )
    print(
        f"Step of tiny: {1e3 * found['step_seconds']:.1f} ms. Loop: "
        f"{1e6 * found['loop_seconds']:.0f} us for each step. Ratio: "
        f"{found['ratio']:.2%} (rounds: "
        + ", ".join(f"{ratio:.2%}" for ratio in found["ratios"])
        + ")."
    )
    if FLAGS.output:
        files.write_json(FLAGS.output, found)


def measure(batch_size, length, predictions, iterations_per_loop, steps, rounds):
    """Return seconds of the loop and of a step, medians, and the rounds' ratios.

    Args:
      batch_size: B.
      length: S.
      predictions: P.
      iterations_per_loop: steps between two log lines.
      steps: steps of tiny in each round; the loop alone writes 10 log lines.
      rounds: number of rounds.
    """
    from official_bert.training import loop

    config = BertConfig.named("tiny")
    batches = Batches(config, batch_size, length, predictions)
    make_step, built = loop.make_train_step, []

    def make_once(*parts):
        if not built:
            built.extend([parts, make_step(*parts)])
        return built[1]

    settings = _settings(batch_size)
    state = _state(config, settings)
    with mock.patch.object(loop, "make_train_step", make_once):
        _seconds_of_step(state, settings, batches, 2, 1)  # Compiles the step.
    report = built[1](next(iter(batches.training_batches(0, 0, 0, None))))
    rows = []
    for _ in range(rounds):
        with mock.patch.object(loop, "make_train_step", make_once):
            step = _seconds_of_step(state, settings, batches, steps, steps)
        with mock.patch.object(
            loop, "make_train_step", lambda *_: lambda _: dict(report)
        ):
            own = _seconds_of_step(
                state, settings, batches, 10 * iterations_per_loop, iterations_per_loop
            )
        rows.append((own, step - own))
    own, step = (statistics.median(column) for column in zip(*rows, strict=True))
    ratios = [own / step for own, step in rows]
    return {
        "loop_seconds": own,
        "step_seconds": step,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "cores": os.cpu_count(),
    }


def _settings(batch_size):
    from official_bert.training import loop, runs
    from official_bert.training.recipes import optimization
    from official_bert.training.step import StepSettings

    schedule = optimization.OptimizationSettings(
        learning_rate=1e-4, num_train_steps=10**9, num_warmup_steps=0
    )
    loop_settings = loop.LoopSettings(
        train_batch_size=batch_size,
        save_checkpoints_steps=10**9,
        keep_checkpoint_max=1,
        iterations_per_loop=1,
        max_skipped_updates=10**9,
    )
    return runs.RunSettings(
        output_dir="",
        init_checkpoint=None,
        continue_from=None,
        optimization=schedule,
        step=StepSettings(seed=1),
        loop=loop_settings,
        precision="float32",
        recompute=False,
        deterministic=False,
        allow_changed_settings=False,
    )


def _state(config, settings):
    import tensorflow as tf

    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training import runs

    strategy = tf.distribute.get_strategy()
    return runs.make_state(strategy, lambda: PretrainingModel(config), settings)


def _seconds_of_step(state, settings, batches, steps, iterations_per_loop):
    """Return the seconds per step from a run's metrics, without saving.

    The time before the first row includes the start, and is not counted if
    there are more rows.
    """
    import dataclasses

    import tensorflow as tf

    from official_bert.modeling.kernels import choose
    from official_bert.training import loop
    from official_bert.training.logs.run_log import read_metrics
    from official_bert.training.pretraining import PRETRAINING

    state.optimizer.iterations.assign(0)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        own = dataclasses.replace(
            settings,
            output_dir=folder,
            loop=dataclasses.replace(
                settings.loop,
                iterations_per_loop=iterations_per_loop,
                stop_at_step=steps,
            ),
        )
        with mock.patch.object(sys, "stdout", nowhere):
            loop.train(
                tf.distribute.get_strategy(),
                state,
                PRETRAINING,
                batches,
                own,
                1,
                None,
                choose.training_kernels(is_compiled=True, skip_padding=True),
            )
        rows = [row for row in read_metrics(folder) if "sequences_per_second" in row]
    batch_size = settings.loop.train_batch_size
    times = [batch_size / row["sequences_per_second"] for row in rows]
    return statistics.median(times[1:] or times)


if __name__ == "__main__":
    run(main)
