r"""Serve an export without Docker: a small server with TF Serving's REST API.

    python run_scripts/serve.py --model=exports/reviews

    curl -d '{"instances": [{"text": "Wonderful!"}]}' \
        http://127.0.0.1:8501/v1/models/reviews:predict

The page at http://127.0.0.1:8501/ sends requests from a form (the playground).

It serves the newest numbered version in --model. If a newer version is written, the
server switches to it without interrupting requests. Ctrl-C or SIGTERM stops the server
after it has answered the requests that it has received.

    python run_scripts/serve.py --model=exports/reviews_page

This serves the page of export_model.py --format=web, with the headers for threads.
"""

import os
import socket
import urllib.parse

from absl import flags

from official_bert import files
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError
from official_bert.machine import available_cores
from official_bert.serving import batching_parameters, static_files

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model",)
MOST_USED: tuple[str, ...] = (
    "port",
    "host",
    "model_name",
    "timeout_s",
    "max_concurrent",
    "enable_batching",
    "batching_parameters_file",
    "tensorflow_intra_op_parallelism",
    "max_request_bytes",
    "poll_s",
)

flags.DEFINE_string(
    "model",
    None,
    "Folder of an export: it contains numbered versions, or is a page (--format=web).",
)
define_aliases("model", "model_dir")
flags.DEFINE_string(
    "model_name",
    None,
    "Name of the model in the server's URLs. Default: the folder name of --model.",
)
flags.DEFINE_integer(
    "port", 8501, "Port; 0 selects a free one.", lower_bound=0, upper_bound=65535
)
flags.DEFINE_string(
    "host",
    "127.0.0.1",
    "Address to listen at. Default: only this machine can connect. With 0.0.0.0, "
    "everyone who can reach this machine can send requests, without a password.",
)
flags.DEFINE_integer(
    "max_request_bytes",
    32 << 20,
    "Maximum bytes of a request. A longer one gets status 413.",
    lower_bound=1,
)
flags.DEFINE_float(
    "timeout_s",
    30.0,
    "Maximum seconds of a request, including its waiting time. A slower one gets "
    "status 504.",
    lower_bound=0.01,
)
flags.DEFINE_integer(
    "max_concurrent",
    4,
    "Number of requests that are computed at once. Others wait.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "enable_batching",
    True,
    "Compute the rows of waiting requests together. It requires that each row of the "
    "outputs depends on the same row of the inputs only, as in every export.",
)
flags.DEFINE_string(
    "batching_parameters_file",
    None,
    "TensorFlow Serving's file of batching parameters. Default: max_batch_size 64, "
    "batch_timeout_micros 0, max_enqueued_batches 64, num_batch_threads 2.",
)
flags.DEFINE_integer(
    "tensorflow_intra_op_parallelism",
    None,
    "Threads of one operation; 0 uses all cores. Default: the cores divided by "
    "num_batch_threads, because two batches at once are faster than one with twice the "
    "threads.",
    lower_bound=0,
)
flags.DEFINE_float(
    "poll_s", 1.0, "Seconds between checks for new versions.", lower_bound=0.01
)


def main() -> None:
    """Load the newest version and serve until a signal arrives."""
    require(*REQUIRED)
    name = FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.model))
    if not set(name).isdisjoint("/:"):
        raise UserError(
            f"--model_name={name!r} contains / or :, which a URL does not allow. "
            "Choose another name."
        )
    # Listen first, because the model may take a while to load.
    with _listen(FLAGS.host, FLAGS.port) as listener:
        if static_files.is_page(locate(FLAGS.model)):
            page = locate(FLAGS.model)
            static_files.run(listener, page, lambda: _announce_page(listener))
            print("Stopped.", flush=True)
            return
        parameters = _batching_parameters() if FLAGS.enable_batching else None
        start_tensorflow(lambda: _set_threads(parameters))
        try:
            from official_bert.serving import model_versions, server
        except ModuleNotFoundError as error:
            if error.name not in ("aiohttp", "prometheus_client"):
                raise
            raise UserError(
                f"serve.py needs {error.name}. Run: pip install "
                "'official-bert[serving]'"
            ) from error
        versions = model_versions.open_model(name, locate(FLAGS.model))
        model_server = server.Server(
            versions,
            FLAGS.max_request_bytes,
            FLAGS.timeout_s,
            FLAGS.max_concurrent,
            FLAGS.poll_s,
            parameters,
        )
        model_server.run(listener, lambda: _announce(versions, listener))
    print("Stopped.", flush=True)
    if model_server.unfinished:
        # These requests have timed out; Python would wait for their threads.
        os._exit(0)


def _batching_parameters():
    path = FLAGS.batching_parameters_file
    if not path:
        return batching_parameters.BatchingParameters()
    text = files.read_text(locate(path), "batching parameters")
    return batching_parameters.parse_parameters(
        text, f"--batching_parameters_file={path}"
    )


def _set_threads(parameters):
    """Set the threads of an operation, and list the devices."""
    import tensorflow as tf

    threads = FLAGS.tensorflow_intra_op_parallelism
    if threads is None and parameters:
        threads = max((available_cores() or 1) // parameters.num_batch_threads, 1)
    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    return tf.config.list_logical_devices()


def _announce_page(listener):
    print(
        f"Serving the page at {_address(listener)}/ (Ctrl-C stops the server)",
        flush=True,
    )


def _address(listener):
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _announce(versions, listener):
    print(
        f"Serving version {versions.current.version} at "
        f"{_address(listener)}/v1/models/{urllib.parse.quote(versions.name)} (Ctrl-C "
        f"stops the server; playground: {_address(listener)}/)",
        flush=True,
    )


def _listen(host, port):
    """Return a listening socket; connections wait until the model is loaded."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"--host, --port: cannot listen at {host!r}, port {port}: {reason}. "
            "Choose another address or port; port 0 selects a free one."
        ) from error
