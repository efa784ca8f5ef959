"""The measurements as printed lines, as a Markdown table and as a chart."""

from benchmarks.yardstick.targets import OURS, PRODUCT, Speed

GIGABYTE = 1e9


def summarize(comparison, result, measured):
    """Return all numbers of a comparison, as JSON values.

    Args:
      comparison: `comparisons.Comparison`.
      result: its `targets.Result`.
      measured: dict with date and machine.
    """
    names = list(result.seconds)
    return {
        "title": comparison.title,
        "is_drawn": comparison.is_drawn and len(comparison.variants) > 1,
        "seconds": result.seconds,
        "median_seconds": {name: result.median(name) for name in names},
        "memory_bytes": result.memory,
        "units_per_second": {
            name: result.units / result.median(name)
            for name in names
            if name != PRODUCT
        },
        "unit": comparison.unit,
        "theirs_over_ours": {
            name: result.ratios(name) for name in names if name not in (OURS, PRODUCT)
        },
        "share_of_matrix_product": {
            name: result.share_of_ceiling(name)
            for name in names
            if result.flops and name != PRODUCT
        },
        "targets": [_verdict(target, result) for target in comparison.targets],
        "measured": measured,
    }


def summarize_unusable(comparison, result, measured, reason):
    """Return the summary of unusable measurements, as JSON values.

    Args:
      comparison: see `summarize`.
      result: see `summarize`.
      measured: see `summarize`.
      reason: the reason, for readers.
    """
    return {
        "title": comparison.title,
        "is_drawn": False,
        "unusable": reason,
        "seconds": result.seconds,
        "measured": measured,
    }


def _verdict(target, result):
    value = target.value(result)
    is_met = None if value is None else bool(target.is_met(value))
    verdict = {"target": str(target), "found": value, "is_met": is_met}
    if isinstance(target, Speed):
        verdict |= {"over": list(target.others), "least": target.least}
    return verdict


def lines(summary):
    """Return the printed lines of a summary, a list of str."""
    shown = [f"\n{summary['title']}"]
    if "unusable" in summary:
        return [*shown, f"  unusable: {summary['unusable']}"]
    for name, seconds in summary["median_seconds"].items():
        line = f"  {name:24}{1000 * seconds:10.1f} ms"
        if name in summary["units_per_second"]:
            line += f"{summary['units_per_second'][name]:9.2f} {summary['unit']}/s"
            line += f"{summary['memory_bytes'][name] / GIGABYTE:6.2f} GB"
        if name in summary["share_of_matrix_product"]:
            line += f"{summary['share_of_matrix_product'][name]:6.0%} of the product"
        if name in summary["theirs_over_ours"]:
            line += f"   {_ratio(summary, name)} x ours"
        shown.append(line)
    for verdict in summary["targets"]:
        shown.append(f"  {verdict['target']}: {_outcome(verdict)}")
    return shown


def _outcome(verdict):
    if verdict["found"] is None:
        return "not measured"
    return f"{verdict['found']:.2f}, {'met' if verdict['is_met'] else 'missed'}"


def _ratio(summary, name):
    low, middle, high = summary["theirs_over_ours"][name]
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def table(summaries):
    """Return the Markdown table, and the machines of its rows, as lines.

    Args:
      summaries: dict of a row's name -> its summary.
    """
    header = [
        "| what | ours | of the matrix product | time of others / ours: median "
        "(quartiles) | peak memory: ours, others / ours | target: found |",
        "|---|---|---|---|---|---|",
    ]
    body = [f"| {' | '.join(_cells(one))} |" for one in summaries.values()]
    return [*header, *body, "", *_machines(summaries)]


def _cells(summary):
    if "unusable" in summary:
        return [summary["title"], f"unusable: {summary['unusable']}", "", "", "", ""]
    share = summary["share_of_matrix_product"].get(OURS)
    others = [f"{name} {_ratio(summary, name)}" for name in summary["theirs_over_ours"]]
    targets = [f"{one['target']}: {_outcome(one)}" for one in summary["targets"]]
    return [
        summary["title"],
        f"{summary['units_per_second'][OURS]:.4g} {summary['unit']}/s",
        "" if share is None else f"{share:.0%}",
        "; ".join(others),
        _memory(summary),
        "; ".join(targets),
    ]


def _memory(summary):
    """Return our memory, and the ratio of the others' memory to ours.

    It is empty if a child process does the work.
    """
    bytes_of = summary["memory_bytes"]
    if bytes_of[OURS] < GIGABYTE / 100:
        return ""
    others = [
        f"{name} {bytes_of[name] / bytes_of[OURS]:.2f}"
        for name in summary["theirs_over_ours"]
    ]
    return "; ".join([f"{bytes_of[OURS] / GIGABYTE:.2f} GB", *others])


def _machines(summaries):
    """Return a line for each day and machine, with the rows measured there."""
    names_on = {}
    for name, summary in summaries.items():
        machine = ", ".join(f"{key} {one}" for key, one in summary["measured"].items())
        names_on.setdefault(machine, []).append(name)
    return [f"* {', '.join(names)}: {machine}" for machine, names in names_on.items()]


def write_chart(summaries, path):
    """Write a PNG with the times of other libraries divided by ours.

    Write nothing if no row belongs in it.

    Args:
      summaries: dict of a row's name -> its summary.
      path: path of the PNG.
    """
    from benchmarks.figures import speed, style

    shown = {name: one for name, one in summaries.items() if one["is_drawn"]}
    if not speed.panels_of(shown):
        return
    with style.styled():
        speed.draw_speed(shown).savefig(path, dpi=110)
