"""Open a dataset of `tensorflow-datasets` (TFDS), which downloads it once."""

import dataclasses
import difflib
import importlib.util
import os
import sys
from collections.abc import Iterable

from official_bert.errors import UserError, list_some
from official_bert.tables.datasets import Dataset, DatasetName, one_line

# TFDS 4.9.10 imports importlib-resources but does not require it (issue 11212).
_PACKAGES = ("tensorflow-datasets", "importlib-resources")
# Their texts have translations, but TFDS has no config for each language.
_TRANSLATED = ("xnli", "xtreme_xnli")


def require_tfds(flag: str = "--dataset") -> None:
    """Raise `UserError` unless TFDS and its undeclared dependency are installed."""
    missing = [
        package
        for package in _PACKAGES
        if importlib.util.find_spec(package.replace("-", "_")) is None
    ]
    if missing:
        raise UserError(
            f"{flag} needs {' and '.join(missing)}. Run pip install "
            f"{' '.join(missing)}, or read local files instead."
        )


def open_dataset(
    name: DatasetName, data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Download and prepare a dataset if necessary, and print its description.

    Args:
      name: `DatasetName`.
      data_dir: folder in which TFDS stores datasets; None for TFDS_DATA_DIR, or
        else TFDS's default.

    Returns:
      `Dataset`.

    Raises:
      UserError: TFDS is not installed; does not have this dataset, config, language
        or version; or cannot download or prepare it.
    """
    require_tfds()
    language = None
    if name.dataset in _TRANSLATED:
        language, name = name.config, dataclasses.replace(name, config=None)
    builder = _builder(name, data_dir)
    if name.dataset in _TRANSLATED:
        _check_language(name.dataset, language, builder.info.features)
    _prepare(name, builder)
    config = name.config or language
    if not config and len(builder.builder_configs) > 1:  # TFDS chose the first config.
        config = builder.builder_config.name
    dataset = Dataset(str(DatasetName(name.dataset, config)), builder, language)
    print(dataset.describe(), flush=True)
    return dataset


def _builder(name, data_dir):
    """Return the TFDS builder, which uses prepared data if they exist."""
    import tensorflow_datasets as tfds

    visibility = tfds.core.visibility
    # TFDS would search the network for community datasets.
    with visibility.set_availables_tmp([visibility.DatasetType.TFDS_PUBLIC]):
        try:
            # With a version, TFDS forgets the checksums of the downloads.
            newest = dataclasses.replace(name, version=None)
            builder = tfds.builder(str(newest), data_dir=data_dir)
            if name.version in (None, str(builder.version)):
                return builder
            return tfds.builder(str(name), data_dir=data_dir)
        # The errors of TFDS have no other common base class.
        except Exception as error:
            raise UserError(
                f"--dataset={name}: {_what_is_unknown(name, error)}"
            ) from error


def _what_is_unknown(name, error):
    """Return the reason why TFDS has no builder for a name, and the remedy."""
    import tensorflow_datasets as tfds

    known = tfds.list_builders(with_community_datasets=False)
    if name.dataset not in known:
        return (
            f"TFDS has no dataset {name.dataset}, and --data_dir has none prepared "
            f"of this name. {_nearest(name.dataset, known)}"
        )
    builder_class = tfds.builder_cls(name.dataset)
    configs = builder_class.builder_configs
    if name.config and name.config not in configs:
        if not configs:
            return f"{name.dataset} has no configs. Use --dataset={name.dataset}."
        return f"it has no config {name.config}. {_nearest(name.config, configs)}"
    if name.version:
        return (
            f"this TFDS does not have version {name.version} ({one_line(error)}). "
            "Leave the version out."
        )
    return f"TFDS cannot open it: {one_line(error)}."


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that lists similar names."""
    known = list(known)
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    nearest = [*filter(lambda one: name in one, known), *alike] or known
    return f"Similar names: {list_some(dict.fromkeys(nearest), most=8)}."


def _check_language(dataset, language, features):
    languages = sorted(features["premise"].languages)
    if language not in languages:
        raise UserError(
            f"--dataset={DatasetName(dataset, language)} must name a language, such "
            f"as {dataset}/zh. Languages: {', '.join(languages)}."
        )


def _prepare(name, builder):
    """Download and prepare the data, unless they are prepared."""
    import tensorflow_datasets as tfds

    if not sys.stderr.isatty():
        tfds.disable_progress_bar()
    try:
        builder.download_and_prepare()
    # Errors of downloads have no other common base class.
    except Exception as error:
        manual = builder.MANUAL_DOWNLOAD_INSTRUCTIONS
        if manual and "Manual directory" in str(error):
            folder = os.path.join(builder.data_dir_root, "downloads", "manual")
            raise UserError(
                f"--dataset={name} needs files that you must download yourself. Put "
                f"them into {folder}: {one_line(manual)}"
            ) from error
        raise UserError(
            f"--dataset={name} cannot be downloaded and prepared: {one_line(error)}. "
            f"Check the network, or copy the prepared dataset to {builder.data_dir}."
        ) from error
