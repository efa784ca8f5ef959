"""What a row is meant to reach, and whether it did."""

import dataclasses
import statistics

OURS, PRODUCT = "ours", "matrix product"


@dataclasses.dataclass(frozen=True)
class Result:
    """What was measured of a row; ours is `OURS`.

    Attributes:
      seconds: dict of contender -> seconds of each of its turns.
      memory: dict of contender -> peak in bytes.
      units: what a call works off: sequences, megabytes.
      flops: of the matrix products of a call; None where it has none.
      product_flops: of a call of `PRODUCT`.
      other_flops: dict of contender -> as `flops`, of those that compute others.
    """

    seconds: dict
    memory: dict
    units: float
    flops: float | None
    product_flops: float
    other_flops: dict = dataclasses.field(default_factory=dict)

    def median(self, name):
        """Return the seconds of a contender's call."""
        return statistics.median(self.seconds[name])

    def ratios(self, name):
        """Return the quartiles of theirs / ours: how many times as fast ours is.

        Each ratio is that of two turns of the same round.
        """
        pairs = zip(self.seconds[name], self.seconds[OURS], strict=True)
        found = [theirs / ours for theirs, ours in pairs]
        return statistics.quantiles(found, n=4, method="inclusive")

    def share_of_ceiling(self, name):
        """Return a contender's rate of operations by that of the product.

        The median of the rounds, each with the product of the same round.
        """
        pairs = zip(self.seconds[PRODUCT], self.seconds[name], strict=True)
        times = statistics.median(product / own for product, own in pairs)
        return times * self.other_flops.get(name, self.flops) / self.product_flops


class AtLeast:
    """A target that is met by what is not below `least`."""

    def is_met(self, found):
        """Return whether what was found suffices."""
        return found >= self.least


class AtMost:
    """A target that is met by what is not above `most`."""

    def is_met(self, found):
        """Return whether what was found suffices."""
        return found <= self.most


@dataclasses.dataclass(frozen=True)
class Speed(AtLeast):
    """Ours is at least so many times as fast as the fastest of these."""

    others: tuple[str, ...]
    least: float
    who: str

    def __str__(self):
        return f"≥ {self.least:g} × {self.who}"

    def found(self, result):
        """Return the ratio, or None if none of them was measured."""
        there = [name for name in self.others if name in result.seconds]
        return min((result.ratios(name)[1] for name in there), default=None)


@dataclasses.dataclass(frozen=True)
class Ceiling(AtLeast):
    """Ours computes at this share of the matrix product's rate, or above."""

    least: float

    def __str__(self):
        return f"≥ {self.least:.2f} of the matrix product"

    def found(self, result):
        """Return the share."""
        return result.share_of_ceiling(OURS)


@dataclasses.dataclass(frozen=True)
class Memory(AtMost):
    """A contender's memory is at most so many times another's."""

    of: str
    other: str
    most: float

    def __str__(self):
        return f"memory of {self.of} ≤ {self.most:g} × {self.other}"

    def found(self, result):
        """Return the ratio."""
        return result.memory[self.of] / result.memory[self.other]


@dataclasses.dataclass(frozen=True)
class Rate(AtLeast):
    """Ours works off at least so many units a second."""

    least: float
    unit: str

    def __str__(self):
        return f"≥ {self.least:g} {self.unit} a second"

    def found(self, result):
        """Return the units a second."""
        return result.units / result.median(OURS)


@dataclasses.dataclass(frozen=True)
class Seconds(AtMost):
    """No contender takes longer."""

    most: float

    def __str__(self):
        return f"≤ {self.most:g} s"

    def found(self, result):
        """Return the seconds of the slowest."""
        return max(map(result.median, result.seconds))
