"""Record files and small models for the tests of pre-training."""

import json
import pathlib

import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.data.records.manifest import write_manifest

MINI = pathlib.Path(__file__).parent / "fixtures" / "mini"
FLOATS = ("masked_lm_weights",)

# A model that reads the records of `fixtures/mini` (125 tokens, length 32).
MINI_CONFIG = BertConfig(
    vocab_size=128,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=32,
    type_vocab_size=2,
)


def example(values):
    """Return a dict of name -> numbers as a `tf.train.Example`."""
    features = {}
    for name, numbers in values.items():
        if name in FLOATS:
            kind = {"float_list": tf.train.FloatList(value=numbers)}
        else:
            kind = {"int64_list": tf.train.Int64List(value=numbers)}
        features[name] = tf.train.Feature(**kind)
    return tf.train.Example(features=tf.train.Features(feature=features))


def write(path, records):
    """Write dicts of numbers as one TFRecord file and return its name."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for values in records:
            writer.write(example(values).SerializeToString())
    return str(path)


def numbered(first, count, length=4, predictions=2, **changes):
    """Return records whose first id is their number, starting at `first`."""
    return [
        {
            "input_ids": [number] + [1] * (length - 1),
            "input_mask": [1] * length,
            "segment_ids": [0] * length,
            "masked_lm_positions": [1] * predictions,
            "masked_lm_ids": [2] * predictions,
            "masked_lm_weights": [1.0] * predictions,
            "next_sentence_labels": [number % 2],
            **changes,
        }
        for number in range(first, first + count)
    ]


def short(count, length=32, predictions=5, shortest=6, seed=0):
    """Return records of any length, whose tokens 1 and 2 encode their number."""
    rng = np.random.default_rng(seed)
    records = []
    for number in range(count):
        used = int(rng.integers(shortest, length + 1))
        words = min(max(1, round(used * 0.15)), predictions)
        ids = [2, 10 + number // 100, 10 + number % 100]
        ids += rng.integers(10, 125, used - 4).tolist() + [3]
        positions = sorted(rng.choice(np.arange(3, used - 1), words, False).tolist())
        padding, blanks = [0] * (length - used), [0] * (predictions - words)
        records.append(
            {
                "input_ids": ids + padding,
                "input_mask": [1] * used + padding,
                "segment_ids": [0] * (used // 2) + [1] * (used - used // 2) + padding,
                "masked_lm_positions": positions + blanks,
                "masked_lm_ids": rng.integers(10, 125, words).tolist() + blanks,
                "masked_lm_weights": [1.0] * words + [0.0] * len(blanks),
                "next_sentence_labels": [number % 2],
            }
        )
    return records


def mini_records(file=0):
    """Return the original's records of one file of `fixtures/mini`."""
    recorded = json.loads((MINI / "instances.json").read_text())
    return recorded["plain"]["files"][file]


def write_mini(folder, manifest=False):
    """Write both record files of `fixtures/mini`; return their glob."""
    for file in range(2):
        path = write(folder / f"{file}.tfrecord", mini_records(file))
        if manifest:
            write_manifest({path: mini_manifest()})
    return str(folder / "*.tfrecord")


def unmasked(record):
    """Return a record as it was before masking."""
    ids = list(record["input_ids"])
    for position, label, weight in zip(
        record["masked_lm_positions"],
        record["masked_lm_ids"],
        record["masked_lm_weights"],
        strict=True,
    ):
        if weight:
            ids[position] = label
    kept = {name: v for name, v in record.items() if not name.startswith("masked")}
    return kept | {"input_ids": ids}


def write_unmasked(folder, **changes):
    """Write the mini records without masks, and a manifest; return their glob."""
    for file in range(2):
        path = folder / f"{file}.tfrecord"
        write(path, [unmasked(record) for record in mini_records(file)])
        write_manifest({str(path): unmasked_manifest(**changes)})
    return str(folder / "*.tfrecord")


def unmasked_manifest(**changes):
    """Return the manifest of `create_pretraining_data.py` for such records."""
    return mini_manifest(
        masking="dynamic",
        masked_lm_prob=0.15,
        do_whole_word_mask=False,
        mask_id=9,
        **changes,
    )


def mini_manifest(**changes):
    """Return the manifest of `create_pretraining_data.py` for the mini records."""
    from official_bert.files import sha256_of

    return {
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "vocab_file": str(MINI / "vocab.txt"),
        "vocab_sha256": sha256_of(MINI / "vocab.txt"),
        "vocab_size": 125,
        "do_lower_case": True,
        **changes,
    }


def stacked(records):
    """Return records as one batch of arrays, as the pipeline does."""
    return {
        name: np.array(
            [record[name] for record in records],
            np.float32 if name in FLOATS else np.int32,
        )
        for name in records[0]
    }
