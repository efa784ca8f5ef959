r"""Time of a training step against batch, length and size, beside a cost model.

    python benchmarks/scaling.py --output=scaling

The cost model is one number: a step takes as long as its matrix products have
operations, divided by a rate, which is fitted to all points (as the median of theirs).
What lies above its line computes less well. --output is a folder for `scaling.json` and
`scaling.png`.
"""

import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "run_scripts"))

from absl import flags  # noqa: E402
from command_line import require, run  # noqa: E402
from contenders import shared  # noqa: E402
from yardstick.processes import Contender, take_turns  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.parameter_count import training_flops  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_integer("rounds", 5, "Turns of each point.", 2)
flags.DEFINE_string("output", None, "Folder for the figures.")

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
    """Measure all axes, fit the rate, write the figures and draw them."""
    require("output")
    os.makedirs(FLAGS.output, exist_ok=True)
    axes = {name: _measure(points) for name, points in AXES.items()}
    points = [point for axis in axes.values() for point in axis]
    rate = statistics.median(point["flops"] / point["seconds"] for point in points)
    for name, axis in axes.items():
        print(f"\n{name}")
        for point in axis:
            print(
                f"  {point['label']:>8} {1000 * point['seconds']:9.1f} ms, "
                f"{point['flops'] / rate / point['seconds']:5.0%} of the fitted rate"
            )
    print(f"\nfitted rate: {rate / 1e9:.0f} GFLOP/s")
    found = {"flops_per_second": rate, "axes": axes}
    files.write_json(os.path.join(FLAGS.output, "scaling.json"), found)
    _draw(axes, rate, os.path.join(FLAGS.output, "scaling.png"))


def _measure(points):
    """Return what was found of each point, a list of dicts."""
    contenders = [
        Contender(
            str(label),
            "ours",
            "training",
            {"size": size, "batch": batch, "length": length, "shortest": length},
        )
        for label, size, batch, length in points
    ]
    seconds, _, _ = take_turns(contenders, FLAGS.rounds, 1, None)
    return [
        {
            "label": str(label),
            "flops": batch * _flops(size, length),
            "seconds": statistics.median(seconds[str(label)]),
        }
        for label, size, batch, length in points
    ]


def _flops(size, length):
    config = BertConfig.named(size)
    return training_flops(config, length, shared.predictions_of(length))


def _draw(axes, rate, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, plots = plt.subplots(1, len(axes), figsize=(4 * len(axes), 3.6))
    for plot, (name, points) in zip(plots, axes.items(), strict=True):
        places = range(len(points))
        milliseconds = [1000 * point["seconds"] for point in points]
        model = [1000 * point["flops"] / rate for point in points]
        plot.plot(places, model, color="grey", label="operations / one rate")
        plot.plot(places, milliseconds, "o", color="tab:blue", label="measured")
        plot.set(yscale="log", xlabel=name, ylabel="milliseconds of a step")
        plot.set_xticks(places, [point["label"] for point in points])
        plot.grid(axis="y", alpha=0.3)
        plot.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    run(main)
