"""Small files under the names that README and docs use."""

import gzip
import json
import random
import shutil

import tiny_model
from places import MINI

from official_bert.checkpoints.huggingface import sentence_files
from official_bert.checkpoints.huggingface.sentence_files import SentenceSettings

SIZES = {"max_position_embeddings": 512, "num_hidden_layers": 2}
RELEASES = ("uncased_L-12_H-768_A-12", "cased_L-12_H-768_A-12")
WORDS = "the of in is and on water her years found light a small boat".split()  # noqa: SIM905
OPINIONS = [("What a wonderful film", 5), ("I left before the end", 1)]


def sentence(rng):
    """Return a sentence of common words."""
    return " ".join(rng.choices(WORDS, k=rng.randint(4, 9)))


def many_words(count):
    """Return text of documents with `count` different words, each three times."""
    rng = random.Random(1)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    words = [f"{''.join(rng.choices(syllables, k=3))}" for _ in range(count)] * 3
    rng.shuffle(words)
    lines = [" ".join(words[start : start + 10]) for start in range(0, len(words), 10)]
    documents = [lines[start : start + 20] for start in range(0, len(lines), 20)]
    return "\n\n".join("\n".join(document) for document in documents) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_lines(path, rows, separator="\t"):
    write(path, "".join(separator.join(map(str, row)) + "\n" for row in rows))


def reviews(folder):
    """Write the tables of reviews: README and tutorial."""
    rng = random.Random(1)
    rows = [
        (f"{opinion} {sentence(rng)}.", stars)
        for _ in range(20)
        for opinion, stars in OPINIONS
    ]
    for name in ("reviews.csv", "dev.csv"):
        write_lines(folder / name, [("review", "stars"), *rows], ",")
    texts = [(text,) for text, _ in rows]
    write_lines(folder / "new.csv", [("review",), *texts], ",")
    write_lines(folder / "texts.txt", texts)


def glue(folder):
    """Write `glue_data` with MRPC, RTE, SST-2 and STS-B."""
    rng = random.Random(2)
    for name, count in (("train", 40), ("dev", 12), ("test", 4)):
        rows = [(i, sentence(rng), sentence(rng)) for i in range(count)]
        pairs = [(i % 2, i, i, a, b) for i, a, b in rows]
        header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
        write_lines(folder / f"glue_data/MRPC/{name}.tsv", [header, *pairs])
        labels = ("entailment", "not_entailment")
        rte = [(i, a, b, labels[i % 2]) for i, a, b in rows]
        header = ("index", "sentence1", "sentence2", "label")
        write_lines(folder / f"glue_data/RTE/{name}.tsv", [header, *rte])
        header = ("sentence", "label")
        sst2 = [(a, i % 2) for i, a, _ in rows]
        write_lines(folder / f"glue_data/SST-2/{name}.tsv", [header, *sst2])
        header = (*map(str, range(7)), "sentence1", "sentence2", "score")
        stsb = [(*[i] * 7, a, b, i % 6) for i, a, b in rows]
        write_lines(folder / f"glue_data/STS-B/{name}.tsv", [header, *stsb])


def squad(folder):
    """Write SQuAD 2.0 files of the mini text, and 1.1 files without unanswerable ones.

    Each question occurs several times, so that the questions fill a batch.
    """
    text = (MINI / "squad.json").read_text("utf-8")
    data = []
    for number in range(8):
        again = text.replace('"id": "', f'"id": "{number}-')
        data += json.loads(again)["data"]
    for split in ("train", "dev"):
        content = {"version": "v2.0", "data": data}
        write(folder / f"{split}-v2.0.json", json.dumps(content))
        kept = [_answerable(article) for article in data]
        content = {"version": "1.1", "data": kept}
        write(folder / f"{split}-v1.1.json", json.dumps(content))


def _answerable(article):
    paragraphs = [
        paragraph | {"qas": [one for one in paragraph["qas"] if one["answers"]]}
        for paragraph in article["paragraphs"]
    ]
    return article | {"paragraphs": paragraphs}


def swag(folder):
    """Write SWAG's tables, and one like ARC's."""
    rng = random.Random(3)
    header = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2"]
    header += ["gold-source", "ending0", "ending1", "ending2", "ending3", "label"]
    for name, count in (("train", 32), ("val", 8)):
        rows = [
            (i, "v", i, "s", *(sentence(rng) for _ in range(2)), "gold")
            + (*(sentence(rng) for _ in range(4)), i % 4)
            for i in range(count)
        ]
        write_lines(folder / f"{name}.csv", [header, *rows], ",")
    rows = [(sentence(rng), "a boat", "light", "the year", "B") for _ in range(4)]
    write_lines(folder / "arc.csv", rows, ",")


def faq(folder):
    """Write pairs of questions, a corpus with queries, and a sentence-transformer."""
    rng = random.Random(5)
    rows = [(text, f"{text} {sentence(rng)}") for text in map(sentence, [rng] * 40)]
    for name, some in (("faq", rows[:32]), ("faq_dev", rows[32:])):
        write_lines(folder / f"{name}.csv", [("anchor", "positive"), *some], ",")
    write_lines(folder / "faq_questions.txt", [(text,) for _, text in rows])
    for name, place in (("queries", 0), ("corpus", 1)):
        records = [{"_id": str(n), "text": row[place]} for n, row in enumerate(rows)]
        lines = [(json.dumps(record),) for record in records]
        write_lines(folder / f"{name}.jsonl", lines)
    relevant = [(n, n, 1) for n in range(len(rows))]
    write_lines(folder / "qrels.tsv", [("query", "corpus", "gain"), *relevant])
    directory = folder / "all-MiniLM-L6-v2"
    tiny_model.write(directory, **SIZES)
    sentence_files.write(
        directory, SentenceSettings(64, "mean", True), tiny_model.WIDTH
    )


def conll(folder):
    """Write CoNLL-2003's columns."""
    rng = random.Random(4)
    # A window holds the sentences of a document that fit.
    for name, count in (("train", 600), ("valid", 12), ("test", 12)):
        blocks = ["-DOCSTART- -X- -X- O\n"]
        for _ in range(count):
            words = sentence(rng).split()
            tags = ["I-LOC" if word == "water" else "O" for word in words]
            rows = zip(words, tags, strict=True)
            blocks.append("".join(f"{word} X X {tag}\n" for word, tag in rows))
        write(folder / f"{name}.txt", "\n".join(blocks))


def corpora(folder):
    """Write texts in all formats that the pages use."""
    text = many_words(12_000)
    for name in ("books.txt", "text.txt"):
        write(folder / name, text)
    (folder / "text").mkdir()
    with gzip.open(folder / "text" / "a.txt.gz", "wt") as packed:
        packed.write(text)
    lines = [
        json.dumps({"id": str(i), "url": "", "title": "t", "text": part})
        for i, part in enumerate(text.split("\n\n"))
    ]
    for name in ("wiki_00", "wiki_07"):
        write(folder / "text" / "wiki" / "AA" / name, "\n".join(lines) + "\n")
    write(folder / "books" / "first.txt", text.replace("\n", ".\n"))


def models(folder):
    """Write tiny models under the names of large ones."""
    for name in (*RELEASES, "bert-base-uncased", "MODEL", "output/quickstart/model"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        tiny_model.write(folder / name, **SIZES)
    cased = folder / RELEASES[1] / "tokenizer_config.json"
    cased.write_text(json.dumps({"do_lower_case": False}))
    for name in ("vocab.txt", "output/quickstart/vocab.txt"):
        shutil.copy(tiny_model.VOCAB, folder / name)


def large_vocabulary(folder):
    """Replace the vocabulary by one with as many tokens as `configs/base.flags`."""
    lines = tiny_model.VOCAB.read_text("utf-8").splitlines()
    lines += [f"[filler{n}]" for n in range(30_522 - len(lines))]
    write(folder / "data" / "vocab.txt", "\n".join(lines) + "\n")


def write_all(folder):
    """Write all files but the large vocabulary."""
    for make in (reviews, glue, squad, swag, faq, conll, corpora, models):
        make(folder)
