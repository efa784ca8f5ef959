"""Datasets of `tensorflow-datasets` (TFDS), and their names.

A name is `DATASET` or `DATASET/CONFIG`, as TFDS writes it, and may end with
`:VERSION`: `imdb_reviews`, `glue/mrpc`, `squad/v2.0:3.0.0`. For `xnli` and
`xtreme_xnli` the part after the slash is a language: `xnli/zh`.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from official_bert.errors import UserError

TRAIN, DEV, TEST = "train", "dev", "test"
# Part of a run -> possible names of the split, the preferred one first.
_SPLITS = {TRAIN: ("train",), DEV: ("validation", "dev"), TEST: ("test",)}
_NAME = re.compile(r"(\w+)(?:/([\w+.-]+))?(?::(\d+\.\d+\.\d+))?", re.ASCII)
_MOST_OF_AN_ERROR = 300


@dataclasses.dataclass(frozen=True)
class DatasetName:
    """The parts of a name: dataset, config (or language) and version."""

    dataset: str
    config: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        config = f"/{self.config}" if self.config else ""
        version = f":{self.version}" if self.version else ""
        return f"{self.dataset}{config}{version}"


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset that TFDS has prepared.

    Attributes:
      name: the name without the version, such as `glue/mrpc`.
      builder: the TFDS builder.
      language: the language to read, if texts have translations; else None.
    """

    name: str
    builder: Any
    language: str | None = None

    @property
    def features(self) -> dict[str, Any]:
        """Name -> TFDS feature of each column."""
        import tensorflow_datasets as tfds

        features = dict(self.builder.info.features)
        if isinstance(self.builder, tfds.core.read_only_builder.ReadOnlyBuilder):
            # Builders that TFDS reads without code order the features differently in
            # each process.
            return dict(sorted(features.items()))
        return features

    @property
    def translations(self) -> list[str]:
        """Names of the features with translations; only `language` is read."""
        if self.language is None:
            return []
        return [
            name for name, each in self.features.items() if hasattr(each, "languages")
        ]

    def find_split(self, part: str) -> str | None:
        """Return the name of the split for `TRAIN`, `DEV` or `TEST`, or None.

        If no split has one of the usual names, it is the first split that begins with
        one, such as `validation_matched`.
        """
        splits = sorted(self.builder.info.splits)
        if not splits:  # TFDS's mock data accept any name.
            return _SPLITS[part][0]
        for name in _SPLITS[part]:
            if name in splits:
                return name
        usual = tuple(f"{name}_" for name in _SPLITS[part])
        return next((name for name in splits if name.startswith(usual)), None)

    def require_split(self, part: str) -> str:
        """Return `find_split`; raise `UserError` if the split does not exist."""
        split = self.find_split(part)
        if split is None:
            raise UserError(
                f"--dataset={self.name} has no {_SPLITS[part][0]} split, only "
                f"{', '.join(sorted(self.builder.info.splits))}. Leave out the step "
                "that needs it, or choose another dataset."
            )
        return split

    def rows(self, split: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a split as dicts of Python values.

        Texts are str, and sequences are lists. TFDS stores the rows in a shuffled
        order that never changes.

        Args:
          split: the name of the split.

        Raises:
          UserError: the files are damaged, a text is not UTF-8, or a text does not
            exist in the chosen language.
        """
        import tensorflow as tf
        import tensorflow_datasets as tfds

        translated = self.translations
        number = 0
        try:
            content = self.builder.as_dataset(split=split, shuffle_files=False)
            for number, row in enumerate(tfds.as_numpy(content), 1):
                row = _plain(row)
                for name in translated:
                    row[name] = self._in_language(row[name], name, number)
                yield row
        except (tf.errors.OpError, UnicodeDecodeError) as error:
            raise UserError(
                f"--dataset={self.name}: {split} cannot be read after row {number}: "
                f"{one_line(error)}. Remove {self.builder.data_dir} to prepare it "
                "again."
            ) from error

    def describe(self) -> str:
        """Return one line with name, version, source and license."""
        record = self.record()
        parts = [
            f"version {record['version']}",
            f"source {record['source']}",
            f"license: {record['license'] or 'not stated by TFDS'}",
        ]
        if record["citations"]:
            parts.append(f"citation: {', '.join(record['citations'])}")
        return f"Dataset {self.name}: {'; '.join(parts)}"

    def record(self) -> dict[str, Any]:
        """Return a description that identifies the data, as a dict for JSON.

        Keys: name, version, source (homepage), license (or None), citations
        (BibTeX keys) and checksums (URL -> SHA-256 of each download for which TFDS
        has one).
        """
        info = self.builder.info
        return {
            "name": self.name,
            "version": str(info.version),
            "source": info.homepage,
            "license": " ".join(info.redistribution_info.license.split()) or None,
            "citations": re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,", info.citation),
            "checksums": {
                url: each.checksum
                for url, each in (self.builder.url_infos or {}).items()
            },
        }

    def _in_language(self, texts, name, number):
        if "translation" in texts:
            pairs = zip(texts["language"], texts["translation"], strict=False)
            texts = dict(pairs)
        if self.language not in texts:
            raise UserError(
                f"--dataset={self.name}: {name} of row {number} has no {self.language} "
                f"text. Choose another language."
            )
        return texts[self.language]


def parse_name(name: str) -> DatasetName:
    """Split a name into its parts.

    Raises:
      UserError: the text is not a dataset name.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise UserError(
            f"--dataset={name} is not a TFDS name. Write DATASET or DATASET/CONFIG, "
            "optionally with :VERSION, for example glue/mrpc or squad/v2.0:3.0.0."
        )
    return DatasetName(*match.groups())


def one_line(text: object) -> str:
    """Return a TFDS message on one line without the final period, cut if long."""
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= _MOST_OF_AN_ERROR else f"{line[:_MOST_OF_AN_ERROR]}…"


def _plain(value):
    """Convert a value of `tfds.as_numpy` to Python values."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if getattr(value, "shape", None) == () and value.dtype == "float32":
        return float(str(value))  # 3.8 stays 3.8, not 3.799….
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value
