"""Start TensorFlow quietly."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from absl import logging

from official_bert.errors import UserError


def start_tensorflow(use: Callable[[], Any] | None = None) -> Any:
    """Import TensorFlow and find its devices, without its start-up messages.

    TensorFlow's C++ code prints lines on stderr that no setting disables, such as GPU
    errors on machines without a GPU. They are shown only if the import fails. Messages
    of this project are always shown.

    Args:
      use: function without arguments to call first; by default the devices are listed.

    Returns:
      The result of `use`.
    """
    sys.stderr.flush()
    own = os.dup(2)
    with tempfile.TemporaryFile() as chatter, _logging_to(own):
        os.dup2(chatter.fileno(), 2)
        try:
            import tensorflow as tf

            tf.get_logger().setLevel("WARNING")
            return use() if use else tf.config.list_logical_devices()
        except UserError:
            raise
        except BaseException:
            chatter.seek(0)
            os.write(own, chatter.read())
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)


@contextlib.contextmanager
def _logging_to(descriptor):
    """Send log lines for stderr to a copy of a file descriptor."""
    handler = logging.get_absl_handler().python_handler
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as stream:
        before = handler.setStream(stream) if handler.stream is sys.stderr else None
        try:
            yield
        finally:
            if before:
                handler.setStream(before)
