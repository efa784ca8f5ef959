"""Run given training steps with PyTorch and transformers, for comparison.

`benchmarks/update_equality.py` runs it with a folder: `start` is the model,
`batches.npz` has its inputs, and `trained` is the model for drawing dropout
masks. It writes `end`; its last line is JSON with the losses and the results of
the draws.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers

from benchmarks.peers.pytorch import ner, training
from official_bert import constants


def main(folder):
    """Run a training step on each batch; then draw masks for the first batch."""
    folder = pathlib.Path(folder)
    settings = json.loads((folder / "settings.json").read_text())
    model = _load(
        folder / "start",
        settings,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=0.0,
    )
    optimizer, schedule = training.optimizer_and_schedule(model, **settings["schedule"])
    model.train()
    losses = []
    for batch in _batches(folder / "batches.npz"):
        loss = model(**batch).loss
        training.update(model, optimizer, schedule, loss)
        losses.append(loss.item())
    model.save_pretrained(folder / "end")
    print(json.dumps({"losses": losses, "drawn": _drawn(folder, settings)}))


def _load(path, settings, **config):
    """Return a transformers model of the class in its `config.json`."""
    (name,) = transformers.AutoConfig.from_pretrained(path).architectures
    model = getattr(transformers, name).from_pretrained(path, **config)
    if not settings["keep_padding_idx"]:
        model.get_input_embeddings().padding_idx = None
    return model


def _drawn(folder, settings):
    """Return (loss, gradient's norm) of the first batch for each drawn mask."""
    transformers.set_seed(settings["seed"])
    model = _load(folder / "trained", settings)
    model.train()
    batch, found = next(_batches(folder / "batches.npz")), []
    for _ in range(settings["draws"]):
        model.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), training.CLIP_NORM)
        found.append((loss.item(), norm.item()))
    return found


def _batches(path):
    """Yield the model's inputs, as a dict of tensors."""
    names = {
        "input_ids": "input_ids",
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
        "label_ids": "labels",
        "start_positions": "start_positions",
        "end_positions": "end_positions",
    }
    with np.load(path) as arrays:
        count = len({key.partition("/")[0] for key in arrays})
        for number in range(count):
            found = {
                theirs: arrays[f"{number}/{ours}"]
                for ours, theirs in names.items()
                if f"{number}/{ours}" in arrays
            }
            yield {name: _tensor(array) for name, array in found.items()}


def _tensor(array):
    if not np.issubdtype(array.dtype, np.integer):
        return torch.tensor(array.astype(np.float32))
    # Only labels of words use this number.
    array = np.where(array == constants.IGNORED, ner.IGNORED, array)
    return torch.tensor(array.astype(np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
