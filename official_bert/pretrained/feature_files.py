"""Write features to files: JSON lines or a `.npy`."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

import numpy as np

from official_bert import files

if TYPE_CHECKING:
    from official_bert.pretrained.feature_extraction import TokenFeatures


def write_json_lines(
    out: TextIO, features: Iterable["TokenFeatures"], layers: Sequence[int]
) -> None:
    """Write features as the original does: one line of JSON per text.

    Args:
      out: text stream.
      features: iterable of `TokenFeatures`.
      layers: the layer numbers as the user gave them.
    """
    for index, of_text in enumerate(features):
        _write_line(out, index, of_text, layers)


def _write_line(out, index, of_text, layers):
    # "linex_index" is the original's spelling.
    out.write(f'{{"linex_index": {index}, "features": [')
    between = ""
    for token, vectors in zip(of_text.tokens, of_text.vectors, strict=True):
        # `round(float(x), 6)` of each number: a float32 times 1e6 is exact in float64,
        # so this ties to even and equals Python's `round` to the last bit.
        rounded = np.rint(vectors.astype(np.float64) * 1e6) / 1e6
        named = [
            {"index": layer, "values": values}
            for layer, values in zip(layers, rounded.tolist(), strict=True)
        ]
        out.write(between + json.dumps({"token": token, "layers": named}))
        between = ", "
    out.write("]}\n")


def write_both(
    out: TextIO,
    path: str | os.PathLike[str],
    features: Iterable[tuple["TokenFeatures", np.ndarray]],
    layers: Sequence[int],
    width: int,
) -> int:
    """Write the outputs of `write_json_lines` and `save_vectors` as features arrive.

    Args:
      out: text stream of the JSON lines.
      path: path of the `.npy` file.
      features: iterable of (`TokenFeatures`, float array [width]).
      layers: layer numbers of the token vectors.
      width: H.

    Returns:
      The number of texts.
    """

    def vectors():
        for index, (of_tokens, vector) in enumerate(features):
            _write_line(out, index, of_tokens, layers)
            yield vector

    return save_vectors(path, vectors(), width)


def save_vectors(
    path: str | os.PathLike[str], vectors: Iterable[np.ndarray], width: int
) -> int:
    """Write vectors to a `.npy` file as they arrive; the file appears at the end.

    Args:
      path: path of the file.
      vectors: iterable of float arrays [width].
      width: H.

    Returns:
      The number of vectors.
    """
    count = 0
    with files.atomic_path(path) as temporary, open(temporary, "wb") as out:
        _write_npy_header(out, 0, width)
        for vector in vectors:
            out.write(vector.astype("<f4").tobytes())
            count += 1
        # NumPy's header has enough room for a larger number of rows.
        out.seek(0)
        _write_npy_header(out, count, width)
    return count


def _write_npy_header(out, rows, width):
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(out, header)
