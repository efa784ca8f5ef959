"""What was measured as lines, as a table for Markdown and as a picture."""

import itertools

from benchmarks.yardstick.targets import OURS, PRODUCT, Speed

GIGABYTE = 1e9


def row_summary(row, result, measured):
    """Return all figures of a row, fit for JSON.

    Args:
      row: `rows.Row`.
      result: `targets.Result` of it.
      measured: dict that tells when and where.

    Raises:
      ValueError: ours is faster than the matrix product, so operations or seconds are
        counted wrong.
    """
    names = list(result.seconds)
    if result.flops and result.share_of_ceiling(OURS) > 1:
        raise ValueError(f"{row.title} is faster than the matrix product.")
    return {
        "title": row.title,
        "is_drawn": row.is_drawn and len(row.contenders) > 1,
        "seconds": result.seconds,
        "median_seconds": {name: result.median(name) for name in names},
        "memory_bytes": result.memory,
        "units_per_second": {
            name: result.units / result.median(name)
            for name in names
            if name != PRODUCT
        },
        "unit": row.unit,
        "theirs_over_ours": {
            name: result.ratios(name) for name in names if name not in (OURS, PRODUCT)
        },
        "share_of_matrix_product": {
            name: result.share_of_ceiling(name)
            for name in names
            if result.flops and name != PRODUCT
        },
        "targets": [_verdict(target, result) for target in row.targets],
        "measured": measured,
    }


def _verdict(target, result):
    found = target.found(result)
    is_met = None if found is None else bool(target.is_met(found))
    verdict = {"target": str(target), "found": found, "is_met": is_met}
    if isinstance(target, Speed):
        verdict |= {"over": list(target.others), "least": target.least}
    return verdict


def lines(summary):
    """Return what is printed of a row, of its `row_summary`."""
    shown = [f"\n{summary['title']}"]
    for name, seconds in summary["median_seconds"].items():
        line = f"  {name:22}{1000 * seconds:10.1f} ms"
        if name in summary["units_per_second"]:
            line += f"{summary['units_per_second'][name]:9.2f} {summary['unit']}/s"
            line += f"{summary['memory_bytes'][name] / GIGABYTE:6.2f} GB"
        if name in summary["share_of_matrix_product"]:
            line += f"{summary['share_of_matrix_product'][name]:6.0%} of the product"
        if name in summary["theirs_over_ours"]:
            line += f"   {_ratio(summary, name)} x ours"
        shown.append(line)
    for verdict in summary["targets"]:
        shown.append(f"  {verdict['target']}: {_told(verdict)}")
    return shown


def _told(verdict):
    if verdict["found"] is None:
        return "not measured"
    return f"{verdict['found']:.2f}, {'met' if verdict['is_met'] else 'missed'}"


def _ratio(summary, name):
    low, middle, high = summary["theirs_over_ours"][name]
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def table(summaries):
    """Return all rows as a table in Markdown, and where each was measured, as lines.

    Args:
      summaries: dict of a row's name -> its `row_summary`.
    """
    made = [
        "| what | ours | of the matrix product | time of others / ours: median "
        "(quartiles) | peak memory: ours, others / ours | target: found |",
        "|---|---|---|---|---|---|",
    ]
    for summary in summaries.values():
        share = summary["share_of_matrix_product"].get(OURS)
        others = [
            f"{name} {_ratio(summary, name)}" for name in summary["theirs_over_ours"]
        ]
        targets = [f"{one['target']}: {_told(one)}" for one in summary["targets"]]
        cells = [
            summary["title"],
            f"{summary['units_per_second'][OURS]:.4g} {summary['unit']}/s",
            "" if share is None else f"{share:.0%}",
            "; ".join(others),
            _memory(summary),
            "; ".join(targets),
        ]
        made.append(f"| {' | '.join(cells)} |")
    return [*made, "", *_places(summaries)]


def _memory(summary):
    """Return the memory of ours, and how many times as much the others take.

    Nothing where a child of the process does the work.
    """
    bytes_of = summary["memory_bytes"]
    if bytes_of[OURS] < GIGABYTE / 100:
        return ""
    told = [f"{bytes_of[OURS] / GIGABYTE:.2f} GB"]
    told += [
        f"{name} {bytes_of[name] / bytes_of[OURS]:.2f}"
        for name in summary["theirs_over_ours"]
    ]
    return "; ".join(told)


def _places(summaries):
    """Return a line for each day and machine, with the rows measured there."""
    found = {}
    for name, summary in summaries.items():
        told = ", ".join(f"{key} {value}" for key, value in summary["measured"].items())
        found.setdefault(told, []).append(name)
    return [f"* {', '.join(names)}: {told}" for told, names in found.items()]


def write_chart(summaries, path):
    """Draw how many times as long as ours the others take, as a PNG, if any do.

    Args:
      summaries: dict of a row's name -> its `row_summary`.
      path: of the picture.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [one for one in summaries.values() if one["is_drawn"]]
    if not shown:
        return
    names = list(dict.fromkeys(who for one in shown for who in one["theirs_over_ours"]))
    colours = dict(
        zip(names, itertools.cycle(plt.get_cmap("tab10").colors), strict=False)
    )
    bars = [
        (summary["title"], who, *quartiles)
        for summary in shown
        for who, quartiles in summary["theirs_over_ours"].items()
    ]
    targets = _targets(shown)
    figure, axes = plt.subplots(figsize=(9, 1 + 0.3 * (len(bars) + len(shown))))
    place, last = 0.0, None
    for title, who, low, middle, high in bars:
        if title != last:
            place += 1
            axes.text(
                0.0,
                place,
                title,
                va="center",
                weight="bold",
                size=8,
                transform=axes.get_yaxis_transform(),
            )
            place, last = place + 1, title
        axes.barh(place, middle, color=colours[who], height=0.8)
        axes.plot([low, high], [place, place], color="black", linewidth=1)
        axes.text(high, place, f"  {middle:.2f}  {who}", va="center", size=8)
        for target in targets.get((title, who), ()):
            axes.plot([target] * 2, [place - 0.5, place + 0.5], color="red")
        place += 1
    axes.axvline(1, color="black", linewidth=1)
    axes.set(
        yticks=[],
        xlabel="time of the other / ours (above 1: ours is faster); red: the target",
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(bar[4] for bar in bars))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _targets(summaries):
    """Return what is aimed at, a dict of (title, contender) -> list of ratios."""
    found = {}
    for summary in summaries:
        for verdict in summary["targets"]:
            for name in verdict.get("over", ()):
                found.setdefault((summary["title"], name), []).append(verdict["least"])
    return found
