"""Plain kernels with one function replaced, for comparison with optimized ones."""

import functools

from official_bert.modeling import layers, transformer
from official_bert.modeling.kernels.hashed_dropout import hashed_dropout, mask_key
from official_bert.modeling.kernels.interface import Kernels


def with_dropout(dropout, embeddings=None):
    """Return plain `Kernels` with another dropout.

    Args:
      dropout: function with the signature of the plain one.
      embeddings: the embeddings' dropout; by default the same.
    """
    return Kernels(
        dropout=embeddings or dropout,
        attention=functools.partial(transformer.attention, dropout=dropout),
        residual_layer_norm=functools.partial(
            layers.residual_layer_norm, dropout=dropout
        ),
    )


def dropout_by_hash(x, rate, seed, dropout_index):
    """Compute `hashed_dropout` with the signature of the plain `dropout`."""
    if seed is None:
        return x
    return hashed_dropout(x, mask_key(seed, dropout_index), rate=rate)
