"""Hugging Face's format: a directory with `config.json`, weights and a vocabulary.

PyTorch and transformers are not needed. Weights are in `model.safetensors`,
`tf_model.h5` or `pytorch_model.bin`. The first and the last may be split into
several files.
"""

import contextlib
import os
import re

import numpy as np
import safetensors
import safetensors.numpy

from official_bert import files
from official_bert.checkpoints.checkpoint import Checkpoint, StoredTensor
from official_bert.checkpoints.huggingface import (
    config_json,
    tensor_names,
    tokenizer_files,
    weight_files,
)
from official_bert.errors import UserError

WEIGHTS_FILE = "model.safetensors"


def is_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a directory or file holds weights in Hugging Face's format."""
    return weight_files.find_file(os.fspath(path)) is not None


def open_model(path: str | os.PathLike[str], given_path: str) -> Checkpoint:
    """Return the `Checkpoint` of a directory or file that `is_model` accepts.

    Messages show `given_path`; `path` may have been unpacked from it.

    Raises:
      UserError: the model is damaged, or not a BERT model.
    """
    path = os.fspath(path)
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    with _named(path, given_path):
        config_path, values = config_json.read(directory)
        weights = weight_files.find_file(path)
        assert weights is not None
        stored, layout = weight_files.open_tensors(weights)
        tensors, notes = _rename(stored, layout, weights)
        shapes = {
            name: tensor_names.google_shape(name, tensor.shape, layout)
            for name, tensor in tensors.items()
        }
        config = None
        if config_path is not None and values is not None:
            config = config_json.from_dict(values, config_path, shapes)
        tokenizer = tokenizer_files.read(directory)

    def read(name):
        with _named(path, given_path):
            array = tensors[name].read()
        if tensor_names.is_transposed(name, layout):
            array = array.T
        return np.array(array, np.float32, order="C").reshape(shapes[name])

    return Checkpoint(
        given_path,
        "huggingface",
        shapes,
        read,
        config,
        tokenizer.vocab_file,
        tokenizer.do_lower_case,
        (*notes, *tokenizer.notes),
    )


@contextlib.contextmanager
def _named(path, given_path):
    """Show the user's path in error messages of the block."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace(path, os.fspath(given_path))) from error


def _rename(stored, layout, weights):
    """Return (sorted dict of Google's name -> `StoredTensor`, notes)."""
    tensors: dict[str, StoredTensor] = {}
    notes: list[str] = []
    # Copies come last, after their originals.
    for own in sorted(stored, key=lambda own: own in tensor_names.COPIES):
        # Computed values, not weights.
        if re.search(r"(^|\.)embeddings\.(position|token_type)_ids$", own):
            continue
        name, tensor = tensor_names.google_name(own, layout), stored[own]
        if name in tensors:
            other = tensors[name]
            if (tensor.shape, tensor.dtype) == (other.shape, other.dtype) and (
                tensor.read().tobytes() == other.read().tobytes()
            ):
                continue
            notes.append(
                f"{own} should be a copy of {name}, but differs. It keeps its "
                "name and is not used."
            )
            name = own
        tensors[name] = tensor
    if not any(map(tensor_names.is_known, tensors)):
        first = f"; the first is {min(tensors)}" if tensors else ""
        raise UserError(
            f"{weights}: none of its {len(tensors)} tensors has a BERT "
            f"name{first}. Give a BERT checkpoint."
        )
    types = [str(tensor.dtype) for tensor in tensors.values()]
    notes += [
        f"{types.count(name)} of {len(types)} tensors have type {name}; they "
        "are read as float32."
        for name in sorted(set(types) - {"float32"})
    ]
    return {name: tensors[name] for name in sorted(tensors)}, notes


def write_model(directory: str | os.PathLike[str], checkpoint: Checkpoint) -> list[str]:
    """Write a model that transformers loads; the weights come last.

    The directory must exist. Without a vocabulary, no `vocab.txt` is written.

    Returns:
      an empty list: this format can store everything.

    Raises:
      UserError: the config is missing, the format cannot describe the model, or
        the checkpoint is damaged.
    """
    _require_possible(checkpoint)
    assert checkpoint.config is not None
    weights = os.path.join(directory, WEIGHTS_FILE)
    tensors = _torch_tensors(checkpoint)
    # A directory with weights counts as a model.
    if os.path.exists(weights):
        os.remove(weights)
    files.write_json(
        os.path.join(directory, config_json.CONFIG_FILE),
        config_json.to_dict(checkpoint.config, checkpoint.shapes),
    )
    tokenizer_files.write(
        directory, checkpoint.vocab_file, checkpoint.do_lower_case, checkpoint.config
    )
    try:
        with files.atomic_path(weights) as temporary:
            safetensors.numpy.save_file(tensors, temporary, {"format": "pt"})
    except safetensors.SafetensorError as error:
        raise UserError(f"Cannot write {weights}: {error}.") from error
    return []


def _require_possible(checkpoint):
    """Raise `UserError` unless transformers can compute the same model."""
    path = checkpoint.path
    if not checkpoint.config:
        raise UserError(
            f"{path} has no config, which Hugging Face's format needs. Put its "
            "bert_config.json or config.json into the same folder."
        )
    has_bilstm = any(name.startswith("bilstm") for name in checkpoint.shapes)
    for is_refused, what, lacking in (
        (
            checkpoint.config.causal_attention,
            "causal_attention",
            "BERT whose pooler uses the last token",
        ),
        (has_bilstm, "a BiLSTM on top", "BERT with a BiLSTM"),
    ):
        if is_refused:
            raise UserError(
                f"{path} has {what}, but Hugging Face's format has no "
                f"{lacking}. Keep the model in Google's format."
            )


def _torch_tensors(checkpoint):
    """Return a dict of PyTorch's name -> contiguous float32 array."""
    shapes, layout = checkpoint.shapes, tensor_names.TORCH
    prefix = config_json.architecture(shapes) != "BertModel"
    tensors = {}
    for name in shapes:
        array = checkpoint.read(name)
        if tensor_names.is_transposed(name, layout):
            array = array.T
        own = tensor_names.torch_name(name, prefix)
        if own in tensors:
            raise UserError(f"{checkpoint.path}: two tensors would get the name {own}.")
        tensors[own] = np.ascontiguousarray(array)
    return tensors
