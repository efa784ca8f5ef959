"""Run a small job that checks the workers."""

import socket
from typing import TYPE_CHECKING

from official_bert.engines.spark import files as spark_files
from official_bert.engines.spark import tables
from official_bert.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "probe"


def check_workers(spark: "SparkSession", folder: str) -> None:
    """Raise `UserError` unless workers import this package and reach a folder.

    If a worker's Python lacks a package, the job fails, and `session` reports
    it in a sentence.
    """
    with spark_files.written(f"{folder}/{_NAME}") as file:
        file.write(b"probe")
    tasks = 2 * spark.sparkContext.defaultParallelism
    numbers = tables.numbers(spark, tasks, tasks)
    found = tables.map_rows(numbers, _look, "host binary, size long", folder).collect()
    lost = sorted({host.decode() for host, size in found if not size})
    if lost:
        raise UserError(
            f"The Spark worker on {lost[0]} cannot see {folder}, the folder of "
            "the output. Choose an --output_file in a folder that all workers "
            "share, or a URL such as s3://bucket/name."
        )


def _look(rows, folder):
    # Import the modules of all steps, so that a missing package is noticed
    # here.
    from official_bert.engines import steps, word_sums  # noqa: F401

    for _ in rows:
        size = spark_files.size_of(f"{folder}/{_NAME}") or 0
        yield socket.gethostname().encode(), size
