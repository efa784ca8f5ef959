"""Model FLOPs: the operations of matrix products in one training step.

Model FLOPs count the operations that the mathematics needs. They do not depend on how a
program computes them:

- Each weight of a matrix product takes 2 operations per vector (one multiplication, one
  addition), and 4 in the backward pass: the gradients of inputs and weights.
- Attention takes 2 products of H per pair of query and key: the scores and the
  weighted sum of values.
- Embedding lookups, biases, LayerNorm, softmax, GELU and the optimizer are not counted.
  They are few operations and do not use a chip's matrix units.
- The second computation of `--recompute` is not counted.
- The vocabulary matrix multiplies only the gathered positions [B, P].

Padding is counted if the step computes it, because shapes are static. If the encoder
skips padding (`--skip_padding`), neither padding nor attention to padding is counted.
Heads that score each token always compute padding.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from official_bert import parameter_count
from official_bert.config import BertConfig


@dataclasses.dataclass(frozen=True)
class Heads:
    """Numbers of weights of the matrix products after the encoder's layers.

    Attributes:
      per_row: weights applied once per sequence: pooler, classifier.
      per_token: weights applied to each token's vector: tags, spans, a BiLSTM.
      per_prediction: weights applied to each gathered vector: the masked LM.
      trains_encoder: whether gradients reach the encoder.
    """

    per_row: int = 0
    per_token: int = 0
    per_prediction: int = 0
    trains_encoder: bool = True


@dataclasses.dataclass(frozen=True)
class BatchSize:
    """The sizes of a batch that a step computes.

    Attributes:
      rows: number of sequences.
      positions: S for each sequence, the positions that per-token heads compute.
      tokens: number of positions that the encoder computes.
      pairs: number of query-key pairs, summed over the sequences.
      predictions: number of positions that the masked LM gathers.
    """

    rows: int
    positions: int
    tokens: int
    pairs: int
    predictions: int = 0


def static_size(rows: int, length: int, predictions_per_row: int = 0) -> BatchSize:
    """Return the `BatchSize` of `rows` sequences of one length, padding included."""
    positions = rows * length
    pairs = positions * length
    return BatchSize(rows, positions, positions, pairs, rows * predictions_per_row)


def size_of(features: Mapping[str, Any], skips_padding: bool = False) -> BatchSize:
    """Return the `BatchSize` of a batch.

    Args:
      features: `input_ids` and `input_mask` int [..., S], and `masked_lm_positions`
        [B, P] in pre-training. Tensors are read on the host.
      skips_padding: whether the encoder computes only the tokens.
    """
    *rows, length = features["input_ids"].shape
    size = static_size(math.prod(rows), length)
    if "masked_lm_positions" in features:
        predictions = math.prod(features["masked_lm_positions"].shape)
        size = dataclasses.replace(size, predictions=predictions)
    if not skips_padding:
        return size
    lengths = np.count_nonzero(np.asarray(features["input_mask"]), axis=-1)
    tokens, pairs = int(lengths.sum()), int((lengths.astype(np.int64) ** 2).sum())
    return dataclasses.replace(size, tokens=tokens, pairs=pairs)


def heads_of(model: Any) -> Heads:
    """Return the `Heads` of an `EncoderModel`, from its trainable matrices."""
    counts = {"row": 0, "token": 0, "prediction": 0}
    trains_encoder = False
    reads_pooled = any("/pooler/" in v.path for v in model.trainable_variables)
    for variable in model.trainable_variables:
        path = variable.path
        if "/encoder/" in path:
            trains_encoder = True
        elif len(variable.shape) == 2 and "/embeddings/" not in path:
            kind = "row" if reads_pooled else "token"
            if "/predictions/" in path:
                kind = "prediction"
            counts[kind] += math.prod(variable.shape)
    if counts["prediction"]:
        counts["prediction"] += model.config.vocab_size * model.config.hidden_size
    return Heads(counts["row"], counts["token"], counts["prediction"], trains_encoder)


def step_flops(config: BertConfig, size: BatchSize, heads: Heads) -> int:
    """Return the model FLOPs of one training step: forward and backward pass.

    Args:
      config: `BertConfig`.
      size: `BatchSize` of the whole batch.
      heads: `Heads`.
    """
    layers = parameter_count.layers_flops(config, size.tokens, size.pairs)
    above = 2 * (
        heads.per_row * size.rows
        + heads.per_token * size.positions
        + heads.per_prediction * size.predictions
    )
    return (3 if heads.trains_encoder else 1) * layers + 3 * above
