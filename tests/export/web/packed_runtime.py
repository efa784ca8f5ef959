"""Replacements for the packages of LiteRT.js, as written by `npm pack`."""

import base64
import dataclasses
import hashlib
import io
import tarfile

from official_bert.export.web import runtime

MEMBERS = (
    {
        "package/dist/index.js": 'import { f } from "@litertjs/wasm-utils";\nf();\n'
        "//# sourceMappingURL=index.js.map\n",
        "package/dist/index.js.map": "{}",
        "package/wasm/litert_wasm_internal.js": "// glue\n",
        "package/wasm/litert_wasm_internal.wasm": "\0asm",
        "package/wasm/LICENSES.txt": "no file of a page",
    },
    {"package/dist/index.js": "export const f = () => {};\n"},
)


def write(folder, patch):
    """Write both files, and make the exporter expect their hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    packages = []
    for package, members in zip(runtime.PACKAGES, MEMBERS, strict=True):
        content = _packed(members)
        (folder / package.file).write_bytes(content)
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        packages.append(dataclasses.replace(package, integrity=digest))
    patch.setattr(runtime, "PACKAGES", tuple(packages))
    return str(folder)


def _packed(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()
