"""Conversions between all formats keep the bytes of every tensor."""

import pathlib

import pytest
import tiny_model

from official_bert.checkpoints import any_format, convert
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.export import sources
from official_bert.tasks.predictor import Predictor

FORMATS = list(convert.WRITERS)


def contents(path):
    with any_format.opened(path) as checkpoint:
        vocab = pathlib.Path(checkpoint.vocab_file).read_bytes()
        tensors = {n: v.tobytes() for n, v in checkpoint.tensors().items()}
        return tensors, checkpoint.config, vocab, checkpoint.do_lower_case


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_erf"])
@pytest.mark.parametrize("to", FORMATS)
def test_there_and_back(tmp_path, to, hidden_act):
    source = tiny_model.write(tmp_path / "source", hidden_act)
    convert.convert(str(source), str(tmp_path / "there"), to)
    checkpoint, _ = convert.convert(
        str(tmp_path / "there"), str(tmp_path / "back"), "google"
    )
    assert checkpoint.format == to
    before, after = contents(source), contents(tmp_path / "back")
    assert before[0] == after[0]
    assert before[1] == known_keys(after[1])
    assert before[2:] == after[2:]


def known_keys(config):
    """Return a config without keys that only one format has."""
    values = config.to_dict()
    return BertConfig.from_dict(
        {k: v for k, v in values.items() if k not in config.extra}
    )


@pytest.mark.parametrize("to", FORMATS)
def test_only_weights_and_what_belongs_to_them_are_written(tmp_path, to):
    """No optimizer state is written: at most 1.05 times 4 bytes per parameter."""
    source = tiny_model.write(
        tmp_path / "source",
        hidden_size=128,
        num_attention_heads=2,
        intermediate_size=4096,
    )
    convert.convert(str(source), str(tmp_path / "to"), to)
    with any_format.opened(source) as checkpoint:
        parameters = sum(value.size for value in checkpoint.tensors().values())
    endings = (".safetensors", ".h5", ".index", ".data-00000-of-00001")
    size = sum(
        path.stat().st_size
        for path in (tmp_path / "to").iterdir()
        if path.name.endswith(endings)
    )
    assert 4 * parameters <= size <= 1.05 * 4 * parameters


def test_existing_files_are_not_touched(tmp_path):
    source = tiny_model.write(tmp_path / "source")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "mine").write_text("mine")
    with pytest.raises(UserError, match="--to: .* is not an empty directory"):
        convert.convert(str(source), str(tmp_path / "to"), "huggingface")
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["mine"]


def test_nothing_is_left_of_a_conversion_that_fails(tmp_path, monkeypatch):
    source = tiny_model.write(tmp_path / "source")

    def fail(directory, checkpoint):
        open(f"{directory}/half", "w").close()
        raise UserError("It cannot be.")

    monkeypatch.setitem(convert.WRITERS, "google", fail)
    with pytest.raises(UserError, match="It cannot be"):
        convert.convert(str(source), str(tmp_path / "to"), "google")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_config_that_contradicts_the_weights(tmp_path):
    source = tiny_model.write(tmp_path / "source")
    config = tmp_path / "other.json"
    config.write_text(
        '{"vocab_size": 128, "hidden_size": 32, "num_attention_heads": 2}'
    )
    with pytest.raises(UserError, match="hidden_size is 16 in the checkpoint and 32"):
        convert.convert(
            str(source), str(tmp_path / "to"), "huggingface", config_file=str(config)
        )


def test_weights_alone_need_a_config(tmp_path):
    source = tiny_model.write(tmp_path / "source")
    (source / "bert_config.json").unlink()
    with pytest.raises(UserError, match="--bert_config_file"):
        convert.convert(str(source), str(tmp_path / "to"), "huggingface")


def test_a_model_without_vocabulary_says_so(tmp_path):
    source = tiny_model.write(tmp_path / "source")
    (source / "vocab.txt").unlink()
    _, notes = convert.convert(str(source), str(tmp_path / "to"), "google")
    assert any("no vocab.txt" in note for note in notes)


def test_a_preset_is_asked_and_exported_as_a_model_of_others(tmp_path):
    """A preset with KerasHub's own task.json is used and exported as a model."""
    source = tiny_model.write(tmp_path / "source")
    convert.convert(str(source), str(tmp_path / "preset"), "keras_hub")
    assert (tmp_path / "preset" / "task.json").exists()
    assert sources.predictor_of(str(tmp_path / "preset")) is None
    with pytest.raises(UserError, match="preset has no task.json|lacks"):
        Predictor(str(tmp_path / "preset"))
