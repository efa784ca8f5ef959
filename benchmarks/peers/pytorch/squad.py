"""Fine-tune on SQuAD with PyTorch and transformers, for comparison.

`benchmarks/fine_tuning.py` runs it. It shares with `run_squad.py` the parts
that are not compared: the windows, the choice of answers by their logits, and
the scores.
"""

import torch
import transformers

from benchmarks.peers.pytorch import training
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import features as squad_features
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad.evaluation import evaluate_predictions


def main():
    """Train, answer the questions, print the scores and the time."""
    arguments = training.parser(__doc__, "train_file", "predict_file")
    arguments.add_argument("--doc_stride", type=int, required=True)
    arguments.add_argument("--version_2_with_negative", action="store_true")
    given = arguments.parse_args()
    tokenizer = training.our_tokenizer(given.init_checkpoint)
    examples = squad_files.read_examples(
        given.train_file, True, given.version_2_with_negative, "--train_file"
    )
    windows = _windows(examples, tokenizer, given)
    model = training.load(transformers.BertForQuestionAnswering, given)

    def loss_of(rows):
        starts = torch.tensor([row.start_position for row in rows])
        ends = torch.tensor([row.end_position for row in rows])
        inputs = training.inputs(rows)
        return model(**inputs, start_positions=starts, end_positions=ends).loss

    # As in run_squad.py, an epoch has as many windows as there are questions.
    trained = training.train(model, windows, len(examples), loss_of, given)
    training.report(_evaluate(model, tokenizer, given), trained)


def _windows(examples, tokenizer, given):
    return squad_features.convert_examples(
        examples, tokenizer, given.max_seq_length, given.doc_stride
    )


def _evaluate(model, tokenizer, given):
    """Return the scores of the predictions for --predict_file."""
    examples = squad_files.read_examples(given.predict_file, False)
    windows = _windows(examples, tokenizer, given)

    def logits_of(rows):
        outputs = model(**training.inputs(rows))
        return torch.stack([outputs.start_logits, outputs.end_logits], 1)

    logits = [
        both[:, : len(one.input_ids)]  # Without the logits of padding, like ours.
        for both, one in zip(
            training.predict(model, windows, logits_of), windows, strict=True
        )
    ]
    decoding = squad_answers.Decoding(
        version_2_with_negative=given.version_2_with_negative
    )
    predictions = squad_answers.decode(
        examples,
        windows,
        [starts for starts, _ in logits],
        [ends for _, ends in logits],
        tokenizer,
        decoding,
    )
    gold_answers = squad_files.read_gold_answers(given.predict_file)
    found = evaluate_predictions(decoding, predictions, gold_answers)
    return {
        name: value / 100
        for name, value in found.items()
        if not name.endswith("_thresh")
    }


if __name__ == "__main__":
    main()
