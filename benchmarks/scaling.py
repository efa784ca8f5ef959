r"""Measure the time of a training step by batch, length and size; fit a cost model.

    python benchmarks/scaling.py --output=scaling

The cost model has three parts:

* the operations of the matrix products, at the speed of a 1536 x 1536 product
  measured in the same run;
* a time for each number that element-wise work writes;
* a time for each weight that the optimizer updates.

The last two are fitted to all points by least squares of the relative
errors. --output is a folder for `scaling.json` and `scaling.png`.
"""

import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import workload  # noqa: E402
from benchmarks.yardstick import cost_model  # noqa: E402
from benchmarks.yardstick.processes import Variant, take_turns  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_integer("rounds", 5, "Turns of each point.", 2)
flags.DEFINE_string("output", None, "Folder for the results.")

# Axis -> points of (label, size, batch, length).
AXES = {
    "batch (mini, length 128)": [
        (batch, "mini", batch, 128) for batch in (4, 8, 16, 32, 64)
    ],
    "length (mini, batch 8)": [
        (length, "mini", 8, length) for length in (32, 64, 128, 256, 512)
    ],
    "size (batch 8, length 128)": [
        (size, size, 8, 128) for size in ("tiny", "mini", "small", "medium", "base")
    ],
}


def main():
    """Measure all axes, fit the model, write the figures and draw them."""
    require("output")
    os.makedirs(FLAGS.output, exist_ok=True)
    axes = {name: _measure(points) for name, points in AXES.items()}
    costs = cost_model.fit([point for axis in axes.values() for point in axis])
    for name, axis in axes.items():
        print(f"\n{name}")
        for point in axis:
            point["predicted"] = cost_model.predicted(point, costs)
            ratio = point["predicted"] / point["seconds"]
            print(
                f"  {point['label']:>8} {1000 * point['seconds']:9.1f} ms, products "
                f"{cost_model.seconds_of_products(point) / point['seconds']:5.0%}, "
                f"predicted {ratio:5.0%}"
            )
    told = {name: f"{1e9 * seconds:.2f} ns" for name, seconds in costs.items()}
    print(f"\na number: {told['numbers']}, a weight: {told['weights']}")
    found = {"seconds_each": costs, "axes": axes}
    files.write_json(os.path.join(FLAGS.output, "scaling.json"), found)
    _draw(axes, os.path.join(FLAGS.output, "scaling.png"))


def _measure(points):
    """Return the measurements of each point, a list of dicts."""
    variants = [
        Variant(
            str(label),
            "ours",
            "training",
            {"size": size, "batch": batch, "length": length, "shortest": length},
        )
        for label, size, batch, length in points
    ]
    product = Variant("product", "ours", "product", {}, calls=15)
    seconds, _, _ = take_turns([*variants, product], FLAGS.rounds, 1, None)
    rate = 2 * workload.PRODUCT_SIZE**3 / statistics.median(seconds["product"])
    return [
        {
            "label": str(label),
            "seconds": statistics.median(seconds[str(label)]),
            "flops_per_second": rate,
            **cost_model.work(size, batch, length),
        }
        for label, size, batch, length in points
    ]


def _draw(axes, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from benchmarks.figures import style

    figure, plots = plt.subplots(1, len(axes), figsize=(4 * len(axes), 3.6))
    for plot, (name, points) in zip(plots, axes.items(), strict=True):
        places = range(len(points))
        milliseconds = [1000 * point["seconds"] for point in points]
        products = [1000 * cost_model.seconds_of_products(point) for point in points]
        model = [1000 * point["predicted"] for point in points]
        plot.plot(places, products, ":", color=style.SOFT, label="products alone")
        plot.plot(places, model, color=style.SOFT, label="cost model")
        plot.plot(
            places, milliseconds, "o", color=style.COLORS[style.OURS], label="measured"
        )
        plot.set(yscale="log", xlabel=name, ylabel="milliseconds of a step")
        plot.set_xticks(places, [point["label"] for point in points])
        plot.grid(axis="y", alpha=0.3)
        plot.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    run(main)
