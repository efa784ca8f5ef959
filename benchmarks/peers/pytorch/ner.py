"""Fine-tune on tagged words with PyTorch and transformers, for comparison.

`benchmarks/fine_tuning.py` runs it. It shares with `run_ner.py` the parts that
are not compared: the windows with their labels, the choice of the window for
each word, and the scores.
"""

import numpy as np
import transformers

from benchmarks.peers.pytorch import training
from official_bert import constants
from official_bert.metrics import entities
from official_bert.tasks.ner import features as ner_features
from official_bert.tasks.ner import files as ner_files

# PyTorch's label for tokens that are not scored.
IGNORED = -100


def main():
    """Train, tag the dev and the test set, print the scores and the time."""
    given = training.parser(__doc__, "train_file", "dev_file", "test_file").parse_args()
    tokenizer = training.our_tokenizer(given.init_checkpoint)
    data = ner_files.read_ner_file(given.train_file)
    tags = ner_features.tag_names(data.labels)
    windows = ner_features.convert_documents(
        data.documents, tokenizer, given.max_seq_length, tags
    )
    model = training.load(
        transformers.BertForTokenClassification, given, num_labels=len(tags)
    )

    def loss_of(rows):
        labels = [
            np.where(row.label_ids == constants.IGNORED, IGNORED, row.label_ids)
            for row in rows
        ]
        labels = training.padded(labels, IGNORED)
        return model(**training.inputs(rows), labels=labels).loss

    trained = training.train(model, windows, len(windows), loss_of, given)
    scores = {
        name: _f1(model, tokenizer, tags, path, given.max_seq_length)
        for name, path in (("f1", given.dev_file), ("test_f1", given.test_file))
    }
    training.report(scores, trained)


def _f1(model, tokenizer, tags, path, max_seq_length):
    """Return the F1 of a model's predicted entities in a file."""
    documents = ner_files.read_ner_file(path).documents
    windows = ner_features.convert_documents(documents, tokenizer, max_seq_length)
    predicted = training.predict(
        model, windows, lambda rows: model(**training.inputs(rows)).logits.argmax(-1)
    )
    found = ner_features.word_tags(documents, windows, predicted, tags)
    return entities.score(
        [sentence.tags for document in documents for sentence in document],
        [sentence for document in found for sentence in document],
    ).overall.f1


if __name__ == "__main__":
    main()
