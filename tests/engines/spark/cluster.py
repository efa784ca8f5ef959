"""Run Spark on a real standalone cluster, and kill one of two workers.

    python tests/engines/spark/cluster.py --megabytes=50

starts a master and two worker processes, and makes a vocabulary and records on
them. It kills one worker with its executor while records are written, and
compares the SHA-256 of every file with `--num_workers=2`. It needs Java 17 and
pyspark.
"""

import argparse
import pathlib
import sys
import tempfile

import pyspark

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cluster_runs

SPARK = pathlib.Path(pyspark.__file__).parent
CLASSES = "org.apache.spark.deploy"
# Memory of one worker, in megabytes, with room for the executor's 1 GB.
MEMORY = "1200m"


def start_cluster(start, folder):
    """Start a master and two workers; return (its URL, the workers)."""
    port = cluster_runs.free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "shuffled"),
    }
    program = [SPARK / "bin" / "spark-class"]
    address = ["--host", "127.0.0.1", "--webui-port", 0]
    master = [f"{CLASSES}.master.Master", *address, "--port", port]
    start("master", [*program, *master], **environment)
    cluster_runs.wait_for("the master listens", lambda: cluster_runs.accepts(port))
    workers = []
    for number in (1, 2):
        size = ["--cores", 1, "--memory", MEMORY, "--work-dir", folder / f"w{number}"]
        command = [f"{CLASSES}.worker.Worker", *address, *size, url]
        workers.append(start(f"worker{number}", [*program, *command], **environment))
    log = folder / "master.log"
    cluster_runs.wait_for(
        "both workers register",
        lambda: log.read_text().count("Registering worker") == 2,
    )
    return url, workers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=50)
    megabytes = parser.parse_args().megabytes
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster_runs.processes(pathlib.Path(folder)) as start,
    ):
        folder = pathlib.Path(folder)
        cluster_runs.write_corpus(folder / "text.txt", megabytes)
        expected = cluster_runs.make(start, folder, "local", cluster_runs.LOCAL)
        url, workers = start_cluster(start, folder)
        how = [
            "--runner=spark",
            f"--spark_master={url}",
            f"--spark_log={folder}/spark.log",
            "--spark_conf=spark.driver.host=127.0.0.1",
            "--spark_conf=spark.driver.bindAddress=127.0.0.1",
        ]

        def kill_one(out):
            """Kill a worker after the first piece is finished."""
            work = out / f"r-00000-of-0000{cluster_runs.RECORD_FILES}.tfrecord.spark"
            cluster_runs.wait_for(
                "a piece is written", lambda: [*work.glob("*.json")], seconds=3600
            )
            cluster_runs.kill(workers[0])
            pieces = len([*work.glob("*.json")])
            print(f"killed a worker, {pieces} pieces were finished", flush=True)

        found = cluster_runs.make(start, folder, "spark", how, kill_one)
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
