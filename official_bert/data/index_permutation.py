"""A random order of any number of things, computed place by place.

No list of the order is kept, so that any part of it can be had by itself and
costs no more memory than the part.
"""

import numpy as np

# Of the Feistel network. Four are enough for an order that looks drawn by lot.
ROUNDS = 6

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def permuted(places: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return what stands at places of a random order of 0 … size - 1.

    A Feistel network permutes the numbers of 2n bits, the fewest that hold
    `size`. What is too large is permuted again until it is not, so that what
    remains is a permutation of the rest (Black and Rogaway, 2002).

    Args:
      places: int array, from 0 to `size` - 1.
      size: int, below 2**62.
      seed: int, decides the order.

    Returns:
      int64 array of the shape of `places`.
    """
    return _walk(places, size, seed, inverse=False)


def places_of(numbers: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return at which places numbers stand; the inverse of `permuted`."""
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
    """Return 64 bits of which each depends on all (the end of SplitMix64)."""
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))
