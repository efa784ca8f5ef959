"""Features of tokens as JSON lines."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

import numpy as np

if TYPE_CHECKING:
    from official_bert.pretrained.feature_extraction import TokenFeatures


def write_json_lines(
    out: TextIO, features: Iterable["TokenFeatures"], layers: Sequence[int]
) -> None:
    """Write features as the original does: a line of JSON for each text.

    Args:
      out: text stream.
      features: iterable of `TokenFeatures`.
      layers: the numbers that they were asked for by.
    """
    for index, of_text in enumerate(features):
        # "linex_index" is how the original spells it.
        out.write(f'{{"linex_index": {index}, "features": [')
        between = ""
        for token, vectors in zip(of_text.tokens, of_text.vectors, strict=True):
            # `round(float(x), 6)` of each number: a float32 times 1e6 is exact in
            # float64, so this ties to even and equals Python's `round` to the last bit.
            rounded = np.rint(vectors.astype(np.float64) * 1e6) / 1e6
            named = [
                {"index": layer, "values": values}
                for layer, values in zip(layers, rounded.tolist(), strict=True)
            ]
            out.write(between + json.dumps({"token": token, "layers": named}))
            between = ", "
        out.write("]}\n")
