"""Write the tables of docs/accelerators.md from the compiled rows.

    python -m benchmarks.plans.table

It needs no compiler. Rows that were not compiled are omitted.
"""

import json
import re
import sys

from benchmarks.plans import cases
from official_bert import files
from official_bert.config import BertConfig
from official_bert.parameter_count import training_flops
from official_bert.training.plans.report import duration

PAGE = cases.ROOT / "docs" / "accelerators.md"
PREDICTIONS = {128: 20, 512: 77}
DAY = 86400
# App. A.2: 4 days for base on 16 TPU chips, for large on 64.
PAPER_DAYS = 4
PAPER_CHIPS = {"base": 16, "large": 64}


def main() -> None:
    """Replace the tables of the page."""
    results = json.loads(cases.RESULTS.read_text("utf-8"))
    text = PAGE.read_text("utf-8")
    for name, lines in tables(results).items():
        marks = f"<!-- table: {name} -->\n", f"<!-- end: {name} -->"
        pattern = f"(?<={re.escape(marks[0])}).*?(?={re.escape(marks[1])})"
        content = "\n".join(["", *lines, "", ""])
        text, count = re.subn(pattern, lambda _, c=content: c, text, flags=re.DOTALL)
        assert count == 1, f"{PAGE} does not mark the position of the table {name}."
    files.write_text(PAGE, text)
    print(f"{PAGE.relative_to(cases.ROOT)}: {len(results)} rows")


def tables(results):
    """Return name of a table -> its lines, from the results of `compile`."""
    return {
        "plans": _plans(results),
        "one chip": _one_chip(results),
        "paper": _paper(results),
        "missing": _missing(results),
    }


def _rows_of(results, *sections):
    for case in cases.all_cases():
        if case.section in sections and case.name in results:
            yield case, results[case.name]


def _plans(results):
    head = (
        "| topology | model | step | precision | compiles | HBM | memory traffic | "
        "bytes accessed | roofline of a step | limit | run | chip hours |"
    )
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    sections = (cases.TINY, cases.FINE_TUNING, cases.PRETRAINING)
    for case, found in _rows_of(results, *sections):
        cells = [case.topology, case.model, case.phase, case.precision]
        lines.append(_line([*cells, *_plan_cells(found, case.num_steps)]))
        if found.get("remedy_plan"):
            cells = ["", "", "", f"with `{found['remedy']}`"]
            remedy = _plan_cells(found["remedy_plan"], case.num_steps)
            lines.append(_line([*cells, *remedy]))
    return lines


def _plan_cells(plan, num_steps):
    if not plan["compiles"]:
        needed = f"{plan['hbm_gb']:.1f}" if plan["hbm_gb"] else "?"
        hbm = f"{needed} of {plan['capacity_gb']:.1f} GB"
        return ["no: too large", hbm, "", "", "", "", "", ""]
    seconds = plan["step_seconds"]
    run = seconds * num_steps
    return [
        "yes" if plan["fits"] else "yes, but does not fit",
        f"{plan['hbm_gb']:.2f} of {plan['capacity_gb']:.1f} GB",
        f"{plan['main_memory_bytes'] / 1e9:.3g} GB",
        f"{plan['bytes_accessed'] / 1e9:.3g} GB",
        duration(seconds),
        plan["bound"],
        duration(run),
        f"{run / 3600 * plan['chips']:,.1f}",
    ]


def _one_chip(results):
    found = dict(_rows_of(results, cases.ONE_CHIP))
    by_step = {}
    for case, plan in found.items():
        by_step.setdefault((case.model, case.phase), {})[case.is_peer] = plan
    head = (
        "| model | step | program | operations | memory traffic | bytes accessed | "
        "temporaries | roofline |"
    )
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for (model, phase), plans in by_step.items():
        for is_peer, plan in sorted(plans.items()):
            ratios = ["", "", ""]
            if not is_peer and True in plans:
                names = ("main_memory_bytes", "bytes_accessed", "temp_gb")
                ratios = [f" ({plan[n] / plans[True][n]:.2f} x)" for n in names]
            cells = [
                *(model, phase, "KerasHub" if is_peer else "official_bert"),
                f"{plan['flops']:.3g}",
                f"{plan['main_memory_bytes'] / 1e9:.3g} GB{ratios[0]}",
                f"{plan['bytes_accessed'] / 1e9:.3g} GB{ratios[1]}",
                f"{plan['temp_gb']:.2f} GB{ratios[2]}",
                f"{duration(plan['step_seconds'])}, {plan['bound']}",
            ]
            lines.append(_line(cells))
    return lines


def _paper(results):
    """Return the table of the paper's 4 days next to the rooflines of both phases."""
    head = "| model | chips | paper | operations per chip | roofline on | both phases |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    pairs = dict(_rows_of(results, cases.PRETRAINING))
    for model, chips in PAPER_CHIPS.items():
        phases = [
            (case, found.get("remedy_plan", found))
            for case, found in pairs.items()
            if case.model == model
            and case.precision == "bfloat16"
            and found["chips"] == chips
        ]
        if len(phases) < 2:
            continue
        config = BertConfig.named(model)
        work = 256 * sum(
            count * training_flops(config, length, PREDICTIONS[length])
            for length, count in cases.STEPS.items()
        )
        rate = work / chips / (PAPER_DAYS * DAY)
        seconds = sum(plan["step_seconds"] * case.num_steps for case, plan in phases)
        lines.append(
            _line(
                [
                    *(
                        model,
                        str(chips),
                        f"{PAPER_DAYS} days",
                        f"{rate:.2g} per second",
                    ),
                    *(phases[0][0].topology, f"{seconds / DAY:.2g} days"),
                ]
            )
        )
    return lines


def _missing(results):
    count = sum(case.name not in results for case in cases.all_cases())
    if not count:
        return ["All rows are compiled."]
    return [f"{count} rows are not compiled yet."]


def _line(cells):
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
