"""Run steps in plain Python on the partitions of Spark's tables.

A step is a function, rows of one partition -> rows of another table. Rows are
tuples. Spark shuffles and sorts tables outside Python, on disk if they are
large, so a worker's Python holds only a few rows.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from official_bert.corpus import text_blocks
from official_bert.engines.spark import files as spark_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Number of rows per batch sent to a worker's Python; blocks of text are sent
# singly.
ROWS_AT_ONCE = 1000
# Results return in batches of the same number of rows, or of this many bytes.
BYTES_AT_ONCE = 4 << 20
# One task per block of text, up to this number of tasks.
MOST_TASKS = 1000
ONE_ROW = 1
# Names and types of the columns of blocks.
BLOCKS = "unit long, number long, block binary"
_COMPRESSION = 3


def map_rows(
    table: "DataFrame", step: Callable[..., Iterator[Any]], schema: str, *arguments: Any
) -> "DataFrame":
    """Return the table of a step's results for the partitions of a table.

    Args:
      table: the input; the step gets its rows as tuples.
      step: function (iterator of rows, *arguments) -> iterator of rows.
      schema: names and types of the result's columns, `long` or `binary`.
      *arguments: additional arguments of the step; pickled with it.
    """

    def run(batches):
        rows = (
            row
            for batch in batches
            for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        )
        return _in_batches(step(rows, *arguments), schema)

    return table.mapInArrow(run, schema)


def _in_batches(rows: Iterable[Sequence[Any]], schema: str) -> Iterator[Any]:
    """Yield rows as Arrow batches."""
    import pyarrow as pa

    types = {"long": pa.int64(), "binary": pa.binary()}
    columns = [column.split() for column in schema.split(", ")]
    arrow_schema = pa.schema([(name, types[kind]) for name, kind in columns])
    waiting: list[Sequence[Any]] = []
    size = 0

    def batch():
        values = zip(*waiting, strict=True)
        arrays = [
            pa.array(v, f.type) for v, f in zip(values, arrow_schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)

    for row in rows:
        waiting.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(waiting) == ROWS_AT_ONCE or size > BYTES_AT_ONCE:
            yield batch()
            waiting.clear()
            size = 0
    if waiting:
        yield batch()


def numbers(spark: "SparkSession", count: int, tasks: int) -> "DataFrame":
    """Return a table of the numbers from 0, divided among tasks."""
    return spark.range(0, count, 1, max(1, min(count, tasks)))


def set_rows_at_once(spark: "SparkSession", count: int) -> None:
    """Set the number of rows sent to a worker's Python at a time."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(count))


def count_tasks(spark: "SparkSession", paths: Iterable[str]) -> int:
    """Return the number of tasks for the work on some text."""
    num_bytes = sum(
        spark_files.size_of(path) * (_COMPRESSION if path.endswith(".gz") else 1)
        for path in paths
    )
    least = 2 * spark.sparkContext.defaultParallelism
    return max(least, min(-(-num_bytes // text_blocks.BLOCK_BYTES), MOST_TASKS))


def read_blocks(
    spark: "SparkSession", paths: Sequence[str], input_format: str, tasks: int
) -> "DataFrame":
    """Return the table `BLOCKS` of the text of files, each block pickled."""
    units = text_blocks.group_files(paths, spark_files.size_of)
    by_file = numbers(spark, len(units), len(units))
    blocks = map_rows(by_file, _cut, BLOCKS, units, input_format)
    # One worker reads a file; all workers share its blocks.
    return blocks.repartition(tasks, "unit", "number")


def _cut(rows, units, input_format):
    for (number,) in rows:
        for block in text_blocks.blocks_of(
            units[number], input_format, spark_files.open_text
        ):
            yield block.unit, block.number, pickle.dumps(block)
