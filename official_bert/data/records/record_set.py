"""Record files as one data set, checked against the model before use."""

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from official_bert import given_paths
from official_bert.config import BertConfig
from official_bert.data import input_pipeline, packed_rows
from official_bert.data.dynamic_masking import MaskingRate, MaskingRules
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

# Number of records for the unigram statistics.
SAMPLED = 20_000
# Values that must be equal in all record files of a set.
SHARED = ("vocab_sha256", "do_lower_case")


@dataclasses.dataclass(frozen=True)
class RecordSet:
    """Pre-training records and their properties.

    Attributes:
      index: `RecordIndex`, the positions of the records.
      format: `RecordFormat`, the format of the records.
      max_seq_length: S.
      max_predictions_per_seq: P; S - 1 if all next tokens are predicted.
      manifests: path -> the file's entry in `manifest.json`, {} without one.
      packing: `RowPacking`, if records share rows in training; else None.
      num_tokens: tokens of all records, without padding; counted only for
        packed rows.
      masking_rate: `MaskingRate` in training; None for that of the records.
    """

    index: record_index.RecordIndex
    format: RecordFormat
    max_seq_length: int
    max_predictions_per_seq: int
    manifests: dict[str, dict[str, Any]]
    packing: RowPacking | None = None
    num_tokens: int = 0
    masking_rate: MaskingRate | None = None

    @property
    def do_lower_case(self) -> bool | None:
        """Return the casing of the vocabulary; None if no manifest states it."""
        told = (m.get("do_lower_case") for m in self.manifests.values())
        return next((each for each in told if each is not None), None)

    @property
    def unchecked_files(self) -> list[str]:
        """Return the files whose vocabulary is not stated by a manifest."""
        entries = self.manifests.items()
        return [path for path, entry in entries if "vocab_sha256" not in entry]

    @property
    def tokens_per_row(self) -> int:
        """Return the number of tokens, including padding, of a row."""
        return self.max_seq_length

    @property
    def training_format(self) -> RecordFormat:
        """Return the format of training batches, with room for all masked tokens."""
        if self.masking_rate is None or self.format.masking is None:
            return self.format
        rules = self.masking_rate.widest(self.format.masking, self.max_seq_length)
        return dataclasses.replace(self.format, masking=rules)

    def masked_at(self, rate: MaskingRate) -> Self:
        """Return the set with another masking rate in training, not in evaluation.

        Raises:
          UserError: the records have stored masks, or the model reads left to right.
        """
        if self.format.masking is None:
            raise UserError(
                "--masked_lm_prob in training needs records without stored masks, and "
                "a model that predicts masked tokens. Create the records with "
                "--masking=dynamic, or leave the flag out."
            )
        return dataclasses.replace(self, masking_rate=rate)

    def packed(self) -> Self:
        """Read the lengths of all records; return the set with packed rows.

        Training batches then have several records per row. Evaluation batches
        do not change.

        Raises:
          UserError: a record is damaged, or has another format.
        """
        form = self.training_format
        most = self.max_predictions_per_seq
        if form.masking is not None:
            most = form.masking.max_predictions_per_seq
        packing = RowPacking(form, self.max_seq_length, most)
        rows, tokens = packed_rows.count_rows(self.index, packing)
        index = dataclasses.replace(self.index, rows=rows)
        return dataclasses.replace(
            self, index=index, packing=packing, num_tokens=tokens
        )

    def describe_packing(self) -> str:
        """Return a line that states the remaining padding in packed rows."""
        records, rows = self.index.num_records, self.index.num_rows
        after, before = (
            1.0 - self.num_tokens / (number * self.max_seq_length)
            for number in (rows, records)
        )
        return (
            f"--pack: {records:,} sequences in {rows:,} rows of "
            f"{self.max_seq_length} tokens, {records / rows:.2f} per row. "
            f"Padding: {after:.1%} of the positions, {before:.1%} without "
            "--pack."
        )

    def check_next_sentence_prediction(self, wanted: bool) -> None:
        """Raise `UserError` if the records do not fit the next sentence setting.

        Args:
          wanted: whether the model predicts next sentences.
        """
        for path, manifest in self.manifests.items():
            if manifest.get("next_sentence_prediction", wanted) != wanted:
                given = f"--{'no' if wanted else ''}next_sentence_prediction"
                raise UserError(
                    f"{path} was created with {given}. Use the same flag here, "
                    "or create the records again."
                )

    def check_batch_size(self, batch_size: int) -> None:
        """Check the batch size; see `input_pipeline.check_batch_size`."""
        input_pipeline.check_batch_size(self.index, batch_size)

    def training_batches(
        self,
        batch_size: int,
        seed: int,
        first_batch: int,
        rows: tuple[int, int] | None = None,
    ) -> "tf.data.Dataset":
        """Return training batches; see `input_pipeline.training_batches`."""
        return input_pipeline.training_batches(
            self.index,
            self.training_format,
            batch_size,
            seed,
            first_batch,
            rows,
            self.packing,
            self.masking_rate,
        )

    def batch_records(
        self, batch_size: int, seed: int, batch: int
    ) -> list[tuple[str, int, bytes]]:
        """Return a batch's records; see `input_pipeline.batch_records`."""
        return input_pipeline.batch_records(
            self.index, batch_size, seed, batch, self.packing
        )

    def evaluation_batches(
        self, batch_size: int, max_batches: int
    ) -> "tf.data.Dataset":
        """Return evaluation batches; see `input_pipeline.evaluation_batches`."""
        return input_pipeline.evaluation_batches(
            self.index, self.format, batch_size, max_batches
        )

    def label_statistics(self) -> tuple[float, float]:
        """Return `manifest.label_statistics` of the first `SAMPLED` records."""
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
      flag: the flag with the patterns, for messages.
      max_seq_length: the expected S; None for that of the records.
      max_predictions_per_seq: the expected P; None for that of the records.
      vocab_file: the expected vocabulary of the records.

    Raises:
      UserError: the records cannot be read, or do not fit together or to the
        model.
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
            f"{flag}: {path} was created with static masking, but a "
            "left-to-right model (causal_attention) needs unmasked records. "
            "Create them again with --masking=dynamic."
        )
    if length > config.max_position_embeddings:
        raise UserError(
            f"{flag}: {path} has sequences of {length} tokens, but the model "
            f"reads at most {config.max_position_embeddings} "
            "(max_position_embeddings). Create shorter records."
        )
    for made, manifest in manifests.items():
        size = manifest.get("vocab_size") or 0
        if size > config.vocab_size:
            raise UserError(
                f"{flag}: {made} was created with a vocabulary of {size} "
                f"entries, but the model's vocab_size is {config.vocab_size}. "
                "Use the model's vocabulary."
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
    """Return the files, or raise `UserError` with the command that creates them.

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
            f"{' '.join(command)} (for more than a few hundred MB of text add "
            "--num_workers=8, which needs little memory)."
        )
    return given_paths.find_input_files(patterns, flag)


def _read_format(flag, paths, asked, manifests):
    """Return lengths, names and masking of all files; report differences."""
    first, masking = _format_of(flag, paths[0], manifests)
    lengths = {name: first[name] for name in asked}
    for path in paths:
        own, own_masking = _format_of(flag, path, manifests)
        for name, expected in asked.items():
            if expected not in (None, own[name]):
                raise UserError(
                    f"--{name} is {expected}, but {path} ({flag}) was created "
                    f"with {own[name]}. Use --{name}={own[name]}, or create the "
                    "records again."
                )
            if own[name] != lengths[name]:
                raise UserError(
                    f"{flag}: {path} was created with {name} {own[name]}, but "
                    f"{paths[0]} with {lengths[name]}. Give files with equal "
                    "lengths."
                )
        if own_masking != masking:
            raise UserError(
                f"{flag}: {path} was created with {_tell_masking(own_masking)}, "
                f"but {paths[0]} with {_tell_masking(masking)}. Give files with "
                "equal settings."
            )
    return lengths, first["names"], masking


def _format_of(flag, path, manifests):
    """Return the completed `examples.infer_lengths`, and the masking rules."""
    found = examples.infer_lengths(path)
    if found["max_predictions_per_seq"] is not None:
        return found, None
    rules = _masking_rules(flag, path, manifests[path])
    if rules.do_whole_word_mask and examples.CONTINUES_WORD not in found["names"]:
        raise UserError(
            f"{flag}: {path} has no {examples.CONTINUES_WORD}, which whole-word "
            "masking needs. Create it again with --do_whole_word_mask."
        )
    return {**found, "max_predictions_per_seq": rules.max_predictions_per_seq}, rules


def _masking_rules(flag, path, manifest):
    """Return the masking rules of a file's unmasked records."""
    mix = MaskingMix(**manifest.get("masking_mix", {}))
    names = [field.name for field in dataclasses.fields(MaskingRules)]
    names.remove("masking_mix")
    try:
        return MaskingRules(**{name: manifest[name] for name in names}, masking_mix=mix)
    except KeyError as error:
        raise UserError(
            f"{flag}: the records of {path} are unmasked (--masking=dynamic), "
            "but no manifest.json in the same folder states their "
            f"{error.args[0]}. Copy the manifest that was created with the "
            "records there, or create the records again."
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
    """Raise `UserError` if records were created with different text settings.

    Args:
      manifests: dict, path of a record file -> its manifest entry or {}.
    """
    for name in SHARED:
        known = {path: m[name] for path, m in manifests.items() if name in m}
        for path, value in known.items():
            first, expected = next(iter(known.items()))
            if value != expected:
                raise UserError(
                    f"{path} was created with {name} {value}, but {first} with "
                    f"{expected}. Create both with the same vocabulary and "
                    "casing."
                )
