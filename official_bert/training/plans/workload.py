"""One chip's share of a training step, and the way it is computed.

All numbers follow from the config. Letters as in the paper: L layers, H hidden, A
heads, V vocabulary. Others: I intermediate size, S tokens per sequence, P predictions,
W weights.
"""

import dataclasses
import functools

from official_bert import parameter_count
from official_bert.config import BertConfig


@dataclasses.dataclass(frozen=True)
class Workload:
    """One chip's share of a training step.

    Attributes:
      config: `BertConfig`.
      rows: examples of the share.
      max_seq_length: S.
      predictions_per_seq: P; 0 in fine-tuning.
      precision: name, see `training.precision`.
      micro_batch_size: examples per micro-batch; 0 for all.
      recompute: whether each layer is computed again in the backward pass.
      is_compiled: whether XLA compiles the complete step.
      sequences_per_row: sequences per example: the choices of multiple choice.
    """

    config: BertConfig
    rows: int
    max_seq_length: int
    predictions_per_seq: int
    precision: str
    micro_batch_size: int = 0
    recompute: bool = False
    is_compiled: bool = True
    sequences_per_row: int = 1

    @property
    def rows_at_once(self) -> int:
        """Examples in memory at the same time."""
        return self.micro_batch_size or self.rows

    @property
    def num_parts(self) -> int:
        """Micro-batches of the share."""
        return -(-self.rows // self.rows_at_once)

    @functools.cached_property
    def num_weights(self) -> int:
        """W: number of weights of the encoder, and in pre-training of both heads.

        Fine-tuning heads have a few thousand weights, which are ignored.
        """
        parts = parameter_count.parameter_parts(self.config)
        with_heads = self.predictions_per_seq > 0
        heads = parameter_count.HEADS
        return sum(part.exact for part in parts if with_heads or part.group != heads)

    @property
    def sequences(self) -> int:
        """Sequences of the share."""
        return self.rows * self.sequences_per_row

    @property
    def bytes_per_number(self) -> int:
        """Bytes of a number in the step's precision."""
        return 4 if self.precision == "float32" else 2

    def changes(self, other: "Workload") -> str:
        """Return the flags that turn another workload into this one."""
        flags = []
        if self.precision != other.precision:
            flags.append(f"--precision={self.precision}")
        if self.micro_batch_size != other.micro_batch_size:
            flags.append(f"--micro_batch_size={self.micro_batch_size}")
        if self.recompute and not other.recompute:
            flags.append("--recompute")
        return " ".join(flags)
