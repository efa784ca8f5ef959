"""KerasHub presets from Kaggle, through the cache of `kagglehub`.

The library reads KAGGLEHUB_CACHE, KAGGLE_API_TOKEN, KAGGLE_USERNAME with
KAGGLE_KEY, and the proxy variables. The next call continues an interrupted
download.
"""

import logging
import os
import pathlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from official_bert.checkpoints.hub import names, storage, wanted_files
from official_bert.checkpoints.hub.hugging_face import check_is_bert
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError

SCHEME = "kaggle://"
CONFIG, TASK, TASK_WEIGHTS = "config.json", "task.json", "task.weights.h5"
OTHERS = ("tokenizer.json", "assets/tokenizer/vocabulary.txt")
WEIGHTS = wanted_files.PRESET_WEIGHTS[0]
NOT_FOUND = 404
FORBIDDEN = (401, 403)
BYTES_PER_PARAMETER = 4
LOG_IN = "set KAGGLE_API_TOKEN"


def find(name: str, handle: str) -> LocalModel:
    """Return the `LocalModel` of a preset; download it if the cache lacks it.

    Args:
      name: the name used in messages.
      handle: "owner/model/keras/variation", optionally with "/version".

    Raises:
      UserError: the model cannot be downloaded, or is not a BERT model.
    """
    parsed = _parse(name, handle)
    with _explained(name), _off_standard_output():
        if not parsed.is_versioned():
            parsed = _newest_cached(parsed)
        model = _cached(name, parsed)
        if model is None:
            with _locked(str(parsed)):
                # Another process may have downloaded the preset in the
                # meantime.
                model = _cached(name, parsed) or _model(
                    name, parsed, _download(name, str(parsed))
                )
    return model


def _parse(name, handle):
    """Return the library's handle; a `UserError` describes an invalid one."""
    from kagglehub.handle import parse_model_handle

    try:
        return parse_model_handle(handle)
    except ValueError as error:
        raise UserError(
            f"{name} is not a valid model handle ({error}). Use "
            f"{SCHEME}owner/model/keras/variation, optionally with /version."
        ) from error


def _locked(handle):
    """Return a lock against other processes; kagglehub has no locks."""
    import filelock
    from kagglehub.config import get_cache_folder

    storage.make_folder(get_cache_folder(), "KAGGLEHUB_CACHE")
    return filelock.FileLock(
        os.path.join(get_cache_folder(), f".{handle.replace('/', '--')}.lock")
    )


def _newest_cached(handle):
    """Return the handle of the newest cached version, or the same handle if none."""
    from kagglehub.cache import get_cached_path

    folder = pathlib.Path(get_cached_path(handle)).parent
    versions = [path.name for path in folder.glob("*") if path.name.isdigit()]
    for version in sorted(map(int, versions), reverse=True):
        if _cached("", handle.with_version(version)):
            return handle.with_version(version)
    return handle


def _cached(name, handle):
    """Return the `LocalModel` in the cache, or None if its weights are missing."""
    from kagglehub.cache import Cache

    cache = Cache()
    config = cache.load_from_cache(handle, CONFIG)
    whole = cache.load_from_cache(handle)
    if whole or (config and cache.load_from_cache(handle, WEIGHTS)):
        return _model(name, handle, whole or os.path.dirname(config))
    return None


def _model(name, handle, folder):
    """Return the `LocalModel` of a folder; the folder's name may be the version."""
    version = os.path.basename(folder)
    version = version if version.isdigit() else str(handle.version or "")
    found = wanted_files.find_complete(folder)
    return LocalModel(name, folder, handle.to_url(), version or None, found)


def _download(name, handle):
    """Download the files of a preset, its weights last; return their folder."""
    config = _fetch(handle, CONFIG)
    if config is None:
        raise UserError(
            f"{name}: Kaggle does not have this model, or it is not a KerasHub "
            f"preset ({CONFIG} is missing). Check owner, model, variation and "
            "version."
        )
    folder = os.path.dirname(config)
    check_is_bert(name, folder)
    known = names.BY_LOCATION.get(handle)
    if known:
        needed = BYTES_PER_PARAMETER * known.parameters
        storage.check_space(folder, needed, name, "KAGGLEHUB_CACHE")
    if handle.count("/") == 3:
        # Take all files from one version, even if a newer one appears now.
        handle = f"{handle}/{os.path.basename(folder)}"
    if _fetch(handle, TASK):
        _fetch(handle, TASK_WEIGHTS)
    for each in OTHERS:
        _fetch(handle, each)
    if not _fetch(handle, WEIGHTS):
        raise UserError(
            f"{name} has no {WEIGHTS}, so the preset is incomplete. Choose "
            "another preset."
        )
    return folder


def _fetch(handle, path):
    """Return the local path of a file; None if the preset does not have it."""
    import kagglehub
    from kagglehub.exceptions import KaggleApiHTTPError

    try:
        return kagglehub.model_download(handle, path)
    except KaggleApiHTTPError as error:
        if error.response is not None and error.response.status_code == NOT_FOUND:
            return None
        raise


@contextmanager
def _off_standard_output() -> Iterator[None]:
    """Send the library's messages to stderr; standard output is for results."""
    handlers = logging.getLogger("kagglehub").handlers
    streams = [each for each in handlers if type(each) is logging.StreamHandler]
    before = [each.stream for each in streams]
    for each in streams:
        each.stream = sys.stderr
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for each, stream in zip(streams, before, strict=True):
            each.stream = stream


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Convert the errors of `kagglehub` to `UserError`."""
    import requests
    from kagglehub import exceptions

    try:
        yield
    except UserError:
        raise
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else None
        raise UserError(_of_status(status, name)) from error
    except (requests.ConnectTimeout, requests.exceptions.ProxyError) as error:
        raise UserError(_no_network(name)) from error
    except (requests.exceptions.ChunkedEncodingError, requests.Timeout) as error:
        raise UserError(_interrupted(name)) from error
    except requests.ConnectionError as error:
        # Also raised if the connection breaks during a read.
        message = _interrupted(name) if "Read" in str(error) else _no_network(name)
        raise UserError(message) from error
    except exceptions.DataCorruptionError as error:
        raise UserError(_interrupted(name)) from error
    except exceptions.UnauthenticatedError as error:
        raise UserError(_of_status(FORBIDDEN[0], name)) from error


def _of_status(status, name):
    if status in FORBIDDEN:
        return (
            f"{name}: Kaggle denies the download ({status}). If the model is "
            f"private or has terms, accept them on its page and {LOG_IN}."
        )
    if status == 429:
        return (
            f"{name}: Kaggle reports too many requests (429). Wait some "
            "minutes and repeat the command."
        )
    return f"{name}: Kaggle returned status {status}. Repeat the command later."


def _no_network(name):
    return (
        f"{name} is not in the cache, and Kaggle cannot be reached. Check the network "
        "and HTTPS_PROXY, or copy KAGGLEHUB_CACHE from another machine."
    )


def _interrupted(name):
    return (
        f"The download of {name} was interrupted. Repeat the command: it continues "
        "where the download stopped."
    )
