"""Let programs believe that the processor has AVX2 as its best instructions."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable

from official_bert import files
from official_bert.errors import UserError

SOURCE = pathlib.Path(__file__).with_name("avx2_only.c")
# Folders of the packages whose libraries choose between instructions.
PACKAGES = ("numpy", "numpy.libs", "onnxruntime", "tensorflow", "tokenizers", "torch")
_CPUID = re.compile(r"^ *([0-9a-f]+):\tcpuid", re.MULTILINE)


def leave_out_avx512(
    folder: str | os.PathLike[str], environments: Iterable[str | os.PathLike[str]]
) -> None:
    """Let all programs that this process starts see a processor without AVX-512.

    They also see no AMX. It applies to every library alike, because it changes the
    answer of the instruction CPUID; see `avx2_only.c`. A first call disassembles the
    libraries, which takes about ten minutes.

    Args:
      folder: for the compiled library and the addresses, which a second call reads
        again. It must stay until the programs end.
      environments: folders of the programs' virtual environments.

    Raises:
      UserError: this machine cannot do it, or a tool is missing.
    """
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        raise UserError(
            "--instructions=avx2 needs Linux on an x86-64 processor. Use another "
            "machine."
        )
    for tool in ("gcc", "objdump"):
        if shutil.which(tool) is None:
            raise UserError(
                f"--instructions=avx2 needs {tool}. On Debian, run apt install gcc "
                "binutils."
            )
    folder = pathlib.Path(folder).resolve()
    library = folder / "avx2_only.so"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE]
    subprocess.run(command, check=True)
    addresses = folder / "avx2_only.txt"
    _write_addresses(addresses, folder / "avx2_only.json", environments)
    os.environ["AVX2_ONLY_ADDRESSES"] = str(addresses)
    os.environ["LD_AUDIT"] = str(library)


def _write_addresses(path, known_path, environments):
    """Write the lines that `avx2_only.c` reads."""
    known = {}
    if known_path.exists():
        known = files.read_json(known_path, "addresses of an earlier call")
    lines = []
    for library in _libraries(environments):
        key = f"{library} {library.stat().st_size}"
        if key not in known:
            print(f"Disassembling {library.name}", flush=True)
            known[key] = _cpuid_addresses(library)
            files.write_json(known_path, known)
        lines += [f"{address} {library}\n" for address in known[key]]
    files.write_text(path, "".join(lines))


def _libraries(environments):
    found = set()
    for environment in environments:
        for packages in pathlib.Path(environment).glob("lib/python*/site-packages"):
            for name in PACKAGES:
                found |= {one.resolve() for one in (packages / name).rglob("*.so*")}
    return sorted(found)


def _cpuid_addresses(library):
    """Return the addresses of the CPUID instructions of a library, hexadecimal."""
    disassemble = ["objdump", "--disassemble", "--no-show-raw-insn", library]
    # A disassembly has gigabytes; grep reads it faster than Python.
    with subprocess.Popen(disassemble, stdout=subprocess.PIPE) as disassembly:
        found = subprocess.run(
            ["grep", "cpuid"], stdin=disassembly.stdout, capture_output=True, text=True
        )
    return _CPUID.findall(found.stdout)
