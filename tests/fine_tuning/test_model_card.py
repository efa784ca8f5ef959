"""A model card contains the facts of the model's files, and keeps people's edits."""

import json

import pytest
import tiny_model
import warm_python
from places import ROOT

from official_bert.checkpoints import any_format
from official_bert.config import BertConfig
from official_bert.fine_tuning import model_card

SETTINGS = {
    "init_checkpoint": None,
    "continue_from": None,
    "train_batch_size": 16,
    "optimizer": "adam",
    "bias_correction": False,
    "learning_rate": 1e-4,
    "num_train_steps": 2000,
    "num_warmup_steps": 200,
    "seed": 12,
    "num_records": 4100,
}
ENVIRONMENT = {
    "replicas": 2,
    "device": "A | B",
    "precision": "float32",
    "official_bert": "1",
    "tensorflow": "2",
    "keras": "3",
    "python": "4",
}
TASK = {
    "task": "classifier",
    "name": "MRPC",
    "labels": ["no", "yes"],
    "max_seq_length": 24,
    "global_step": 150,
}
DATA = {"input_file": "/a/b/one.tfrecord,/a/two.tfrecord", "data_dir": "/c/glue/"}


@pytest.fixture
def directory(tmp_path):
    return tiny_model.write(tmp_path / "model")


def write_run(directory, **changes):
    history = [{"from_step": 0, "environment": ENVIRONMENT}]
    manifest = {"settings": SETTINGS | changes, "history": history}
    (directory / "training.json").write_text(json.dumps(manifest))


def card(directory, data=None):
    assert model_card.write(str(directory), data or {})
    return (directory / "README.md").read_text()


def rows(text):
    """Return name -> value of all tables."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return {cell[0]: cell[1] for cell in cells if len(cell) == 2}


def test_a_pretrained_model(directory):
    write_run(directory)
    text = card(directory, DATA)
    assert "\n# BERT, pre-trained on masked words and next sentences\n" in text
    found, config = rows(text), tiny_model.MINI_CONFIG
    assert found["layers"] == str(config.num_hidden_layers)
    assert found["vocabulary"] == f"{config.vocab_size} WordPiece tokens, lower-cased"
    numbers = sum(value.size for value in tiny_model.tensors().values())
    assert found["parameters"] == f"{numbers:,}, including heads"
    assert found["started from"] == "random weights"
    assert found["training steps"] == "2,000"
    assert found["learning rate"] == "0.0001, warm-up over 200, then linear to 0"
    assert (found["seed"], found["batch size (sequences)"]) == ("12", "16")
    assert found["devices"] == r"2 × A \| B"
    assert found["training records"] == "4,100"
    assert found["`--input_file`"] == "one.tfrecord, two.tfrecord"
    assert found["`--data_dir`"] == "glue"
    assert "License" in text and "fill_mask.py --model=THIS_FOLDER" in text
    assert "## Scores" not in text and str(directory) not in text and "/a/" not in text


def test_a_pretraining_that_ended_early(directory):
    write_run(directory, init_checkpoint="base", optimizer="lamb")
    for step in (500, 900):
        (directory / f"model.ckpt-{step}.index").touch()
    found = rows(card(directory))
    assert (found["training steps"], found["started from"]) == ("900 of 2,000", "base")
    assert found["optimizer"] == "lamb"


def test_a_fine_tuned_model(directory):
    write_run(directory, bias_correction=True)
    (directory / "task.json").write_text(json.dumps(TASK))
    (directory / "eval_results.txt").write_text("eval_f1 = 0.75\nloss = 0.5\n")
    text = card(directory)
    assert "\n# BERT, fine-tuned: text classification (MRPC)\n" in text
    assert "\nLabels: no, yes.\nMaximum length: 24 tokens.\n" in text
    found = rows(text)
    assert found["training steps"] == "150 of 2,000"
    assert found["optimizer"] == "adam, with bias correction"
    assert (found["eval_f1"], found["loss"]) == ("0.75", "0.5")
    assert "predict.py --model=THIS_FOLDER" in text and "fill_mask" not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0.8578431372549019", "0.8578"),
        ("0.000123456", "0.0001235"),
        ("91.26", "91.26"),
        ("-0.5", "-0.5"),
        ("11460", "11460"),
        ("nan", "nan"),
    ],
)
def test_scores_have_four_significant_digits(directory, value, shown):
    (directory / "eval_results.txt").write_text(f"score = {value}\n")
    assert rows(card(directory))["score"] == shown


def test_many_labels(directory):
    labels = [f"L{number}" for number in range(300)]
    (directory / "task.json").write_text(json.dumps(TASK | {"labels": labels}))
    text = card(directory)
    assert "L19, … (300 in all)" in text and "L20" not in text


def test_a_model_without_a_run(directory):
    assert "updates" not in rows(card(directory))


def test_it_is_no_obstacle_to_loading(directory):
    card(directory)
    with any_format.opened(str(directory)) as checkpoint:
        assert checkpoint.vocab_file


def test_written_anew_while_nobody_has_changed_it(directory):
    first = card(directory)
    assert card(directory) == first
    write_run(directory)
    assert card(directory) != first
    assert sorted(path.name for path in directory.glob("README*")) == ["README.md"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "x",
        lambda text: text.replace("License", "Licence"),
        lambda text: text.partition("\n")[2],
        lambda text: "Mine.\n",
        lambda text: "",
        lambda text: text.replace("\n", "\r\n"),
    ],
)
def test_what_people_wrote_stays(directory, change):
    changed = change(card(directory)).encode()
    (directory / "README.md").write_bytes(changed)
    write_run(directory)
    assert not model_card.write(str(directory), {})
    assert (directory / "README.md").read_bytes() == changed


def test_what_is_no_card_stays(directory):
    (directory / "README.md").write_bytes(b"\xff\xfe")
    assert not model_card.write(str(directory), {})
    (directory / "README.md").unlink()
    (directory / "README.md").symlink_to("nowhere")
    assert not model_card.write(str(directory), {})


def test_a_left_to_right_model_is_not_asked_for_masks(directory):
    path = directory / "bert_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"causal_attention": True}))
    text = card(directory)
    assert "# BERT, pre-trained left to right" in text
    assert "fill_mask.py" not in text and "extract_features.py" in text


def test_the_title_says_what_was_learned():
    config = BertConfig(vocab_size=9)
    title = model_card._title_of_pretrained
    names = (
        "bert/pooler/dense/bias",
        "cls/predictions/output_bias",
        "cls/seq_relationship/output_bias",
    )
    titles = [title(config, names[:count]) for count in (1, 2, 3)]
    assert titles == [
        "BERT encoder",
        "BERT, pre-trained on masked words",
        "BERT, pre-trained on masked words and next sentences",
    ]
    assert title(config, [names[0], "output_bias"]) == "BERT with a task head"


def convert(directory, there, to):
    """Convert a checkpoint, and return the output."""
    arguments = [f"--from={directory}", f"--to={there}", f"--format={to}"]
    done = warm_python.run([ROOT / "run_scripts" / "convert_checkpoint.py", *arguments])
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("to", "wanted"),
    [("google", "bert_model.ckpt"), ("huggingface", "model.safetensors")],
)
@pytest.mark.parametrize("part", ["", "/bert_model.ckpt"])
def test_a_converted_model_has_a_card(directory, tmp_path, to, wanted, part):
    """The card names the task of a fine-tuned model."""
    there = tmp_path / to
    convert(f"{directory}{part}", there, to)
    text = (there / "README.md").read_text()
    assert (
        wanted in text
        and f"| `--model` | {(part or str(directory)).split('/')[-1]} |" in text
    )
    assert not (there / "task.json").exists()
    (directory / "task.json").write_text(json.dumps(TASK))
    there = tmp_path / "fine_tuned"
    convert(f"{directory}{part}", there, to)
    assert json.loads((there / "task.json").read_text()) == TASK
    assert "fine-tuned: text classification" in (there / "README.md").read_text()


def test_a_preset_has_no_task_of_ours(directory, tmp_path):
    (directory / "task.json").write_text(json.dumps(TASK))
    told = convert(directory, tmp_path / "preset", "keras_hub")
    assert "task.json is not copied" in told
    text = (tmp_path / "preset" / "README.md").read_text()
    assert "a KerasHub preset" in text and "fine-tuned:" not in text
