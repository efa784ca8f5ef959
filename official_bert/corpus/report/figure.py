"""The figure of a corpus report: lengths of sequences and of documents."""

import importlib.util

from official_bert.files import atomic_path


def draw(statistics, path):
    """Draw the histograms of a corpus as a PNG.

    Args:
      statistics: `CorpusStatistics`.
      path: the PNG.

    Returns:
      whether it was drawn, which needs matplotlib.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return False
    with atomic_path(path) as temporary:
        _figure(statistics).savefig(temporary, format="png", dpi=110)
    return True


def _figure(statistics):
    # Without pyplot, which takes longer to import than all else here.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="tight")
    left, right = figure.subplots(1, 2)
    _draw_sequences(left, statistics)
    _draw_documents(right, statistics)
    return figure


def _draw_sequences(axes, statistics):
    length, total = statistics.max_seq_length, statistics.sequence_lengths.total()
    bins = statistics.sequence_bins(32)
    shares = [100 * count / max(1, total) for *_, count in bins]
    axes.stairs(shares, [0, *(high for _, high, _ in bins)], fill=True)
    axes.set(
        xlabel="tokens of a sequence",
        ylabel="sequences (%)",
        xlim=(0, length),
        title=f"sequences: {total:,}, of at most {length} tokens",
    )


def _draw_documents(axes, statistics):
    lengths = statistics.document_lengths
    if lengths:
        span = range(min(lengths), max(lengths) + 1)
        edges = [2 ** (number / 4) for number in (*span, span.stop)]
        counts = [lengths[number] for number in span]
        axes.stairs(counts, edges, fill=True, color="tab:orange")
        axes.set_xscale("log")
        # Wide enough for a power of ten to be on the axis.
        axes.set_xlim(edges[0] / 4, edges[-1] * 4)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
    axes.set(
        xlabel="tokens of a document",
        ylabel="documents",
        title=f"documents: {lengths.total():,}",
    )
