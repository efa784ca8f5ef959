"""Measures the memory that recomputing blocks saves, in a separate process.

Prints JSON: the growth in MB of this process's peak memory after a forward and backward
pass with recomputing (`recomputed`), and then after one without (`plain`). The peak
never falls, so the pass that needs less memory runs first.
"""

import json
import pathlib

import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder

# Narrow and long: attention maps of 8 MB each take nearly all memory.
ROWS, LENGTH = 4, 512
CONFIG = BertConfig(
    vocab_size=8,
    hidden_size=4,
    num_hidden_layers=6,
    num_attention_heads=2,
    intermediate_size=4,
    max_position_embeddings=LENGTH,
)


def highest_memory():
    """Return the peak memory of this process in MB.

    `resource.getrusage` would include the parent's memory at the time of the fork.
    """
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def make_pass(recompute):
    """Return a function: int [B, S] -> the sum of all gradients, after a first run."""
    encoder = BertEncoder(CONFIG, recompute)
    seed = tf.constant([1, 2], tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def gradients(input_ids):
        with tf.GradientTape() as tape:
            encoded = encoder(
                {"input_ids": input_ids}, training=True, dropout_seed=seed
            )
            loss = tf.reduce_sum(encoded["sequence_output"][:, 0])
        found = tape.gradient(loss, [v.value for v in encoder.encoder.weights])
        return tf.add_n([tf.reduce_sum(gradient) for gradient in found])

    # Memory for preparing the graph must not be part of the comparison.
    gradients(tf.zeros([1, 2], tf.int32))
    return gradients


def main():
    passes = {"recomputed": make_pass(True), "plain": make_pass(False)}
    grown, before = {}, highest_memory()
    for name, gradients in passes.items():
        gradients(tf.zeros([ROWS, LENGTH], tf.int32))
        grown[name] = highest_memory() - before
    print(json.dumps(grown))


if __name__ == "__main__":
    main()
