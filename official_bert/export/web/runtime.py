"""The files of LiteRT.js, which runs a `.tflite` in browsers.

They come from npm and are too large for this project. The exporter runs `npm
pack` or uses already packed files, and compares their SHA-512.
"""

import base64
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

from official_bert import files
from official_bert.errors import UserError

LICENSE = files.shipped("LICENSE")
# Enough for npm to download 12 MB.
_TIMEOUT_S = 300
_NOTICE = """\
This folder holds files of these npm packages:

{packages}

Copyright 2025 Google LLC. License: Apache 2.0, see LICENSE.
Source: https://github.com/google-ai-edge/LiteRT (litert/js/packages).

Changes by official_bert: core.js imports ./wasm-utils.js by its path, and the links to
source maps are removed.
"""


@dataclasses.dataclass(frozen=True)
class Package:
    """A package on npm.

    Attributes:
      name: with its scope.
      version: the tested version.
      integrity: base64 of its SHA-512, as shown by `npm view NAME
        dist.integrity`.
    """

    name: str
    version: str
    integrity: str

    @property
    def spec(self) -> str:
        """Return the package with its version, as an npm argument."""
        return f"{self.name}@{self.version}"

    @property
    def file(self) -> str:
        """Return the file name that `npm pack` creates."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}.tgz"


CORE = Package(
    "@litertjs/core",
    "2.5.3",
    "PlGmbMOq9WitX7FO0jhbdJw9GthatsyuCQXjTt/wJZo0FLaw48q4tz8IwqgqCIkviYGr9OFDL1kCnN4nzW"
    "oyJQ==",
)
WASM_UTILS = Package(
    "@litertjs/wasm-utils",
    "2.5.3",
    "4fJiw6tBQnIs+0jH/OQ16nYOiSl8/+zZnn5h2ul8aTKHi05sVqZW580Tmk78pC2kT39A9OYBVdFawteZ/s"
    "I1kQ==",
)
PACKAGES = (CORE, WASM_UTILS)
# An import in LiteRT.js that needs a bundler -> an import for browsers.
_IMPORT = ('from "@litertjs/wasm-utils"', 'from "./wasm-utils.js"')
PACK = f"npm pack {' '.join(one.spec for one in PACKAGES)}"


def write(folder: str | os.PathLike[str], packed: str | None = None) -> None:
    """Write LiteRT.js with its license.

    Args:
      folder: must not exist yet.
      packed: folder with the files from `PACK`; None to run it.

    Raises:
      UserError: npm is missing or fails, or a file is missing or differs from
        the tested one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        if packed is None:
            _pack(temporary)
        sources = [pathlib.Path(packed or temporary, one.file) for one in PACKAGES]
        for package, source in zip(PACKAGES, sources, strict=True):
            _check(package, source)
        _extract(pathlib.Path(folder), *sources)


def _pack(folder):
    """Run `npm pack` in a folder."""
    npm = shutil.which("npm")
    remedy = (
        f"Run `{PACK}` on a machine with npm, and give the folder with its two "
        "files: --web_runtime=FOLDER."
    )
    if not npm:
        raise UserError(
            "--format=web copies the runtime LiteRT.js from npm, but npm is "
            f"not installed (Debian: apt install npm). {remedy}"
        )
    command = [npm, "pack", "--silent", *(one.spec for one in PACKAGES)]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"npm did not finish within {_TIMEOUT_S} s: `{PACK}`. {remedy}"
        ) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[0] if lines else f"exit status {done.returncode}"
        raise UserError(f"`{PACK}` failed: {reason}. {remedy}")


def _check(package, source):
    """Compare a packed file with the pinned SHA-512."""
    try:
        content = source.read_bytes()
    except OSError as error:
        raise UserError(
            f"--web_runtime: cannot read {source}: {error.strerror}. Create it "
            f"with `{PACK}`."
        ) from error
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != package.integrity:
        raise UserError(
            f"{source} is not {package.spec}: its SHA-512 differs from the "
            f"tested one. Delete it and run `{PACK}` again."
        )


def _extract(folder, core, wasm_utils):
    """Write the files that a page loads."""
    (folder / "wasm").mkdir(parents=True)
    with tarfile.open(core) as archive:
        module = _read(archive, "package/dist/index.js").decode()
        for member in archive.getmembers():
            path = pathlib.PurePosixPath(member.name)
            if path.parent.name == "wasm" and path.suffix in (".js", ".wasm"):
                (folder / "wasm" / path.name).write_bytes(_read(archive, member.name))
    with tarfile.open(wasm_utils) as archive:
        helper = _read(archive, "package/dist/index.js").decode()
    if module.count(_IMPORT[0]) != 1:
        # The SHA-512 is pinned, so only a new version of `CORE` can cause this.
        raise ValueError(f"{CORE.spec} does not import {WASM_UTILS.name} once.")
    for name, text in (("core.js", module), ("wasm-utils.js", helper)):
        text = text.replace(*_IMPORT)
        lines = [one for one in text.splitlines() if "//# sourceMappingURL" not in one]
        files.write_text(folder / name, "\n".join(lines) + "\n")
    files.copy(LICENSE, folder / "LICENSE")
    names = "\n".join(one.spec for one in PACKAGES)
    files.write_text(folder / "NOTICE", _NOTICE.format(packages=names))


def _read(archive, name):
    """Return the bytes of a file in a tar archive."""
    source = archive.extractfile(name)
    assert source is not None, name  # The pinned SHA-512 guarantees that it is a file.
    return source.read()
