"""Record files as one data set, checked against the model before use."""

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from official_bert import given_paths
from official_bert.config import BertConfig
from official_bert.data import input_pipeline, packed_rows
from official_bert.data.dynamic_masking import MaskingRules
from official_bert.data.masking import MaskingMix
from official_bert.data.packed_rows import RowPacking
from official_bert.data.record_parsing import RecordFormat
from official_bert.data.records import examples
from official_bert.data.records import index as record_index
from official_bert.data.records.manifest import (
    check_vocabulary,
    label_statistics,
    read_manifest,
)
from official_bert.errors import UserError
from official_bert.tokenization.vocabulary import require_vocab

if TYPE_CHECKING:
    import tensorflow as tf

# Records that the unigram statistics are taken from.
SAMPLED = 20_000
# What all records that are used together must share.
SHARED = ("vocab_sha256", "do_lower_case")


@dataclasses.dataclass(frozen=True)
class RecordSet:
    """Pre-training records and what is known of them.

    Attributes:
      index: `RecordIndex`, where each record is.
      format: `RecordFormat`, how it is read.
      max_seq_length: S.
      max_predictions_per_seq: P; S - 1 if all next tokens are to be guessed.
      manifests: path -> the file's entry in `manifest.json`, {} without one.
      packing: `RowPacking`, how records share rows in training; None if they do not.
      num_tokens: of all records, without padding; counted only for packed rows.
    """

    index: record_index.RecordIndex
    format: RecordFormat
    max_seq_length: int
    max_predictions_per_seq: int
    manifests: dict[str, dict[str, Any]]
    packing: RowPacking | None = None
    num_tokens: int = 0

    @property
    def do_lower_case(self) -> bool | None:
        """The casing of the vocabulary; None where no manifest tells."""
        told = (m.get("do_lower_case") for m in self.manifests.values())
        return next((each for each in told if each is not None), None)

    @property
    def unchecked_files(self) -> list[str]:
        """The files of which no manifest says what vocabulary they were made with."""
        entries = self.manifests.items()
        return [path for path, entry in entries if "vocab_sha256" not in entry]

    @property
    def tokens_per_row(self) -> int:
        """How many tokens, and padding, a row has."""
        return self.max_seq_length

    def packed(self) -> Self:
        """Read the lengths of all records; return the set with packed rows.

        Batches of training then have rows of several records. Those of evaluations
        stay as they are.

        Raises:
          UserError: a record is damaged, or of another kind.
        """
        packing = RowPacking(
            self.format, self.max_seq_length, self.max_predictions_per_seq
        )
        rows, tokens = packed_rows.count_rows(self.index, packing)
        index = dataclasses.replace(self.index, rows=rows)
        return dataclasses.replace(
            self, index=index, packing=packing, num_tokens=tokens
        )

    def describe_packing(self) -> str:
        """Return a line that says how much padding is left in packed rows."""
        records, rows = self.index.num_records, self.index.num_rows
        after, before = (
            1.0 - self.num_tokens / (number * self.max_seq_length)
            for number in (rows, records)
        )
        return (
            f"--pack: {records:,} sequences in {rows:,} rows of {self.max_seq_length}, "
            f"{records / rows:.2f} per row. Padding: {after:.1%} of the positions, "
            f"{before:.1%} without --pack."
        )

    def check_next_sentence_prediction(self, wanted: bool) -> None:
        """Raise `UserError` if records are not made for it, or for it alone.

        Args:
          wanted: whether the model is to tell random pairs from others.
        """
        for path, manifest in self.manifests.items():
            if manifest.get("next_sentence_prediction", wanted) != wanted:
                given = f"--{'no' if wanted else ''}next_sentence_prediction"
                raise UserError(
                    f"{path} was made with {given}: give that here too, or create the "
                    "records again."
                )

    def check_batch_size(self, batch_size: int) -> None:
        """See `input_pipeline.check_batch_size`."""
        input_pipeline.check_batch_size(self.index, batch_size)

    def training_batches(
        self,
        batch_size: int,
        seed: int,
        first_batch: int,
        rows: tuple[int, int] | None = None,
    ) -> "tf.data.Dataset":
        """See `input_pipeline.training_batches`."""
        return input_pipeline.training_batches(
            self.index, self.format, batch_size, seed, first_batch, rows, self.packing
        )

    def batch_records(
        self, batch_size: int, seed: int, batch: int
    ) -> list[tuple[str, int, bytes]]:
        """See `input_pipeline.batch_records`."""
        return input_pipeline.batch_records(
            self.index, batch_size, seed, batch, self.packing
        )

    def evaluation_batches(
        self, batch_size: int, max_batches: int
    ) -> "tf.data.Dataset":
        """See `input_pipeline.evaluation_batches`."""
        return input_pipeline.evaluation_batches(
            self.index, self.format, batch_size, max_batches
        )

    def label_statistics(self) -> tuple[float, float]:
        """See `manifest.label_statistics`; of the first `SAMPLED` records."""
        size = 256
        counts = np.zeros(self.format.limits["input_ids"], np.int64)
        for batch in self.evaluation_batches(size, max_batches=SAMPLED // size):
            real = batch["masked_lm_weights"].numpy() > 0
            np.add.at(counts, batch["masked_lm_ids"].numpy()[real], 1)
        return label_statistics(counts)


def open_record_set(
    patterns: str,
    config: BertConfig,
    flag: str = "--input_file",
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    vocab_file: str | None = None,
) -> RecordSet:
    """Find, index and check record files; return the `RecordSet`.

    Args:
      patterns: comma-separated names and globs.
      config: the model's `BertConfig`.
      flag: where the patterns came from, for messages.
      max_seq_length: S that the user expects; None for that of the records.
      max_predictions_per_seq: P likewise.
      vocab_file: the vocabulary that the records should be made with.

    Raises:
      UserError: anything that would fail later, in one sentence.
    """
    lengths = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
    }
    paths = _find(patterns, flag, lengths, vocab_file)
    if vocab_file:
        require_vocab(vocab_file)
    manifests = {path: read_manifest(path) or {} for path in paths}
    check_agreement(manifests)
    index = record_index.index_files(paths)
    filled = [paths[file] for file in np.unique(index.file_of)]
    lengths, names, masking = _read_format(flag, filled, lengths, manifests)
    _check_model(flag, filled[0], lengths["max_seq_length"], masking, manifests, config)
    if config.causal_attention:
        masking = None
        lengths["max_predictions_per_seq"] = lengths["max_seq_length"] - 1
    if vocab_file:
        check_vocabulary(manifests, vocab_file)
    record_format = _record_format(config, lengths, names, masking)
    return RecordSet(index, record_format, **lengths, manifests=manifests)


def _check_model(flag, path, length, masking, manifests, config):
    """Raise `UserError` for records that a model cannot read or learn from."""
    if config.causal_attention and masking is None:
        raise UserError(
            f"{flag}: {path} has its masks, and a left-to-right model "
            "(causal_attention) reads unmasked text; create the records again with "
            "--masking=dynamic."
        )
    if length > config.max_position_embeddings:
        raise UserError(
            f"{flag}: {path} has sequences of {length}, but the model reads up to "
            f"{config.max_position_embeddings} (max_position_embeddings); create "
            "shorter records."
        )
    for made, manifest in manifests.items():
        size = manifest.get("vocab_size") or 0
        if size > config.vocab_size:
            raise UserError(
                f"{flag}: {made} was made with a vocabulary of {size} entries, but the "
                f"model's vocab_size is {config.vocab_size}; use the vocabulary of the "
                "model."
            )


def _record_format(config, lengths, names, masking):
    """Return the `RecordFormat` of records that fit a model."""
    limits = {
        "input_ids": config.vocab_size,
        "masked_lm_ids": config.vocab_size,
        "segment_ids": config.type_vocab_size,
        "masked_lm_positions": lengths["max_seq_length"],
        "next_sentence_labels": 2,
    }
    return RecordFormat(
        spec=examples.feature_spec(**lengths, names=names),
        names={theirs: ours for ours, theirs in names.items()},
        limits={name: limits[name] for name in limits if name in names},
        masking=masking,
        left_to_right=config.causal_attention,
    )


def _find(patterns, flag, lengths, vocab_file):
    """Return the files, or say which command creates them.

    Without --num_workers that command holds all records in memory.
    """
    for pattern in given_paths.split_list(patterns):
        if given_paths.find_matches(pattern):
            continue
        output = pattern.replace("*", "00")
        asked = [f"--{name}={value}" for name, value in lengths.items() if value]
        command = [
            "python run_scripts/create_pretraining_data.py --input_file=YOUR_TEXT.txt",
            f"--output_file={output} --vocab_file={vocab_file or 'vocab.txt'}",
            *asked,
        ]
        folder = os.path.dirname(output)
        if folder and not os.path.isdir(folder):
            command.insert(0, f"mkdir -p {folder} &&")
        raise UserError(
            f"{flag}: no file matches {pattern!r}. Create the records with: "
            f"{' '.join(command)} (for text of more than a few hundred MB add "
            "--num_workers=8: it needs little memory)."
        )
    return given_paths.find_input_files(patterns, flag)


def _read_format(flag, paths, asked, manifests):
    """Return the lengths, names and masking of all files, or say which one differs."""
    first, masking = _format_of(flag, paths[0], manifests)
    lengths = {name: first[name] for name in asked}
    for path in paths:
        own, own_masking = _format_of(flag, path, manifests)
        for name, expected in asked.items():
            if expected not in (None, own[name]):
                raise UserError(
                    f"--{name} is {expected}, but {path} ({flag}) was made with "
                    f"{own[name]}; give --{name}={own[name]}, or create the records "
                    "again."
                )
            if own[name] != lengths[name]:
                raise UserError(
                    f"{flag}: {path} was made with {name} {own[name]}, and {paths[0]} "
                    f"with {lengths[name]}; give files of one length."
                )
        if own_masking != masking:
            raise UserError(
                f"{flag}: {path} was made with {_tell_masking(own_masking)}, and "
                f"{paths[0]} with {_tell_masking(masking)}; give files made alike."
            )
    return lengths, first["names"], masking


def _format_of(flag, path, manifests):
    """Return what `examples.infer_lengths` does, complete, and the masking rules."""
    found = examples.infer_lengths(path)
    if found["max_predictions_per_seq"] is not None:
        return found, None
    rules = _masking_rules(flag, path, manifests[path])
    if rules.do_whole_word_mask and examples.CONTINUES_WORD not in found["names"]:
        raise UserError(
            f"{flag}: {path} has no {examples.CONTINUES_WORD}, which masking whole "
            "words needs; create it again with --do_whole_word_mask."
        )
    return {**found, "max_predictions_per_seq": rules.max_predictions_per_seq}, rules


def _masking_rules(flag, path, manifest):
    """Return how a file's unmasked records are to be masked."""
    mix = MaskingMix(**manifest.get("masking_mix", {}))
    names = [field.name for field in dataclasses.fields(MaskingRules)]
    names.remove("masking_mix")
    try:
        return MaskingRules(**{name: manifest[name] for name in names}, masking_mix=mix)
    except KeyError as error:
        raise UserError(
            f"{flag}: the records of {path} are not masked yet (--masking=dynamic), "
            f"and no manifest.json beside it tells their {error.args[0]}; put the one "
            "that was made with them there, or create them again."
        ) from error


def _tell_masking(rules):
    if rules is None:
        return "static masking"
    words = " of whole words" if rules.do_whole_word_mask else ""
    return (
        f"dynamic masking{words} at masked_lm_prob {rules.masked_lm_prob} "
        f"({rules.masking_mix})"
    )


def check_agreement(manifests: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `UserError` if records were made with different text settings.

    Args:
      manifests: dict, path of a record file -> its manifest entry or {}.
    """
    for name in SHARED:
        known = {path: m[name] for path, m in manifests.items() if name in m}
        for path, value in known.items():
            first, expected = next(iter(known.items()))
            if value != expected:
                raise UserError(
                    f"{path} was made with {name} {value}, and {first} with "
                    f"{expected}; create both with the same vocabulary and casing."
                )
