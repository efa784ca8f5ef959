"""A data set in lanes: groups of files with almost equally many rows.

Every batch takes the same number of rows from each lane, so that a worker
that needs some rows of each batch opens the files of their lanes only. The
number of lanes follows from the files and the batch size, never from the
number of workers: the batches of a run are the same on one and on many.
"""

import dataclasses
import itertools
import typing

import numpy as np

from official_bert.data.records.index import RecordIndex

# How many lanes there may be: powers of two, as numbers of workers mostly are.
NUMBERS = (16, 8, 4, 2, 1)


class Lane(typing.NamedTuple):
    """Chunks of an index that have an order of their own.

    Within tf.data, the numbers are int64 scalars.

    Attributes:
      first: int, place of the lane's first chunk in the index.
      chunks: int, how many chunks it has.
      seed: int, decides the order.
    """

    first: int
    chunks: int
    seed: int


def split_into_lanes(
    index: RecordIndex, batch_size: int, seed: int
) -> tuple[RecordIndex, list[Lane]]:
    """Deal the files to as many lanes as batch size and file sizes allow.

    Args:
      index: `RecordIndex` of the files.
      batch_size: B; the number of lanes divides it.
      seed: int, decides all orders.

    Returns:
      (`RecordIndex` of the same files, its chunks lane by lane; list of `Lane`).
    """
    rows = np.bincount(index.file_of, index.row_counts, len(index.files)).astype(int)
    number = next(n for n in NUMBERS if batch_size % n == 0 and _is_fair(rows, n))
    lane_of = _deal(rows, number)[index.file_of]
    chunks = np.bincount(lane_of, minlength=number).tolist()
    firsts = itertools.accumulate(chunks, initial=0)
    lanes = [
        Lane(first, count, seed * NUMBERS[0] + lane)
        for lane, (first, count) in enumerate(zip(firsts, chunks, strict=False))
    ]
    order = np.argsort(lane_of, kind="stable")
    columns: dict[str, typing.Any] = {
        name: column[order]
        for name, column in vars(index).items()
        if isinstance(column, np.ndarray)
    }
    return dataclasses.replace(index, **columns), lanes


def _is_fair(rows, number):
    """Whether the lanes differ by at most 1 %; small ones are repeated sooner."""
    sizes = np.bincount(_deal(rows, number), rows, number)
    return 100 * (sizes.max() - sizes.min()) <= sizes.max()


def _deal(rows, number):
    """Return each file's lane, int64 [files]: the emptiest, for large files first."""
    lane_of, sizes = np.zeros_like(rows), np.zeros(number, np.int64)
    for file in np.argsort(-rows, kind="stable"):
        lane_of[file] = np.argmin(sizes)
        sizes[lane_of[file]] += rows[file]
    return lane_of
