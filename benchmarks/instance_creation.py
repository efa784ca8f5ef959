"""Measure instance creation: megabytes of input text per second, in one process.

    python benchmarks/instance_creation.py --input_file=text.txt --vocab_file=vocab.txt

Reading, tokenizing, making the instances, encoding and writing are timed
separately. The speed counts the input text once, regardless of the number of
duplicates.
"""

import os
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402

flags.DEFINE_string("input_file", None, "Text file, one sentence per line.")
flags.DEFINE_string("vocab_file", None, "Vocabulary file.")
flags.DEFINE_bool("do_lower_case", True, "Whether the vocabulary is uncased.")
flags.DEFINE_bool("do_whole_word_mask", False, "Mask whole words.")
flags.DEFINE_integer("max_seq_length", 128, "Maximum tokens of a sequence.")
flags.DEFINE_integer(
    "max_predictions_per_seq", 20, "Maximum masked tokens of a sequence."
)
flags.DEFINE_integer("dupe_factor", 5, "Passes over the text.")
FLAGS = flags.FLAGS


def main():
    """Run every step once; print its seconds and the total speed."""
    require("input_file", "vocab_file")
    start_tensorflow()  # The start is not part of the work.
    from official_bert.corpus import readers
    from official_bert.data import instances, masking, pretraining_data
    from official_bert.data.example_encoding import make_encoder
    from official_bert.tokenization.full import FullTokenizer

    settings = instances.InstanceSettings(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        dupe_factor=FLAGS.dupe_factor,
        do_whole_word_mask=FLAGS.do_whole_word_mask,
    )
    tokenizer = FullTokenizer(FLAGS.vocab_file, FLAGS.do_lower_case)
    ids = masking.MaskingIds.of(tokenizer.vocab)
    rng = random.Random(settings.random_seed)
    seconds = {}

    def timed(name, work):
        start = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - start
        return result

    texts = timed("reading", lambda: list(readers.read_documents([FLAGS.input_file])))
    encoded = pretraining_data.encode_documents(
        texts, tokenizer, settings.do_whole_word_mask
    )
    documents = timed("tokenizing", lambda: list(encoded))
    rng.shuffle(documents)
    made = timed("instances", lambda: _make(documents, settings, ids, rng))
    encode = make_encoder(
        settings.max_seq_length, settings.max_predictions_per_seq, len(tokenizer.vocab)
    )
    records = timed("encoding", lambda: [encode(instance) for instance in made])
    rng.shuffle(records)
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "records.tfrecord")
        timed("writing", lambda: pretraining_data.write_records(records, [output]))
    _report(seconds, os.path.getsize(FLAGS.input_file) / 1e6, len(records))


def _make(documents, settings, ids, rng):
    from official_bert.data.instances import create_instances_from_document

    return [
        instance
        for _ in range(settings.dupe_factor)
        for index in range(len(documents))
        for instance in create_instances_from_document(
            documents, index, settings, ids, rng
        )
    ]


def _report(seconds, megabytes, num_records):
    total = sum(seconds.values())
    for name, taken in seconds.items():
        print(f"{name:<12}{taken:8.2f} s {taken / total:6.0%}")
    print(f"{'total':<12}{total:8.2f} s")
    print(f"{num_records} records, {total / num_records * 1e6:.0f} us each")
    print(f"{megabytes / total:.3f} MB/s of text at {FLAGS.dupe_factor} duplicates")


if __name__ == "__main__":
    run(main)
