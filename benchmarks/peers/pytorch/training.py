"""Fine-tune with PyTorch: common parts of the scripts for `benchmarks/fine_tuning.py`.

Each script fine-tunes a transformers model. Its flags have the names of our
command's flags, and its last line is JSON. Model, AdamW (with bias correction),
dropout and padding to a batch's longest text are those of PyTorch and
transformers; the schedule is BERT's.
"""

import argparse
import json
import pathlib
import random
import time

import numpy as np
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from official_bert.tokenization.full import FullTokenizer

NOT_DECAYED = ("bias", "LayerNorm")
WEIGHT_DECAY, EPSILON, CLIP_NORM = 0.01, 1e-6, 1.0
EVAL_BATCH = 32


def parser(docstring, *file_flags):
    """Return an `argparse.ArgumentParser` with the flags that all scripts share.

    Args:
      docstring: docstring of the script.
      *file_flags: names of flags for its files, all required.
    """
    made = argparse.ArgumentParser(description=docstring.partition("\n")[0])
    for name in (*file_flags, "init_checkpoint"):
        made.add_argument(f"--{name}", required=True)
    made.add_argument("--seed", type=int, required=True)
    made.add_argument("--max_seq_length", type=int, required=True)
    made.add_argument("--train_batch_size", type=int, required=True)
    made.add_argument("--learning_rate", type=float, required=True)
    made.add_argument("--num_train_epochs", type=float, required=True)
    made.add_argument("--warmup_proportion", type=float, default=0.1)
    return made


def load(model_class, given, **config):
    """Return a model with the weights of --init_checkpoint; its head is random.

    Args:
      model_class: a class of transformers.
      given: the flags.
      **config: additional values of its configuration.
    """
    transformers.set_seed(given.seed)
    transformers.logging.set_verbosity_error()
    return model_class.from_pretrained(given.init_checkpoint, **config)


def our_tokenizer(directory):
    """Return the `FullTokenizer` of a Hugging Face directory."""
    directory = pathlib.Path(directory)
    settings = json.loads((directory / "tokenizer_config.json").read_text())
    do_lower_case = settings.get("do_lower_case", True)
    return FullTokenizer(str(directory / "vocab.txt"), do_lower_case)


def padded(arrays, value=0):
    """Return int arrays [T] as an int64 tensor [B, S]; S is the longest T."""
    tensors = [torch.tensor(np.asarray(array, np.int64)) for array in arrays]
    return pad_sequence(tensors, batch_first=True, padding_value=value)


def inputs(features):
    """Return the model inputs of features, as a dict of int64 tensors [B, S].

    Args:
      features: sequence of B with `input_ids` and `segment_ids`, int arrays [T].
    """
    return {
        "input_ids": padded([one.input_ids for one in features]),
        "attention_mask": padded([np.ones_like(one.input_ids) for one in features]),
        "token_type_ids": padded([one.segment_ids for one in features]),
    }


def train(model, rows, num_examples, loss_of, given):
    """Fine-tune a model.

    Args:
      model: a transformers model.
      rows: list of inputs for `loss_of`.
      num_examples: number of examples in an epoch.
      loss_of: function: list of rows -> their mean loss, a tensor.
      given: the flags.

    Returns:
      dict that describes the training: `seed`, `num_train_steps`, `seconds`.
    """
    steps = int(num_examples / given.train_batch_size * given.num_train_epochs)
    optimizer, schedule = optimizer_and_schedule(
        model, given.learning_rate, steps, int(steps * given.warmup_proportion)
    )
    batches = random_batches(rows, given.train_batch_size, given.seed)
    model.train()
    start = time.monotonic()
    for _ in range(steps):
        update(model, optimizer, schedule, loss_of(next(batches)))
    seconds = time.monotonic() - start
    return {"seed": given.seed, "num_train_steps": steps, "seconds": seconds}


def update(model, optimizer, schedule, loss):
    """Run one training step, clipped like BERT's."""
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()


def adamw(model, learning_rate, **options):
    """Return AdamW with BERT's choice of decayed weights and PyTorch's `options`."""
    decayed, others = [], []
    for name, weight in model.named_parameters():
        not_decayed = any(part in name for part in NOT_DECAYED)
        (others if not_decayed else decayed).append(weight)
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, eps=EPSILON, **options)


def optimizer_and_schedule(model, learning_rate, num_train_steps, num_warmup_steps):
    """Return `adamw` and the schedule of its learning rate."""
    optimizer = adamw(model, learning_rate)

    def factor(step):
        """Return BERT's factor; that of transformers is higher after the warm-up."""
        if step < num_warmup_steps:
            return step / num_warmup_steps
        return 1 - step / num_train_steps

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def random_batches(rows, batch_size, seed):
    """Yield lists of rows from passes in random order, without a gap between passes."""
    generator, left = random.Random(seed), []
    while True:
        while len(left) < batch_size:
            left += generator.sample(rows, len(rows))
        yield left[:batch_size]
        left = left[batch_size:]


def predict(model, rows, outputs_of, length_of=lambda one: len(one.input_ids)):
    """Return the outputs for all rows, in their order.

    Args:
      model: a transformers model.
      rows: list of inputs for `outputs_of`; rows of similar length form a
        batch.
      outputs_of: function: list of B rows -> tensor [B, …].
      length_of: function: a row -> its number of tokens.

    Returns:
      list of arrays […].
    """
    model.eval()
    by_length = np.argsort([length_of(row) for row in rows], kind="stable")
    outputs = [None] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(rows), EVAL_BATCH):
            numbers = by_length[start : start + EVAL_BATCH]
            found = outputs_of([rows[number] for number in numbers]).numpy()
            for number, output in zip(numbers, found, strict=True):
                outputs[number] = output
    return outputs


def report(scores, training):
    """Print the scores, from 0 to 1, and the result of `train`, as JSON."""
    print(json.dumps({**scores, **training}), flush=True)
