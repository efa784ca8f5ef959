"""Measure the tokenizer in the graph, compared with TensorFlow Text's tokenizers.

    python benchmarks/graph_tokenizer.py --vocab_file=vocab.txt --input_file=text.txt

It measures both values of `export_model.py --tokenizer_ops`: core and tf_text. It
prints milliseconds and megabytes per second for batches of 1, 64 and 1,000 lines. Each
batch runs through all tokenizers, each time in another order, because the first one
is slower. A time is the median. A ratio is the median over batches of
`BertTokenizer`'s time divided by the time of the tokenizer. TensorFlow Text's
tokenizers do not return the same ids for all texts.
"""

import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.constants import CORE_OPS, TF_TEXT_OPS  # noqa: E402

flags.DEFINE_list("input_file", None, "Text files, one sentence per line.")
flags.DEFINE_string("vocab_file", None, "Vocabulary file.")
flags.DEFINE_bool("do_lower_case", True, "Whether the vocabulary is uncased.")
flags.DEFINE_list("texts", ["1", "64", "1000"], "Numbers of texts in a batch.")
flags.DEFINE_integer("batches", 20, "Batches of 1,000 texts; more of fewer texts.")
FLAGS = flags.FLAGS

BERT = "BertTokenizer"
WARM_UP = 10


def main():
    """Measure each number of texts; print one line per tokenizer."""
    require("input_file", "vocab_file")
    start_tensorflow()
    functions = tokenizers()
    lines = [line for path in FLAGS.input_file for line in read_lines(path)]
    random.Random(1).shuffle(lines)
    for number in map(int, FLAGS.texts):
        count = min(FLAGS.batches * max(1, 1000 // number), 1000)
        batches = [
            lines[first : first + number]
            for first in range(0, min(count * number, len(lines)), number)
        ]
        report(number, batches, measure(functions, batches))


def read_lines(path):
    """Return the lines of a text file that are not empty."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line.strip()]


def tokenizers():
    """Return a dict of name -> function of strings [B], which returns flat ids."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    from official_bert.tokenization import load_vocab
    from official_bert.tokenization.graph import GraphTokenizer
    from official_bert.tokenization.graph_tf_text import TfTextTokenizer

    vocab = load_vocab(FLAGS.vocab_file)
    lower = FLAGS.do_lower_case
    bert = tf_text.BertTokenizer(FLAGS.vocab_file, lower_case=lower)
    fast = tf_text.FastBertTokenizer(list(vocab), lower_case_nfd_strip_accents=lower)
    ragged = {
        CORE_OPS: GraphTokenizer(vocab, lower).ids,
        TF_TEXT_OPS: TfTextTokenizer(vocab, lower).ids,
        BERT: lambda texts: bert.tokenize(texts).merge_dims(-2, -1),
        "FastBertTokenizer": fast.tokenize,
    }

    def compiled(function):
        # Python needs more time for a ragged tensor than for two tensors.
        def flat(texts):
            pieces = function(texts)
            return pieces.values, pieces.row_splits

        signature = [tf.TensorSpec([None], tf.string)]
        traced = tf.function(flat, input_signature=signature, autograph=False)
        return traced.get_concrete_function()

    return {name: compiled(function) for name, function in ragged.items()}


def measure(functions, batches):
    """Return a dict of name -> seconds of each batch."""
    import tensorflow as tf

    seconds = {name: [] for name in functions}
    names = list(functions)
    for index, batch in enumerate(batches):
        texts = tf.constant(batch)
        if not index:
            for _ in range(WARM_UP):
                for function in functions.values():
                    function(texts)
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            start = time.perf_counter()
            functions[name](texts)[0].numpy()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def report(number, batches, seconds):
    """Print the times of batches with this number of texts."""
    size = sum(len(line.encode()) for batch in batches for line in batch)
    megabytes = size / len(batches) / 1e6
    print(f"{number} texts, {1e6 * megabytes:.0f} bytes, {len(batches)} batches")
    for name, times in seconds.items():
        median = statistics.median(times)
        pairs = zip(seconds[BERT], times, strict=True)
        ratio = statistics.median(bert / one for bert, one in pairs)
        print(
            f"  {name:18} {1e3 * median:8.2f} ms {megabytes / median:8.2f} MB/s "
            f"{ratio:6.2f} x"
        )


if __name__ == "__main__":
    run(main)
