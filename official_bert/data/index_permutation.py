"""A random order of any number of items, computed position by position.

The order is never stored. Any part of it can be computed separately, and needs
memory only for that part.
"""

import numpy as np

# Rounds of the Feistel network. Four already give an order that looks random.
ROUNDS = 6

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def permuted(places: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the items at some positions of a random order of 0 … size - 1.

    A Feistel network permutes the numbers with 2n bits, the fewest that hold
    `size`. Results that are too large are permuted again until they fit, which
    gives a permutation of the valid numbers (Black and Rogaway, 2002).

    Args:
      places: int array of positions, from 0 to `size` - 1.
      size: int, below 2**62.
      seed: int, decides the order.

    Returns:
      int64 array of the shape of `places`.
    """
    return _walk(places, size, seed, inverse=False)


def places_of(numbers: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the positions of numbers in the order; the inverse of `permuted`."""
    return _walk(numbers, size, seed, inverse=True)


def _walk(numbers, size, seed, inverse):
    half = np.uint64((max(size - 1, 1).bit_length() + 1) // 2)
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = _mix(np.uint64(seed % 2**64) + _ODD * np.arange(1, ROUNDS + 1).astype("u8"))
    result = np.asarray(numbers).astype(np.uint64)
    again = np.ones(result.shape, bool)
    while again.any():
        left, right = result[again] >> half, result[again] & mask
        for key in keys[::-1] if inverse else keys:
            if inverse:
                left, right = right ^ (_mix(left + key) & mask), left
            else:
                left, right = right, left ^ (_mix(right + key) & mask)
        result[again] = left << half | right
        again = result >= size
    return result.astype(np.int64)


def _mix(numbers):
    """Return mixed 64-bit numbers; each bit depends on all (the end of SplitMix64)."""
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))
