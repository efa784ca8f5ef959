"""Run Spark on a real standalone cluster, and lose one of two workers.

    python tests/engines/spark/cluster.py --megabytes=50

starts a master and two workers, and makes a vocabulary and records on them. While
records are written, it loses one worker, and it compares the SHA-256 of every file
with `--num_workers=2`. It needs Java 17 and pyspark.

Master and workers are three hosts of a private network, and the link of one is cut.
Without root they share the network of this machine, and one worker is killed.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile

import pyspark

sys.path.extend(map(str, pathlib.Path(__file__).resolve().parents[1:3]))

import cluster_runs
import private_network

SPARK = pathlib.Path(pyspark.__file__).parent
CLASSES = "org.apache.spark.deploy"
# Memory of one worker, in megabytes, with room for the executor's 1 GB.
MEMORY = "1200m"


# Spark gives up an executor after half a minute without a message, not after two.
SOON = ["spark.network.timeout=30s", "spark.network.timeoutInterval=10s"]


def on_host(network, number, start):
    """Return (a host's address, a function that starts a process on it).

    Without a network, all hosts are this machine.
    """
    if network is None:
        return "127.0.0.1", start

    def start_there(name, command, **environment):
        return start(name, network.command(number, command), **environment)

    return f"host{number}", start_there


def start_cluster(hosts, folder):
    """Start a master on the first host and a worker on each other; return its URL.

    Args:
      hosts: list of (address, function that starts a process).
      folder: for logs and the work of the workers.

    Returns:
      (the master's URL, the processes of the workers)
    """
    program = [SPARK / "bin" / "spark-class"]
    log = folder / "master.log"
    (master, _), port = hosts[0], cluster_runs.free_port()
    url = f"spark://{master}:{port}"
    processes = []
    for number, (address, start) in enumerate(hosts):
        here = ["--host", address, "--webui-port", 0]
        environment = {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(folder / "shuffled"),
        }
        if number == 0:
            command = [f"{CLASSES}.master.Master", *here, "--port", port]
            start("master", [*program, *command], **environment)
            cluster_runs.wait_for(
                "the master is ready", lambda: "New state: ALIVE" in log.read_text()
            )
            continue
        size = ["--cores", 1, "--memory", MEMORY, "--work-dir", folder / f"w{number}"]
        command = [f"{CLASSES}.worker.Worker", *here, *size, url]
        processes.append(start(f"worker{number}", [*program, *command], **environment))
    cluster_runs.wait_for(
        "all workers register",
        lambda: log.read_text().count("Registering worker") == len(processes),
    )
    return url, processes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=50)
    megabytes = parser.parse_args().megabytes
    reason = private_network.why_not()
    print(f"One network: {reason}." if reason else "Three hosts", flush=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        network = None
        if not reason:
            network = stack.enter_context(private_network.network(folder, 3))
        start = stack.enter_context(cluster_runs.processes(folder))
        hosts = [on_host(network, number, start) for number in range(3)]
        cluster_runs.write_corpus(folder / "text.txt", megabytes)
        expected = cluster_runs.make(start, folder, "local", cluster_runs.LOCAL)
        url, workers = start_cluster(hosts, folder)
        address, start_driver = hosts[0]
        how = [
            "--runner=spark",
            f"--spark_master={url}",
            f"--spark_log={folder}/spark.log",
            f"--spark_conf=spark.driver.host={address}",
            f"--spark_conf=spark.driver.bindAddress={address}",
            *[f"--spark_conf={setting}" for setting in SOON],
        ]

        def lose_one(out):
            """Lose a worker after the first piece is finished."""
            work = out / f"r-00000-of-0000{cluster_runs.RECORD_FILES}.tfrecord.spark"
            cluster_runs.wait_for(
                "a piece is written", lambda: [*work.glob("*.json")], seconds=3600
            )
            if network:
                network.set_link(1, "down")
            else:
                cluster_runs.kill(workers[0])
            pieces = len([*work.glob("*.json")])
            print(f"lost a worker, {pieces} pieces were finished", flush=True)

        found = cluster_runs.make(start_driver, folder, "spark", how, lose_one)
        cluster_runs.compare(expected, found)
        lost = (folder / "spark.log").read_text(errors="replace")
        if "Lost executor" not in lost:
            sys.exit("FAILED: Spark has not noticed the lost worker")
    if cluster_runs.left_behind(folder):
        cluster_runs.wait_for(
            "all processes end", lambda: not cluster_runs.left_behind(folder)
        )
    print(f"{len(expected)} files of {megabytes:g} MB of text are equal.")


if __name__ == "__main__":
    main()
