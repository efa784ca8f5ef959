"""Define the flags of commands that can run on Apache Beam or Apache Spark."""

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
    "local: this machine. beam: an Apache Beam pipeline, on Dataflow, Flink or this "
    "machine. spark: Apache Spark. All three give the same result; see "
    "docs/how_to/clusters.md.",
)
flags.DEFINE_string(
    "beam_options",
    "",
    "With --runner=beam: Beam's own flags as one quoted string, passed to Beam "
    "unchanged. docs/how_to/clusters.md has examples.",
)
flags.DEFINE_string(
    "spark_master",
    "",
    "With --runner=spark: Spark's master, such as spark://host:7077, yarn, or "
    "local[2] for two processes on this machine. Leave it out under spark-submit.",
)
flags.DEFINE_multi_string(
    "spark_conf",
    [],
    "With --runner=spark: a Spark setting, such as spark.executor.memory=2g. Can be "
    "repeated.",
)
flags.DEFINE_string("spark_log", None, "With --runner=spark: file for Spark's log.")


class Engine(NamedTuple):
    """The parts of a cluster engine that the commands use.

    Attributes:
      cluster: the engine's settings, an argument of the two functions below.
      find_inputs: function (names and globs, flag) -> paths.
      pipeline: module with `create_pretraining_data(…, cluster=…)`.
      count_words: function like `word_counting.count_words`, with the settings and a
        folder as last arguments.
      storage: the engine's `Storage`.
      temporary_location: folder for temporary files; None for the output's folder.
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
    """Return the engine that `--runner` names, or None for this machine.

    Raises:
      UserError: flags contradict each other, or the engine is not installed.
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
            f"--num_workers cannot be used with --runner={runner}. Leave it out: the "
            "cluster's own settings set the number of workers."
        )
    return _beam() if runner == "beam" else _spark()


# Import engines late: other commands do not need them.


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
