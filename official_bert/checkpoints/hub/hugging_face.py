"""Models of Hugging Face, through the cache of `huggingface_hub`.

The library reads HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the proxy's
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

# How the models are called that are most often taken for a BERT.
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
      name: the name that messages use.
      repository: "owner/name", or one of the old names without an owner.
      revision: branch, tag or commit.
      hint: sentence for a repository that does not exist.

    Raises:
      UserError: it cannot be downloaded, or is not a BERT.
    """
    with _explained(name, repository, revision, hint):
        model = _cached(name, repository, revision)
        if model is None:
            _download(name, repository, revision)
            model = _cached(name, repository, revision)
    if model is None:
        raise UserError(
            f"{name} is not complete: its index names weights that it does not have. "
            "Choose another revision or model."
        )
    return model


def _cached(name, repository, revision):
    """Return the `LocalModel` in the cache, or None unless all its files are there."""
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
    """Download the files of a model, its config first and its weights last."""
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
            f"{name} has no config.json, so it is not a model that this package reads."
        )
    # With the revision's own name, so that the library remembers its commit.
    path = huggingface_hub.hf_hub_download(repository, config, revision=revision)
    folder = os.path.dirname(path)
    check_is_bert(name, folder)
    chosen = wanted_files.choose(sizes)
    if not chosen:
        raise UserError(
            f"{name} has no weights that this package reads: model.safetensors, "
            "tf_model.h5, pytorch_model.bin, a KerasHub preset or bert_model.ckpt."
        )
    if not {*chosen} & {*wanted_files.VOCABULARIES}:
        raise UserError(
            f"{name} has no vocabulary that this package reads: vocab.txt or "
            "tokenizer.json. Download the model into a folder, and add its vocab.txt."
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
    """Raise `UserError` for the config of another model than BERT.

    Args:
      name: of the model, for messages.
      directory: with a `config.json` and perhaps nothing else.
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
            f"{name} is {article} {kind} model; this package reads BERT. "
            "`official-bert models` lists names."
        )
    if not is_preset(directory):
        # It refuses variants of BERT that compute something else.
        config_json.read(directory)


@contextmanager
def _explained(name: str, repository: str, revision: str, hint: str) -> Iterator[None]:
    """Turn the library's errors into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        message = hugging_face_errors.explain(error, name, repository, revision, hint)
        if message is None:
            raise
        raise UserError(message) from error
