"""Convert text to token ids on disk, block by block, each only once.

A block's ids are in `000000.ids` (see `token_store`), its facts in
`000000.json.gz`. The facts are written last, so a block with facts is finished.
It is rebuilt only if its text or settings have changed.
"""

import dataclasses
import gzip
import hashlib
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from absl import logging

from official_bert import files, given_paths
from official_bert.corpus import readers, text_blocks
from official_bert.corpus.progress import progress
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.engines import token_store, workers
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.wordpiece import UNKNOWN

# Raise this when the files of a finished block change.
FORMAT = 1
# A rough estimate. A corpus with more expected lines keeps a smaller sample per
# block for the corpus report.
BYTES_OF_A_LINE = 100


@dataclasses.dataclass(frozen=True)
class Encoding:
    """Settings for converting text to ids.

    Attributes:
      vocab_file: the vocabulary.
      vocab_sha256: SHA-256 of that file.
      do_lower_case: whether text is lowercased.
      whole_words: whether ids are marked with `masking.CONTINUES`.
      input_format: one of `readers.FORMATS`.
      max_seq_length: S, for the corpus report.
      expected_lines: expected number of lines; see `CorpusStatistics`.
    """

    vocab_file: str
    vocab_sha256: str
    do_lower_case: bool
    whole_words: bool
    input_format: str
    max_seq_length: int
    expected_lines: int

    @classmethod
    def of(
        cls,
        vocab_file: str,
        tokenizer: FullTokenizer,
        settings: InstanceSettings,
        input_format: str,
        input_files: Iterable[str],
        size_of: Callable[[str], int],
    ) -> Self:
        """Return the settings from a `FullTokenizer` and `InstanceSettings`.

        The standard input has an unknown number of lines, which counts as 0.
        """
        known = [path for path in input_files if path != text_blocks.STANDARD_INPUT]
        return cls(
            vocab_file,
            files.sha256_of(vocab_file),
            tokenizer.do_lower_case,
            settings.do_whole_word_mask,
            input_format,
            settings.max_seq_length,
            expected_lines=sum(map(size_of, known)) // BYTES_OF_A_LINE,
        )

    def digest_of(self, block: text_blocks.TextBlock) -> str:
        """Return the SHA-256, hex, of everything that a block's ids depend on."""
        made_with = {**dataclasses.asdict(self), "format": FORMAT}
        del made_with["vocab_file"]
        text = json.dumps([made_with, block.digest()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus with all blocks finished.

    Attributes:
      paths: list of str, the files of ids.
      sizes: list of `token_store.BlockSize`.
      statistics: `CorpusStatistics` of the text.
      num_bytes: bytes of text.
      digest: SHA-256, hex, of everything that the ids depend on.
    """

    paths: list[str]
    sizes: list[token_store.BlockSize]
    statistics: CorpusStatistics
    num_bytes: int
    digest: str

    @property
    def num_documents(self) -> int:
        """Return the number of documents in the corpus."""
        return sum(size.documents for size in self.sizes)


def encode_corpus(
    input_files: Sequence[str], encoding: Encoding, folder: str, num_workers: int
) -> EncodedCorpus:
    """Write all text as ids, with progress; return the `EncodedCorpus`.

    Args:
      input_files: list of paths, `-` for the standard input.
      encoding: `Encoding`.
      folder: target of the blocks; may contain finished ones.
      num_workers: number of processes.

    Raises:
      UserError: a file cannot be read, or has another format.
    """
    files.make_directory(folder, "--output_file")
    files.remove_leftovers(folder)
    tokenizer = FullTokenizer(encoding.vocab_file, encoding.do_lower_case)
    statistics, counts = new_statistics(encoding, tokenizer), readers.LineCounts()
    digests: list[str] = []
    blocks: dict[int, dict[str, Any]] = {}
    total = text_blocks.total_bytes(input_files)
    with progress(total, "reading", "B", "documents") as update:

        def add(saved):
            statistics.merge(CorpusStatistics.from_dict(saved.pop("statistics")))
            counts.add(saved["lines"], saved["invalid"])
            blocks[saved["number"]] = saved
            update(saved["num_bytes"], saved["size"]["documents"])

        tasks = _unfinished(input_files, encoding, folder, digests, add)
        for saved in workers.run_tasks(
            _make_block_encoder, (encoding, folder), tasks, num_workers
        ):
            add(saved)
    counts.warn(given_paths.named(map(text_blocks.name_of, input_files)))
    in_order = [blocks[number] for number in range(len(digests))]
    return EncodedCorpus(
        [str(_paths(folder, saved["number"])[0]) for saved in in_order],
        [token_store.BlockSize(**saved["size"]) for saved in in_order],
        statistics,
        sum(saved["num_bytes"] for saved in in_order),
        hashlib.sha256("".join(digests).encode()).hexdigest(),
    )


def _unfinished(input_files, encoding, folder, digests, add):
    """Yield (number, digest, block) of unfinished blocks; `add` finished ones."""
    is_said = False
    for number, block in enumerate(
        text_blocks.blocks_of_files(input_files, encoding.input_format)
    ):
        digests.append(encoding.digest_of(block))
        ids_path, facts_path = _paths(folder, number)
        if ids_path.exists() and facts_path.exists():
            saved = json.loads(gzip.decompress(facts_path.read_bytes()))
            if saved["digest"] == digests[-1]:
                add(saved)
                continue
            if not is_said:
                is_said = True
                logging.info(
                    "%s belongs to other text or settings; starting again.", folder
                )
        yield number, digests[-1], block


def _paths(folder, number):
    """Return the paths of a block's ids and of its facts."""
    return (
        pathlib.Path(folder, f"{number:06d}.ids"),
        pathlib.Path(folder, f"{number:06d}.json.gz"),
    )


def new_statistics(encoding: Encoding, tokenizer: FullTokenizer) -> CorpusStatistics:
    """Return empty `CorpusStatistics`."""
    return CorpusStatistics(
        tokenizer.vocab[UNKNOWN], encoding.max_seq_length, encoding.expected_lines
    )


def _make_block_encoder(encoding, folder):
    """Return the function that converts one block, for `workers.run_tasks`."""
    tokenizer = FullTokenizer(encoding.vocab_file, encoding.do_lower_case)
    highest = token_store.highest_token(tokenizer, encoding.whole_words)

    def encode(task):
        number, digest, block = task
        statistics = new_statistics(encoding, tokenizer)
        counts = readers.LineCounts()
        documents = encode_block(block, encoding, tokenizer, statistics, counts)
        ids_path, facts_path = _paths(folder, number)
        # Facts of other text become invalid now.
        facts_path.unlink(missing_ok=True)
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
        # Compressed, because it contains a sample of the block's lines.
        packed = gzip.compress(json.dumps(saved).encode(), compresslevel=1)
        with files.atomic_path(facts_path) as temporary:
            pathlib.Path(temporary).write_bytes(packed)
        return saved

    return encode


def encode_block(
    block: text_blocks.TextBlock,
    encoding: Encoding,
    tokenizer: FullTokenizer,
    statistics: CorpusStatistics,
    counts: readers.LineCounts,
) -> Iterator[list[list[int]]]:
    """Yield the documents of a block as lists of lists of ids.

    Args:
      block: `text_blocks.TextBlock`.
      encoding: `Encoding`.
      tokenizer: `FullTokenizer` with the settings of `encoding`.
      statistics: `CorpusStatistics` that counts the documents.
      counts: `readers.LineCounts` that counts the lines.
    """
    statistics.counts["cut_documents"] += block.num_cut
    return pretraining_data.encode_documents(
        text_blocks.documents_of(block, encoding.input_format, counts),
        tokenizer,
        encoding.whole_words,
        statistics,
        place=f"{block.unit}/{block.number}/",
    )
