"""Exact search equals a sort of all cosines, with blocks of any size."""

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tasks.embedding import corpus, evaluation, search
from official_bert.tasks.embedding.files import EmbeddingExample

RNG = np.random.default_rng(0)
QUERIES = RNG.normal(size=(7, 5)).astype(np.float32)
# Integers, so that many cosines are equal.
DOCUMENTS = RNG.integers(-1, 2, (50, 5)).astype(np.float32)


def blocks(size):
    return (DOCUMENTS[at : at + size] for at in range(0, len(DOCUMENTS), size))


@pytest.mark.parametrize("k", [1, 10, 50, 60])
@pytest.mark.parametrize("size", [1, 8, 50])
def test_search_in_blocks(size, k, monkeypatch):
    monkeypatch.setattr(search, "QUERY_BLOCK", 3)
    scores, numbers = search.nearest(QUERIES, blocks(size), k)
    cosines = search.unit(QUERIES) @ search.unit(DOCUMENTS).T
    # Equal cosines must be equal to the last bit for the comparison.
    expected = np.sort(cosines, axis=1)[:, ::-1][:, :k]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert numbers.shape == (7, min(k, 50))
    np.testing.assert_allclose(
        np.take_along_axis(cosines, numbers, 1), scores, atol=1e-6
    )
    for row in numbers:
        assert len(set(row)) == len(row)


def test_equal_documents_keep_their_order():
    same = [np.ones((3, 5), np.float32)] * 4
    _, numbers = search.nearest(QUERIES, same, 7)
    assert (numbers == np.arange(7)).all()


def test_no_documents():
    scores, numbers = search.nearest(QUERIES, [], 3)
    assert scores.shape == numbers.shape == (7, 0)


class Encoder:
    """Makes a vector of the numbers in a text."""

    def __init__(self):
        self.sizes = []

    def vectors(self, texts):
        self.sizes.append(len(texts))
        return np.array([list(map(float, text.split())) for text in texts], np.float32)


@pytest.fixture
def files(tmp_path):
    """Corpus, queries and relevance; document d<n> has the angle n."""
    angles = np.radians(np.arange(10) * 10)
    lines = [
        f'{{"_id": "d{n}", "title": "", "text": "{np.cos(a)} {np.sin(a)}"}}'
        for n, a in enumerate(angles)
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.txt").write_text("1 0\n0 1\n1 1\n")
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\td0\t1\n1\td9\t0\n2\td7\t1\n9\td1\t1\n"
    )
    return [tmp_path / name for name in ("corpus.jsonl", "queries.txt", "qrels.tsv")]


def test_retrieval_over_a_corpus(files, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK", 4)
    encoder = Encoder()
    found = corpus.evaluate(encoder, *files)
    # The first query finds d0 first; the second finds d9, d8 and then d7.
    assert found["corpus_mrr_at_10"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["corpus_recall_at_1"] == 0.5 and found["corpus_recall_at_10"] == 1
    assert found["corpus_ndcg_at_10"] == pytest.approx((1 + 1 / 2) / 2)
    assert encoder.sizes == [2, 4, 4, 2]


@pytest.mark.parametrize(
    ("number", "content", "words"),
    [
        (0, "1 0\n", "lacks 2 of the documents in .*qrels.tsv: d0, d7"),
        (0, '{"text": "1 0"}\n', 'line 1 has no "_id" or no "text"'),
        (1, '{"_id": "x", "text": "1 0"}\n', "none of the query ids"),
        (2, "1\td0\n", "is not a query id, a document id and a gain"),
        (2, "1\td0\t0\n2\td1\t0\n", "no document with a gain above 0"),
    ],
)
def test_files_that_do_not_fit(files, number, content, words):
    files[number].write_text(content)
    with pytest.raises(UserError, match=words):
        corpus.evaluate(Encoder(), *files)


def test_a_dev_set_of_pairs():
    rows = [("1 0", "10 1"), ("1 0", "10 2"), ("0 1", "1 10", "1 9"), ("5 5", "5 5")]
    examples = [EmbeddingExample(n, row) for n, row in enumerate(rows)]
    found = evaluation.of_examples(examples, "--dev_file")
    assert found.texts == ["1 0", "10 1", "10 2", "0 1", "1 10", "1 9", "5 5"]
    scores = found.measure(Encoder().vectors(found.texts))
    assert scores["mrr_at_10"] == 1 and scores["recall_at_1"] == 1
    examples[0] = EmbeddingExample(0, ("1 0", "1 8"))
    worse = evaluation.of_examples(examples, "--dev_file")
    # For "1 0", the second of its positives comes first.
    assert worse.measure(Encoder().vectors(worse.texts))["recall_at_10"] == 1
    assert worse.measure(Encoder().vectors(worse.texts))["ndcg_at_10"] < 1


def test_a_dev_set_of_groups():
    """Each text searches all others of its group, and never itself."""
    texts = ["1 0", "9 1", "9 2"]
    examples = [
        EmbeddingExample(0, (texts[n], texts[(n + 1) % 3]), group="x") for n in range(3)
    ]
    found = evaluation.of_examples(examples, "--dev_file")
    scores = found.measure(Encoder().vectors(found.texts))
    assert set(scores.values()) == {1.0}


def test_a_dev_set_of_scores():
    rows = [("1 0", "1 0", 5.0), ("1 0", "1 1", 3.0), ("1 0", "0 1", 0.0)]
    examples = [EmbeddingExample(n, row[:2], row[2]) for n, row in enumerate(rows)]
    found = evaluation.of_examples(examples, "--dev_file")
    scores = found.measure(Encoder().vectors(found.texts))
    assert scores["spearman"] == pytest.approx(1) and 0.9 < scores["pearson"] < 1


@pytest.mark.parametrize(
    ("rows", "words"), [([("a",)], "single texts"), ([("a", "a")], "the same text")]
)
def test_a_dev_set_without_pairs(rows, words):
    examples = [EmbeddingExample(0, row) for row in rows]
    with pytest.raises(UserError, match=words):
        evaluation.of_examples(examples, "--dev_file")
