"""Measure PyTorch's fastest training step. See `benchmarks/contender.py`."""

import contextlib

import torch
import transformers

from benchmarks import workload
from benchmarks.peers.pytorch import speed
from benchmarks.peers.pytorch import training as trainer

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
versions = speed.versions


def device_memory():
    """Return the peak of the GPU's memory in bytes; 0 without a GPU."""
    return torch.cuda.max_memory_reserved() if DEVICE == "cuda" else 0


def training(size, batch, length, precision, products, steps):
    """Return a function that runs several fast steps of `BertForPreTraining`.

    The fast settings are `sdpa`, `torch.compile`, autocast, fused AdamW and
    gathered predictions.

    Args:
      size: name of a released size.
      batch: sequences.
      length: tokens per sequence.
      precision: "float32" or "bfloat16", with float32 weights.
      products: precision of products of float32 matrices, "HIGHEST" or "DEFAULT".
      steps: number of steps. The loss is fetched after the last one.
    """
    torch.set_float32_matmul_precision("highest" if products == "HIGHEST" else "high")
    sizes = workload.size_of(size)
    config = transformers.BertConfig(**sizes, attn_implementation="sdpa")
    model = transformers.BertForPreTraining(config).to(DEVICE).train()
    features = workload.pretraining_batch(sizes["vocab_size"], batch, length, length)
    loss_of = speed.pretraining_loss(model, features, gathered=True, device=DEVICE)
    loss_of = torch.compile(loss_of)
    optimizer = trainer.adamw(model, learning_rate=1e-4, fused=True)
    autocast = contextlib.nullcontext()
    if precision == "bfloat16":
        autocast = torch.autocast(DEVICE, torch.bfloat16)

    def compute():
        for _ in range(steps):
            with autocast:
                loss = loss_of()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), trainer.CLIP_NORM)
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    return compute
