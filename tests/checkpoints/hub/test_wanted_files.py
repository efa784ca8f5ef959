"""The choice of files to download, and the test for complete models."""

import json

import pytest

from official_bert.checkpoints.hub import wanted_files

HUGGING_FACE = ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"]
GOOGLE = ["bert_config.json", "vocab.txt"]
INDEX, DATA = "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"
PRESET = ["config.json", "assets/tokenizer/vocabulary.txt", "tokenizer.json"]
USELESS = [
    "README.md",
    ".gitattributes",
    "flax_model.msgpack",
    "rust_model.ot",
    "onnx/model.onnx",
    "coreml/model.mlpackage/weights.bin",
    "optimizer.pt",
    "metadata.json",
    "preprocessor.json",
    "special_tokens_map.json",
]
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
CASES = {
    "all formats": (
        [*HUGGING_FACE, "model.safetensors", "tf_model.h5", "pytorch_model.bin"],
        [*HUGGING_FACE, "model.safetensors"],
    ),
    "h5 and bin": (
        [*HUGGING_FACE, "pytorch_model.bin", "tf_model.h5"],
        [*HUGGING_FACE, "tf_model.h5"],
    ),
    "shards": (
        [*HUGGING_FACE, "model.safetensors.index.json", *SHARDS],
        [*HUGGING_FACE, *SHARDS, "model.safetensors.index.json"],
    ),
    "a task": (
        ["task.json", *GOOGLE, INDEX, DATA],
        ["task.json", *GOOGLE, DATA, INDEX],
    ),
    "a run": (
        [
            *GOOGLE,
            *(f"model.ckpt-{n}.index" for n in (9, 10)),
            *(f"model.ckpt-{n}.data-00000-of-00001" for n in (9, 10)),
        ],
        [*GOOGLE, "model.ckpt-10.data-00000-of-00001", "model.ckpt-10.index"],
    ),
    "Model Garden": (
        ["params.yaml", "vocab.txt", "ckpt-1.index", "ckpt-1.data-00000-of-00001"],
        ["params.yaml", "vocab.txt", "ckpt-1.data-00000-of-00001", "ckpt-1.index"],
    ),
    "a preset": ([*PRESET, "model.weights.h5"], [*PRESET, "model.weights.h5"]),
    "a preset with a task": (
        [*PRESET, "model.weights.h5", "task.json", "task.weights.h5"],
        [*PRESET, "task.json", "task.weights.h5", "model.weights.h5"],
    ),
    "no weights": (HUGGING_FACE, []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_files_of_a_listing(case):
    listing, wanted = CASES[case]
    chosen = wanted_files.choose([*USELESS, *listing])
    assert {*chosen} == {*wanted} and len(chosen) == len(wanted)
    # The file that completes the model comes last.
    assert chosen[-1:] == wanted[-1:]


@pytest.mark.parametrize(
    "lost", ["config.json", "vocabulary", "model.safetensors.index.json", SHARDS[1]]
)
def test_a_model_is_complete_with_all_necessary_files(tmp_path, lost):
    names = [*HUGGING_FACE, *SHARDS]
    for name in names:
        (tmp_path / name).write_text("{}")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict(zip("ab", SHARDS, strict=True))}))
    assert {*wanted_files.find_complete(tmp_path)} == {*names, index.name}
    for name in ["vocab.txt", "tokenizer.json"] if lost == "vocabulary" else [lost]:
        (tmp_path / name).unlink()
    assert wanted_files.find_complete(tmp_path) == ()


def test_files_in_folders_are_listed(tmp_path):
    (tmp_path / "assets" / "tokenizer").mkdir(parents=True)
    (tmp_path / "assets" / "tokenizer" / "vocabulary.txt").touch()
    (tmp_path / "config.json").touch()
    wanted = {"config.json", "assets/tokenizer/vocabulary.txt"}
    assert wanted_files.listed(tmp_path) == wanted
