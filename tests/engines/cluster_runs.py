"""Run the two commands on a cluster of local processes, and kill one process.

The scripts `spark/cluster.py` and `beam/pools.py` use this module. Each starts
processes, makes a vocabulary and records with `--num_workers=2` and on the
cluster, and compares the SHA-256 of every file.
"""

import contextlib
import hashlib
import os
import pathlib
import pydoc_data.topics
import random
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_BETWEEN_LOOKS = 0.2
RECORD_FILES = 4
VOCAB = ["--vocab_size=8000"]
RECORDS = ["--max_seq_length=128", "--dupe_factor=2", "--random_seed=3"]
LOCAL = ["--num_workers=2"]


def write_corpus(path, megabytes):
    """Write Python's documentation repeatedly, with its lines in different orders."""
    topics = [text.split("\n") for _, text in sorted(pydoc_data.topics.topics.items())]
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            lines = [line for line in rng.choice(topics) if line.strip()]
            rng.shuffle(lines)
            file.write("\n".join(lines) + "\n\n")


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def wait_for(what, is_there, seconds=120):
    """Wait until a function returns a true value; return that value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = is_there()
        if found:
            return found
        time.sleep(SECONDS_BETWEEN_LOOKS)
    sys.exit(f"FAILED: {what} within {seconds} seconds")


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def processes(folder):
    """Yield a function that starts a process; end all with their children."""
    started = []

    def start(name, command, **environment):
        with open(folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [*map(str, command)],
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            kill(process)


def kill(process):
    """Kill a process and its children at once, like a failing machine."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def left_behind(folder):
    """Return the command lines of processes that use a folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (path / "environ").read_bytes().decode(errors="replace")
            if path.name != str(os.getpid()) and str(folder) in command + environment:
                found.append(command[:200])
    return found


def make(start, folder, name, how, on_start=None):
    """Make a vocabulary and records in a folder; return path -> SHA-256.

    `on_start` is called with the folder while the records are made.
    """
    out = folder / name
    out.mkdir()
    text = f"--input_file={folder}/text.txt"
    vocab = out / "vocab.txt"
    options = [text, f"--output_file={vocab}", *VOCAB, *how]
    _wait(folder, name, _start(start, name, ["train_vocab", *options]))
    begin = time.monotonic()
    output = f"--output_file={out}/r@{RECORD_FILES}.tfrecord"
    options = [text, output, f"--vocab_file={vocab}", *RECORDS, *how]
    process = _start(start, name, ["create_pretraining_data", *options])
    if on_start:
        on_start(out)
    _wait(folder, name, process)
    megabytes = (folder / "text.txt").stat().st_size / 1e6
    seconds = time.monotonic() - begin
    speed = megabytes / seconds
    print(f"{name}: records in {seconds:.0f} s, {speed:.2f} MB/s", flush=True)
    files = [vocab, *sorted(out.glob("*.tfrecord"))]
    left = {path.name for path in out.iterdir() if path.is_dir()}
    if len(files) != RECORD_FILES + 1 or left:
        sys.exit(f"FAILED: {name} left {sorted(left)} and {len(files)} files")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _start(start, name, command):
    script = ROOT / "run_scripts" / f"{command[0]}.py"
    return start(name, [sys.executable, script, *command[1:]])


def _wait(folder, name, process):
    if process.wait():
        print((folder / f"{name}.log").read_text(errors="replace")[-3000:])
        sys.exit(f"FAILED: {name} ended with status {process.returncode}")


def compare(expected, found):
    """Print the digests; exit with an error unless all are equal."""
    for name, digest in expected.items():
        print(f"  {name}  {digest}  {found[name] == digest and 'equal'}")
    if found != expected:
        sys.exit("FAILED: the bytes differ")
