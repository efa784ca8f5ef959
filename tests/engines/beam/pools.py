"""Run Beam with a job server and two external worker pools, and kill one pool.

    python tests/engines/beam/pools.py --megabytes=5

starts the three as separate processes, makes a vocabulary and records through
Beam's portable protocol, and kills the working pool during this. It then
compares the SHA-256 of every file with `--num_workers=2`.
"""

import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cluster_runs

SERVER = "apache_beam.runners.portability.local_job_service_main"
POOL = "apache_beam.runners.worker.worker_pool_main"


def start_all(start):
    """Start a job server and two pools; return (Beam's options, the pools)."""
    # A pool starts `python`, which must be this one.
    environment = {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        "PYTHONPATH": str(cluster_runs.ROOT),
    }
    ports = [cluster_runs.free_port() for _ in range(3)]
    module = [sys.executable, "-m"]
    start("server", [*module, SERVER, "--port", ports[0]], **environment)
    pools = [
        start(f"pool{port}", [*module, POOL, "--service_port", port], **environment)
        for port in ports[1:]
    ]
    for port in ports:
        cluster_runs.wait_for(
            "server and pools listen", lambda port=port: cluster_runs.accepts(port)
        )
    addresses = ",".join(f"127.0.0.1:{port}" for port in ports[1:])
    options = (
        f"--runner=PortableRunner --job_endpoint=127.0.0.1:{ports[0]} "
        f"--environment_type=EXTERNAL --environment_config=ipv4:{addresses}"
    )
    return options, pools


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=5)
    megabytes = parser.parse_args().megabytes
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster_runs.processes(pathlib.Path(folder)) as start,
    ):
        folder = pathlib.Path(folder)
        cluster_runs.write_corpus(folder / "text.txt", megabytes)
        expected = cluster_runs.make(start, folder, "local", cluster_runs.LOCAL)
        options, pools = start_all(start)

        def kill_one(out):
            """Kill the pool that gRPC uses first, after the first piece exists."""
            work = out / f"r-00000-of-0000{cluster_runs.RECORD_FILES}.tfrecord.beam"
            cluster_runs.wait_for(
                "a piece is written", lambda: [*work.glob("*.records")], seconds=3600
            )
            cluster_runs.kill(pools[0])
            print("killed a worker pool", flush=True)

        how = ["--runner=beam", f"--beam_options={options}"]
        found = cluster_runs.make(start, folder, "beam", how, kill_one)
        cluster_runs.compare(expected, found)
        if "is lost; the job starts again" not in (folder / "beam.log").read_text():
            sys.exit("FAILED: the command has not noticed the lost pool")
    if cluster_runs.left_behind(folder):
        cluster_runs.wait_for(
            "all processes end", lambda: not cluster_runs.left_behind(folder)
        )
    print(f"{len(expected)} files of {megabytes:g} MB of text are equal.")


if __name__ == "__main__":
    main()
