"""Tables of the pages, between marks, from the same JSON files as the figures.

A page has `<!-- table: NAME -->` and `<!-- end: NAME -->`. NAME is FILE/TABLE of
`benchmarks/results`, or a name in `COMPUTED`. Machine and seed follow each table, and
its commands come before it, once on a page. `commands FILE` has the commands alone.
"""

import re
import statistics

from benchmarks.figures import ablations, fine_tuning, numbers, recipes
from benchmarks.figures.cells import column_texts, line, spread_text
from benchmarks.yardstick import report
from official_bert import files
from official_bert.ablations.tables import TABLES

# Page -> language of its blocks of commands. Those without one are tested: a test
# runs them, in the results page it checks scripts and flags.
PAGES = {
    numbers.ROOT / "docs" / "results.md": "",
    numbers.ROOT / "docs" / "ablations.md": "text",
    numbers.ROOT / "docs" / "recipes.md": "text",
    numbers.ROOT / "benchmarks" / "NOTES.md": "",
}
_BLOCK = re.compile(
    r"(<!-- table: ([^\n]+) -->\n).*?(<!-- end: \2 -->)", flags=re.DOTALL
)
# Score in `fine_tuning_runs*.jsonl` -> (file, task, score).
SCORES = {
    "MRPC, F1": (numbers.FINE_TUNING, "mrpc", "f1"),
    "MRPC, accuracy": (numbers.FINE_TUNING, "mrpc", "accuracy"),
    "RTE, accuracy": (numbers.FINE_TUNING, "rte", "accuracy"),
    "CoLA, Matthews": (numbers.FINE_TUNING, "cola", "matthews_correlation"),
    "STS-B, Pearson": (numbers.FINE_TUNING, "sts-b", "pearson"),
    "STS-B, Spearman": (numbers.FINE_TUNING, "sts-b", "spearman"),
    "SST-2 (12,000 rows), accuracy": (numbers.FINE_TUNING, "sst-2", "accuracy"),
    "CoNLL-2003, F1 of dev": (numbers.FINE_TUNING, "conll", "f1"),
    "CoNLL-2003, F1 of test": (numbers.FINE_TUNING, "conll", "test_f1"),
    "ARC (3,243 questions), accuracy of 843": (numbers.FINE_TUNING, "arc", "accuracy"),
    "SQuAD 1.1, short, F1": (numbers.FINE_TUNING_SHORT, "squad1", "f1"),
    "SQuAD 1.1, short, exact": (numbers.FINE_TUNING_SHORT, "squad1", "exact_match"),
    "SQuAD 2.0, short, F1 at threshold 0": (numbers.FINE_TUNING_SHORT, "squad2", "f1"),
    "SQuAD 2.0, short, best F1": (numbers.FINE_TUNING_SHORT, "squad2", "best_f1"),
    "SQuAD 1.1, one epoch, F1": (numbers.FINE_TUNING_ONE_EPOCH, "squad1", "f1"),
    "SQuAD 1.1, one epoch, exact": (
        *(numbers.FINE_TUNING_ONE_EPOCH, "squad1", "exact_match"),
    ),
    "SQuAD 2.0, ten articles, F1 at threshold 0": (numbers.FINE_TUNING, "squad2", "f1"),
    "SQuAD 2.0, ten articles, best F1": (numbers.FINE_TUNING, "squad2", "best_f1"),
}
COMMANDS = "commands "
# Rows of the yardstick in the results page.
RATES = ("train-tiny", "train-mini", "train-base", "encode", "int8", "squad")
TASK_COLUMNS = ablations.COLUMNS | {"conll_features": "CoNLL F1, frozen encoder"}


def write_all():
    """Fill the tables of all pages; return the paths of the pages."""
    for page, language in PAGES.items():
        files.write_text(page, filled(page.read_text("utf-8"), language))
    return list(PAGES)


def filled(text, language=""):
    """Return a page with the current tables between its marks.

    Args:
      text: of the page.
      language: of its blocks of commands.
    """
    printed = set()

    def fill(match):
        content = "\n".join(["", *_content(match[2], printed, language), "", ""])
        return f"{match[1]}{content}{match[3]}"

    return _BLOCK.sub(fill, text)


def names_in(text):
    """Return the names of the tables in a page."""
    return [name for _, name, _ in _BLOCK.findall(text)]


def _content(name, printed, language):
    """Return the lines of a table; `printed` collects experiments with commands."""
    if name in COMPUTED:
        return COMPUTED[name]()
    if name.startswith(COMMANDS):
        experiment = numbers.experiment(name.removeprefix(COMMANDS))
        return [*commands(experiment, language), where(experiment)]
    file, _, table = name.partition("/")
    experiment = numbers.experiment(file)
    lines = []
    if file not in printed:
        printed.add(file)
        lines = commands(experiment, language)
    columns = experiment.tables[table]["columns"]
    lines += [line(columns), line(["---"] * len(columns))]
    texts = column_texts(experiment.tables[table])
    lines += [line(row) for row in zip(*texts, strict=True)]
    return [*lines, "", where(experiment)]


def commands(experiment, language):
    """Return the commands of an experiment as lines of code blocks."""
    python = [one for one in experiment.commands if one.startswith("python ")]
    others = [one for one in experiment.commands if one not in python]
    lines = []
    for word, own in ((language, python), ("text", others)):
        if own:
            lines += [f"```{word}", *own, "```", ""]
    return lines


def where(experiment):
    """Return the line about machine and seed."""
    return f"*Machine: {experiment.machine}. Seed: {experiment.seed}.*"


def _equality():
    """Return the table of all differences, with their commands."""
    experiment = numbers.experiment("equality")
    heads = ["compared", "details", "with", "largest difference"]
    lines = [*commands(experiment, ""), line(heads), line(["---"] * len(heads))]
    rows = experiment.rows("differences")
    differences = column_texts(experiment.tables["differences"])[4]
    for row, difference in zip(rows, differences, strict=True):
        bound = "below " if row["is_bound"] else ""
        cells = [row["compared"], row["details"], row["with"], bound + difference]
        lines.append(line(cells))
    return [*lines, "", where(experiment)]


def _yardstick(path):
    return report.table(numbers.read(path))


def _rates():
    """Return the table of our speeds, with machine and day."""
    rows = numbers.read(numbers.YARDSTICK)
    heads = ["work", "official_bert", "of the matrix product", "peak memory"]
    lines = [line(heads), line(["---"] * len(heads))]
    for name in RATES:
        row = rows[name]
        share = row["share_of_matrix_product"].get("ours")
        lines.append(
            line(
                [
                    row["title"],
                    f"{row['units_per_second']['ours']:.4g} {row['unit']}/s",
                    "" if share is None else f"{share:.0%}",
                    f"{row['memory_bytes']['ours'] / 1e9:.2f} GB",
                ]
            )
        )
    days = sorted({row["measured"]["on"] for row in rows.values()})
    experiment = numbers.experiment("speed")
    return [*lines, "", f"{where(experiment)[:-1]} Measured on {', '.join(days)}.*"]


def _scores():
    """Return the table of fine-tuning scores, one row for each task and score."""
    heads = [
        *("task and score", "default (the original's optimizer)", "seeds"),
        *("`--bias_correction`", "seeds", "PyTorch", "seeds", "apart"),
    ]
    lines = [line(heads), line(["---"] * len(heads))]
    for label in SCORES:
        path, task, score = SCORES[label]
        runs = numbers.read(path)
        cells = [label]
        for who in ("ours", fine_tuning.BIAS_CORRECTION, "PyTorch"):
            scores = fine_tuning.scores_of(runs, who, task, score)
            cells += [spread_text(scores), str(len(scores) or "")]
        lines.append(line([*cells, _apart(runs, task, score)]))
    return [*lines, "", where(numbers.experiment("fine_tuning"))]


def _apart(runs, task, score):
    """Return ours with bias correction less PyTorch's, in pooled deviations."""
    ours, theirs = (
        fine_tuning.scores_of(runs, who, task, score)
        for who in (fine_tuning.BIAS_CORRECTION, "PyTorch")
    )
    if min(len(ours), len(theirs)) < 2:
        return ""
    freedom = len(ours) - 1, len(theirs) - 1
    squares = [statistics.variance(ours), statistics.variance(theirs)]
    pooled = statistics.fmean(squares, freedom)
    apart = (statistics.fmean(ours) - statistics.fmean(theirs)) / pooled**0.5
    return f"{apart:+.2f}".replace("-", "−")


def _ablation(name):
    """Return a table of the paper with our scores."""
    done, table = ablations.steps(), TABLES[name]
    heads = ["row", "held-out perplexity", *(TASK_COLUMNS[one] for one in table.tasks)]
    lines = [line(heads), line(["---"] * len(heads))]
    for row in table.rows:
        scores = [ablations.scores_of(done, row.flags, one) for one in table.tasks]
        # A model of another row has its perplexity there.
        own = "" if row.model_of else f"{ablations.perplexity(done, row.model):.2f}"
        lines.append(line([row.label, own, *map(spread_text, scores)]))
    return [*lines, "", where(numbers.experiment("ablations"))]


def _figure5():
    done = ablations.steps()
    heads = ["steps"]
    for label, _ in ablations.FIGURE5.values():
        heads += [f"{label}: {title}" for title in ablations.COLUMNS.values()]
    lines = [line(heads), line(["---"] * len(heads))]
    for step in ablations.STEPS:
        cells = [f"{step:,}"]
        for row in ablations.FIGURE5:
            cells += [
                spread_text(ablations.scores_at(done, row, task, step))
                for task in ablations.COLUMNS
            ]
        lines.append(line(cells))
    return [*lines, "", where(numbers.experiment("ablations"))]


def _measured(table, experiment):
    """Return the lines of a table, with machine and seed."""
    return [*table, "", where(numbers.experiment(experiment))]


# Name of a table -> function that returns its lines.
COMPUTED = {
    "equality": _equality,
    "yardstick": lambda: _yardstick(numbers.YARDSTICK),
    "yardstick_epyc": lambda: _yardstick(numbers.YARDSTICK_EPYC),
    "yardstick_avx2": lambda: _yardstick(numbers.YARDSTICK_AVX2),
    "rates": _rates,
    "scores": _scores,
    "figure5": _figure5,
    "recipe_switches": lambda: _measured(recipes.switch_table("tiny"), "recipes"),
    "recipe_switches_mini": lambda: _measured(
        recipes.switch_table("mini"), "recipes_mini"
    ),
    "recipe_budgets": lambda: _measured(recipes.budget_table(), "recipes"),
    "distillation": lambda: _measured(recipes.distillation_table(), "distillation"),
    "stable": lambda: _measured(recipes.stable_table(), "stable"),
    **{
        name: lambda name=name: _ablation(name)
        for name in ("table5", "table6", "table8", "whole_words")
    },
}
