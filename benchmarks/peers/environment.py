"""The separate environment of PyTorch and ONNX Runtime."""

import functools
import os
import pathlib
import subprocess
import venv

from official_bert.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGES = pathlib.Path(__file__).with_name("requirements.txt")


@functools.cache
def peer_python(folder):
    """Return the Python of the peers' environment; create it if necessary.

    Args:
      folder: path of the environment.
    """
    python = pathlib.Path(folder).resolve() / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", PACKAGES], check=True)
    return python


def run(folder, module, arguments):
    """Run a module of `benchmarks.peers` in the peers' environment.

    Args:
      folder: path of the environment.
      module: name of the module, such as "pytorch.glue".
      arguments: its command-line arguments, a list.

    Returns:
      str: its standard output.

    Raises:
      UserError: the module failed.
    """
    command = [peer_python(folder), "-m", f"benchmarks.peers.{module}", *arguments]
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UserError(f"benchmarks/peers: {module} failed: {done.stderr[-500:]}")
    return done.stdout
