"""Models from Hugging Face, through the cache of `huggingface_hub`.

The library reads HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the proxy
variables. It locks files against other processes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from official_bert import files
from official_bert.checkpoints.hub import hugging_face_errors, storage, wanted_files
from official_bert.checkpoints.hub.local_model import LocalModel
from official_bert.checkpoints.huggingface import config_json
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.errors import UserError

# Display names of models that users often confuse with BERT.
FAMILIES = {
    "albert": "ALBERT",
    "camembert": "CamemBERT",
    "deberta": "DeBERTa",
    "deberta-v2": "DeBERTa",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "gpt2": "GPT-2",
    "llama": "Llama",
    "modernbert": "ModernBERT",
    "mpnet": "MPNet",
    "roberta": "RoBERTa",
    "t5": "T5",
    "xlm-roberta": "XLM-RoBERTa",
}


def find(
    name: str, repository: str, revision: str = "main", hint: str = ""
) -> LocalModel:
    """Return the `LocalModel` of a repository; download it if the cache lacks it.

    Args:
      name: the name used in messages.
      repository: "owner/name", or an old name without an owner.
      revision: branch, tag or commit.
      hint: sentence for a repository that does not exist.

    Raises:
      UserError: the model cannot be downloaded, or is not a BERT model.
    """
    with _explained(name, repository, revision, hint):
        model = _cached(name, repository, revision)
        if model is None:
            _download(name, repository, revision)
            model = _cached(name, repository, revision)
    if model is None:
        raise UserError(
            f"{name} is incomplete: its index lists weight files that do not "
            "exist. Choose another revision or model."
        )
    return model


def _cached(name, repository, revision):
    """Return the `LocalModel` in the cache, or None if a file is missing."""
    import huggingface_hub
    from huggingface_hub import constants

    for config in wanted_files.CONFIGS:
        path = huggingface_hub.try_to_load_from_cache(
            repository, config, revision=revision
        )
        if isinstance(path, str):
            folder = os.path.dirname(path)
            found = wanted_files.find_complete(folder)
            if not found:
                return None
            source = f"{constants.ENDPOINT}/{repository}"
            return LocalModel(name, folder, source, os.path.basename(folder), found)
    return None


def _download(name, repository, revision):
    """Download the files of a model: its config first, its weights last."""
    import huggingface_hub
    from huggingface_hub import constants

    info = huggingface_hub.HfApi().model_info(
        repository,
        revision=revision,
        files_metadata=True,
        timeout=constants.HF_HUB_ETAG_TIMEOUT,
    )
    sizes = {each.rfilename: each.size or 0 for each in info.siblings or ()}
    config = next((each for each in wanted_files.CONFIGS if each in sizes), None)
    if config is None:
        raise UserError(
            f"{name} has no config.json, so this package cannot read it. "
            "Choose another model."
        )
    # Pass the revision's name, so that the library stores its commit.
    path = huggingface_hub.hf_hub_download(repository, config, revision=revision)
    folder = os.path.dirname(path)
    check_is_bert(name, folder)
    chosen = wanted_files.choose(sizes)
    if not chosen:
        raise UserError(
            f"{name} has no weights that this package can read: "
            "model.safetensors, tf_model.h5, pytorch_model.bin, a KerasHub "
            "preset or bert_model.ckpt."
        )
    if not {*chosen} & {*wanted_files.VOCABULARIES}:
        raise UserError(
            f"{name} has no vocabulary that this package can read: vocab.txt or "
            "tokenizer.json. Download the model into a folder and add its "
            "vocab.txt."
        )
    missing = [each for each in chosen if not os.path.exists(f"{folder}/{each}")]
    storage.check_space(
        constants.HF_HUB_CACHE, sum(sizes[each] for each in missing), name, "HF_HOME"
    )
    for each in missing:
        huggingface_hub.hf_hub_download(
            repository, each, revision=os.path.basename(folder)
        )


def check_is_bert(name: str, directory: str) -> None:
    """Raise `UserError` if the config belongs to another model than BERT.

    Args:
      name: the model's name, for messages.
      directory: holds `config.json`; other files are not needed.
    """
    if is_preset(directory):
        path = os.path.join(directory, "config.json")
        kind = files.read_json(path, "a KerasHub config").get("class_name")
        kind = kind if kind != "BertBackbone" else None
    else:
        path = os.path.join(directory, "config.json")
        path = path if os.path.exists(path) else f"{directory}/bert_config.json"
        kind = files.read_json(path, "a config").get("model_type")
        kind = FAMILIES.get(str(kind), kind) if kind != "bert" else None
    if kind:
        article = "an" if str(kind)[0] in "AEIOUaeiou" else "a"
        raise UserError(
            f"{name} is {article} {kind} model; this package reads only BERT. "
            "`official-bert models` lists the names."
        )
    if not is_preset(directory):
        # Raises for BERT variants with other computations.
        config_json.read(directory)


@contextmanager
def _explained(name: str, repository: str, revision: str, hint: str) -> Iterator[None]:
    """Convert the library's errors to `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        message = hugging_face_errors.explain(error, name, repository, revision, hint)
        if message is None:
            raise
        raise UserError(message) from error
