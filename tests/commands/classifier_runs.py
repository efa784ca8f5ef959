"""The commands of test_run_classifier.py, and their input files."""

import gzip
import json
import random
import shutil

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905
NLI = ("contradiction", "entailment", "neutral")
BRIEF = (
    "--init_checkpoint=model --max_seq_length=16 --train_batch_size=8 "
    "--num_train_epochs=2 --learning_rate=3e-3 --save_checkpoints_steps=4 --do_train"
)
TRAIN = f"{BRIEF} --do_eval"
OWN = f"{TRAIN} --train_file=own.csv"
MRPC = "--task_name=MRPC --data_dir=glue/MRPC"
ALL = f"{MRPC} {TRAIN} --do_predict --glue_submission=all"
SEEDS = f"{OWN} --num_seeds=2 --seed=5"
SEED_5, SEED_6 = (f"batch-8_rate-0.003_epochs-2_seed-{seed}" for seed in (5, 6))
ASK_OWN = "--do_eval --dev_file=own.csv"
PAIRS = "--text_column=0 --text_b_column=1 --do_predict --test_file=pairs.tsv.gz"

FIRST = {
    "mrpc": ALL,
    "mnli": f"{TRAIN} --task_name=mnli --data_dir=glue --do_predict "
    "--glue_submission=some",
    "own": f"{OWN} --do_predict --test_file=texts.csv",
    "multi": f"{TRAIN} --train_file=multi.jsonl --dev_file=multi.jsonl",
    "pairs": f"{TRAIN} --train_file=pairs.tsv.gz {PAIRS}",
    "window": f"{OWN} --long_text=window --max_seq_length=6",
    "stopped": f"{OWN} --stop_at_step=8",
    "seeds": SEEDS,
    # State of a sweep that was killed before it recorded a run's result.
    f"killed-late/{SEED_5}": f"{OWN} --seed=5",
}
# Commands after the first runs were checked and some folders copied.
LATER = {
    "mrpc": ALL,
    "eval-alone": f"{MRPC} --do_eval",
    "predict-alone": f"{MRPC} --do_predict --init_checkpoint=mrpc",
    "mnli-mm-alone": "--task_name=MNLI-mm --data_dir=glue/MNLI --do_eval "
    "--do_predict --init_checkpoint=mnli",
    "own-eval": f"{ASK_OWN} --init_checkpoint=own",
    "stopped": OWN,
    "multi": FIRST["multi"],
    "multi-eval": "--do_eval --dev_file=multi.jsonl --init_checkpoint=multi",
    "seeds": SEEDS,
    "killed-seeds": SEEDS,
    "killed-late": SEEDS,
    "more-seeds": f"{OWN} --grid --grid_learning_rates=3e-3 --seed=6",
}
# Flags in addition to `OWN` -> words of the error, in any order.
BAD_OWN = {
    "--output_dir=": "--output_dir",
    MRPC: "--train_file … only one kind",
    "--do_predict": "--test_file",
    "--do_predict --test_file=texts.csv --glue_submission=some": "--glue_submission",
    "--num_seeds=0": "num_seeds … 0",
    "--num_seeds=2 --stop_at_step=2": "--stop_at_step … --num_seeds",
    "--num_seeds=2 --seed=4294967295": "--seed … --num_seeds",
    "--grid --grid_learning_rates=fast": "'fast'",
    "--grid --grid_learning_rates=nan": "'nan'",
    "--grid --grid_learning_rates=": "--grid_learning_rates",
    "--grid --grid_batch_sizes=2.5": "'2.5'",
    "--grid --grid_epochs=-1": "'-1'",
    "--grid --grid_batch_sizes=999": "999 … training step",
    "--grid --grid_batch_sizes=6 --micro_batch_size=4": "--micro_batch_size=4 … 6",
    "--grid_batch_sizes=6": "--grid",
    "--num_train_epochs=nan": "--num_train_epochs",
    "--num_train_epochs=0": "--num_train_epochs",
    "--num_train_epochs=1e308": "--num_train_ep",
    "--learning_rate=nan": "--learning_rate … nan",
    "--learning_rate=inf": "--learning_rate … inf",
    "--average_last=nan": "--average_last=nan … finite",
    "--layer_decay=nan": "--layer_decay=nan … finite",
    "--warmup_proportion=nan": "warmup_proportion",
    "--warmup_proportion=1.5": "warmup_proportion",
    "--dev_fraction=1": "fraction is 1.0",
    "--dev_fraction=nan": "--dev_fraction=nan … finite",
    "--train_batch_size=999": "999 … training step",
    "--micro_batch_size=3": "--micro_batch_size=3",
    "--stop_at_step=99": "--stop_at_step=99",
    "--bias_correction --optimizer=lamb": "--bias_correction … lamb",
    "--layer_decay=0": "--layer_decay=0",
    "--layer_decay=0.9 --optimizer=lamb": "--layer_decay … --optimizer=adam",
    "--reinit_layers=1 --model=": "--reinit_layers … --model",
    "--max_seq_length=33": "33 … 32 tokens",
    "--max_seq_length=2": "max_seq_length … 3",
    "--long_text=window --max_seq_length=4": "max_seq_length is 4 … 5 tokens",
    "--init_checkpoint=gone": "gone",
    "--init_checkpoint=glue": "glue … checkpoint",
    "--bert_config_file=gone.json": "gone.json",
    "--vocab_file=gone.txt": "gone.txt",
    "--num_epochs=3": "num_epochs",
    "--output_dir=own.csv": "--output_dir … own.csv",
    "--output_dir=own.csv/a": "--output_dir",
    "--output_dir=/proc/none": "/proc/none",
    "--output_dir=model": "model holds a model",
    "--output_dir=mrpc": "mrpc holds a run with",
    "--output_dir=own --seed=1": "seed 12345",
    "--output_dir=seeds": "seeds holds a model",
    "--output_dir=locked": "another process",
    "--dev_file=unknown.csv": "unknown.csv … line 3 … 'maybe' … 'no', 'yes'",
    "--do_predict --test_file=gone.csv": "--test_file … gone.csv",
    "--text_column=body": "'body' … 0 'text'",
    "--label_column=9": "'9' … 1 'label'",
    "--text_column=text --text_b_column=0": "different columns",
    "--label_kind=regression": "line 2 … number",
    "--label_kind=multi_label": "line 2 … list",
    "--label_separator=": "--label_separator is empty",
    "--label_kind=ranking": "label_kind",
}
# Flags in addition to `TRAIN`.
BAD_TRAIN = {
    "--task_name=MRPC": "--data_dir",
    "--data_dir=glue": "--task_name",
    "--task_name=X --data_dir=glue": "--task_name=X … mrpc",
    "--dev_file=own.csv": "--train_file",
    "--task_name=AX --data_dir=glue": "no train set",
    "--task_name=MRPC --data_dir=gone": "train.tsv … gone",
    "--task_name=MRPC --data_dir=odd": "odd/dev.tsv: row 4 … '7'",
    "--task_name=QQP --data_dir=glue/MRPC": "MRPC/train.tsv … 5 columns … needs 6",
    f"{MRPC} --glue_submission=some": "--glue_submission … --do_predict",
    f"{MRPC} --do_predict --glue_submission=own.csv": "--glue_submission … own.csv",
    "--task_name=XNLI --data_dir=glue --do_predict --glue_submission=some": "xnli",
    "--tfds --train_file=own.csv": "--tfds … only one kind",
    "--train_file=gone.csv": "gone.csv",
    "--train_file=glue": "directory",
    "--train_file=empty.csv": "is empty",
    "--train_file=header.csv": "no rows",
    "--train_file=bytes.csv": "not UTF-8",
    "--train_file=blank.csv": "no row has both",
    "--train_file=two.csv": "are too few",
    "--train_file=one.csv": "'yes' … two labels",
    "--train_file=ragged.csv": "line 3 … 1 cell",
}
# Complete commands.
BAD_ALONE = {
    "--output_dir=": "--output_dir",
    MRPC: "--do_train … --do_eval … --do_predict",
    "--do_eval --train_file=own.csv": "--dev_file",
    "--do_train --train_file=own.csv": "Give --model … --bert_config_file",
    f"{BRIEF} {MRPC} --num_seeds=2": "--num_seeds … --do_eval",
    f"{BRIEF} --train_file=own.csv --early_stopping_patience=1": "--do_eval",
    f"{SEEDS} --output_dir=own": "own contains another run",
    f"{SEEDS} --output_dir=begun": "begun contains another run",
    f"{SEEDS} --output_dir=other-sweep": "other settings",
    f"{SEEDS} --output_dir=cut-sweep": "result.json … line 1",
    f"{SEEDS} --output_dir=half-sweep": "result.json",
    ASK_OWN: "has no task.json",
    "--task_name=MRPC --data_dir=odd --do_predict --init_checkpoint=mrpc": "test.tsv",
    f"{MRPC} --do_eval --init_checkpoint=model": "model is not fine-tuned for",
    f"{MRPC} --do_eval --init_checkpoint=own": "fine-tuned for the labels no, yes",
    f"{ASK_OWN} --output_dir=mrpc": "--text_column",
    f"{ASK_OWN} --output_dir=damaged": "task.json",
    f"{ASK_OWN} --init_checkpoint=own --max_seq_length=33": "33 … 32 tokens",
    f"{ASK_OWN} --init_checkpoint=own --text_column=body": "--text_column … body",
}
BAD = {
    **{f"{OWN} {more}": words for more, words in BAD_OWN.items()},
    **{f"{TRAIN} {more}": words for more, words in BAD_TRAIN.items()},
    **BAD_ALONE,
}


def sentences(count, seed):
    """Return (text, other text, whether the first contains a horse)."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = [rng.choices(WORDS, k=rng.randint(4, 9)) for _ in range(2)]
        if number % 2:
            words[0][0] = "horse"
        found.append((*map(" ".join, words), number % 2))
    return found


def write_table(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, cells)) for cells in [header, *rows]]
    path.write_text("\n".join(lines) + "\n")


def write_glue(folder):
    header = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    for name, count in (("train", 40), ("dev", 13), ("test", 7)):
        rows = enumerate(sentences(count, name))
        rows = [(i if name == "test" else y, i, i, a, b) for i, (a, b, y) in rows]
        write_table(folder / f"glue/MRPC/{name}.tsv", header, rows)
        if name != "test":
            rows[2] = (7, *rows[2][1:]) if name == "dev" else rows[2]
            write_table(folder / f"odd/{name}.tsv", header, rows)
    files = {"train": 24, "dev_matched": 9, "dev_mismatched": 6}
    files |= {"test_matched": 5, "test_mismatched": 4}
    for name, count in files.items():
        rows = enumerate(sentences(count, name))
        rows = [(*[i] * 8, a, b, "-", NLI[i % 3]) for i, (a, b, _) in rows]
        header = [*"01234567", "sentence1", "sentence2", "label1", "gold_label"]
        if name.startswith("test"):
            header, rows = header[:10], [row[:10] for row in rows]
        write_table(folder / f"glue/MNLI/{name}.tsv", header, rows)
    rows = [(i, a, b) for i, (a, b, _) in enumerate(sentences(3, "ax"))]
    write_table(folder / "glue/diagnostic/diagnostic.tsv", ["", "a", "b"], rows)
    rows = [(a, b, NLI[y]) for a, b, y in sentences(24, "zh")]
    path = folder / "glue/XNLI/multinli/multinli.train.zh.tsv"
    write_table(path, ["premise", "hypo", "label"], rows)
    rows = [("zh", label, *"2345", a, b) for label, a, b in map(reversed, rows)]
    for name in ("dev", "test"):
        write_table(folder / f"glue/XNLI/xnli.{name}.tsv", [*"01234567"], rows)


def write_own(folder):
    rows = sentences(60, "own")
    table = "text,label\n" + "".join(f"{a},{['no', 'yes'][y]}\n" for a, _, y in rows)
    (folder / "own.csv").write_text(table)
    (folder / "chinese.csv").write_text(table.replace("yes", "好"), encoding="utf-8")
    lines = [
        json.dumps({"text": a, "label": ["horse"] * y + ["third"] * (n % 3 == 0)})
        for n, (a, _, y) in enumerate(rows)
    ]
    (folder / "multi.jsonl").write_text("\n".join(lines))
    lines = [f"{a}\t{b}\t{y + n / 100}\n" for n, (a, b, y) in enumerate(rows)]
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (folder / "texts.csv").write_text('text\nthe horse\n""\nwater\n')
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("text,label\n")
    (folder / "bytes.csv").write_bytes(bytes(range(1, 256)))
    (folder / "blank.csv").write_text("text,label\n,yes\n ,no\n")
    (folder / "two.csv").write_text("text,label\nhorse,yes\nwater,no\n")
    (folder / "one.csv").write_text("text,label\nhorse,yes\nwater,yes\n")
    (folder / "ragged.csv").write_text("text,label\nhorse,yes\nwater\n")
    (folder / "unknown.csv").write_text("text,label\nhorse,yes\nwater,maybe\n")


def prepare_later(folder):
    """Leave folders in the state of kills and accidents."""
    shutil.copytree(folder / "mrpc", folder / "eval-alone")
    (folder / "eval-alone" / "eval_results.txt").unlink()
    for name in ("killed-seeds", "more-seeds", "other-sweep", "cut-sweep"):
        shutil.copytree(folder / "seeds", folder / name)
    shutil.copytree(folder / "seeds", folder / "half-sweep")
    shutil.rmtree(folder / "killed-seeds" / SEED_6)
    rows = json.loads((folder / "seeds" / "runs.json").read_text())
    (folder / "killed-seeds" / "runs.json").write_text(json.dumps(rows[:1]))
    result = json.loads((folder / "seeds" / SEED_5 / "result.json").read_text())
    other = {**result, "settings": {**result["settings"], "learning_rate": 1}}
    for name, content in {
        "other-sweep": json.dumps(other),
        "cut-sweep": json.dumps(result)[:99],
        "half-sweep": json.dumps({"settings": result["settings"]}),
    }.items():
        (folder / name / SEED_5 / "result.json").write_text(content)
    task = json.loads((folder / "multi" / "task.json").read_text())
    task["threshold"] = 0.999
    (folder / "multi" / "task.json").write_text(json.dumps(task))
    shutil.move(folder / "multi" / "eval_results.txt", folder / "at-a-half.txt")
    late = folder / "killed-late"
    (late / "runs.json").write_text("[]")
    for name in ("bert_config.json", "vocab.txt", "task.json"):
        (late / SEED_5 / name).rename(late / name)
    for name in ("begun", "damaged"):
        shutil.copytree(folder / "own", folder / name)
    for path in (folder / "begun").glob("bert_*"):
        path.unlink()
    (folder / "begun" / "task.json").unlink()
    (folder / "damaged" / "task.json").write_text('{"task": "classifier"')
    (folder / "locked").mkdir()
