"""Fine-tune on a GLUE task with PyTorch and transformers, for comparison.

`benchmarks/fine_tuning.py` runs it, in an environment with the packages of
`benchmarks/peers/requirements.txt`. It shares with `run_classifier.py` the
parts that are not compared: the reader of GLUE files and the scores. The
tokenizer is from transformers.
"""

import numpy as np
import transformers

from benchmarks.peers.pytorch import training
from official_bert.metrics import glue
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue import tasks as glue_tasks


def main():
    """Train, evaluate on the dev set, print the scores and the time."""
    given = training.parser(__doc__, "task_name", "data_dir").parse_args()
    task = glue_tasks.find_task(given.task_name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.init_checkpoint)
    train = _encode(task, given, tokenizer, "train")
    dev = _encode(task, given, tokenizer, "dev")
    model = training.load(
        transformers.AutoModelForSequenceClassification,
        given,
        num_labels=len(task.labels) or 1,
    )

    def outputs_of(rows):
        return model(**tokenizer.pad(rows, return_tensors="pt"))

    trained = training.train(
        model, train, len(train), lambda rows: outputs_of(rows).loss, given
    )
    logits = np.array(
        training.predict(
            model,
            dev,
            lambda rows: outputs_of(rows).logits,
            lambda row: len(row["input_ids"]),
        )
    )
    predicted = logits.argmax(axis=1) if task.labels else logits[:, 0]
    labels = np.array([row["labels"] for row in dev])
    training.report(glue.score(task.metrics, labels, predicted), trained)


def _encode(task, given, tokenizer, split):
    """Return a split as a list of tokenizer outputs with their labels."""
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


if __name__ == "__main__":
    main()
