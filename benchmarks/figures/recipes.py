"""Losses and scores of newer recipes, from the files of their runs."""

import statistics

from benchmarks.figures import numbers, style
from benchmarks.figures.ablations import COLUMNS as TASKS
from benchmarks.figures.cells import line, spread_text
from benchmarks.figures.fine_tuning import SCORES, scores_of, spread
from benchmarks.recipes.settings import BASE, RECIPES

OLD, NEW = "2018", "budget"
DROPOUT = "dropout in fine-tuning"
# Recipe -> color.
COLORS = {OLD: style.COLORS[style.ORIGINAL], NEW: style.COLORS[style.OURS]}
# Minutes of the comparison of switches, for each size. In less time, mini stays on the
# plateau.
SWITCH_MINUTES = {"tiny": 2, "mini": 30}
# Minutes on the time axis. It is logarithmic, because budgets double.
TIME_TICKS = 2, 5, 15, 30, 60, 120
# Size -> limits of the axis of losses, in nats.
LOSSES = {"tiny": (2.9, 4.5), "mini": (4.0, 7.0)}
# A run has left the plateau when its loss is this far below the unigram entropy. The
# plateau consists of two parts: at the entropy itself, and half a nat below it.
BELOW = 1.0
# Program of `fine_tuning_runs.jsonl` -> name of its row.
STABLE = {
    "ours": "the paper's recipe",
    "ours with --bias_correction": "`--bias_correction`",
    "ours with --flagfile=stable": "`--flagfile=stable`",
} | {
    f"ours with --bias_correction {flag}": f"`--bias_correction {flag}`"
    for flag in ("--layer_decay=0.9", "--reinit_layers=1", "--average_last=0.5")
}
# Task and score -> score in percent of a model that gives all texts of the dev set the
# most frequent label: 146 of 277 in RTE, 279 of 408 in MRPC.
NOTHING = {
    ("rte", "accuracy"): 100 * (146 / 277),
    ("mrpc", "f1"): 100 * (2 * 279 / (279 + 408)),
    ("cola", "matthews_correlation"): 0.0,
    ("sts-b", "pearson"): 0.0,
}
# How a model of `distillation_runs.jsonl` was trained -> heading.
TRAINED = {"alone": "fine-tuned", "distilled": "distilled"}
# Task of `distillation_runs.jsonl` -> heading.
DISTILLED = {"mrpc": "MRPC, F1", "sst-2": "SST-2, accuracy"}


def find(part, **key):
    """Return the rows of a part ("speed", "loss", "score", …) with these values."""
    key["part"] = part
    return [row for row in numbers.read(numbers.RECIPES) if row | key == row]


def fine_tuned(recipes):
    """Return (size, minutes, recipe) of the fine-tuned models of recipes, in order."""
    rows = find("score")
    return [
        (size, minutes, recipe)
        for size in SWITCH_MINUTES
        for minutes in sorted({row["minutes"] for row in rows})
        for recipe in recipes
        if find("score", **_key(size, minutes, recipe))
    ]


def switch_table(size):
    """Return the lines of a table: each recipe after an equal time."""
    minutes = SWITCH_MINUTES[size]
    heads = "recipe", "steps", "on the plateau", "neighbors", "loss", "less base"
    lines = [line(heads), line(["---"] * len(heads))]
    runs_of = {
        recipe: find("loss", recipe=recipe, size=size, minutes=minutes)
        for recipe in RECIPES
    }
    base = {run["seed"]: run["curve"][-1][1] for run in runs_of[BASE]}
    for recipe, runs in runs_of.items():
        if not runs:
            continue
        losses = [run["curve"][-1][1] for run in runs]
        paired = [run["curve"][-1][1] - base[run["seed"]] for run in runs]
        apart = f"{statistics.fmean(paired):+.2f}".replace("-", "−")
        cells = [
            *(recipe, f"{runs[0]['num_train_steps']:,}"),
            ", ".join(map(_plateau_of, runs)),
            _neighbors(recipe, size, minutes),
            spread_text(losses, digits=2),
            "" if recipe == BASE else apart,
        ]
        lines.append(line(cells))
    return lines


def budget_table():
    """Return the lines of a table: loss and scores of the fine-tuned models."""
    heads = ["model", "minutes", "recipe", "held-out loss", DROPOUT, *TASKS.values()]
    lines = [line(heads), line(["---"] * len(heads))]
    for size, minutes, recipe in fine_tuned(RECIPES):
        key = _key(size, minutes, recipe)
        losses = [row["curve"][-1][1] for row in find("loss", **key)]
        cells = [size, f"{minutes:g}", recipe, spread_text(losses, digits=2)]
        for dropout, word in ((True, "yes"), (False, "no")):
            scores = [scores_at(task, dropout=dropout, **key) for task in TASKS]
            if any(scores):
                lines.append(line([*cells, word, *map(spread_text, scores)]))
    return lines


def scores_at(task, **key):
    """Return the scores of a task in percent, one for each fine-tuning."""
    return [100 * row["score"] for row in find("score", task=task, **key)]


def _plateau_of(run):
    """Return the steps of a run on the plateau, in words."""
    lowest = run["unigram_entropy"] - BELOW
    left = [step for step, loss in run["curve"] if loss < lowest]
    return f"{left[0]:,}" if left else "all"


def _neighbors(recipe, size, minutes):
    """Return the attention of a first layer's best head to neighbors, in words."""
    rows = find("neighbors", recipe=recipe, size=size, minutes=minutes)
    if not rows:
        return ""
    return f"{100 * statistics.fmean(max(row['shares']) for row in rows):.0f} %"


def stable_table():
    """Return the lines of a table: fine-tuning on small data, with failed runs."""
    heads = ["fine-tuning", *(SCORES[of] for of in NOTHING)]
    nothing = ["one answer for all texts", *(f"{one:.1f}" for one in NOTHING.values())]
    lines = [line(heads), line(["---"] * len(heads)), line(nothing)]
    runs = numbers.read(numbers.FINE_TUNING)
    for who, name in STABLE.items():
        scores = {of: scores_of(runs, who, *of) for of in NOTHING}
        cells = [_with_failures(scores[of], NOTHING[of]) for of in NOTHING]
        lines.append(line([name, *cells]))
    return lines


def _with_failures(scores, nothing):
    """Return mean, deviation and number of failed runs as text."""
    if not scores:
        return ""
    # Rounded, because programs compute the same score in different ways.
    failed = sum(round(one - nothing, 6) <= 0 for one in scores)
    return f"{spread_text(scores)}, {failed} of {len(scores)} failed"


def distillation_table():
    """Return the lines of a table: size, time and scores of teacher and students."""
    heads = ["task and score", "model", "parameters", "ms per text", *TRAINED.values()]
    lines = [line(heads), line(["---"] * len(heads))]
    rows = numbers.read(numbers.DISTILLATION)
    for (task, model), runs in _groups([row for row in rows if row["part"] == "score"]):
        (time,) = [
            row["milliseconds"]
            for row in rows
            if row["part"] == "time" and (row["task"], row["model"]) == (task, model)
        ]
        scores = [
            spread_text([100 * run["score"] for run in runs if run["how"] == how])
            for how in TRAINED
        ]
        millions = f"{runs[0]['parameters'] / 1e6:.1f} M"
        lines.append(line([DISTILLED[task], model, millions, f"{time:.1f}", *scores]))
    return lines


def _groups(rows):
    """Return ((task, model), rows) pairs: of each task the largest model first."""
    groups = {}
    for row in sorted(rows, key=lambda row: (row["task"], -row["parameters"])):
        groups.setdefault((row["task"], row["model"]), []).append(row)
    return groups.items()


def draw_losses():
    """Return the figure of the losses of fine-tuned models over their training."""
    shown = fine_tuned(COLORS)
    sizes = dict.fromkeys(size for size, _, _ in shown)
    figure, axes = style.new_figure(3.0, mosaic=[list(sizes)])
    for size, own in axes.items():
        own.set_title(f"{size}: held-out loss, nats")
        style.bare(own, y_grid=True)
        own.set(xlabel="minutes of training on two cores", xscale="log")
        own.set_xticks(TIME_TICKS, map(str, TIME_TICKS))
        own.minorticks_off()
        # The beginning of the runs would hide the differences at their ends.
        own.set_ylim(*LOSSES[size])
    for size, minutes, recipe in shown:
        for run in find("loss", size=size, minutes=minutes, recipe=recipe):
            steps, losses = zip(*run["curve"], strict=True)
            times = [minutes * _share_of_time(run, step) for step in steps]
            axes[size].plot(times, losses, color=COLORS[recipe], linewidth=1.2)
        # No names of libraries: both recipes are trained with official_bert.
        end, shift = (times[-1], losses[-1]), (0, 8 if recipe == OLD else -10)
        style.label(axes[size], recipe, end, COLORS[recipe], shift=shift, ha="center")
    return figure


def _share_of_time(run, step):
    """Return the share of a run's time after a step.

    The steps of a left-to-right part at the beginning take longer than the others.
    """
    recipe = RECIPES[run["recipe"]]
    done, causal = step / run["num_train_steps"], recipe.causal_share
    if not causal:
        return done
    slow = causal * _seconds(run["size"], f"causal {recipe.cost}")
    fast = _seconds(run["size"], recipe.cost)
    return (slow + (done - causal) * fast) / (slow + (1 - causal) * fast)


def _seconds(size, cost):
    """Return the seconds of training per sequence."""
    rows = find("speed", size=size, cost=cost)
    return 1 / statistics.median(row["sequences_per_second"] for row in rows)


def draw_scores():
    """Return the figure of the scores, with standard deviations over seeds.

    Filled points are scores of fine-tuning with dropout, rings those without.
    """
    figure, axes = style.new_figure(3.0, mosaic=[list(TASKS)])
    rows = fine_tuned(COLORS)
    names = [f"{recipe}, {size}, {minutes:g} min" for size, minutes, recipe in rows]
    for task, title in TASKS.items():
        own = axes[task]
        own.set_title(title)
        style.bare(own, x_grid=True)
        style.name_rows(own, names if task == next(iter(TASKS)) else [""] * len(rows))
        for y, where in enumerate(rows):
            for dropout, above in ((True, -0.18), (False, 0.18)):
                scores = scores_at(task, dropout=dropout, **_key(*where))
                if scores:
                    _draw_score(own, scores, y + above, COLORS[where[2]], dropout)
        own.margins(x=0.5)
    return figure


def _draw_score(axes, scores, y, color, is_filled):
    mean, deviation = spread(scores)
    face = color if is_filled else style.PAPER
    point = {"fmt": "o", "color": color, "markerfacecolor": face}
    axes.errorbar(mean, y, xerr=deviation, capsize=3, **point)
    style.label(axes, f"{mean:.1f}", (mean + deviation, y), color, size=8)


def _key(size, minutes, recipe):
    return {"size": size, "minutes": minutes, "recipe": recipe}
