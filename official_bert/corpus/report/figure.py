"""The figure of a corpus report: lengths of sequences and of documents."""

import importlib.util
import os

from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.files import atomic_path


def draw(statistics: CorpusStatistics, path: str | os.PathLike[str]) -> bool:
    """Draw the histograms of a corpus as a PNG; return False without matplotlib.

    Args:
      statistics: `CorpusStatistics`.
      path: the PNG.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return False
    with atomic_path(path) as temporary:
        _figure(statistics).savefig(temporary, format="png", dpi=110)
    return True


def _figure(statistics):
    # Without pyplot, whose import takes longer than all the rest here.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="tight")
    left, right = figure.subplots(1, 2)
    length, total = statistics.max_seq_length, statistics.sequence_lengths.total()
    bins = statistics.sequence_bins(32)
    shares = [100 * count / max(1, total) for *_, count in bins]
    left.stairs(shares, [0, *(high for _, high, _ in bins)], fill=True)
    left.set(
        xlabel="tokens of a sequence",
        ylabel="sequences (%)",
        xlim=(0, length),
        title=f"sequences: {total:,}, at most {length} tokens",
    )
    lengths = statistics.document_lengths
    if lengths:
        span = range(min(lengths), max(lengths) + 1)
        edges = [2 ** (number / 4) for number in (*span, span.stop)]
        counts = [lengths[number] for number in span]
        right.stairs(counts, edges, fill=True, color="tab:orange")
        right.set_xscale("log")
        # Wide enough to show a power of ten on the axis.
        right.set_xlim(edges[0] / 4, edges[-1] * 4)
        right.xaxis.set_major_formatter("{x:,.0f}")
        right.xaxis.set_minor_formatter("")
    right.set(
        xlabel="tokens of a document",
        ylabel="documents",
        title=f"documents: {lengths.total():,}",
    )
    return figure
