"""Train on three hosts of a private network, cut a link, and resume.

    python tests/training/hosts.py

The hosts are those of `private_network.py`. `run_pretraining.py` trains BERT-Tiny with
MultiWorkerMirroredStrategy, and `TF_CONFIG` lists the host names. Then the link of one
host is cut: every worker must stop within a minute, with one sentence. The same
commands resume after the link is back, and the end is compared, bit for bit, with that
of a run that nothing disturbed. The exit status is 1 if anything differs.

It needs root.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    from official_bert.command_line.tensorflow_start import start_tensorflow

    start_tensorflow()

import private_network  # noqa: E402
import torture  # noqa: E402
from record_files import MINI_CONFIG  # noqa: E402

from official_bert.checkpoints import names  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.data.records.record_set import open_record_set  # noqa: E402

HOSTS = 3
PORT = 2222
STEPS, EVERY = 60, 10
# The link is cut after the line of this step.
CUT_AT = 25
# Seconds in which every worker must have ended after the cut.
MOST_SECONDS = 60
LIMIT = 900


def write_inputs(folder):
    """Write records and the config of a tiny BERT; return the flags of a run."""
    config = dataclasses.replace(
        BertConfig.named("tiny"), vocab_size=MINI_CONFIG.vocab_size
    )
    return [
        *torture.write_inputs(folder, config),
        "--strategy=multi_worker",
        "--learning_rate=1e-3",
        f"--num_train_steps={STEPS}",
        f"--num_warmup_steps={EVERY}",
        f"--save_checkpoints_steps={EVERY}",
    ]


@contextlib.contextmanager
def workers(hosts, flags, logs):
    """Start a worker on each host; yield their processes; end all of them."""
    cluster = {"worker": [f"host{host}:{PORT}" for host in range(HOSTS)]}
    with contextlib.ExitStack() as stack:
        processes = []
        for host, log in enumerate(logs):
            task = {"type": "worker", "index": host}
            environment = {
                **os.environ,
                "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
            }
            output = stack.enter_context(open(log, "wb"))
            process = subprocess.Popen(
                hosts.command(host, [sys.executable, torture.SCRIPT, *flags]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            stack.callback(end, process)
            processes.append(process)
        yield processes


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_to_end(hosts, flags, logs):
    """Run all workers to their end."""
    with workers(hosts, flags, logs) as processes:
        for process, log in zip(processes, logs, strict=True):
            if process.wait(timeout=LIMIT):
                raise RuntimeError(f"A worker failed:\n{torture.tail(log)}")


def cut_a_link(hosts, flags, logs):
    """Cut the link of the last host during a run; return lines about what is wrong."""
    line, give_up = f"step {CUT_AT}/".encode(), time.monotonic() + LIMIT
    with workers(hosts, flags, logs) as processes:
        while line not in logs[0].read_bytes():
            if time.monotonic() > give_up or any(
                p.poll() is not None for p in processes
            ):
                raise RuntimeError(f"It never came so far:\n{torture.tail(logs[0])}")
            time.sleep(0.02)
        hosts.set_link(HOSTS - 1, "down")
        return wait_for_sentences(processes, logs)


def wait_for_sentences(processes, logs):
    """Wait until each worker has ended, with a sentence; return what is wrong."""
    begin, seconds = time.monotonic(), {}
    while len(seconds) < len(processes) and time.monotonic() - begin < 5 * MOST_SECONDS:
        for host, process in enumerate(processes):
            if host not in seconds and process.poll() is not None:
                seconds[host] = time.monotonic() - begin
        time.sleep(0.05)
    problems = []
    for host, (process, log) in enumerate(zip(processes, logs, strict=True)):
        text = log.read_text(errors="replace")
        sentences = re.findall(r"^error: .*$", text, re.MULTILINE)
        after = seconds.get(host)
        shown = "still runs" if after is None else f"ended after {after:.0f} s"
        print(f"host{host} {shown}: {' '.join(sentences)}", flush=True)
        if after is None or after > MOST_SECONDS:
            problems.append(f"host{host} {shown}, and not within {MOST_SECONDS} s")
        if process.poll() != 1 or len(sentences) != 1 or "Traceback" in text:
            problems.append(f"host{host}: status {process.poll()}\n{text[-3000:]}")
    return problems


def compare(folder, runs):
    """Print the ends of two runs; return whether they are the same."""
    records = open_record_set(str(folder / "records" / "*.tfrecord"), MINI_CONFIG)
    ends = [torture.summary(run, records) for run in runs]
    found = torture.differences(*runs)
    print(*torture.table(*ends), *found, sep="\n", flush=True)
    return ends[0] == ends[1] and not found


def main():
    """Train, cut, resume, compare; return the exit status."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    reason = private_network.why_not()
    if reason:
        print(f"Skipped: {reason}.")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hosts-") as name:
        folder = pathlib.Path(name)
        flags = write_inputs(folder)
        runs = folder / "undisturbed", folder / "cut"
        logs = [folder / f"log{host}" for host in range(HOSTS)]
        with private_network.network(folder, HOSTS) as hosts:
            run_to_end(hosts, [*flags, f"--output_dir={runs[0]}"], logs)
            print(f"{HOSTS} hosts: {STEPS} steps undisturbed", flush=True)
            flags.append(f"--output_dir={runs[1]}")
            problems = cut_a_link(hosts, flags, logs)
            newest = names.numbered_checkpoints(runs[1])[-1]
            hosts.set_link(HOSTS - 1, "up")
            run_to_end(hosts, flags, logs)
        for log in logs:
            if f"resumes at step {newest}." not in log.read_text():
                problems.append(f"A worker did not resume at step {newest}.")
        print(f"The link is back: resumed at step {newest}", flush=True)
        is_same = compare(folder, runs)
    print(*problems, f"{time.monotonic() - begun:.0f} s", sep="\n", flush=True)
    return 0 if is_same and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
