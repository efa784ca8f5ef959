"""Count the words of a corpus with a job of Apache Spark.

Workers count blocks where they read them, Spark adds up the counts of each
word, and this process reads the sums one at a time.
"""

import pickle
from collections.abc import Sequence

from official_bert.engines import word_sums
from official_bert.engines.spark import files as spark_files
from official_bert.engines.spark import session, tables
from official_bert.tokenization.word_counts import WordCounter

COUNTS = "key binary, count long"
# This process reads the sums partition by partition.
MOST_PARTITIONS = 64


def count_words(
    paths: Sequence[str],
    input_format: str,
    do_lower_case: bool,
    hold_out: bool,
    cluster: session.SparkSettings,
    folder: str,
) -> tuple[WordCounter, WordCounter]:
    """Count the words of files with Apache Spark, like `word_counting.count_words`.

    `paths` are from `spark_files.find_inputs` and `cluster` from
    `session.make_settings`. All workers must reach `folder`, and it must not
    exist.
    """
    with (
        spark_files.temporary_folder(folder),
        session.running(cluster, folder) as spark,
    ):
        tables.set_rows_at_once(spark, tables.ONE_ROW)
        tasks = tables.count_tasks(spark, paths)
        spark.conf.set("spark.sql.shuffle.partitions", min(tasks, MOST_PARTITIONS))
        blocks = tables.read_blocks(spark, paths, input_format, tasks)
        counts = tables.map_rows(
            blocks, _count, COUNTS, input_format, do_lower_case, hold_out
        )
        sums = counts.groupBy("key").sum("count").toLocalIterator()
        key_counts = ((bytes(key), count) for key, count in sums)
        return word_sums.read_sums(
            key_counts, do_lower_case, paths, spark_files.size_of
        )


def _count(rows, *how):
    for _, _, packed in rows:
        yield from word_sums.count_block(pickle.loads(packed), *how)
