"""TensorFlow Text, which the option `--tokenizer_ops=tf_text` of exports needs."""

from typing import Any

import tensorflow as tf

from official_bert.errors import UserError

# The operations that exports use, as in a graph.
OPS = ("FastBertNormalize", "FastWordpieceTokenizeWithOffsets")


def import_tf_text(what: str) -> Any:
    """Return the module `tensorflow_text`, whose import registers its operations.

    Args:
      what: what needs it, for the message.

    Raises:
      UserError: it is not installed, or does not fit TensorFlow.
    """
    try:
        import tensorflow_text
    except (ImportError, tf.errors.NotFoundError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{what} needs TensorFlow Text, which cannot be imported ({reason}). Run: "
            "pip install tensorflow-text"
        ) from error
    return tensorflow_text
