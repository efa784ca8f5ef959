"""New tokens in a model's tensors: rows of the word embeddings, output biases.

The table of word embeddings [V, H] is also the output matrix of the masked-LM
head, and the head has a bias [V]. A new token gets the mean of what the pieces
of its word have, in both. Its score at a masked word is then the mean of the
scores of its pieces,

    h · mean(E_i) + mean(b_i) = mean(h · E_i + b_i),

so its softmax weight is their geometric mean: high where all of its pieces fit,
and never above the best of them. That is why the bias is a mean too: with 0,
new words would lack what the model knows of how frequent their pieces are.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.errors import UserError

WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
MLM_BIAS = "cls/predictions/output_bias"


def extend(checkpoint: Checkpoint, pieces: Mapping[int, list[int]]) -> Checkpoint:
    """Return a checkpoint with rows for new tokens; all else stays, bit for bit.

    Hidden states of texts without the new tokens do not depend on the new rows,
    and the scores of old tokens do not either (some device may round them
    otherwise when the table grows; CPUs do not). Their probabilities do depend on
    them, since the new tokens take a share.

    Args:
      checkpoint: `Checkpoint` with a config, which must be true of its shapes.
      pieces: dict of id -> non-empty list of the ids of old tokens, whose mean
        the row becomes. Ids from V on are appended and have to follow each
        other; lower ones are overwritten, be they `[unused…]` or rows that
        merely pad the table.

    Returns:
      `Checkpoint`: new tensors, shapes, `config.vocab_size`, and notes on other
      tensors that have V rows and were left as they are. It reads from the
      given one.

    Raises:
      UserError: there are no word embeddings.
    """
    if WORD_EMBEDDINGS not in checkpoint.shapes:
        raise UserError(
            f"{checkpoint.path} has no {WORD_EMBEDDINGS}; is it a BERT checkpoint?"
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
        f"{name} has {old_size} rows or columns too and was left as it is."
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
