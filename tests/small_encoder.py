"""A small encoder, and texts for it."""

import numpy as np

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder

SMALL = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


def make_encoder(recompute=False, **changes):
    """Return an encoder whose weights have standard deviation 0.3, so all matter."""
    encoder = BertEncoder(BertConfig(**{**SMALL, **changes}), recompute)
    rng = np.random.default_rng(0)
    for variable in encoder.trainable_variables:
        around = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(around + 0.3 * rng.normal(size=variable.shape))
    return encoder


def make_features(length=32, batch=4, seed=0):
    """Return random tokens with padding in all rows except the first."""
    rng = np.random.default_rng(seed)
    lengths = np.array([length, *rng.integers(5, length, batch - 1)])
    mask = np.arange(length) < lengths[:, np.newaxis]
    return {
        "input_ids": (rng.integers(5, 40, (batch, length)) * mask).astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": ((np.arange(length) > 3) & mask).astype(np.int32),
    }
