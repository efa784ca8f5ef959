"""The environment of PyTorch and ONNX Runtime, apart from ours."""

import pathlib
import subprocess
import venv

PACKAGES = pathlib.Path(__file__).resolve().parent.parent / "peers" / "requirements.txt"


def peer_python(folder):
    """Return the Python of the peers' environment, which is made if it is not there.

    Args:
      folder: path of the environment.
    """
    python = pathlib.Path(folder).resolve() / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", PACKAGES], check=True)
    return python
