"""Run a command with a test server in place of Cloud Storage.

    python private_store.py COMMAND …

The host names in TensorFlow's client are fixed. The server and the command
therefore run in a separate mount namespace, whose hosts file maps these names
to this machine. It needs root (`unshare`). The exit status is the command's; no
files are left.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
HOSTS = ("www.googleapis.com", "storage.googleapis.com")


def why_not():
    """Return the reason why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "a private mount namespace needs root"
    return None


def environment(certificate):
    """Return a client's environment: it trusts the server and needs no credentials.

    It repeats a failed request as often as usual, but at once: by default it waits for
    1 s to 32 s before each, three minutes in all. Copies of models go into the
    certificate's folder.
    """
    return {
        **os.environ,
        "CURL_CA_BUNDLE": str(certificate),
        "NO_GCE_CHECK": "true",
        "GOOGLE_APPLICATION_CREDENTIALS": "",
        "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "0",
        "PYTHONUNBUFFERED": "1",
        "KERAS_HOME": os.path.join(os.path.dirname(certificate), "keras"),
    }


def inside(command, folder):
    """Start the server and run the command inside the namespace."""
    hosts = folder / "hosts"
    # Each server has an address of its own, so that several work at the same time.
    high, low = divmod(os.getpid() % 2**16, 2**8)
    address = f"127.77.{high}.{low}"
    names = "".join(f"{address} {name}\n" for name in HOSTS)
    hosts.write_text(f"127.0.0.1 localhost\n{names}")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=test"]
        + ["-addext", "subjectAltName=" + ",".join(f"DNS:{h}" for h in HOSTS)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    server = subprocess.Popen(
        [sys.executable, str(FOLDER / "gcs_server.py")]
        + [str(certificate), str(key), "443", address],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout.readline() == "ready\n"
        return subprocess.run(command, env=environment(certificate)).returncode
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def run(command, **options):
    """Run a command in a separate namespace; return its `CompletedProcess`."""
    call = [sys.executable, str(FOLDER / "private_store.py"), *map(str, command)]
    return subprocess.run(["unshare", "-m", "--", *call], **options)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(inside(sys.argv[1:], pathlib.Path(folder)))
