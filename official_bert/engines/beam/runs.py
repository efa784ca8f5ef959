"""What every pipeline on Apache Beam needs: options, text, errors.

Beam is imported where it is used: the rest of the project does without it.
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

# What a message of ours ends with when it has passed through a runner.
_WHERE = re.compile(r" \[while running .*")


def make_options(beam_options: str) -> "PipelineOptions":
    """Return Beam's `PipelineOptions`.

    Args:
      beam_options: str, Beam's own flags as on a command line.

    Raises:
      UserError: Beam is not installed, or the flags are none.
    """
    # It warns of parts that are missing and not needed here.
    logging.disable(logging.WARNING)
    try:
        import apache_beam.io  # noqa: F401
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise UserError(
            "--runner=beam needs Apache Beam, which is not installed: pip install "
            f"'official-bert[beam]' ({error})."
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    # These tell of each worker's error, which comes to us as well.
    for name in ("worker", "portability.local_job_service"):
        logging.getLogger(f"apache_beam.runners.{name}").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_a_job_server)
    complaint = io.StringIO()
    try:
        # It reads like a program of its own: usage on stderr, then the end.
        with contextlib.redirect_stderr(complaint):
            options = PipelineOptions(shlex.split(beam_options))
            options.get_all_options()
        return options
    except (ValueError, SystemExit) as error:
        reason = complaint.getvalue().strip().rpartition("error: ")[2] or error
        raise UserError(
            f"--beam_options: Beam cannot read {beam_options!r} ({reason}); write "
            "Beam's own flags, quoted as one, such as '--runner=DirectRunner'."
        ) from error


def _is_not_of_a_job_server(record):
    """Drop what a job server says, also a worker's error, which comes to us as well."""
    return record.module != "portable_runner"


def run_pipeline(
    options: "PipelineOptions | None", build: "Callable[[beam.Pipeline], object]"
) -> None:
    """Run a pipeline to its end.

    Args:
      options: from `make_options`.
      build: function that is given the `beam.Pipeline` and adds the steps.

    Raises:
      UserError: a worker raised one, or Beam cannot run pipelines like this.
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
    # A runner that waits for nothing returns None.
    if state not in (None, beam.runners.runner.PipelineState.DONE):
        raise UserError(f"Beam's pipeline was not finished: its state is {state}.")


def _reason(error):
    """Return a sentence about what a runner raised; None if it is our defect."""
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
    """Let workers on this machine import the checkout that is running."""
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
    """Return what Beam's `--temp_location` says, None if it says nothing."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    return options.view_as(GoogleCloudOptions).temp_location


def read_blocks(
    pipeline: "beam.Pipeline", paths: Iterable[str], input_format: str
) -> "beam.PCollection":
    """Return the PCollection of the `TextBlock`s of files."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    # Beam would choose coders by the annotations, which are for readers.
    cut = no_annotations(text_blocks.blocks_of)
    return (
        pipeline
        | "Files" >> beam.Create(text_blocks.group_files(paths, beam_files.size_of))
        | "Spread files" >> beam.Reshuffle()
        | "Cut blocks" >> beam.FlatMap(cut, input_format, beam_files.open_text)
        # A file is read by one worker; what is done with its blocks is not.
        | "Spread blocks" >> beam.Reshuffle()
    )
