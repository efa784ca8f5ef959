"""The test server's own requests, and commands that use it; inside `private_store.py`.

Only processes that `private_store.py` has started reach the server.
"""

import json
import os
import pathlib
import ssl
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "run_scripts"
_SERVER = "https://storage.googleapis.com/test/"
# Seconds that a command may take.
LIMIT = 900
# The client says it with each request, when no credentials are set.
_NOISE = "google_auth_provider.cc"


def configure(**faults):
    """Set what goes wrong from now on: the fields of `gcs_server.Faults`."""
    _ask("faults", faults)


def objects():
    """Return path -> size of all objects: `gs://bucket/name`."""
    return {f"gs://{name}": size for name, size in _ask("objects").items()}


def requests():
    """Return what was asked so far: "VERB URL"."""
    return _ask("requests")


def is_held():
    """Return whether the server holds a request, see `gcs_server.Faults.hold`."""
    return _ask("held")


def delete(path):
    """Delete an object without the client under test; return whether it existed."""
    return _ask("delete", path.removeprefix("gs://"))


def _ask(name, value=None):
    data = None if value is None else json.dumps(value).encode()
    context = ssl.create_default_context(cafile=os.environ["CURL_CA_BUNDLE"])
    call = urllib.request.Request(_SERVER + name, data)
    with urllib.request.urlopen(call, context=context, timeout=60) as answer:
        return json.load(answer)


def run(script, *arguments, **environment):
    """Run a script to its end; return its status and what it printed."""
    import warm_python

    process = warm_python.start(
        [SCRIPTS / f"{script}.py", *arguments],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **environment},
    )
    try:
        output, _ = process.communicate(LIMIT)
    finally:
        process.kill()
    return process.returncode, without_noise(output)


def run_well(script, *arguments):
    """Run a script, which has to succeed; return what it printed."""
    status, output = run(script, *arguments)
    if status:
        raise RuntimeError(f"{script}.py ended with status {status}:\n{output[-3000:]}")
    return output


def without_noise(text):
    """Leave out the lines of TensorFlow's client about missing credentials."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if _NOISE not in line)
