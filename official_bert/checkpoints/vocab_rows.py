"""Add rows for new tokens to the word embeddings and the output bias.

The word embeddings [V, H] are also the output matrix of the masked-LM head,
which has a bias [V]. In both, a new token gets the mean over the pieces of its
word. Its score at a mask is therefore the mean of its pieces' scores,

    h · mean(E_i) + mean(b_i) = mean(h · E_i + b_i),

and its softmax weight is their geometric mean. It is high if all pieces fit,
and never above the best piece. The bias is a mean too, because 0 would ignore
the learned frequency of the pieces.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.errors import UserError

WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
MLM_BIAS = "cls/predictions/output_bias"


def extend(checkpoint: Checkpoint, pieces: Mapping[int, list[int]]) -> Checkpoint:
    """Return a checkpoint with rows for new tokens; other values stay bit-identical.

    New rows do not change the hidden states of texts without new tokens, nor the
    scores of old tokens. (Some devices, but not CPUs, may round scores
    differently when the table grows.) New rows do change probabilities, since the new
    tokens take a share.

    Args:
      checkpoint: `Checkpoint` with a config that fits its shapes.
      pieces: dict of id -> non-empty list of old token ids; the new row is
        their mean. Ids from V on are appended and must be consecutive. Lower
        ids (`[unused…]` or padding rows) are overwritten.

    Returns:
      `Checkpoint` with new tensors, shapes and `config.vocab_size`, and notes
      on
      other tensors with V rows, which stay unchanged. It reads from the given
      checkpoint.

    Raises:
      UserError: the checkpoint has no word embeddings.
    """
    if WORD_EMBEDDINGS not in checkpoint.shapes:
        raise UserError(
            f"{checkpoint.path} has no {WORD_EMBEDDINGS}. Give a BERT checkpoint."
        )
    assert checkpoint.config is not None
    old_size = checkpoint.config.vocab_size
    size = max(old_size, max(pieces, default=0) + 1)
    followed = [
        name for name in (WORD_EMBEDDINGS, MLM_BIAS) if name in checkpoint.shapes
    ]
    shapes = dict(checkpoint.shapes)
    for name in followed:
        shapes[name] = (size, *shapes[name][1:])

    def read(name):
        table = checkpoint.read(name)
        if name not in followed:
            return table
        extended = np.zeros((size, *table.shape[1:]), table.dtype)
        extended[: len(table)] = table
        for index, ids in pieces.items():
            extended[index] = table[ids].mean(axis=0)
        return extended

    notes = [
        f"{name} also has {old_size} rows or columns and stays unchanged."
        for name, shape in checkpoint.shapes.items()
        if name not in followed and old_size in shape
    ]
    return dataclasses.replace(
        checkpoint,
        shapes=shapes,
        read=read,
        config=dataclasses.replace(checkpoint.config, vocab_size=size),
        notes=(*checkpoint.notes, *notes),
    )
