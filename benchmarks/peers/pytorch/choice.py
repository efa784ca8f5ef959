"""Fine-tune on multiple choice with PyTorch and transformers, for comparison.

`benchmarks/fine_tuning.py` runs it. It shares with `run_swag.py` the parts that
are not compared: the reader, the tokens of each question with each of its
choices, and the score.
"""

import numpy as np
import torch
import transformers

from benchmarks.peers.pytorch import training
from official_bert.metrics import glue
from official_bert.tasks.choice.features import convert_choices
from official_bert.tasks.choice.files import read_choices

# The score of a missing choice.
NO_CHOICE = -1e9


def main():
    """Train, evaluate on the dev set, print the score and the time."""
    given = training.parser(__doc__, "train_file", "dev_file").parse_args()
    tokenizer = training.our_tokenizer(given.init_checkpoint)
    train, dev = (
        convert_choices(read_choices(path)[0], tokenizer, given.max_seq_length)
        for path in (given.train_file, given.dev_file)
    )
    model = training.load(transformers.BertForMultipleChoice, given)

    def loss_of(examples):
        labels = torch.tensor([choices[0].label_id for choices in examples])
        return torch.nn.functional.cross_entropy(_scores(model, examples), labels)

    trained = training.train(model, train, len(train), loss_of, given)
    chosen = training.predict(
        model,
        dev,
        lambda examples: _scores(model, examples).argmax(-1),
        lambda choices: max(len(one.input_ids) for one in choices),
    )
    labels = np.array([choices[0].label_id for choices in dev])
    training.report({"accuracy": glue.accuracy(labels, np.array(chosen))}, trained)


def _scores(model, examples):
    """Return the scores of B examples' choices, a float tensor [B, C].

    If an example has fewer than C choices, its first choice fills the gap,
    because the model needs C choices; the score is then replaced.
    """
    sizes = torch.tensor([len(choices) for choices in examples])
    most = int(sizes.max())
    rows = [
        one
        for choices in examples
        for one in [*choices, *choices[:1] * (most - len(choices))]
    ]
    shape = (len(examples), most, -1)
    inputs = {name: value.view(shape) for name, value in training.inputs(rows).items()}
    is_there = torch.arange(most) < sizes[:, None]
    return model(**inputs).logits.masked_fill(~is_there, NO_CHOICE)


if __name__ == "__main__":
    main()
