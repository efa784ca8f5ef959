"""Estimate disk, memory and time of a long job before it begins.

The constants were measured on English text (Wikipedia and books, length 128 and
512, one core of a 2020s server). Expect the true values within a factor of two.
"""

import dataclasses
import os
import shutil
from collections.abc import Iterable

from absl import logging

from official_bert import files, given_paths, machine
from official_bert.data.instances import InstanceSettings

BYTES_PER_TOKEN = 4.4
COMPRESSION = 3
# Average share of filled positions in a record; the rest is lost to truncation
# and short sequences.
FILL = 0.7
# Memory of Python, NumPy and TensorFlow before any text is read.
BASE_MEMORY = 450e6
MEMORY_PER_TOKEN = 15
MEMORY_PER_RECORD = 60
SECONDS_PER_BYTE = 0.16e-6
SECONDS_PER_TOKEN = 0.65e-6
SECONDS_PER_TOKEN_WHOLE_WORDS = 1.0e-6


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Resources for creating records.

    Attributes:
      text_bytes: bytes of input text.
      disk_bytes: bytes of output.
      memory_bytes: peak memory.
      seconds: time on one core.
    """

    text_bytes: float
    disk_bytes: float
    memory_bytes: float
    seconds: float


def estimate(input_files: Iterable[str], settings: InstanceSettings) -> Estimate:
    """Return the `Estimate` for the sizes of the input files.

    Args:
      input_files: list of paths.
      settings: `instances.InstanceSettings`.
    """
    text_bytes = sum(
        files.size(path) * (COMPRESSION if path.endswith(".gz") else 1)
        for path in input_files
    )
    tokens = text_bytes / BYTES_PER_TOKEN
    disk_bytes = bytes_of_records(tokens, settings)
    per_token = SECONDS_PER_TOKEN
    if settings.do_whole_word_mask:
        per_token = SECONDS_PER_TOKEN_WHOLE_WORDS
    return Estimate(
        text_bytes=text_bytes,
        disk_bytes=disk_bytes,
        # All records are in memory until the last one is made.
        memory_bytes=BASE_MEMORY
        + MEMORY_PER_TOKEN * tokens
        + MEMORY_PER_RECORD * _count_records(tokens, settings)
        + disk_bytes,
        seconds=SECONDS_PER_BYTE * text_bytes
        + per_token * tokens * settings.dupe_factor,
    )


def bytes_of_records(num_tokens: float, settings: InstanceSettings) -> float:
    """Return the approximate size in bytes of the records for a number of tokens."""
    # Ids take two or three bytes, other integers one, a weight four.
    size = 200 + 4.1 * settings.max_seq_length
    if settings.masking == "static":
        size += 7.2 * settings.max_predictions_per_seq
    return _count_records(num_tokens, settings) * size


def _count_records(num_tokens, settings):
    return num_tokens * settings.dupe_factor / (FILL * settings.max_seq_length)


def announce(expected: Estimate, output_file: str | os.PathLike[str]) -> None:
    """Log an estimate; warn if the disk or the memory looks too small.

    Args:
      expected: `Estimate`.
      output_file: a path on the disk that will be written.
    """
    logging.info(
        "%s of text: expect about %s of records, %s of memory, %s.",
        _size(expected.text_bytes),
        _size(expected.disk_bytes),
        _size(expected.memory_bytes),
        _duration(expected.seconds),
    )
    warn_of_disk(expected.disk_bytes, output_file)
    memory = machine.total_memory()
    if memory and expected.memory_bytes > memory:
        logging.warning(
            "This machine has %s of memory, which may not be enough. Use "
            "--num_workers=1 or more, which needs little memory for any size "
            "of text.",
            _size(memory),
        )


def warn_of_disk(num_bytes: float, output_file: str | os.PathLike[str]) -> None:
    """Log a warning if this many bytes may not fit on the disk of a file."""
    if files.is_remote(output_file):
        return
    folder = given_paths.existing_parent(output_file)
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        logging.warning(
            "%s has %s free, which may not be enough. Lower --dupe_factor, or "
            "write to another disk.",
            folder,
            _size(free),
        )


def _size(number):
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number /= 1000
        del units[0]
    return f"{number:.3g} {units[0]}"


def _duration(seconds):
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
