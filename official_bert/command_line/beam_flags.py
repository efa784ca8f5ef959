"""Flags of the scripts that can work on a cluster, with Apache Beam."""

from typing import Any

from absl import flags

FLAGS = flags.FLAGS

HELP_TITLE = "Apache Beam"

flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "beam"],
    "local: on this machine. beam: as an Apache Beam pipeline, on Dataflow, Flink, "
    "Spark or this machine; the result is the same.",
)
flags.DEFINE_string(
    "beam_options",
    "",
    "With --runner=beam, Beam's own flags as one quoted text, passed on as they are; "
    "docs/data.md has examples.",
)


def beam_options() -> Any:
    """Return Beam's options with --runner=beam, else None.

    Raises:
      UserError: flags that do not go together, or Beam is not installed.
    """
    from official_bert.errors import UserError

    if FLAGS.runner == "local":
        if FLAGS.beam_options:
            raise UserError("--beam_options needs --runner=beam.")
        return None
    if FLAGS["num_workers"].present:
        raise UserError(
            "--num_workers does not go with --runner=beam: leave it out, "
            "--beam_options says how many workers Beam has."
        )
    # Imported late: without Beam all else works.
    from official_bert.engines.beam import runs as beam_runs

    return beam_runs.make_options(FLAGS.beam_options)
