"""Flags of the scripts that can work on a cluster, with Apache Beam or Apache Spark."""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from absl import flags

from official_bert import files

FLAGS = flags.FLAGS

HELP_TITLE = "Clusters"

flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "beam", "spark"],
    "local: on this machine. beam: as an Apache Beam pipeline, on Dataflow, Flink or "
    "this machine. spark: on Apache Spark. The result is the same; docs/clusters.md "
    "describes both.",
)
flags.DEFINE_string(
    "beam_options",
    "",
    "With --runner=beam, Beam's own flags as one quoted text, passed on as they are; "
    "docs/clusters.md has examples.",
)
flags.DEFINE_string(
    "spark_master",
    "",
    "With --runner=spark, Spark's master: spark://host:7077, yarn, or local[2] for "
    "two processes on this machine. Leave it out under spark-submit.",
)
flags.DEFINE_multi_string(
    "spark_conf",
    [],
    "With --runner=spark, a setting of Spark, such as spark.executor.memory=2g; may "
    "be repeated.",
)
flags.DEFINE_string(
    "spark_log", None, "With --runner=spark, a file for Spark's own log."
)


class Engine(NamedTuple):
    """What the commands need of a cluster's engine.

    Attributes:
      cluster: its settings, for the two functions.
      find_inputs: function (names and globs, flag) -> paths.
      pipeline: module with `create_pretraining_data(…, cluster=…)`.
      count_words: function like `word_counting.count_words`, with the settings and
        a folder in the end.
      storage: its `Storage`.
      temporary_location: a folder for temporary files; None for the output's.
    """

    cluster: Any
    find_inputs: Callable[..., list[str]]
    pipeline: ModuleType
    count_words: Callable[..., tuple[Any, Any]]
    storage: Any
    temporary_location: str | None

    def folder(self, output_file: str, ending: str) -> str:
        """Return the path of a temporary folder for an output."""
        folder, name = os.path.split(output_file)
        folder = self.temporary_location or folder
        return files.absolute(os.path.join(folder, f"{name}{ending}"))


def cluster_engine() -> Engine | None:
    """Return the engine that `--runner` names, None for this machine's.

    Raises:
      UserError: flags that do not go together, or the engine is not installed.
    """
    from official_bert.errors import UserError

    runner = FLAGS.runner
    for prefix in ("beam", "spark"):
        for name in FLAGS:
            if name.startswith(f"{prefix}_") and FLAGS[name].value and runner != prefix:
                raise UserError(f"--{name} needs --runner={prefix}.")
    if runner == "local":
        return None
    if FLAGS["num_workers"].present:
        raise UserError(
            f"--num_workers does not go with --runner={runner}: leave it out. The "
            "cluster's own settings say how many workers it has."
        )
    return _beam() if runner == "beam" else _spark()


# Imported late: neither engine is needed for anything else.


def _beam():
    from official_bert.engines.beam import files, pipeline, runs, word_counts

    options = runs.make_options(FLAGS.beam_options)
    return Engine(
        options,
        files.find_inputs,
        pipeline,
        word_counts.count_words,
        files.STORAGE,
        runs.temporary_location(options),
    )


def _spark():
    from official_bert.engines.spark import files, pipeline, session, word_counts

    settings = session.make_settings(
        FLAGS.spark_master, FLAGS.spark_conf, FLAGS.spark_log
    )
    count_words = word_counts.count_words
    return Engine(
        settings, files.find_inputs, pipeline, count_words, files.STORAGE, None
    )
