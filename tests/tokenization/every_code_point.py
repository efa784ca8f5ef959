"""Compares both tokenizers on each of the 1,114,112 code points, in many contexts.

    python tests/tokenization/every_code_point.py
    python tests/tokenization/every_code_point.py tf_text

The second command compares the tokenizer with TensorFlow Text's kernels: first that
only `exact_characters` go to the kernels, then each of these characters in many words.
Each comparison has a vocabulary with all of its characters, so that different
characters have different ids. Then it compares all strings of up to three bytes of the
representative kinds. The exit status is 1 if anything differs.
"""

import itertools
import os
import pathlib
import sys
import tempfile
import time

if __name__ == "__main__":
    tests = pathlib.Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(tests.parent)]
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    from official_bert.command_line.tensorflow_start import start_tensorflow

    start_tensorflow()

import graph_checks  # noqa: E402

from official_bert.tokenization.graph_tf_text import (  # noqa: E402
    TfTextTokenizer,
    exact_characters,
)

CODE_POINTS = 0x110000
# Number of code points per vocabulary, and of texts per batch.
VOCABULARY = 2**16
BATCH = 2**13
FORMS = {True: graph_checks.FORMS, False: graph_checks.CASED_FORMS}
SHOWN = 5


def differences(both, texts):
    """Return the number of texts that differ, and print the first few."""
    count = 0
    for first in range(0, len(texts), BATCH):
        for text, found, expected in both.differences(texts[first : first + BATCH]):
            count += 1
            if count <= SHOWN:
                print(f"{text!r}: {found} in the graph, {expected} in Python")
    return count


def compare_code_points(do_lower_case, code_points, vocab_file):
    """Return the number of code points that differ in any form."""
    pieces = graph_checks.telling_pieces(code_points)
    graph_checks.write_vocab(vocab_file, pieces)
    both = graph_checks.Both(vocab_file, do_lower_case)
    texts = graph_checks.in_forms(code_points, FORMS[do_lower_case])
    return differences(both, texts)


def compare_kernels(do_lower_case, vocab_file):
    """Return the number of differences of the tokenizer with TensorFlow Text."""
    exact = exact_characters(do_lower_case)
    codes = [code for code in range(CODE_POINTS) if not 0xD800 <= code < 0xE000]
    count = 0
    for first in range(0, len(codes), VOCABULARY):
        some = codes[first : first + VOCABULARY]
        pieces = graph_checks.telling_pieces([*some, *map(ord, "王!?")])
        graph_checks.write_vocab(vocab_file, pieces)
        both = graph_checks.Both(vocab_file, do_lower_case, TfTextTokenizer)
        found = both.graph.are_exact([chr(code) for code in some]).numpy()
        count += int((found != exact[some]).sum())
        texts = graph_checks.in_forms(
            [code for code in some if exact[code]], graph_checks.EXACT_FORMS
        )
        if texts:
            count += int((~both.graph.are_exact(texts).numpy()).sum())
        count += differences(both, texts)
    print(
        f"{exact.sum()} characters go to the kernels, {count} differences", flush=True
    )
    return count


def compare_bytes(do_lower_case, vocab_file):
    """Return the number of strings of one, two and three bytes that differ."""
    pieces = graph_checks.telling_pieces(range(0x20, 0x300))
    graph_checks.write_vocab(vocab_file, pieces)
    both = graph_checks.Both(vocab_file, do_lower_case)
    strings = [
        bytes(values)
        for length in (1, 2, 3)
        for values in itertools.product(graph_checks.TELLING_BYTES, repeat=length)
    ]
    return differences(both, strings + [b"a" + string + b"b" for string in strings])


def main():
    """Compare everything; return the exit status."""
    started, count = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = pathlib.Path(folder) / "vocab.txt"
        for do_lower_case in FORMS:
            if "tf_text" in sys.argv:
                count += compare_kernels(do_lower_case, vocab_file)
                continue
            casing = "uncased" if do_lower_case else "cased"
            for first in range(0, CODE_POINTS, VOCABULARY):
                code_points = range(first, first + VOCABULARY)
                count += compare_code_points(do_lower_case, code_points, vocab_file)
                minutes = (time.monotonic() - started) / 60
                print(
                    f"{casing}: to U+{code_points[-1]:04X}, {count} differences, "
                    f"{minutes:.1f} minutes",
                    flush=True,
                )
            count += compare_bytes(do_lower_case, vocab_file)
    print(f"{'NOT EQUAL' if count else 'equal'}: {count} texts differ.")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
