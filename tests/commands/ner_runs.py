"""The commands of test_run_ner.py, and their input files."""

import json
import random
import shutil

from official_bert.checkpoints import convert

WORDS = "the of in is and on water her years found".split()  # noqa: SIM905
# The same entities in two schemes: of the same type, adjacent, and separate.
NAMES = [
    (["horse"], ["I-ANI"], ["B-ANI"]),
    (["crust", "light"], ["I-LOC", "I-LOC"], ["B-LOC", "I-LOC"]),
    (["horse", "horse"], ["I-ANI", "B-ANI"], ["B-ANI", "B-ANI"]),
]
START = "--init_checkpoint=model"
BRIEF = (
    f"{START} --max_seq_length=16 --train_batch_size=8 --num_train_epochs=4 "
    "--learning_rate=5e-3 --do_train"
)
TRAIN = f"{BRIEF} --do_eval"
IOB1 = f"{TRAIN} --train_file=iob1.train --dev_file=iob1.dev"
IOB2 = f"{TRAIN} --train_file=iob2.train --dev_file=iob2.dev"
FIRST = {
    "iob1": f"{IOB1} --do_predict --test_file=iob1.test",
    "iob2": f"{IOB2} --do_predict --test_file=untagged.test",
    "json": f"{TRAIN} --train_file=train.jsonl --dev_file=dev.jsonl --do_predict "
    "--test_file=texts.jsonl",
    "frozen": f"{BRIEF} --train_file=iob2.train --feature_based=weighted_sum_all "
    "--num_train_epochs=1 --do_predict --test_file=untagged.test",
    # The words of this file contain punctuation, such as "U.S.".
    "seeds": f"{TRAIN} --train_file=joined.train --dev_file=iob2.dev --num_seeds=2 "
    "--seed=5 --num_train_epochs=1 --one_sentence",
}
ASK = "--init_checkpoint=iob1"
STOPPED = f"{BRIEF} --train_file=iob1.train --stop_at_step=1"
LATER = {
    "iob1": FIRST["iob1"],
    "eval-alone": f"{ASK} --do_eval --dev_file=iob2.dev",
    "predict-alone": f"{ASK} --do_predict --test_file=iob1.test --predict_batch_size=3",
    "reread": f"{ASK} --do_predict --test_file=iob1.test --max_seq_length=8 "
    "--doc_stride=2 --one_sentence --nolabel_all_pieces",
    # Without a task.json, the config decides.
    "hugging-face": "--init_checkpoint=converted --do_predict --test_file=iob1.test "
    "--max_seq_length=8 --doc_stride=2 --one_sentence",
    "no-beginnings": "--init_checkpoint=no_b --do_eval --dev_file=iob2.dev",
    "from-json": f"{ASK} --do_predict --test_file=dev.jsonl",
    "frozen-alone": "--init_checkpoint=frozen --do_eval --dev_file=iob1.dev "
    "--do_predict --test_file=untagged.test --feature_based=weighted_sum_all",
}
# Flags in addition to `IOB1` -> words of the error, in any order.
BAD_TRAIN = {
    "--output_dir=": "--output_dir",
    "--bilstm --feature_based=last": "--feature_based … --bilstm",
    "--train_file=gone.txt": "--train_file … gone.txt",
    "--train_file=model": "--train_file … model",
    "--train_file=empty.txt": "empty.txt … no words",
    "--train_file=words.test": "words.test … row … columns",
    "--train_file=untagged.test": "untagged.test … without a tag",
    "--train_file=odd-tag.txt": "odd-tag.txt … line 2 … 'animal'",
    "--train_file=texts.jsonl": 'texts.jsonl … "entities"',
    "--train_file=apart.jsonl": "apart.jsonl … line 1 … from 3 to 99",
    "--dev_file=road.dev": "road.dev … line 2 … 'B-ROAD' of an unknown type",
    "--dev_file=road.jsonl": "road.jsonl … line 1 … unknown type 'ROAD'",
    "--dev_file=untagged.test": "untagged.test … without a tag",
    "--do_predict": "--test_file",
    "--do_predict --test_file=gone.txt": "--test_file … gone.txt",
    "--do_predict --test_file=road.dev": "road.dev … line 2 … 'B-ROAD'",
    "--do_predict --test_file=empty.txt": "empty.txt",
    "--max_seq_length=33": "--max_seq_length … 33 … 32 tokens",
    "--max_seq_length=2": "max_seq_length … 3",
    "--doc_stride=0": "--doc_stride=0 … positive",
    "--feature_based=first": "feature_based … concat_last_four",
    "--train_batch_size=999": "999 … training step",
    "--init_checkpoint=gone": "gone",
    "--output_dir=iob1 --seed=1": "iob1 … seed",
    "--output_dir=iob1 --doc_stride=3": "iob1 holds a run with",
    "--output_dir=iob1 --feature_based=last": "iob1 holds a run with",
    "--output_dir=model": "model holds a model",
}
# Complete commands.
BAD_ALONE = {
    f"{BRIEF}": "--train_file",
    f"{TRAIN} --train_file=iob1.train": "--dev_file",
    f"{BRIEF} --train_file=outside.txt": "outside.txt … entit",
    ASK: "--do_train … --do_eval … --do_predict",
    f"{ASK} --do_eval": "--dev_file",
    f"{ASK} --do_predict": "--test_file",
    "--do_eval --dev_file=iob1.dev": "No checkpoint",
    f"{START} --do_eval --dev_file=iob1.dev": "model … --do_train",
    "--init_checkpoint=classified --do_eval --dev_file=iob1.dev": "'classifier'",
    "--init_checkpoint=damaged --do_eval --dev_file=iob1.dev": "task.json is damaged",
    f"{ASK} --do_eval --dev_file=road.dev": "road.dev … line 2 … 'B-ROAD'",
    f"{ASK} --do_predict --test_file=road.dev": "road.dev … line 2 … 'B-ROAD'",
    f"{ASK} --do_predict --test_file=empty.txt": "empty.txt",
    f"{ASK} --do_eval --dev_file=iob1.dev --max_seq_length=33": "33 … 32 tokens",
    f"{ASK} --do_eval --dev_file=iob1.dev --bilstm": "--bilstm … --do_train … iob1",
    f"{ASK} --do_eval --dev_file=iob1.dev --label_all_pieces": "--label_all_pieces",
    f"{ASK} --do_eval --dev_file=iob1.dev --feature_based=last": "--feature_based",
    "--init_checkpoint=frozen --do_eval --dev_file=iob1.dev --feature_based=last": (
        "--feature_based differs … frozen"
    ),
    f"{ASK} --do_eval --dev_file=iob1.dev --vocab_file=gone.txt": "gone.txt",
}
BAD = {
    **{f"{IOB1} {more}": words for more, words in BAD_TRAIN.items()},
    **BAD_ALONE,
}


def sentences(count, seed):
    """Return (words, tags in IOB1, tags in IOB2) of sentences."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = rng.choices(WORDS, k=rng.randint(2, 5))
        columns = [words, ["O"] * len(words), ["O"] * len(words)]
        at = rng.randint(0, len(words))
        for column, name in zip(columns, NAMES[number % 3], strict=True):
            column[at:at] = name
        found.append(columns)
    return found


def conll(found, pick, borders=True):
    """Return the text of columns; every fourth sentence starts a document.

    Args:
      found: result of `sentences`.
      pick: for each column, the index of one of the three lists, or None for another
        value.
      borders: whether to mark the documents' borders.
    """
    blocks = []
    for number, columns in enumerate(found):
        if borders and number % 4 == 0:
            border = ["-DOCSTART-", *["-X-"] * (len(pick) - 2), "O"][: len(pick)]
            blocks.append(" ".join(border) + "\n")
        filled = {**dict(enumerate(columns)), None: ["NN"] * len(columns[0])}
        rows = zip(*(filled[place] for place in pick), strict=True)
        rows = [" ".join(row) for row in rows]
        blocks.append("\n".join(rows) + "\n")
    return "\n".join(blocks)


def json_lines(found):
    """Return the same data as texts with offsets."""
    lines = []
    for words, _, tags in found:
        text, entities = "", []
        for word, tag in zip(words, tags, strict=True):
            start = len(text) + bool(text)
            text = f"{text} {word}".strip()
            if tag[0] == "B":
                entities.append({"start": start, "end": len(text), "label": tag[2:]})
            elif tag[0] == "I":
                entities[-1]["end"] = len(text)
        lines.append(json.dumps({"text": text, "entities": entities}) + "\n")
    return "".join(lines)


def write_files(folder):
    sets = {
        name: sentences(count, name)
        for name, count in (("train", 72), ("dev", 9), ("test", 6))
    }
    for name, found in sets.items():
        # Two more columns, as in CoNLL-2003.
        (folder / f"iob1.{name}").write_text(conll(found, (0, None, None, 1)))
        (folder / f"iob2.{name}").write_text(conll(found, (0, 2)))
        (folder / f"{name}.jsonl").write_text(json_lines(found))
    joined = (folder / "iob2.train").read_text().replace("found ", "U.S. ")
    (folder / "joined.train").write_text(joined)
    (folder / "untagged.test").write_text(conll(sets["test"], (0,), borders=False))
    lines = [json.loads(line)["text"] for line in json_lines(sets["test"]).splitlines()]
    texts = [*lines, "", "né 🍕 the horse", "the horse " * 40]
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    (folder / "texts.jsonl").write_text("".join(lines))
    (folder / "words.test").write_text("horse\nof\n\ncrust\tlight\n")
    (folder / "empty.txt").write_text("\n\n")
    (folder / "odd-tag.txt").write_text("the O\nhorse animal\n")
    (folder / "outside.txt").write_text("the O\nhorse O\n\n" * 9)
    (folder / "road.dev").write_text("the O\nhorse B-ROAD\n")
    far = {"text": "in Rome", "entities": [{"start": 3, "end": 99, "label": "LOC"}]}
    (folder / "apart.jsonl").write_text(json.dumps(far))
    far["entities"][0] |= {"end": 7, "label": "ROAD"}
    (folder / "road.jsonl").write_text(json.dumps(far))


def prepare_later(folder):
    """Leave the folders of another task, of an accident, and of Hugging Face."""
    convert.convert(str(folder / "iob1"), str(folder / "converted"), "huggingface")
    shutil.copytree(folder / "converted", folder / "no_b")
    config = json.loads((folder / "no_b" / "config.json").read_text())
    tags = [tag.replace("B-", "I-X") for tag in config["id2label"].values()]
    config["id2label"] = dict(enumerate(tags))
    (folder / "no_b" / "config.json").write_text(json.dumps(config))
    for name, content in (
        ("classified", '{"task": "classifier", "global_step": 1}'),
        ("damaged", '{"task": "ner", "global_step": 1}'),
    ):
        shutil.copytree(folder / "iob1", folder / name)
        (folder / name / "task.json").write_text(content)
