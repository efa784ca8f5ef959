r"""Records a second that training reads from an object store, and that mini consumes.

    python benchmarks/store_reading.py --output=store_reading.json

Record files of random tokens are in the test server of tests/storage, which waits
--latency before each answer. TensorFlow's own Cloud Storage client reads them, as
training does. The rounds alternate: read from the store, train mini with local files,
train mini from the store. A record is one sequence. It needs root (`unshare -m`).
"""

import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "storage")]

from absl import flags  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_integer("files", 32, "Record files.", 1)
flags.DEFINE_integer("records", 512, "Records of a file.", 1)
flags.DEFINE_float("latency", 0.05, "Seconds before the server answers a request.", 0)
flags.DEFINE_string("size", "mini", "Size of the model.")
flags.DEFINE_integer("batch_size", 64, "Sequences of a batch.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Tokens of a record.", 5)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Masked tokens at most.", 1)
flags.DEFINE_float("seconds", 10, "Length of a turn.", 0)
flags.DEFINE_integer("rounds", 3, "Turns of each kind.", 1)
flags.DEFINE_string("output", None, "JSON file for all figures.")

STORE = "gs://bucket/records"
READING, LOCAL, REMOTE = "read from the store", "train, local files", "train, store"
# Says that the process has the test server as its store.
INSIDE = "STORE_READING_INSIDE"


def main():
    """Measure in a mount namespace, where the test server is Cloud Storage."""
    import private_store

    if INSIDE in os.environ:
        return _measure_all()
    reason = private_store.why_not()
    if reason:
        raise UserError(f"The test server cannot be used here: {reason}.")
    environment = {**os.environ, INSIDE: "1"}
    command = [sys.executable, *sys.argv]
    return private_store.run(command, env=environment).returncode


def _measure_all():
    """Measure all kinds in turns; print a line for each, and the ratio."""
    import store_client

    start_tensorflow()
    with tempfile.TemporaryDirectory() as folder:
        _write_records(folder)
        for name in os.listdir(folder):
            files.copy(os.path.join(folder, name), f"{STORE}/{name}")
        store_client.configure(latency=FLAGS.latency)
        begin = time.perf_counter()
        remote = _batches(STORE)
        next(remote)
        opened = time.perf_counter() - begin
        train = _training()
        sources = {
            READING: remote,
            LOCAL: map(train, _batches(folder)),
            REMOTE: map(train, _batches(STORE)),
        }
        rounds = [
            {name: _measure(batches) for name, batches in sources.items()}
            for _ in range(FLAGS.rounds)
        ]
    rates = {name: statistics.median(r[name] for r in rounds) for name in sources}
    ratio = rates[READING] / rates[LOCAL]
    for name, rate in rates.items():
        print(f"{name:20}{rate:9.0f} records/s")
    print(f"First batch after {opened:.1f} s (list, index, read).")
    print(f"The store delivers {ratio:.1f} times what {FLAGS.size} consumes.")
    if FLAGS.output:
        result = {
            "records_per_second": rates,
            "rounds": rounds,
            "ratio": ratio,
            "seconds_to_first_batch": opened,
            "cores": os.cpu_count(),
            "load_average": os.getloadavg()[0],
            "flags": {name: FLAGS[name].value for name in _SETTINGS},
        }
        files.write_json(FLAGS.output, result)


_SETTINGS = ("files", "records", "latency", "size", "batch_size", "max_seq_length")


def _write_records(folder):
    """Write record files of random tokens as `create_pretraining_data.py` would."""
    from official_bert.data import instances, masking, pretraining_data
    from official_bert.data.example_encoding import make_encoder

    size, length = BertConfig.named(FLAGS.size).vocab_size, FLAGS.max_seq_length
    most, rng = FLAGS.max_predictions_per_seq, random.Random(0)
    vocab = masking.MaskingIds(101, 102, 103, tuple(range(size)))
    settings = instances.InstanceSettings(
        max_seq_length=length, max_predictions_per_seq=most
    )
    encode = make_encoder(length, most, size)

    def record():
        texts = [rng.choices(range(1000, size), k=length) for _ in range(2)]
        made = instances.make_instance(*texts, False, settings, vocab, rng)
        return encode(made)

    names = [f"{number:02}.tfrecord" for number in range(FLAGS.files)]
    paths = [os.path.join(folder, name) for name in names]
    records = [record() for _ in range(FLAGS.records * FLAGS.files)]
    pretraining_data.write_records(records, paths)


def _batches(folder):
    """Return an endless iterator over the training batches of a folder's records."""
    from official_bert.data.records.record_set import open_record_set

    config = BertConfig.named(FLAGS.size)
    records = open_record_set(os.path.join(folder, "*.tfrecord"), config)
    return iter(records.training_batches(FLAGS.batch_size, seed=1, first_batch=0))


def _training():
    """Return a function that makes a training step on a batch; dropout is on."""
    import tensorflow as tf

    from official_bert.modeling.pretraining import PretrainingModel
    from official_bert.training.guard import Guard
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.pretraining import PRETRAINING
    from official_bert.training.schedule import WarmupLinearDecay
    from official_bert.training.step import StepSettings, make_train_step

    model = PretrainingModel(BertConfig.named(FLAGS.size), False)
    optimizer = BertAdam(WarmupLinearDecay(1e-4, 1_000_000, 10_000))
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    step = make_train_step(
        strategy, model, optimizer, Guard(), PRETRAINING, StepSettings(seed=1)
    )
    return lambda batch: float(step(batch)["masked_lm_loss"])


def _measure(batches):
    """Take batches for a turn; return records a second."""
    next(batches)
    next(batches)
    count, begin = 0, time.perf_counter()
    while (seconds := time.perf_counter() - begin) < FLAGS.seconds or not count:
        next(batches)
        count += FLAGS.batch_size
    return count / seconds


if __name__ == "__main__":
    run(main)
