"""Compute the number of parameters and operations of a BERT from its config.

This module does not use TensorFlow, so BERT-Large takes no memory and no time. Letters
as in the paper: L layers, H hidden, A heads, V vocabulary. Additional letters: I
intermediate size (4H in the paper), P positions, T segment types.
"""

import dataclasses

from official_bert.config import BertConfig

ENCODER, HEADS = "encoder", "pre-training heads"


@dataclasses.dataclass(frozen=True)
class Part:
    """One row of the parameter table.

    Attributes:
      group: `ENCODER` or `HEADS`.
      name: name of the part.
      rough_formula: the paper's formula, or "" for a part that it omits.
      rough: value of the rough formula.
      formula: the exact formula, with biases and LayerNorm.
      exact: value of the exact formula.
    """

    group: str
    name: str
    rough_formula: str
    rough: int
    formula: str
    exact: int


def parameter_parts(config: BertConfig) -> list[Part]:
    """Return the parameter table of a `BertConfig` as a list of `Part`.

    The masked-LM head has no output matrix: it shares the word embeddings. Attention
    has 4H² parameters per layer (query, key, value, output). Feed-forward has 2HI,
    which is 8H² if I = 4H. Together they have 12LH².
    """
    depth, h, i = config.num_hidden_layers, config.hidden_size, config.intermediate_size
    v, p, t = config.vocab_size, config.max_position_embeddings, config.type_vocab_size
    wide, written = 2 * depth * h * i, "8·L·H²" if i == 4 * h else "2·L·H·I"
    square, attention = 4 * depth * h * h, depth * (4 * h * h + 6 * h)
    feed_forward = depth * (2 * h * i + i + 3 * h)
    encoder = [
        ("word embeddings", "V·H", v * h, "V·H", v * h),
        ("position embeddings", "P·H", p * h, "P·H", p * h),
        ("segment embeddings", "T·H", t * h, "T·H", t * h),
        ("their LayerNorm", "", 0, "2·H", 2 * h),
        ("attention", "4·L·H²", square, "L·(4·H² + 6·H)", attention),
        ("feed-forward", written, wide, "L·(2·H·I + I + 3·H)", feed_forward),
        ("pooler", "H²", h * h, "H² + H", h * h + h),
    ]
    heads = [
        ("masked LM", "H²", h * h, "H² + 3·H + V", h * h + 3 * h + v),
        ("next sentence", "2·H", 2 * h, "2·H + 2", 2 * h + 2),
    ]
    return [
        *(Part(ENCODER, *part) for part in encoder),
        *(Part(HEADS, *part) for part in heads),
    ]


def layers_flops(config: BertConfig, tokens: int, pairs: int) -> int:
    """Return the floating-point operations of the encoder's layers, forward.

    Counts matrix products only, two operations per multiply-add.

    Args:
      config: `BertConfig`.
      tokens: number of positions that have a vector, in all sequences.
      pairs: number of pairs of a query and a key: S² for a sequence of length S.
    """
    h, i = config.hidden_size, config.intermediate_size
    projections = 8 * tokens * h * h + 4 * tokens * h * i
    scores = 4 * pairs * h  # QKᵀ and the weighted sum of values
    return config.num_hidden_layers * (projections + scores)


def encoder_flops(config: BertConfig, max_seq_length: int) -> int:
    """Return the floating-point operations of the encoder on one sequence.

    Counts `layers_flops` and the pooler.

    Args:
      config: `BertConfig`.
      max_seq_length: tokens in the sequence, including padding.
    """
    pooler = 2 * config.hidden_size**2
    return layers_flops(config, max_seq_length, max_seq_length**2) + pooler


def training_flops(
    config: BertConfig, max_seq_length: int, max_predictions_per_seq: int
) -> int:
    """Return the floating-point operations of one training sequence.

    Counts the matrix products, and the backward pass as two forward passes. Published
    utilization figures use the same convention.

    Args:
      config: `BertConfig`.
      max_seq_length: tokens in the sequence, including padding.
      max_predictions_per_seq: positions that go through the masked-LM head.
    """
    h = config.hidden_size
    masked_lm = 2 * max_predictions_per_seq * (h * h + h * config.vocab_size)
    return 3 * (encoder_flops(config, max_seq_length) + masked_lm)
