"""Train sentence embeddings with sentence-transformers, for comparison.

`benchmarks/embeddings.py` runs it, in an environment with the packages of
`benchmarks/peers/requirements.txt`. It shares with `run_embedding.py` the parts that
are not compared: the reader of tables and the correlation. Model, tokenizer and losses
are those of sentence-transformers; the loop is that of the other PyTorch scripts, which
is faster than sentence-transformers' trainer.
"""

import argparse

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.util import pairwise_cos_sim

from benchmarks.peers.pytorch import training
from official_bert.metrics import glue
from official_bert.tasks.embedding.files import read_examples

SIMILARITY = ("spearman", "pearson")


def main():
    """Train, evaluate on the dev and test set, print the scores and the time."""
    parser = training.parser(__doc__, "train_file", "dev_file")
    parser.add_argument("--test_file")
    parser.add_argument("--loss", required=True)
    parser.add_argument("--temperature", type=float, required=True)
    given = parser.parse_args()
    transformers.set_seed(given.seed)
    transformers.logging.set_verbosity_error()
    model = SentenceTransformer(given.init_checkpoint, device="cpu")
    model.max_seq_length = given.max_seq_length
    train = read_examples(given.train_file, "--train_file")
    loss = _loss(model, given)
    trained = training.train(model, train, len(train), loss, given)
    scores = {}
    for part in ("dev", "test"):
        path = getattr(given, f"{part}_file")
        if path:
            scores |= _scores(model, read_examples(path, f"--{part}_file"), part)
    training.report(scores, trained)


def versions():
    """Return library -> version."""
    return {
        "torch": torch.__version__,
        "sentence-transformers": sentence_transformers.__version__,
    }


def embedding_training(model, train_file, loss, temperature, batch, calls):
    """Return a function that runs training steps; see `benchmarks/contender.py`.

    For the arguments see `benchmarks.ours.embedding_training`.
    """
    given = argparse.Namespace(loss=loss, temperature=temperature)
    encoder = SentenceTransformer(model, device="cpu")
    rows = read_examples(train_file, "--train_file")
    optimizer, schedule = training.optimizer_and_schedule(encoder, 2e-5, 10**6, 10**4)
    batches = training.random_batches(rows, batch, seed=1)
    loss_of = _loss(encoder, given)
    encoder.train()

    def update():
        for _ in range(calls):
            training.update(encoder, optimizer, schedule, loss_of(next(batches)))

    return update


def _loss(model, given):
    """Return a function: examples -> their mean loss."""
    scale = 1 / given.temperature
    if given.loss == "cosent":
        loss = losses.CoSENTLoss(model, scale)
    else:
        directions = ("query_to_doc", "doc_to_query")
        loss = losses.MultipleNegativesRankingLoss(
            model, scale, directions=directions, partition_mode="per_direction"
        )

    def loss_of(examples):
        columns = zip(*(one.texts[:2] for one in examples), strict=True)
        features = [model.preprocess(list(column)) for column in columns]
        scores = torch.tensor([one.score or 0.0 for one in examples])
        return loss(features, scores)

    return loss_of


def _scores(model, examples, part):
    """Return the correlations of cosines and scores."""
    columns = zip(*(one.texts[:2] for one in examples), strict=True)
    vectors = [
        model.encode(
            list(column), batch_size=training.EVAL_BATCH, convert_to_tensor=True
        )
        for column in columns
    ]
    cosines = pairwise_cos_sim(*vectors).numpy()
    found = glue.score(SIMILARITY, np.array([one.score for one in examples]), cosines)
    return {f"{part}_{name}": value for name, value in found.items()}


if __name__ == "__main__":
    main()
