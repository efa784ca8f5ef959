"""Lanes: groups of files with almost equal numbers of rows.

Every batch takes the same number of rows from each lane. A worker that needs
only some rows of each batch opens only the files of their lanes. The number of
lanes depends only on the files and the batch size. The batches are therefore
the same for any number of workers.
"""

import dataclasses
import itertools
import typing

import numpy as np

from official_bert.data.records.index import RecordIndex

# Possible numbers of lanes: powers of two, like most numbers of workers.
NUMBERS = (16, 8, 4, 2, 1)


class Lane(typing.NamedTuple):
    """The chunks of an index that are ordered together.

    Within tf.data, the numbers are int64 scalars.

    Attributes:
      first: int, position of the lane's first chunk in the index.
      chunks: int, number of chunks.
      seed: int, decides the order.
    """

    first: int
    chunks: int
    seed: int


def split_into_lanes(
    index: RecordIndex, batch_size: int, seed: int
) -> tuple[RecordIndex, list[Lane]]:
    """Divide the files into as many lanes as batch size and file sizes allow.

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
    """Return whether the lanes differ by at most 1 %; smaller lanes repeat sooner."""
    sizes = np.bincount(_deal(rows, number), rows, number)
    return 100 * (sizes.max() - sizes.min()) <= sizes.max()


def _deal(rows, number):
    """Return each file's lane, int64 [files]; large files choose the emptiest."""
    lane_of, sizes = np.zeros_like(rows), np.zeros(number, np.int64)
    for file in np.argsort(-rows, kind="stable"):
        lane_of[file] = np.argmin(sizes)
        sizes[lane_of[file]] += rows[file]
    return lane_of
