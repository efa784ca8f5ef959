r"""Measure how much the first layer of pre-trained models attends to neighbors.

    python -m benchmarks.recipes.neighbors --output=output/recipes

--output is the folder of `python -m benchmarks.recipes`. For each model in it, a
line of `recipe_runs.jsonl` gets the share of attention to the two tokens before and
after a token, a mean over 40 held-out sentences, for each head of the first layer.
Uniform attention to sentences of these lengths gives 0.15.
"""

import functools
import os

import numpy as np
from absl import flags

from benchmarks import compared_runs
from benchmarks.recipes.settings import folder_name
from official_bert import files
from official_bert.command_line.flag_values import require
from official_bert.command_line.program import run

FLAGS = flags.FLAGS

flags.DEFINE_string("output", None, "Folder of the runs.")

NUM_SENTENCES = 40
# Characters of a sentence: long enough for neighbors, and shorter than 64 tokens.
LENGTHS = range(61, 200)
DISTANCE = 2


def main():
    """Measure all models that are not measured yet."""
    require("output")
    text = files.read_text(_path("text", "heldout.txt"), "the held-out text")
    fitting = [one for one in text.splitlines() if len(one) in LENGTHS]
    sentences = fitting[:NUM_SENTENCES]
    path = _path("recipe_runs.jsonl")
    for row in compared_runs.read(path):
        if row["part"] != "loss":
            continue
        model = {name: row[name] for name in ("recipe", "size", "seed", "minutes")}
        folder = _path("models", folder_name(**model))
        # The file can also have lines of another machine, whose models are not here.
        if os.path.isdir(folder):
            make_run = functools.partial(_measure, folder, sentences)
            compared_runs.run_missing(path, {"part": "neighbors"} | model, make_run)


def _path(*parts):
    return os.path.join(FLAGS.output, *parts)


def _measure(folder, sentences):
    """Return the share of attention to neighbors, for each head of the first layer."""
    # Imported late, because TensorFlow is slow to import.
    from official_bert.checkpoints import model_directory
    from official_bert.pretrained import attention

    bert = model_directory.load_encoder(folder)
    shares = []
    for sentence in sentences:
        heads = attention.attention_maps(bert, sentence).probs[0]
        places = np.arange(heads.shape[-1])
        distances = np.abs(places[:, None] - places)
        is_near = (distances > 0) & (distances <= DISTANCE)
        # Without [CLS] and [SEP], which have no place in the sentence.
        shares.append((heads * is_near).sum(-1)[:, 1:-1].mean(-1))
    return {"shares": [round(float(one), 3) for one in np.mean(shares, 0)]}


if __name__ == "__main__":
    run(main)
