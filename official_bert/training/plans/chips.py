"""Peak rates and memory of accelerators, and the slices that a plan can name."""

import dataclasses
import math
import re

from official_bert.errors import UserError

MAX_CHIPS = 64


@dataclasses.dataclass(frozen=True)
class Chip:
    """A chip with the peak rates of its vendor.

    Attributes:
      name: common name.
      flops: operations per second of dense matrix products in bfloat16 (float16 on
        chips without bfloat16).
      bandwidth: bytes per second of the main memory.
      memory: bytes of the main memory that a program can use.
      interconnect: bytes per second that the chip can send to other chips of a slice.
      float32_flops: like `flops`, for float32 inputs: TF32 on GPUs that have it, six
        bfloat16 passes on TPUs.
      half: the 16-bit precision of the matrix units.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    interconnect: float
    float32_flops: float
    half: str = "bfloat16"


@dataclasses.dataclass(frozen=True)
class Slice:
    """Chips that train together.

    Attributes:
      name: value of `--topology`.
      chip: `Chip`.
      num_chips: number of chips.
      compiler_name: the TPU compiler's name of the slice; None for GPUs.
    """

    name: str
    chip: Chip
    num_chips: int
    compiler_name: str | None = None


GIBI = 2**30
# CUDA and TensorFlow itself take about 6 % of a GPU's memory.
USABLE_ON_GPUS = 0.94


def _tpu(name, teraflops, terabytes, gibibytes, interconnect):
    """Return a TPU; `gibibytes` is the memory that the compiler allows a program."""
    flops = teraflops * 1e12
    memory, sent = gibibytes * GIBI, interconnect * 1e9
    return Chip(name, flops, terabytes * 1e12, memory, sent, flops / 6)


def _gpu(
    name,
    teraflops,
    terabytes,
    gibibytes,
    interconnect,
    float32_teraflops,
    half="bfloat16",
):
    memory, sent = gibibytes * GIBI * USABLE_ON_GPUS, interconnect * 1e9
    rates = teraflops * 1e12, terabytes * 1e12, memory, sent
    return Chip(name, *rates, float32_teraflops * 1e12, half)


# Rates: Google Cloud's page on each TPU. The interconnect is half the rate on that
# page, which counts both directions. Memory: the limit in the messages of the compiler
# (libtpu 0.0.42).
TPUS = {
    "v4": _tpu("TPU v4", 275, 1.2, 30.75, 300),
    "v5e": _tpu("TPU v5e", 197, 0.82, 15.75, 200),
    "v5p": _tpu("TPU v5p", 459, 2.77, 95.74, 600),
    "v6e": _tpu("TPU v6e", 918, 1.64, 31.25, 400),
}
# The compiler's name of v5p is "v5".
_COMPILER_NAMES = {"v5p": "v5"}
# NVIDIA's data sheets, without sparsity. The interconnect is one direction of NVLink,
# or of PCIe for L4 and T4.
GPUS = {
    "h200": _gpu("H200 SXM", 989, 4.8, 141, 450, 494),
    "h100": _gpu("H100 SXM", 989, 3.35, 80, 450, 494),
    "a100": _gpu("A100 SXM 80 GB", 312, 2.04, 80, 300, 156),
    "l4": _gpu("L4", 121, 0.3, 24, 32, 60),
    "v100": _gpu("V100 SXM 32 GB", 125, 0.9, 32, 150, 15.7, "float16"),
    "t4": _gpu("T4", 65, 0.32, 16, 16, 8.1, "float16"),
}


def parse_topology(text: str) -> Slice:
    """Return the `Slice` of a name such as `v5e:4x4`, `v4:2x2x1`, `h100` or `8xh100`.

    Raises:
      UserError: the chip is unknown, or the slice is too large.
    """
    kind, colon, shape = text.strip().lower().partition(":")
    if kind in TPUS:
        dimensions = [int(size) for size in re.findall(r"\d+", shape)]
        wanted = 3 if kind in ("v4", "v5p") else 2
        if not re.fullmatch(r"\d+(x\d+)+", shape) or len(dimensions) != wanted:
            example = "2x2x1" if wanted == 3 else "4x4"
            raise UserError(
                f"--topology={text}: give the {wanted} dimensions of the slice, for "
                f"example {kind}:{example}."
            )
        num_chips = math.prod(dimensions)
        if not 1 <= num_chips <= MAX_CHIPS:
            raise UserError(
                f"--topology={text} has {num_chips} chips. Use 1 to {MAX_CHIPS}."
            )
        if any(size % 2 for size in dimensions[:2]):
            raise UserError(
                f"--topology={text}: the TPU compiler supports only slices of whole "
                "machines, with 2 x 2 chips or more. Use even dimensions; to train on "
                f"fewer of their chips, add --chips={num_chips}."
            )
        compiler_name = f"{_COMPILER_NAMES.get(kind, kind)}:{shape}"
        return Slice(text, TPUS[kind], num_chips, compiler_name)
    gpu = re.fullmatch(r"(?:(\d{1,4})x)?(\w+)", kind)
    if colon or not gpu or gpu[2] not in GPUS or gpu[1] == "0":
        raise UserError(
            f"--topology={text} is unknown. TPU slices: {', '.join(TPUS)} with their "
            f"shape (v5e:4x4, v4:2x2x1). GPUs: {', '.join(GPUS)}, several as 8xh100."
        )
    return Slice(text, GPUS[gpu[2]], int(gpu[1] or 1))
