"""Datasets of `tensorflow-datasets` (TFDS), and their names.

A name is `DATASET` or `DATASET/CONFIG`, as TFDS writes it, and may end with
`:VERSION`: `imdb_reviews`, `glue/mrpc`, `squad/v2.0:3.0.0`. Of `xnli` and
`xtreme_xnli` the part after the slash is a language: `xnli/zh`.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from official_bert.errors import UserError

TRAIN, DEV, TEST = "train", "dev", "test"
# Part of a run -> the names of the split, the best one first.
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
    """A dataset that is ready to be read.

    Attributes:
      name: without the version, as `glue/mrpc`.
      builder: the builder of TFDS.
      language: the one to read, of texts that have translations, or None.
    """

    name: str
    builder: Any
    language: str | None = None

    @property
    def features(self) -> dict[str, Any]:
        """Name -> feature of TFDS, of the columns."""
        import tensorflow_datasets as tfds

        features = dict(self.builder.info.features)
        if isinstance(self.builder, tfds.core.read_only_builder.ReadOnlyBuilder):
            # Without their code, they have another order in each process.
            return dict(sorted(features.items()))
        return features

    @property
    def translations(self) -> list[str]:
        """Names of the features whose texts have translations, one of them read."""
        if self.language is None:
            return []
        return [
            name for name, each in self.features.items() if hasattr(each, "languages")
        ]

    def find_split(self, part: str) -> str | None:
        """Return the name of the split for `TRAIN`, `DEV` or `TEST`, or None.

        If no split has one of the usual names, the first that begins with one is
        taken: `validation_matched`.
        """
        splits = sorted(self.builder.info.splits)
        if not splits:  # Those of made-up data are unknown: any name is right.
            return _SPLITS[part][0]
        for name in _SPLITS[part]:
            if name in splits:
                return name
        usual = tuple(f"{name}_" for name in _SPLITS[part])
        return next((name for name in splits if name.startswith(usual)), None)

    def require_split(self, part: str) -> str:
        """Return `find_split`; raise `UserError` if there is no such split."""
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

        Texts are str, and sequences are lists. TFDS stores rows in a shuffled
        order that is always the same.

        Args:
          split: the name of the split.

        Raises:
          UserError: the files are damaged, or a text is not UTF-8 or lacks the
            language.
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
        """Return what identifies the data, fit for JSON.

        Keys: name, version, source (homepage), license (or None), citations
        (keys of BibTeX) and checksums (URL -> SHA-256 of each download that TFDS
        has one of).
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
                f"--dataset={self.name}: row {number} has no {self.language} text in "
                f"{name}. Choose another language."
            )
        return texts[self.language]


def parse_name(name: str) -> DatasetName:
    """Return the parts of a name.

    Raises:
      UserError: it is not written like one.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise UserError(
            f"--dataset={name} is not a name of TFDS. Write DATASET, DATASET/CONFIG, "
            "or either with :VERSION, as glue/mrpc or squad/v2.0:3.0.0."
        )
    return DatasetName(*match.groups())


def one_line(text: object) -> str:
    """Return a message of TFDS on one line, without its full stop, cut if long."""
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= _MOST_OF_AN_ERROR else f"{line[:_MOST_OF_AN_ERROR]}…"


def _plain(value):
    """Return a value of `tfds.as_numpy` as Python values."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if getattr(value, "shape", None) == () and value.dtype == "float32":
        return float(str(value))  # 3.8 stays 3.8.
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value
