"""Models in zip files on web servers, such as Google's releases.

Each model is downloaded and unpacked once, into Keras' model folder. A range
request continues an interrupted download, unless the file has changed.
"""

import glob
import hashlib
import json
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from official_bert import files
from official_bert.checkpoints import archive
from official_bert.checkpoints.hub import names, storage, wanted_files
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.errors import UserError

# Records the source of a downloaded model.
SOURCE_FILE = "download.json"
# A broken connection is retried. The download fails after this many attempts in
# a row without a new byte.
MOST_FAILURES = 5
SECONDS_BETWEEN = 1.0
# Seconds to connect, and between two pieces of the file.
TIMEOUTS = (10, 60)
CHUNK_BYTES = 1 << 20
PARTIAL, UNSATISFIABLE = 206, 416


def find(name: str, url: str) -> LocalModel:
    """Return the `LocalModel` of a zip file; download it if necessary.

    Args:
      name: the name used in messages.
      url: address of a `.zip`, `.tar.gz` or `.tgz` file.

    Raises:
      UserError: the file cannot be downloaded, or does not hold exactly one
        model.
    """
    import filelock

    folder = storage.models_folder()
    target = os.path.join(folder, _folder_name(url))
    if not os.path.isdir(target):
        storage.make_folder(folder)
        with filelock.FileLock(f"{target}.lock"):
            # Another process may have downloaded the model in the meantime.
            if not os.path.isdir(target):
                _download(name, url, target)
    source_path = os.path.join(target, SOURCE_FILE)
    source: dict = {}
    # Folders that the user copied here do not have this file.
    if os.path.exists(source_path):
        source = files.read_json(source_path, "a download's source")
    found = tuple(sorted(wanted_files.listed(target)))
    return LocalModel(name, target, url, source.get("etag"), found)


def _folder_name(url):
    """Return the folder name of a model, unique for each link."""
    known = names.BY_LOCATION.get(url)
    if known:
        return known.name
    base = url.partition("?")[0].rpartition("/")[2]
    for ending in archive.ENDINGS:
        base = base.removesuffix(ending)
    return f"{base}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def _download(name, url, target):
    """Download and unpack a file; `target` appears only when complete."""
    ending = next(e for e in archive.ENDINGS if url.partition("?")[0].endswith(e))
    partial = pathlib.Path(f"{target}.partial{ending}")
    remembered = pathlib.Path(f"{target}.partial.json")
    for leftover in glob.glob(f"{glob.escape(target)}.tmp.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with _explained(name, url):
        etag = _fetch_all(name, url, partial, remembered)
        temporary = f"{target}.tmp.{os.getpid()}"
        try:
            model = archive.unpack(str(partial), temporary, given_path=url)
            source = {"url": url, "etag": etag, "sha256": files.sha256_of(partial)}
            files.write_json(os.path.join(model, SOURCE_FILE), source)
            os.replace(model, target)
        except UserError:
            # A damaged file must be downloaded from the start.
            partial.unlink()
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    partial.unlink()
    remembered.unlink(missing_ok=True)


def _fetch_all(name, url, partial, remembered):
    """Download a file, with retries if the connection breaks; return its ETag."""
    import requests

    failures = 0
    while True:
        size = _size(partial)
        try:
            return _fetch(name, url, partial, remembered)
        except (
            requests.exceptions.ChunkedEncodingError,
            requests.ConnectionError,
            requests.Timeout,
        ):
            failures = failures + 1 if _size(partial) == size else 1
            if failures == MOST_FAILURES or not _size(partial):
                raise
            time.sleep(SECONDS_BETWEEN)


def _size(path):
    return path.stat().st_size if path.exists() else 0


def _fetch(name, url, partial, remembered):
    """Append the missing bytes of a file; return its ETag or None."""
    import requests

    size = _size(partial)
    # Only an ETag shows whether the rest belongs to the same file.
    before = json.loads(remembered.read_text())["etag"] if remembered.exists() else None
    headers = {"Accept-Encoding": "identity"}
    if size and before:
        headers |= {"Range": f"bytes={size}-", "If-Range": before}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUTS) as response:
        if response.status_code == UNSATISFIABLE and "Range" in headers:
            # The file was already complete, or longer than the server's file.
            partial.unlink()
            return _fetch(name, url, partial, remembered)
        response.raise_for_status()
        etag = response.headers.get("ETag")
        start = size if response.status_code == PARTIAL else 0
        _check_space(response, start, partial, name)
        if not start:
            # Delete the old bytes before the new ETag is stored.
            partial.unlink(missing_ok=True)
        files.write_json(remembered, {"etag": etag})
        _append(response, start, partial)
    return etag


def _check_space(response, start, partial, name):
    """Raise `UserError` if the disk has no room for the file and its contents."""
    rest = int(response.headers.get("Content-Length", 0))
    storage.check_space(str(partial.parent), 2 * rest + start, name, "KERAS_HOME")


def _append(response, start, partial):
    import requests
    import tqdm

    rest = int(response.headers.get("Content-Length", 0))
    with (
        open(partial, "r+b" if start else "wb") as file,
        tqdm.tqdm(
            desc=partial.name.partition(".partial")[0],
            total=start + rest or None,
            initial=start,
            unit="B",
            unit_scale=True,
            file=sys.stderr,
        ) as bar,
    ):
        file.seek(start)
        for chunk in response.iter_content(CHUNK_BYTES):
            file.write(chunk)
            bar.update(len(chunk))
        if rest and file.tell() != start + rest:
            raise requests.exceptions.ChunkedEncodingError("the file is not complete")


@contextmanager
def _explained(name: str, url: str) -> Iterator[None]:
    """Convert the errors of a download to `UserError`."""
    import requests

    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else None
        where = "" if name == url else f" ({url})"
        raise UserError(
            f"Cannot download {name}{where}: the server returned status "
            f"{status}. "
            + (
                "Check the link."
                if status in (401, 403, 404, 410)
                else "Repeat the command later."
            )
        ) from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise UserError(_interrupted(name)) from error
    except requests.RequestException as error:
        host = "/".join(url.split("/")[:3])
        raise UserError(
            f"{name} is not a local path, and {host} cannot be reached. Check "
            "the network and HTTPS_PROXY, or copy the model from another "
            "machine and give its path."
        ) from error


def _interrupted(name):
    return (
        f"The download of {name} was interrupted. Repeat the command: it continues "
        "where the download stopped."
    )
