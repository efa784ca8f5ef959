"""Convert text files to record files: read, tokenize, make instances, write."""

import collections
import contextlib
import dataclasses
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from absl import logging

from official_bert import files, given_paths
from official_bert.corpus import readers, text_blocks
from official_bert.corpus.progress import progress
from official_bert.corpus.report import report as corpus_report
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import estimate, instances, masking, word_boundaries
from official_bert.data.example_encoding import make_encoder
from official_bert.data.records import manifest, tfrecord
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.wordpiece import UNKNOWN


def create_pretraining_data(
    input_files: list[str],
    output_files: list[str],
    tokenizer: FullTokenizer,
    settings: instances.InstanceSettings,
    vocab_file: str,
    input_format: str = "lines",
    boundary_files: list[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Write the training instances of text files as TFRecords.

    The same files, settings and seed give the same records in the same files
    and order as the original's `create_pretraining_data.py`. All records stay
    in memory, since they are shuffled at the end.

    Args:
      input_files: list of paths from `readers.find_inputs`.
      output_files: list of paths; record k goes to file k modulo their number.
      tokenizer: `FullTokenizer`.
      settings: `instances.InstanceSettings`.
      vocab_file: path of the tokenizer's vocabulary.
      input_format: one of `readers.FORMATS`.
      boundary_files: a segmented copy of each input file for whole-word
        masking; see `word_boundaries`.

    Returns:
      dict, path -> the file's entry in the manifest.

    Raises:
      UserError: the input has no text or is invalid; nothing is written then.
    """
    read = [*input_files, *(boundary_files or []), vocab_file]
    check_output_files(output_files, read)
    estimate.announce(estimate.estimate(input_files, settings), output_files[0])
    rng = random.Random(settings.random_seed)
    corpus = CorpusStatistics(tokenizer.vocab[UNKNOWN], settings.max_seq_length)
    documents = _load_documents(
        input_files, boundary_files, input_format, tokenizer, settings, corpus
    )
    rng.shuffle(documents)
    records, num_random, labels = _make_records(
        documents, settings, tokenizer, rng, corpus
    )
    rng.shuffle(records)
    with given_paths.made_parents(output_files, "--output_file"):
        write_records(records, output_files)
    share_random = num_random / len(records)
    entry = describe(settings, tokenizer, vocab_file, corpus, share_random, labels)
    entry["has_word_boundaries"] = bool(boundary_files)
    split = len(output_files)
    entries = {
        path: {"num_records": len(range(index, len(records), split)), **entry}
        for index, path in enumerate(output_files)
    }
    manifest.write_manifest(entries)
    logging.info("%d records in %s", len(records), given_paths.named(output_files))
    corpus_report.write_report(corpus, tokenizer, output_files[0])
    return entries


def describe(
    settings: instances.InstanceSettings,
    tokenizer: FullTokenizer,
    vocab_file: str,
    corpus: CorpusStatistics,
    share_random_next: float,
    label_counts: Sequence[int],
) -> dict[str, Any]:
    """Return the manifest values that all record files share.

    Args:
      settings: `instances.InstanceSettings`.
      tokenizer: `FullTokenizer`.
      vocab_file: path of its vocabulary.
      corpus: `CorpusStatistics`.
      share_random_next: share of random pairs.
      label_counts: see `manifest.label_statistics`.
    """
    return {
        **dataclasses.asdict(settings),
        "do_lower_case": tokenizer.do_lower_case,
        "vocab_sha256": files.sha256_of(vocab_file),
        "vocab_size": len(tokenizer.vocab),
        "mask_id": tokenizer.vocab["[MASK]"],
        "corpus": corpus_report.summary(corpus),
        "has_word_boundaries": False,
        "num_documents": corpus.counts["documents"],
        "share_random_next": share_random_next,
        **manifest.describe_labels(label_counts, tokenizer.inv_vocab),
    }


def check_output_files(
    output_files: Sequence[str], input_files: Iterable[str] = ()
) -> None:
    """Raise `UserError` unless all paths can be written.

    Their folders need not exist yet.
    """
    if not output_files:
        raise UserError("--output_file is empty. Give at least one file.")
    for path in output_files:
        given_paths.require_possible_file(path, "--output_file")
    real = list(map(files.real, output_files))
    times = collections.Counter(real)
    for path, place in zip(output_files, real, strict=True):
        if times[place] > 1:
            raise UserError(
                f"--output_file contains {path} twice. Give each file once."
            )
    given_paths.require_no_input(output_files, input_files, "--output_file")
    # One path per folder.
    for path in {manifest.manifest_path(path): path for path in output_files}.values():
        manifest.check_manifest(path)


def _load_documents(
    input_files, boundary_files, input_format, tokenizer, settings, corpus
):
    """Return the documents as lists of lists of ids, and count them in `corpus`."""
    if boundary_files and input_format != "lines":
        raise UserError("--word_boundaries needs --input_format=lines.")
    total = text_blocks.total_bytes(input_files + (boundary_files or []))
    with progress(total, "reading", "B") as on_bytes:
        if boundary_files:
            encoded = word_boundaries.read_documents(
                input_files, boundary_files, tokenizer, on_bytes, corpus
            )
        else:
            texts = readers.read_documents(input_files, input_format, on_bytes)
            encoded = encode_documents(
                texts, tokenizer, settings.do_whole_word_mask, corpus
            )
        documents = list(encoded)
    check_documents(len(documents), input_files, settings)
    return documents


def encode_documents(
    documents: Iterable[Sequence[str]],
    tokenizer: FullTokenizer,
    whole_words: bool = False,
    corpus: CorpusStatistics | None = None,
    place: str = "",
) -> Iterator[list[list[int]]]:
    """Yield documents as lists of lists of ids, without empty sentences and documents.

    Args:
      documents: iterable of lists of str.
      tokenizer: `FullTokenizer`.
      whole_words: whether to mark tokens that continue a word, `##…`, with
        `masking.CONTINUES`.
      corpus: `CorpusStatistics` that counts the documents.
      place: str, prefix that distinguishes these documents from others in
        `corpus`.
    """
    marked = [
        index | masking.CONTINUES if whole_words and token.startswith("##") else index
        for token, index in tokenizer.vocab.items()
    ]
    for number, document in enumerate(documents):
        encoded = [tokenizer.encode(sentence) for sentence in document]
        if whole_words:
            encoded = [[marked[token] for token in ids] for ids in encoded]
        if corpus:
            corpus.add_document(document, encoded, f"{place}{number}")
        encoded = [ids for ids in encoded if ids]
        if encoded:
            yield encoded


def write_records(records: Sequence[bytes], output_files: Sequence[str]) -> None:
    """Write records to files, alternating between them; all files appear, or none.

    Args:
      records: list of bytes.
      output_files: list of paths; names with the ending `.gz` are compressed.
    """
    with contextlib.ExitStack() as renames:
        # All files are written before any gets its final name.
        for index, path in enumerate(output_files):
            temporary = renames.enter_context(files.atomic_path(path))
            own = itertools.islice(records, index, None, len(output_files))
            tfrecord.write_records(own, temporary, path)


def _make_records(documents, settings, tokenizer, rng, corpus):
    """Make all instances and encode each at once, since bytes save memory."""
    ids = masking.MaskingIds.of(tokenizer.vocab)
    encode = make_encoder(
        settings.max_seq_length, settings.max_predictions_per_seq, len(tokenizer.vocab)
    )
    lengths = [sum(map(len, document)) for document in documents]
    records, num_random = [], 0
    label_counts = [0] * len(tokenizer.vocab)
    total = sum(lengths) * settings.dupe_factor
    with progress(total, "making instances", " tokens") as update:
        for _ in range(settings.dupe_factor):
            for index, length in enumerate(lengths):
                for instance in instances.create_instances_from_document(
                    documents, index, settings, ids, rng
                ):
                    records.append(encode(instance))
                    corpus.sequence_lengths[len(instance.input_ids)] += 1
                    num_random += instance.is_random_next
                    for label in instance.labels():
                        label_counts[label] += 1
                update(length)
    check_records(len(records))
    return records, num_random, label_counts


def check_records(num_records: int) -> None:
    """Raise `UserError` if documents gave no records."""
    if not num_records:
        raise UserError(
            "No sentence is followed by another one. Without random next "
            "sentences (--next_sentence_fix, --nonext_sentence_prediction), "
            "only such sentences make pairs. Give more text."
        )


def check_documents(
    num_documents: int, input_files: Iterable[str], settings: instances.InstanceSettings
) -> None:
    """Raise `UserError` if there is no text; warn if there is only one document."""
    if not num_documents:
        named = given_paths.named(map(text_blocks.name_of, input_files))
        raise UserError(
            f"--input_file: {named} contains no text. Nothing was written. "
            "Give files with text."
        )
    if num_documents == 1 and not settings.always_follows(num_documents):
        logging.warning(
            "The input is one document, because it has no blank line between "
            "texts. All random next sentences therefore come from the same "
            "document, and next sentence prediction learns little. Separate "
            "documents by blank lines, or use --next_sentence_fix, which makes "
            "no such pairs."
        )
