"""The results of a comparison, and their targets."""

import dataclasses
import statistics

OURS, PRODUCT = "ours", "matrix product"


@dataclasses.dataclass(frozen=True)
class Result:
    """The measurements of a comparison; ours is `OURS`.

    Attributes:
      seconds: dict of variant -> seconds of each of its turns.
      memory: dict of variant -> peak in bytes.
      units: units per call: sequences, megabytes.
      flops: operations of the matrix products in a call; None if they are not
        counted.
      product_flops: operations in a call of `PRODUCT`.
      other_flops: dict of variant -> operations, like `flops`, for variants
        that compute more.
    """

    seconds: dict
    memory: dict
    units: float
    flops: float | None
    product_flops: float
    other_flops: dict = dataclasses.field(default_factory=dict)

    def median(self, name):
        """Return the seconds of a variant's call."""
        return statistics.median(self.seconds[name])

    def ratios(self, name):
        """Return the quartiles of theirs / ours: the speed of ours in units of theirs.

        Each ratio compares two turns of the same round.
        """
        pairs = zip(self.seconds[name], self.seconds[OURS], strict=True)
        ratios = [theirs / ours for theirs, ours in pairs]
        return statistics.quantiles(ratios, n=4, method="inclusive")

    def share_of_ceiling(self, name):
        """Return a variant's speed as a share of the matrix product's speed.

        It is the median over the rounds, each with the product of the same
        round.
        """
        pairs = zip(self.seconds[PRODUCT], self.seconds[name], strict=True)
        times = statistics.median(product / own for product, own in pairs)
        return times * self.other_flops.get(name, self.flops) / self.product_flops

    def is_faster_than_product(self):
        """Return whether noise made ours faster than the machine's limit."""
        return bool(self.flops) and self.share_of_ceiling(OURS) > 1


class AtLeast:
    """A target that values of `least` or more meet."""

    def is_met(self, value):
        """Return whether a value meets the target."""
        return value >= self.least


class AtMost:
    """A target that values of `most` or less meet."""

    def is_met(self, value):
        """Return whether a value meets the target."""
        return value <= self.most


@dataclasses.dataclass(frozen=True)
class Speed(AtLeast):
    """Ours is at least N times as fast as the fastest of these."""

    others: tuple[str, ...]
    least: float
    who: str

    def __str__(self):
        return f"≥ {self.least:g} × {self.who}"

    def value(self, result):
        """Return the ratio, or None if none of them was measured."""
        measured = [name for name in self.others if name in result.seconds]
        return min((result.ratios(name)[1] for name in measured), default=None)


@dataclasses.dataclass(frozen=True)
class Ceiling(AtLeast):
    """Ours reaches at least this share of the matrix product's speed."""

    least: float

    def __str__(self):
        return f"≥ {self.least:.2f} of the matrix product"

    def value(self, result):
        """Return the share."""
        return result.share_of_ceiling(OURS)


@dataclasses.dataclass(frozen=True)
class Memory(AtMost):
    """A variant's memory is at most N times another's."""

    of: str
    other: str
    most: float

    def __str__(self):
        return f"memory of {self.of} ≤ {self.most:g} × {self.other}"

    def value(self, result):
        """Return the ratio."""
        return result.memory[self.of] / result.memory[self.other]


@dataclasses.dataclass(frozen=True)
class Rate(AtLeast):
    """Ours processes at least N units per second."""

    least: float
    unit: str

    def __str__(self):
        return f"≥ {self.least:g} {self.unit} a second"

    def value(self, result):
        """Return the units per second."""
        return result.units / result.median(OURS)


@dataclasses.dataclass(frozen=True)
class Seconds(AtMost):
    """No variant takes longer."""

    most: float

    def __str__(self):
        return f"≤ {self.most:g} s"

    def value(self, result):
        """Return the seconds of the slowest."""
        return max(map(result.median, result.seconds))
