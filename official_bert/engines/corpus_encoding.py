"""Text to token ids on the disk, block by block, each of which is made once.

A block's ids are in `000000.ids` (see `token_store`), and what is known of it
in `000000.json.gz`, which is written last: a block that has one is finished, and
is made again only if its text or what it was made with has changed.
"""

import dataclasses
import gzip
import hashlib
import json
import os
import pathlib

from absl import logging

from official_bert import files
from official_bert.corpus import readers, text_blocks
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import pretraining_data
from official_bert.engines import token_store, workers
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.wordpiece import UNKNOWN

# Goes up when the files of a finished block would be others.
FORMAT = 1
# A rough guess. The more lines a corpus should have, the smaller the sample that
# each block keeps for the corpus report.
BYTES_OF_A_LINE = 100


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How text becomes ids.

    Attributes:
      vocab_file: the vocabulary.
      vocab_sha256: of that file.
      do_lower_case: whether text is lower-cased.
      whole_words: whether ids are marked with `masking.CONTINUES`.
      input_format: one of `readers.FORMATS`.
      max_seq_length: for the corpus report.
      expected_lines: likewise, see `CorpusStatistics`.
    """

    vocab_file: str
    vocab_sha256: str
    do_lower_case: bool
    whole_words: bool
    input_format: str
    max_seq_length: int
    expected_lines: int

    @classmethod
    def of(cls, vocab_file, tokenizer, settings, input_format, expected_lines):
        """Take what there is to know from a `FullTokenizer` and `InstanceSettings`."""
        return cls(
            vocab_file,
            files.sha256_of(vocab_file),
            tokenizer.do_lower_case,
            settings.do_whole_word_mask,
            input_format,
            settings.max_seq_length,
            expected_lines,
        )

    def digest_of(self, block):
        """Return the SHA-256, hex, of all that a block's ids depend on."""
        made_with = {**dataclasses.asdict(self), "format": FORMAT}
        del made_with["vocab_file"]
        text = json.dumps([made_with, block.digest()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus of which all blocks are finished.

    Attributes:
      paths: list of str, the files of ids.
      sizes: list of `token_store.BlockSize`.
      statistics: `CorpusStatistics` of the text.
      num_bytes: of text.
      digest: SHA-256, hex, of all that the ids depend on.
    """

    paths: list
    sizes: list
    statistics: CorpusStatistics
    num_bytes: int
    digest: str

    @property
    def num_documents(self):
        """Documents of the corpus."""
        return sum(size.documents for size in self.sizes)


def encode_corpus(input_files, encoding, folder, num_workers, update):
    """Write all text as ids.

    Args:
      input_files: list of paths, `-` for the standard input.
      encoding: `Encoding`.
      folder: where the blocks are written; finished ones may be there.
      num_workers: how many processes do it.
      update: function, called with bytes and documents of each block.

    Returns:
      `EncodedCorpus`.

    Raises:
      UserError: a file cannot be read, or is of another format.
    """
    tokenizer = FullTokenizer(encoding.vocab_file, encoding.do_lower_case)
    found = _Blocks(folder, encoding, update, new_statistics(encoding, tokenizer))
    for saved in workers.run_tasks(
        make_block_encoder,
        (encoding, folder),
        found.unfinished(input_files),
        num_workers,
    ):
        found.add(saved)
    found.counts.warn(files.named(map(text_blocks.name_of, input_files)))
    return found.corpus()


class _Blocks:
    """The blocks of a corpus, while they are being finished."""

    def __init__(self, folder, encoding, update, statistics):
        self.counts = readers.LineCounts()
        self._folder = folder
        self._encoding = encoding
        self._update = update
        self._statistics = statistics
        self._digests = []
        self._sizes = {}
        self._num_bytes = 0

    def unfinished(self, input_files):
        """Yield (number, digest, block) of the blocks that are to be made."""
        is_said = False
        input_format = self._encoding.input_format
        for block in text_blocks.blocks_of_files(input_files, input_format):
            number, digest = len(self._digests), self._encoding.digest_of(block)
            self._digests.append(digest)
            saved = _read(self._folder, number)
            if saved and saved["digest"] == digest:
                self.add(saved)
                continue
            if saved and not is_said:
                is_said = True
                logging.info(
                    "%s is of other text or settings: starting anew.", self._folder
                )
            yield number, digest, block

    def add(self, saved):
        """Count a finished block."""
        self._sizes[saved["number"]] = token_store.BlockSize(**saved["size"])
        self._num_bytes += saved["num_bytes"]
        self.counts.add(saved["lines"], saved["invalid"])
        self._statistics.merge(CorpusStatistics.from_dict(saved["statistics"]))
        self._update(saved["num_bytes"], saved["size"]["documents"])

    def corpus(self):
        """Return all of it."""
        numbers = range(len(self._digests))
        return EncodedCorpus(
            [_paths(self._folder, number)[0] for number in numbers],
            [self._sizes[number] for number in numbers],
            self._statistics,
            self._num_bytes,
            hashlib.sha256("".join(self._digests).encode()).hexdigest(),
        )


def _paths(folder, number):
    name = os.path.join(folder, f"{number:06d}")
    return f"{name}.ids", f"{name}.json.gz"


def _write(path, saved):
    """Write what is known of a block, compressed: it has a sample of its lines."""
    packed = gzip.compress(json.dumps(saved).encode(), compresslevel=1)
    with files.atomic_path(path) as temporary:
        pathlib.Path(temporary).write_bytes(packed)


def _read(folder, number):
    """Return what is known of a block; None unless it is finished."""
    ids, facts = map(pathlib.Path, _paths(folder, number))
    if not (ids.exists() and facts.exists()):
        return None
    return json.loads(gzip.decompress(facts.read_bytes()))


def new_statistics(encoding, tokenizer):
    """Return `CorpusStatistics` in which nothing is counted yet."""
    return CorpusStatistics(
        tokenizer.vocab[UNKNOWN], encoding.max_seq_length, encoding.expected_lines
    )


def guess_lines(input_files, size_of=os.path.getsize):
    """Return about how many lines files have, for `CorpusStatistics`.

    Args:
      input_files: list of paths, `-` for the standard input, which may have any.
      size_of: function, path -> bytes.
    """
    known = [path for path in input_files if path != text_blocks.STANDARD_INPUT]
    return sum(map(size_of, known)) // BYTES_OF_A_LINE


def make_block_encoder(encoding, folder):
    """Return the function that makes one block, for `workers.run_tasks`."""
    tokenizer = FullTokenizer(encoding.vocab_file, encoding.do_lower_case)
    highest = token_store.highest_token(tokenizer, encoding.whole_words)

    def encode(task):
        number, digest, block = task
        statistics = new_statistics(encoding, tokenizer)
        counts = readers.LineCounts()
        documents = encode_block(block, encoding, tokenizer, statistics, counts)
        ids_path, facts_path = _paths(folder, number)
        # What is known of another text is no longer true from here on.
        pathlib.Path(facts_path).unlink(missing_ok=True)
        size = token_store.write_block(ids_path, documents, highest)
        saved = {
            "number": number,
            "digest": digest,
            "size": dataclasses.asdict(size),
            "num_bytes": block.num_bytes,
            "lines": counts.lines,
            "invalid": counts.invalid,
            "statistics": statistics.to_dict(),
        }
        _write(facts_path, saved)
        return saved

    return encode


def encode_block(block, encoding, tokenizer, statistics, counts):
    """Yield the documents of a block as lists of lists of ids.

    Args:
      block: `text_blocks.TextBlock`.
      encoding: `Encoding`.
      tokenizer: `FullTokenizer`, as `encoding` says.
      statistics: `CorpusStatistics` to count them in.
      counts: `readers.LineCounts` likewise.
    """
    statistics.add_cut_documents(block.num_cut)
    return pretraining_data.encode_documents(
        text_blocks.documents_of(block, encoding.input_format, counts),
        tokenizer,
        encoding.whole_words,
        statistics,
        place=f"{block.unit}/{block.number}/",
    )
