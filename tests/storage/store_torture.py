"""Kill a pre-training run whose files are all in an object store, and compare its end.

    python tests/storage/store_torture.py --seed=12345

Records, vocabulary, config, checkpoints, logs and the export are in `gs://bucket`.
TensorFlow's own client talks to the test server (`private_store.py`), which fails,
delays or cuts 5 % of the requests. The run is killed (SIGKILL) again and again, while
it trains and while it uploads or deletes, and started by the same command. Each start
must resume at the newest complete checkpoint. The end is compared, bit for bit, with
that of a local run. The exit status is 1 if anything differs. It needs root.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "training"), str(TESTS), str(TESTS.parent)]

import private_store  # noqa: E402
import store_client  # noqa: E402

BUCKET = "gs://bucket"
OUTPUT, EXPORT = f"{BUCKET}/killed", f"{BUCKET}/exports"
STEPS = 200
EVERY = 5
# A kill that waits for no request.
RANDOM = "random moment"
# name -> the request that the server does not answer, so that the run is killed there:
# verb, object ({step}: of a coming checkpoint), and whether it takes effect.
REQUESTS = {
    "data upload begins": ("PUT", "model.ckpt-{step}.data", "before"),
    "data, no index": ("PUT", "model.ckpt-{step}.index", "before"),
    "parts, no list of parts": ("PUT", "model.ckpt-{step}.parts.json", "before"),
    "list of parts, no answer": ("PUT", "model.ckpt-{step}.parts.json", "after"),
    "old `checkpoint`": ("PUT", "killed/checkpoint", "before"),
}
# Nothing is deleted before the run has more than five checkpoints.
DELETING = {"old one half deleted": ("DELETE", ".index", "before")}
AFTERWARDS = {
    "final model, half": ("PUT", "bert_model.ckpt.data", "before"),
    "final model, no list": ("PUT", "bert_model.ckpt.parts.json", "before"),
}
RANDOM_KILLS = 5
EARLIEST_DELETING = 6
# 5 % of the requests.
FAULTS = {"failing": 0.02, "cut": 0.02, "slow": 0.01, "slow_seconds": 1.0}
LIMIT = 900


@dataclasses.dataclass(frozen=True)
class Kill:
    """When a run is killed.

    Attributes:
      name: `RANDOM`, or the name of a request.
      ahead: the steps from the newest checkpoint to the one of the request; for
        `RANDOM`, to the step whose line is awaited.
      delay: seconds from there to the signal.
    """

    name: str
    ahead: int
    delay: float = 0.0


def draw_kills(draw):
    """Return the kills in their order."""
    names = [*REQUESTS, *[RANDOM] * RANDOM_KILLS]
    draw.shuffle(names)
    names.insert(draw.randint(EARLIEST_DELETING, len(names)), *DELETING)
    kills = [
        Kill(name, draw.randint(1, EVERY), draw.uniform(0, 1.5))
        if name == RANDOM
        else Kill(name, EVERY * draw.randint(1, 2))
        for name in names
    ]
    return kills + [Kill(name, 0) for name in AFTERWARDS]


def newest_complete():
    """Return the step of the newest complete checkpoint, from what the server holds."""
    from official_bert import object_store

    held, steps = store_client.objects(), [0]
    for path in held:
        match = re.fullmatch(rf"{OUTPUT}/model\.ckpt-(\d+)\.parts\.json", path)
        if match:
            parts = json.loads(object_store.read(path))["parts"]
            if all(
                held.get(f"{OUTPUT}/{name}") == part["bytes"]
                for name, part in parts.items()
            ):
                steps.append(int(match[1]))
    return max(steps)


class Killer:
    """Runs the command, kills it, and notes where each start resumes."""

    def __init__(self, flags, log, draw):
        self._flags, self._log, self._draw = flags, log, draw
        self.problems = []

    def kill(self, number, kill):
        """Start the command, and kill it at its moment."""
        begun = newest_complete()
        self._run(lambda child: self._wait_for(child, kill, begun))
        self._check_resumed(begun)
        # What was on its way may take a second to arrive.
        self._configure()
        time.sleep(1.5)
        after = newest_complete()
        if after < begun:
            self.problems.append(f"{kill.name}: checkpoint {begun} was lost")
        print(f"kill {number:2}  {kill.name:26}  {begun:3} to {after:3}", flush=True)

    def end(self):
        """Run the command to its end."""
        import torture

        begun = newest_complete()
        torture.run_to_end(self._flags, self._log)
        self._check_resumed(begun)

    def _configure(self, **hold):
        store_client.configure(**FAULTS, seed=self._draw.randrange(10**6), **hold)

    def _run(self, wait):
        import torture

        with torture.started([str(torture.SCRIPT), *self._flags], self._log) as child:
            wait(child)
            os.killpg(child.pid, signal.SIGKILL)
            if child.wait() != -signal.SIGKILL:
                raise RuntimeError(f"It ended by itself:\n{torture.tail(self._log)}")

    def _wait_for(self, child, kill, begun):
        import torture

        step = begun + kill.ahead
        line = f"step {step}/".encode()
        if kill.name != RANDOM:
            verb, part, moment = (REQUESTS | DELETING | AFTERWARDS)[kill.name]
            self._configure(hold=[verb, part.replace("{step}", str(step)), moment])
        give_up = time.monotonic() + LIMIT
        while not (
            line in self._log.read_bytes()
            if kill.name == RANDOM
            else store_client.is_held()
        ):
            if child.poll() is not None or time.monotonic() > give_up:
                tail = torture.tail(self._log)
                raise RuntimeError(f"The run never came to {kill}:\n{tail}")
            time.sleep(0.05)
        time.sleep(kill.delay)

    def _check_resumed(self, expected):
        log = self._log.read_bytes()
        match = re.search(rb"(?:resumes|is done) at step (\d+)\.", log)
        resumed = int(match[1]) if match else 0
        if resumed != expected:
            self.problems.append(
                f"resumed at step {resumed}, and the newest complete one was {expected}"
            )


def upload_inputs(folder, flags):
    """Copy the inputs of a run to the store; return its flags with these paths."""
    from official_bert import files

    remote = []
    for flag in flags:
        name, _, value = flag.partition("=")
        paths = sorted(pathlib.Path("/").glob(value[1:])) if value[:1] == "/" else []
        if name == "--input_file":
            paths.append(folder / "records" / "manifest.json")
        for path in paths:
            files.copy(path, f"{BUCKET}/inputs/{path.name}")
        if paths:
            flag = f"{name}={BUCKET}/inputs/{os.path.basename(value)}"
        remote.append(flag)
    return remote


def download(path, folder):
    """Copy a folder of the store, all but the lists of parts; check those."""
    from official_bert import files

    for remote in store_client.objects():
        # An object whose name ends with a slash stands for a folder.
        if not remote.startswith(f"{path}/") or remote.endswith("/"):
            continue
        if remote.endswith(".parts.json"):
            parts = json.loads(files.read_text(remote, "JSON"))["parts"]
            for name, part in parts.items():
                found = files.sha256_of(f"{os.path.dirname(remote)}/{name}")
                assert part["sha256"] == found, remote
            continue
        target = folder / remote.removeprefix(f"{path}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        files.copy(remote, target)


def summary_of_export(folder):
    """Return what an export holds, as name -> hex SHA-256."""
    import torture

    (version,) = (path for path in folder.iterdir() if path.name.isdigit())
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    arrays = torture.read_arrays(version / "variables" / "variables")
    # The graph of objects is a text of bytes.
    numbers = {n: v for n, v in arrays.items() if not isinstance(v, bytes)}
    return {
        "export: weights": torture.digest_of_arrays(numbers),
        "export: files": torture.digest([json.dumps(names).encode()]),
    }


def compare(folder, records):
    """Print both ends; return whether they are the same."""
    import torture

    local, killed = folder / "local", folder / "killed"
    for path in folder.rglob(".lock"):  # A store has none.
        path.unlink()
    ends = []
    for run, export in ((local, "local_export"), (killed, "exports")):
        lines = (run / "eval_results.txt").read_bytes()
        ends.append(
            torture.summary(run, records)
            | {"evaluation": torture.digest([lines])}
            | summary_of_export(folder / export)
        )
    found = torture.differences(local, killed)
    print(*torture.table(*ends), *found, sep="\n", flush=True)
    return ends[0] == ends[1] and not found


def torture_store(seed):
    """Run everything; return the exit status."""
    import torture
    from record_files import MINI_CONFIG

    from official_bert.data.records.record_set import open_record_set

    draw = random.Random(seed)
    kills = draw_kills(draw)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = pathlib.Path(name)
        flags = torture.write_inputs(folder) + [f"--num_train_steps={STEPS}"]
        local = folder / "local"
        torture.run_to_end([*flags, f"--output_dir={local}"], folder / "log")
        export = ["--model", local, "--export_dir", folder / "local_export"]
        store_client.run_well("export_model", *export)
        store_client.configure(**FAULTS)
        remote = [*upload_inputs(folder, flags), f"--output_dir={OUTPUT}"]
        killer = Killer(remote, folder / "remote_log", draw)
        print(f"{len(kills)} kills, {STEPS} steps, faults {FAULTS}", flush=True)
        for number, kill in enumerate(kills, 1):
            killer.kill(number, kill)
        killer.end()
        export = ["--model", OUTPUT, "--export_dir", EXPORT]
        store_client.run_well("export_model", *export)
        asked = len(store_client.requests())
        store_client.configure()
        for path in (OUTPUT, EXPORT):
            download(path, folder / os.path.basename(path))
        records = open_record_set(str(folder / "records" / "*.tfrecord"), MINI_CONFIG)
        is_same = compare(folder, records)
    seconds = time.monotonic() - started
    print(*killer.problems, f"{asked} requests, {seconds:.0f} s", sep="\n", flush=True)
    return 0 if is_same and not killer.problems else 1


def emptied(log):
    """Return a log file without what the last child printed."""
    log.write_bytes(b"")
    return log


def main():
    """Torture the store in a namespace of its own; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=12345, help="Decides the kills.")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        from official_bert.command_line.tensorflow_start import start_tensorflow

        start_tensorflow()
        # As after Ctrl-C, children and files are cleared away.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        import torture
        import warm_python

        # Children need not import TensorFlow.
        torture.start_child = lambda command, log, environment: warm_python.start(
            command, env=environment, log=emptied(log)
        )
        try:
            return torture_store(given.seed)
        except RuntimeError as error:
            print(error, flush=True)
            return 1
    reason = private_store.why_not()
    if reason:
        print(f"The object store is not tortured: {reason}.")
        return 0
    command = [sys.executable, __file__, "--inside", f"--seed={given.seed}"]
    return private_store.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
