r"""Fine-tune on a GLUE task with PyTorch and transformers, to compare with ours.

    python benchmarks/peers/fine_tune_pytorch.py --task_name=mrpc \
        --data_dir=glue_data/MRPC --model=all-MiniLM-L6-v2 --seed=1

`benchmarks/fine_tuning.py` runs it, in an environment with the packages of
`requirements.txt` beside this file. What it shares with ours is what is not
being compared: the reader of GLUE's files and the metrics. Tokenizer, model,
AdamW (with bias correction, as there), schedule and padding to the longest of
a batch are those of transformers. The last line is JSON.
"""

import argparse
import json
import pathlib
import random
import sys
import time

import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent))

from official_bert.metrics import glue  # noqa: E402
from official_bert.tasks import glue_files, glue_tasks  # noqa: E402

NOT_DECAYED = ("bias", "LayerNorm")
WEIGHT_DECAY, EPSILON, CLIP_NORM = 0.01, 1e-6, 1.0
EVAL_BATCH = 32


def main():
    """Train, evaluate on the dev set, print the scores and the rate."""
    given = _arguments()
    transformers.set_seed(given.seed)
    transformers.logging.set_verbosity_error()
    task = glue_tasks.find_task(given.task_name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.model)
    train = _encode(task, given, tokenizer, "train")
    dev = _encode(task, given, tokenizer, "dev")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        given.model, num_labels=len(task.labels) or 1
    )
    steps = int(len(train) / given.batch_size * given.num_train_epochs)
    seconds = _train(model, train, tokenizer, steps, given)
    predicted = _predict(model, dev, tokenizer)
    labels = np.array([row["labels"] for row in dev])
    result = {
        **glue.score(task.metrics, labels, predicted),
        "seed": given.seed,
        "num_train_steps": steps,
        "seconds": seconds,
        "sequences_per_second": steps * given.batch_size / seconds,
    }
    print(json.dumps(result), flush=True)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task_name", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--num_train_epochs", type=float, default=3.0)
    parser.add_argument("--warmup_proportion", type=float, default=0.1)
    return parser.parse_args()


def _encode(task, given, tokenizer, split):
    """Return a split as a list of what the tokenizer and the label give."""
    examples = glue_files.read_examples(task, given.data_dir, split)
    pairs = [example.text_b for example in examples]
    encoded = tokenizer(
        [example.text_a for example in examples],
        pairs if pairs[0] is not None else None,
        truncation=True,
        max_length=given.max_seq_length,
    )
    rows = [
        {name: encoded[name][number] for name in encoded}
        for number in range(len(examples))
    ]
    for row, example in zip(rows, examples, strict=True):
        is_class = bool(task.labels)
        row["labels"] = task.labels.index(example.label) if is_class else example.label
    return rows


def _train(model, rows, tokenizer, steps, given):
    """Make the updates; return the seconds they took."""
    decayed, others = [], []
    for name, weight in model.named_parameters():
        not_decayed = any(part in name for part in NOT_DECAYED)
        (others if not_decayed else decayed).append(weight)
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": WEIGHT_DECAY},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=given.learning_rate,
        eps=EPSILON,
    )
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(steps * given.warmup_proportion), steps
    )
    batches = _random_batches(rows, given.batch_size, tokenizer, given.seed)
    model.train()
    start = time.monotonic()
    for _ in range(steps):
        model(**next(batches)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return time.monotonic() - start


def _random_batches(rows, batch_size, tokenizer, seed):
    """Yield batches of passes in random order, without a gap between passes."""
    generator, left = random.Random(seed), []
    while True:
        while len(left) < batch_size:
            left += generator.sample(rows, len(rows))
        yield tokenizer.pad(left[:batch_size], return_tensors="pt")
        left = left[batch_size:]


def _predict(model, rows, tokenizer):
    """Return the class numbers, or the scores, of all rows in their order."""
    model.eval()
    by_length = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
    outputs = [None] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(rows), EVAL_BATCH):
            numbers = by_length[start : start + EVAL_BATCH]
            batch = tokenizer.pad([rows[n] for n in numbers], return_tensors="pt")
            batch.pop("labels")
            for number, logits in zip(numbers, model(**batch).logits, strict=True):
                outputs[number] = logits.numpy()
    logits = np.array(outputs)
    return logits[:, 0] if logits.shape[1] == 1 else logits.argmax(axis=1)


if __name__ == "__main__":
    main()
