"""The figures of the documentation, and the command's part that writes them."""

import hashlib

from benchmarks.figures import (
    ablations,
    accelerators,
    data,
    device,
    equality,
    fine_tuning,
    numbers,
    pretraining,
    recipes,
    serving,
    speed,
    style,
)
from official_bert import files

FOLDER = numbers.ROOT / "docs" / "figures"
# File -> (function that draws it, files whose numbers it shows).
FIGURES = {
    "equality": (equality.draw, ["results/equality.json"]),
    "speed": (speed.draw_speed, [numbers.YARDSTICK]),
    "memory": (speed.draw_memory, [numbers.YARDSTICK]),
    "fine_tuning": (fine_tuning.draw, [numbers.FINE_TUNING]),
    "pretraining": (
        pretraining.draw,
        ["results/wikipedia.json", "results/masking.json"],
    ),
    "records": (data.draw, ["results/records.json", "results/instances.json"]),
    "serving": (serving.draw, ["results/serving.json"]),
    "device": (device.draw, ["results/on_device.json"]),
    "ablations": (ablations.draw_tables, [numbers.ABLATIONS]),
    "figure5": (ablations.draw_figure5, [numbers.ABLATIONS]),
    "recipe_losses": (recipes.draw_losses, [numbers.RECIPES]),
    "recipe_scores": (recipes.draw_scores, [numbers.RECIPES]),
    "accelerators": (accelerators.draw, [numbers.ACCELERATORS]),
}


def draw(name):
    """Return a figure, drawn."""
    with style.styled():
        return FIGURES[name][0]()


def write_all(folder=FOLDER):
    """Write all figures as SVG; return their paths."""
    folder.mkdir(exist_ok=True)
    return [write(name, folder) for name in FIGURES]


def write(name, folder):
    """Write a figure as SVG; return its path."""
    path = folder / f"{name}.svg"
    with style.styled(), files.atomic_path(path) as temporary:
        figure = FIGURES[name][0]()
        # The digest replaces the date, so the same numbers make the same file.
        about = {"Date": None, "Description": digest(name)}
        figure.savefig(temporary, format="svg", metadata=about)
    return path


def digest(name):
    """Return the SHA-256 of a figure's numbers, its first 12 digits."""
    hashed = hashlib.sha256()
    for path in FIGURES[name][1]:
        hashed.update((numbers.BENCHMARKS / path).read_bytes())
    return f"numbers: {hashed.hexdigest()[:12]}"
