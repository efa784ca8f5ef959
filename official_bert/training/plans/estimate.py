"""Estimates of a training step's memory, operations and bytes.

They serve GPUs, whose compiler is not available here. For TPUs they select the
candidates that are worth compiling. Letters as in `workload`; also T tokens of a
micro-batch, c bytes per number in the step's precision.

Memory of a chip:
- Weights take 4 W bytes, Adam's moments 8 W, gradients 4 W.
- Micro-batches need 4 W more, for the sum of their gradients.
- A 16-bit precision needs a copy of the weights, 2 W.
- Each layer keeps `kept_per_token` times T for the backward pass. The gradients within
  a layer need this amount once more.
- Logits of the masked tokens and their exponentials take 8 V per token, in float32.

With recomputation each layer keeps only its input, T H c.

Minimum number of bytes that a step transfers:
- The optimizer reads weight, moments and gradient, and writes weight and moments: 28 W.
  The gradient is written and read for its norm: 8 W.
- For each micro-batch, the weights in the step's precision are made once and read three
  times: in the forward pass and in both products of the backward pass.
- Each kept number is written once and read twice, and so is its gradient.
"""

from official_bert import parameter_count
from official_bert.training.plans import plan
from official_bert.training.plans.chips import Slice
from official_bert.training.plans.plan import GIGA, Plan
from official_bert.training.plans.workload import Workload

# Bytes per weight of float32 weights, moments and gradients.
WEIGHT_BYTES, MOMENT_BYTES, GRADIENT_BYTES = 4, 8, 4
OPTIMIZER_BYTES = 28 + 2 * GRADIENT_BYTES
# Passes over a kept number and its gradient: each is written once and read twice.
PASSES = 6


def kept_per_token(work: Workload) -> float:
    """Return the bytes that a layer keeps of each token for the backward pass.

    The kernels for XLA (`kernels.whole_program`) keep the layer's input, query, key,
    value, context, the inputs of both LayerNorms, GELU's input, and one float32 number
    per head. XLA computes everything else again.

    Without XLA each operation keeps its own inputs. Additional tensors are dropout's
    masks, and the square and the tanh of GELU. In float32 there are also LayerNorm's
    normalized rows and the softmax before its cast.
    """
    h, i = work.config.hidden_size, work.config.intermediate_size
    probabilities = work.config.num_attention_heads * work.max_seq_length
    c = work.bytes_per_number
    if work.is_compiled:
        return c * (7 * h + i) + 4 * work.config.num_attention_heads
    return c * (8 * h + 4 * i + 2 * probabilities) + 4 * (2 * h + probabilities)


def argument_bytes(work: Workload) -> float:
    """Return the bytes of weights and moments."""
    return (WEIGHT_BYTES + MOMENT_BYTES) * work.num_weights


def temporary_bytes(work: Workload) -> float:
    """Return the bytes of gradients, activations and logits at their peak."""
    copies = 2 if work.num_parts > 1 else 1
    of_weights = GRADIENT_BYTES * copies * work.num_weights
    if work.bytes_per_number == 2:
        of_weights += 2 * work.num_weights
    sequences = work.rows_at_once * work.sequences_per_row
    tokens = sequences * work.max_seq_length
    layers, one = work.config.num_hidden_layers, tokens * kept_per_token(work)
    inputs = tokens * work.config.hidden_size * work.bytes_per_number
    activations = layers * inputs + 2 * one if work.recompute else (layers + 1) * one
    masked = sequences * work.predictions_per_seq
    return of_weights + activations + masked * work.config.vocab_size * 8


def operations(work: Workload) -> float:
    """Return the operations of all matrix products of a step."""
    config, length = work.config, work.max_seq_length
    predictions = work.predictions_per_seq
    one = parameter_count.training_flops(config, length, predictions)
    if work.recompute:
        one += parameter_count.encoder_flops(config, length)
    return one * work.sequences


def transferred_bytes(work: Workload) -> float:
    """Return the minimum number of bytes that a step reads and writes."""
    c = work.bytes_per_number
    made = WEIGHT_BYTES + c if c == 2 else 0
    of_weights = OPTIMIZER_BYTES + work.num_parts * (made + 3 * c + GRADIENT_BYTES)
    tokens = work.sequences * work.max_seq_length
    passes = PASSES + 2 if work.recompute else PASSES
    layers = work.config.num_hidden_layers * tokens * kept_per_token(work) * passes
    masked = work.sequences * work.predictions_per_seq
    logits = masked * work.config.vocab_size * 4 * PASSES
    return of_weights * work.num_weights + layers + logits


def estimate(work: Workload, slice_: Slice, num_chips: int) -> Plan:
    """Return the estimated `Plan` of a workload.

    Args:
      work: `Workload` of one chip.
      slice_: its `Slice`.
      num_chips: number of chips that train.
    """
    sums = [1, WEIGHT_BYTES * work.num_weights]
    return plan.with_costs(
        Plan(slice_.name, num_chips, True, None),
        slice_,
        work.precision,
        flops=operations(work),
        bytes_accessed=transferred_bytes(work),
        main_memory_bytes=transferred_bytes(work),
        argument_gb=argument_bytes(work) / GIGA,
        temp_gb=temporary_bytes(work) / GIGA,
        collectives={"all-reduce": sums} if num_chips > 1 else {},
    )
