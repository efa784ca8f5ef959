"""Let programs believe that the processor has AVX2 as its best instructions."""

import os
import pathlib
import shutil
import subprocess

from official_bert.errors import UserError

SOURCE = pathlib.Path(__file__).with_name("avx2_only.c")
CPUINFO = pathlib.Path("/proc/cpuinfo")


def leave_out_avx512(folder: str | os.PathLike[str]) -> None:
    """Let all programs that this process starts see a processor without AVX-512.

    They also see no AMX. It applies to every library alike, because it changes the
    answer of the instruction CPUID; see `avx2_only.c`.

    Args:
      folder: for the compiled library. It must stay until the programs end.

    Raises:
      UserError: this machine cannot do it, or has no C compiler.
    """
    if not CPUINFO.exists() or "cpuid_fault" not in CPUINFO.read_text().split():
        raise UserError(
            "--instructions=avx2 needs Linux on an x86 processor with cpuid_fault in "
            f"{CPUINFO}. Use another machine."
        )
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise UserError(
            "--instructions=avx2 needs a C compiler. On Debian, run apt install gcc."
        )
    library = pathlib.Path(folder).resolve() / "avx2_only.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", library, SOURCE]
    subprocess.run(command, check=True)
    os.environ["LD_PRELOAD"] = str(library)
