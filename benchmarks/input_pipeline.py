r"""Measure records per second of the input pipeline, and of a tiny BERT.

    python benchmarks/input_pipeline.py --output=input_pipeline.json

It writes temporary records of random tokens: with masks, without masks, and
without masks for whole words. It reads their batches in alternation, each for
--seconds, and then runs training steps of the tiny model on the first kind. It
also prints the CPU time of all threads of the process. A record is one
sequence.
"""

import os
import pathlib
import platform
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from absl import flags  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_integer("batch_size", 32, "Records per batch.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Maximum tokens of a record.", 5)
flags.DEFINE_integer(
    "max_predictions_per_seq", 20, "Maximum masked tokens of a record.", 1
)
flags.DEFINE_integer("records", 20_000, "Records of each kind.", 1)
flags.DEFINE_float("seconds", 2, "Length of a turn in seconds.", 0)
flags.DEFINE_integer("rounds", 5, "Turns of each kind.", 1)
flags.DEFINE_string("output", None, "JSON file for all numbers.")

# Name -> differences of these records from the usual ones.
KINDS = {
    "static": {},
    "dynamic": {"masking": "dynamic"},
    "dynamic whole words": {"masking": "dynamic", "do_whole_word_mask": True},
}
UPDATES = "updates of tiny"
# A third of English tokens continue a word with a vocabulary of some thousands,
# a tenth with thirty thousand.
CONTINUING = 0.2


def main():
    """Measure all kinds in alternation; print one line for each."""
    start_tensorflow()
    with tempfile.TemporaryDirectory() as folder:
        sources = {kind: _batches(folder, kind) for kind in KINDS}
        sources[UPDATES] = _updates(sources["static"])
        rounds = [
            {name: _measure(batches) for name, batches in sources.items()}
            for _ in range(FLAGS.rounds)
        ]
    results = {name: _summary([row[name] for row in rounds]) for name in sources}
    taken = results[UPDATES]["records_per_second"]
    for name, result in results.items():
        times = result["records_per_second"] / taken
        result["times_what_tiny_takes"] = times
        print(
            f"{name:22}{result['records_per_second']:9.0f} records/s "
            f"{result['cpu_microseconds_per_record']:8.1f} us of CPU each, "
            f"{times:6.1f} x what tiny takes"
        )
    if FLAGS.output:
        found = {"machine": _machine(), "flags": _flags(), "results": results}
        files.write_json(FLAGS.output, found)


def _batches(folder, kind):
    """Write the records of a kind; return an endless iterator over batches."""
    from official_bert.data.records.record_set import open_record_set

    path = os.path.join(folder, f"{kind}.tfrecord")
    _write_records(path, KINDS[kind])
    records = open_record_set(path, BertConfig.named("tiny"))
    return iter(records.training_batches(FLAGS.batch_size, seed=1, first_batch=0))


def _write_records(path, changes):
    """Write records of random tokens in the form of `create_pretraining_data.py`."""
    import dataclasses

    from official_bert.data import instances, masking, pretraining_data
    from official_bert.data.example_encoding import make_encoder
    from official_bert.data.records import manifest

    size = BertConfig.named("tiny").vocab_size
    vocab = masking.MaskingIds(101, 102, 103, tuple(range(size)))
    settings = instances.InstanceSettings(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        **changes,
    )
    encode = make_encoder(
        settings.max_seq_length, settings.max_predictions_per_seq, size
    )
    rng = random.Random(0)

    def text():
        words = rng.choices(range(1000, size), k=rng.randint(4, FLAGS.max_seq_length))
        if not settings.do_whole_word_mask:
            return words
        return [
            word | masking.CONTINUES * (rng.random() < CONTINUING) for word in words
        ]

    pretraining_data.write_records(
        [
            encode(instances.make_instance(text(), text(), False, settings, vocab, rng))
            for _ in range(FLAGS.records)
        ],
        [path],
    )
    entry = dataclasses.asdict(settings)
    manifest.write_manifest({path: entry | {"vocab_size": size, "mask_id": 103}})


def _updates(batches):
    """Yield after each training step of a tiny BERT on the batches, with dropout."""
    import tensorflow as tf

    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training.guard import Guard
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.pretraining import PRETRAINING
    from official_bert.training.schedule import WarmupLinearDecay
    from official_bert.training.step import StepSettings, make_train_step

    config = BertConfig.named("tiny")
    model = PretrainingModel(config, False)
    optimizer = BertAdam(WarmupLinearDecay(1e-4, 1_000_000, 10_000))
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    step = make_train_step(
        strategy, model, optimizer, Guard(), PRETRAINING, StepSettings(seed=1)
    )
    for batch in batches:
        yield float(step(batch)["masked_lm_loss"])


def _measure(batches):
    """Take batches for a turn; return (records per second, CPU seconds per record)."""
    for _ in range(10):
        next(batches)
    count, start, computed = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < FLAGS.seconds:
        next(batches)
        count += FLAGS.batch_size
    seconds = time.perf_counter() - start
    return count / seconds, (time.process_time() - computed) / count


def _summary(turns):
    rates, computed = zip(*turns, strict=True)
    return {
        "records_per_second": statistics.median(rates),
        "slowest": min(rates),
        "fastest": max(rates),
        "cpu_microseconds_per_record": 1e6 * statistics.median(computed),
    }


def _flags():
    names = ("batch_size", "max_seq_length", "max_predictions_per_seq", "records")
    return {name: FLAGS[name].value for name in (*names, "seconds", "rounds")}


def _machine():
    import tensorflow as tf

    return {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    run(main)
