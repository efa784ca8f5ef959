"""Count the words of text files, block by block, on any number of workers.

The result depends only on the text, not on the order of the files or the
distribution of blocks. Counts are added up, and a hash of each sentence decides
whether it is held out, so its repetitions are held out too.
"""

import itertools
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from official_bert import given_paths
from official_bert.corpus import readers, text_blocks
from official_bert.corpus.progress import progress
from official_bert.engines import workers
from official_bert.tokenization.word_counts import WordCounter

# One of this many sentences.
HOLD_OUT_EVERY = 20


class BlockWords(NamedTuple):
    """The words of one block.

    Attributes:
      text: (word -> occurrences, occurrences of words too long for any WordPiece).
      held_out: the same for held-out sentences.
      lines: `readers.LineCounts`.
      num_bytes: the size of the block's text.
    """

    text: tuple[dict[str, int], int]
    held_out: tuple[dict[str, int], int]
    lines: readers.LineCounts
    num_bytes: int


def count_block(
    block: text_blocks.TextBlock, input_format: str, do_lower_case: bool, hold_out: bool
) -> BlockWords:
    """Return the `BlockWords` of a block.

    Args:
      block: `text_blocks.TextBlock`.
      input_format: one of `readers.FORMATS`.
      do_lower_case: whether text is lowercased.
      hold_out: whether to count one of 20 sentences separately.
    """
    # A block has too few words to reach this limit.
    counters = [WordCounter(do_lower_case, block.num_bytes + 1) for _ in range(2)]
    lines = readers.LineCounts()
    documents = text_blocks.documents_of(block, input_format, lines)
    for sentence in itertools.chain.from_iterable(documents):
        counters[hold_out and _is_held_out(sentence)].add(sentence)
    text, held_out = (
        (dict(counter.words()), counter.num_too_long()) for counter in counters
    )
    return BlockWords(text, held_out, lines, block.num_bytes)


def _is_held_out(sentence):
    number = zlib.crc32(sentence.encode("utf-8", "surrogatepass"))
    return number % HOLD_OUT_EVERY == 0


def count_words(
    paths: Sequence[str],
    input_format: str,
    do_lower_case: bool,
    hold_out: bool,
    num_workers: int = 1,
) -> tuple[WordCounter, WordCounter]:
    """Return the `WordCounter`s of files' text and of held-out sentences.

    Args:
      paths: list of str, from `text_blocks.find_inputs`.
      input_format: one of `readers.FORMATS`.
      do_lower_case: whether text is lowercased.
      hold_out: see `count_block`.
      num_workers: number of processes; the result does not depend on it.

    Raises:
      UserError: a file cannot be read or has another format.
    """
    text, held_out = WordCounter(do_lower_case), WordCounter(do_lower_case)
    lines = readers.LineCounts()
    how = (input_format, do_lower_case, hold_out)
    blocks = text_blocks.blocks_of_files(paths, input_format)
    total = text_blocks.total_bytes(paths)
    with progress(total, "counting words", "B") as on_bytes:
        for found in workers.run_tasks(_make_counter, how, blocks, num_workers):
            text.add_counts(*found.text)
            held_out.add_counts(*found.held_out)
            lines.add(found.lines.lines, found.lines.invalid)
            on_bytes(found.num_bytes)
    lines.warn(given_paths.named(map(text_blocks.name_of, paths)))
    return text, held_out


def _make_counter(*how):
    """Return the function that counts one block, for `workers.run_tasks`."""
    return lambda block: count_block(block, *how)
