"""The commands of test_run_squad.py, and their input files."""

import copy
import dataclasses
import gzip
import json
import shutil

import keras
import numpy as np
import tiny_model
from places import MINI

from official_bert.checkpoints import model_directory
from official_bert.fine_tuning.task_file import write_task
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.training import SquadTask

CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG, initializer_range=0.2, max_position_embeddings=64
)
LENGTHS = "--max_seq_length=64 --doc_stride=24 --max_query_length=24"
BRIEF = (
    f"--init_checkpoint=model {LENGTHS} --train_batch_size=4 --num_train_epochs=10 "
    "--learning_rate=3e-3 --save_checkpoints_steps=10 --do_train"
)
V1 = f"{BRIEF} --train_file=v1.json.gz"
EVAL = "--predict_file=v2.json --version_2_with_negative --do_eval"
LONGER = "--num_train_epochs=20 --save_checkpoints_steps=20"
V2 = f"{BRIEF} --train_file=v2.json {EVAL} {LONGER}"
ASK_V1 = "--do_predict --predict_file=v1.json"
ASK = "--do_predict --predict_file=v2.json"
SEEDS = f"{V2} --num_seeds=2 --seed=5 --num_train_epochs=4 --save_checkpoints_steps=8"
# The command of google-research/bert's README, with every flag.
ORIGINAL = (
    "--vocab_file=model/vocab.txt --bert_config_file=model/bert_config.json "
    "--init_checkpoint=original/model.ckpt-7 --do_train=False --train_file=v1.json "
    "--do_predict=True --predict_file=v1.json --train_batch_size=12 "
    "--learning_rate=3e-5 --num_train_epochs=2.0 --max_seq_length=48 --doc_stride=20 "
    "--max_query_length=24 --predict_batch_size=3 --n_best_size=5 "
    "--max_answer_length=9 --do_lower_case=True --use_tpu=False --master= "
    "--num_tpu_cores=8 --verbose_logging=False --version_2_with_negative=False "
    "--save_checkpoints_steps=1000 --iterations_per_loop=1000 --warmup_proportion=0.1"
)

FIRST = {
    "v1": f"{V1} {ASK_V1} --max_answer_length=9",
    "v2": f"{V2} --do_predict",
    "seeds": f"{SEEDS} --do_predict",
    "last": f"{V1} --num_train_epochs=2",
    "several": f"{V1} --num_train_epochs=2 --train_file=two.json",
    "only-scored": f"{V1} --num_train_epochs=2 --do_eval --predict_file=v1.json",
}
LATER = {
    "v2": FIRST["v2"],
    "alone": f"{ASK} --init_checkpoint=v2",
    "alone-v1": f"{ASK_V1} --init_checkpoint=v1 --max_answer_length=9",
    "padded": f"{ASK} --init_checkpoint=random --pad_to_max_seq_length",
    "asked": "--do_predict --predict_file=asked.json --init_checkpoint=v2",
    "always": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=1e6",
    "never": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=-1e6",
    "zero": f"{ASK} --init_checkpoint=v2 --null_score_diff_threshold=0",
    "ensemble": f"{ASK} --ensemble_dirs=v2,seeds",
    "one": f"{ASK} --ensemble_dirs=v2",
    "original": ORIGINAL,
    # These two have an extreme threshold.
    "untuned-1": "--do_eval --predict_file=v2.json --null_score_diff_threshold=1e6 "
    "--init_checkpoint=model",
    "as-v1": "--do_predict --predict_file=asked.json --init_checkpoint=v2 "
    "--noversion_2_with_negative",
    "as-v1-all": f"{ASK} --init_checkpoint=v2 --noversion_2_with_negative",
    "elsewhere": f"{ASK} --do_eval --init_checkpoint=untuned-2",
    "ensemble-eval": "--do_eval --predict_file=v2.json --ensemble_dirs=v2,seeds",
    "scored": "--do_eval --predict_file=v1.json --init_checkpoint=v1 "
    "--max_answer_length=9",
}
# Flags in addition to `V1` -> words of the error, in any order.
BAD_V1 = {
    "--output_dir=": "--output_dir",
    "--train_file=": "--train_file",
    "--train_file=gone.json": "--train_file … gone.json",
    "--train_file=model": "--train_file … directory",
    "--train_file=empty.json": "empty.json is not a SQuAD file",
    "--train_file=cut.json": "cut.json is not a SQuAD file: line 1 … truncated",
    "--train_file=cut.json.gz": "cut.json.gz cannot be read",
    "--train_file=list.json": 'list.json is not a SQuAD file … "data"',
    "--train_file=deep.json": "deep.json is not a SQuAD file … nested",
    "--train_file=huge.json": "huge.json",
    "--train_file=none.json": "none.json has no questions to train on",
    "--train_file=v2.json": "question 3 (id q2) … --version_2_with_negative",
    "--train_file=v1.json --version_2_with_negative": 'q0 … no "is_impossible"',
    "--train_file=asked.json": 'q0 … no "answers"',
    "--train_file=blank.json --version_2_with_negative": "blank.json",
    "--do_eval": "--dev_file",
    "--do_predict": "--dev_file",
    "--do_eval --predict_file=gone.json": "--dev_file … gone.json",
    "--do_eval --predict_file=cut.json": "cut.json is not a SQuAD file",
    "--do_eval --predict_file=asked.json": "asked.json have no answers",
    "--do_eval --predict_file=same.json": "q0 … id of another question",
    # The error comes before hours of training, and also without training.
    "--do_eval --predict_file=v2.json": "--version_2_with_negative",
    "--do_predict --predict_file=cut.json": "cut.json is not a SQuAD file",
    "--do_predict --predict_file=v2.json": "--version_2_with_negative",
    "--do_predict --predict_file=half.json": "half.json … half a character",
    "--ensemble_dirs=v1 --do_predict --predict_file=v1.json": "--ensemble_dirs",
    "--max_seq_length=65": "--max_seq_length=65 … 64 tokens",
    "--max_seq_length=27": "27 … max_query_length 24 + 3",
    "--max_query_length=61": "64 … max_query_length 61 + 3",
    "--max_seq_length=4": "max_seq_length",
    "--doc_stride=0": "doc_stride",
    "--n_best_size=0": "n_best_size",
    "--max_answer_length=0": "max_answer_length",
    "--null_score_diff_threshold=low": "null_score_diff_threshold",
    "--null_score_diff_threshold=nan": "null_score_diff_threshold",
    "--learning_rate=nan": "--learning_rate … nan",
    "--train_batch_size=999": "999 … training step",
    "--num_seeds=2": "--num_seeds … --do_eval",
    "--early_stopping_patience=1": "--do_eval",
    "--stop_at_step=99": "--stop_at_step=99",
    "--n_best=3": "n_best",
    "--init_checkpoint=gone": "gone",
    "--init_checkpoint=": "--bert_config_file",
    "--vocab_file=gone.txt": "gone.txt",
    "--output_dir=v1.json": "--output_dir … v1.json",
    "--output_dir=model": "model holds a model",
    "--output_dir=v1 --max_answer_length=9 --seed=1": "seed 12345",
    "--output_dir=v2": "v2 holds a run with",
    "--output_dir=seeds": "seeds holds a model",
    "--output_dir=locked": "another process",
}
BAD_ALONE = {
    "--init_checkpoint=v2 --predict_file=v2.json": "--do_train … --do_predict",
    "--do_predict --init_checkpoint=v2": "--dev_file",
    "--do_eval --init_checkpoint=v2": "--dev_file",
    "--do_eval --init_checkpoint=v2 --predict_file=asked.json": "have no answers",
    f"{ASK} --output_dir= --init_checkpoint=v2": "--output_dir",
    ASK: "new-",
    f"{ASK} --init_checkpoint=gone": "gone",
    f"{ASK_V1} --init_checkpoint=model": "model is not fine-tuned … cls/squad/",
    f"{ASK} --init_checkpoint=classifier": "task.json … squad … 'classifier'",
    f"{ASK} --init_checkpoint=damaged": "damaged/task.json",
    f"{ASK} --init_checkpoint=astray": "not finite",
    f"{ASK} --init_checkpoint=v2 --max_seq_length=65": "65 … 64 tokens",
    f"{ASK} --init_checkpoint=v2 --max_query_length=61": "max_query_length 61",
    f"{ASK} --init_checkpoint=v2 --output_dir=v1.json": "--output_dir … v1.json",
    f"{ASK} --init_checkpoint=v2 --predict_file=cut.json": "cut.json is not a SQuAD",
    f"{ASK} --init_checkpoint=v2 --predict_file=some.json": 'q3 … no "answers"',
    f"{ASK} --init_checkpoint=v1": "--version_2_with_negative",
    f"{ASK} --ensemble_dirs=v2,gone": "gone",
    **{
        f"{ASK} --ensemble_dirs=v2 {flag}": f"{flag.split('=')[0]} … --ensemble_dirs"
        for flag in (
            "--model=v2",
            "--bert_config_file=v2/bert_config.json",
            "--vocab_file=v2/vocab.txt",
        )
    },
    f"{ASK} --ensemble_dirs=v2 --nodo_lower_case": "--do_lower_case",
    f"{ASK} --ensemble_dirs=v2,model": "model is not fine-tuned",
    f"{ASK} --ensemble_dirs=v2,cased": "--ensemble_dirs … casing",
    f"{SEEDS} --output_dir=v1": "v1 contains another run",
}
BAD = {**{f"{V1} {more}": words for more, words in BAD_V1.items()}, **BAD_ALONE}


def write_files(folder):
    """Write the SQuAD files, good and bad ones."""
    mini = json.loads((MINI / "squad.json").read_text("utf-8"))
    shutil.copy(MINI / "squad.json", folder / "v2.json")

    def changed(name, change):
        content = copy.deepcopy(mini)
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for qa in list(paragraph["qas"]):
                    change(qa, paragraph)
        (folder / name).write_text(json.dumps(content))

    def version_1(qa, paragraph):
        if qa.pop("is_impossible"):
            paragraph["qas"].remove(qa)

    def blank(qa, paragraph):
        paragraph["context"] = " "
        qa.update(is_impossible=True, answers=[])

    def several(qa, paragraph):
        version_1(qa, paragraph)
        qa["answers"] += [{"text": "no answer", "answer_start": 0}]

    changed("v1.json", version_1)
    changed("blank.json", blank)
    changed("asked.json", lambda qa, _: qa.pop("answers"))
    changed("some.json", lambda qa, _: qa["id"] == "q3" and qa.pop("answers"))
    changed("two.json", several)
    changed("half.json", lambda qa, _: qa.update(question="\ud83d"))
    changed("same.json", lambda qa, _: qa.update(id="q0"))
    text = (folder / "v1.json").read_text()
    (folder / "v1.json.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "cut.json.gz").write_bytes(gzip.compress(text.encode())[:-20])
    for name, content in {
        "cut": text[:1000],
        "empty": "",
        "list": "[]",
        "none": '{"data": []}',
        "deep": "[" * 100_000,
        # More digits than Python converts to a number.
        "huge": text.replace("193", "1" * 5000),
    }.items():
        (folder / f"{name}.json").write_text(content)


# Random logits with the spread of a trained model.
LOUD = dataclasses.replace(CONFIG, initializer_range=0.3)


def write_models(folder):
    """Write initial models, and fine-tuned models without training."""
    keras.utils.set_random_seed(1)
    task = SquadTask(64, 24, 24, Decoding(version_2_with_negative=True))
    astray = SpanModel(CONFIG)
    astray.cls.squad.output_bias.assign([np.nan, 0.0])
    labels = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 24)
    for name, model, lower, written in (
        ("model", PretrainingModel(CONFIG), True, None),
        ("original", SpanModel(CONFIG), True, None),
        ("astray", astray, True, task),
        ("damaged", SpanModel(CONFIG), True, task),
        ("cased", SpanModel(CONFIG), False, task),
        ("classifier", ClassificationModel(CONFIG, 2), True, labels),
        ("random", SpanModel(LOUD), True, task),
    ):
        (folder / name).mkdir()
        model_directory.save(str(folder / name), model, str(tiny_model.VOCAB), lower)
        if written:
            write_task(str(folder / name), written, 7)
    (folder / "damaged" / "task.json").write_text('{"task": "squad"}')
    # The original leaves only weights, named by their step.
    for path in list((folder / "original").iterdir()):
        if path.name.startswith("bert_model."):
            path.rename(
                path.with_name(path.name.replace("bert_model.ckpt", "model.ckpt-7"))
            )
        else:
            path.unlink()
