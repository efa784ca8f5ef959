"""Common parts of all Apache Beam pipelines: options, text, errors.

Beam is imported only where it is used, because the rest of the project does not
need it.
"""

import contextlib
import io
import logging
import os
import pathlib
import re
import shlex
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import official_bert
from official_bert.corpus import text_blocks
from official_bert.engines import worker_errors
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import pools as beam_pools
from official_bert.errors import UserError

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

# The addition to our messages after they passed through a runner.
_WHERE = re.compile(r" \[while running .*")


def make_options(beam_options: str) -> "PipelineOptions":
    """Return Beam's `PipelineOptions`.

    Args:
      beam_options: str, Beam's flags as on a command line.

    Raises:
      UserError: Beam is not installed, or the flags are invalid.
    """
    # Beam warns about missing parts that are not needed here.
    logging.disable(logging.WARNING)
    try:
        import apache_beam.io  # noqa: F401
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise UserError(
            "--runner=beam needs Apache Beam, which is not installed "
            f"({error}). Install it: pip install 'official-bert[beam]'."
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    # These log the workers' errors, which are also raised here.
    for name in ("worker", "portability.local_job_service"):
        logging.getLogger(f"apache_beam.runners.{name}").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_a_job_server)
    complaint = io.StringIO()
    try:
        # Beam's parser behaves like a program: it prints usage to stderr and
        # exits.
        with contextlib.redirect_stderr(complaint):
            options = PipelineOptions(shlex.split(beam_options))
            options.get_all_options()
        return options
    except (ValueError, SystemExit) as error:
        reason = complaint.getvalue().strip().rpartition("error: ")[2] or error
        raise UserError(
            f"--beam_options: Beam cannot parse {beam_options!r} ({reason}). "
            "Write Beam's flags as one quoted argument, such as "
            "'--runner=DirectRunner'."
        ) from error


def _is_not_of_a_job_server(record):
    """Drop a job server's log lines; workers' errors are also raised here."""
    return record.module != "portable_runner"


def run_pipeline(
    options: "PipelineOptions | None", build: "Callable[[beam.Pipeline], object]"
) -> None:
    """Run a pipeline to its end.

    Args:
      options: from `make_options`.
      build: function that adds the steps to a `beam.Pipeline`.

    Raises:
      UserError: a worker raised it, or Beam cannot run the pipeline.
    """
    import apache_beam as beam

    def make_pipeline():
        pipeline = beam.Pipeline(options=options)
        build(pipeline)
        return pipeline

    addresses = beam_pools.addresses_of(options)
    try:
        with _importable_by_children():
            if addresses:
                assert options is not None
                state = beam_pools.run(make_pipeline, options, addresses)
            else:
                state = make_pipeline().run().wait_until_finish()
    except Exception as error:
        reason = _reason(error)
        if not reason:
            raise
        raise UserError(reason) from error
    # Runners that do not wait return None.
    if state not in (None, beam.runners.runner.PipelineState.DONE):
        raise UserError(
            f"Beam's pipeline did not finish; its state is {state}. See the "
            "runner's log."
        )


def _reason(error):
    """Return a sentence about a runner's error; None for our own defect."""
    text = "".join(traceback.format_exception(error))
    sentence = worker_errors.sentence_in(text)
    if sentence:
        return _WHERE.sub("", sentence)
    if worker_errors.is_ours(text):
        return None
    message = str(error)
    if "Traceback (most recent call last)" in message:
        message = message.strip().rpartition("\n")[2]
    reason = " ".join(message.split())
    return f"--beam_options: Beam cannot run the pipeline: {reason}"


@contextlib.contextmanager
def _importable_by_children():
    """Let workers on this machine import the running checkout."""
    root = str(pathlib.Path(official_bert.__file__).parent.parent)
    old = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{old}" if old else root
    try:
        yield
    finally:
        if old is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = old


def temporary_location(options: "PipelineOptions") -> str | None:
    """Return the value of Beam's `--temp_location`, or None."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    return options.view_as(GoogleCloudOptions).temp_location


def read_blocks(
    pipeline: "beam.Pipeline", paths: Iterable[str], input_format: str
) -> "beam.PCollection":
    """Return the PCollection of the `TextBlock`s of files."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    # Without this, Beam would choose coders from the annotations.
    cut = no_annotations(text_blocks.blocks_of)
    return (
        pipeline
        | "Files" >> beam.Create(text_blocks.group_files(paths, beam_files.size_of))
        | "Spread files" >> beam.Reshuffle()
        | "Cut blocks" >> beam.FlatMap(cut, input_format, beam_files.open_text)
        # One worker reads a file, but several process its blocks.
        | "Spread blocks" >> beam.Reshuffle()
    )
