"""Read and write KerasHub presets.

A preset is a directory written by KerasHub's `save_to_preset`. It can store
only one dropout rate, one head and one activation, and no next-sentence or
SQuAD head. Presets written here store the rest in files that KerasHub ignores:
`bert_config.json` has the full config, and `other_weights.safetensors` has all
other tensors under Google's names. Writing and then reading a preset therefore
gives identical bytes.

KerasHub always computes the tanh GELU in the encoder, and in the masked-LM head
the erf GELU with ε 1e-5.
"""

import json
import os
import warnings

import numpy as np
import safetensors
from safetensors.numpy import save_file

from official_bert import files
from official_bert.checkpoints import google
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.keras_hub import bert_backbone
from official_bert.checkpoints.keras_hub.detection import CONFIG_FILE
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization.vocabulary import guess_do_lower_case, load_vocab

# KerasHub's files in a preset.
TASK_FILE = "task.json"
TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = os.path.join("assets", "tokenizer", "vocabulary.txt")
WEIGHTS_FILE = "model.weights.h5"
SHARDS_FILE = "model.weights.json"
TASK_WEIGHTS_FILE = "task.weights.h5"
# Our additional file, next to `google.CONFIG_FILE`.
OTHER_WEIGHTS_FILE = "other_weights.safetensors"

MASKED_LM = {
    "cls/predictions/transform/dense/kernel",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/output_bias",
}

HEAD_NOTE = (
    "KerasHub's masked-LM head always uses the erf GELU and an epsilon of "
    "1e-5, so word scores differ slightly."
)

ACCENTS_NOTE = (
    "The KerasHub tokenizer lowercases but keeps accents. Here do_lower_case "
    "also removes accents, as in the original."
)


def open_preset(directory: str | os.PathLike[str], given_path: str) -> Checkpoint:
    """Open a preset, with the head of its task if it has one.

    Returns:
      `Checkpoint` with float32 weights in memory. Messages show `given_path`,
      which the user gave.

    Raises:
      UserError: the preset is not a `BertBackbone`, or a file is missing,
        damaged or contradicts another.
    """
    settings = files.read_json(
        os.path.join(directory, CONFIG_FILE), "a KerasHub config"
    )
    notes = _check_kind(settings, given_path)
    config, is_ours = _read_config(directory, settings)
    backbone = bert_backbone.new_backbone(config)
    weights_file = WEIGHTS_FILE
    if not _exists(directory, WEIGHTS_FILE) and _exists(directory, SHARDS_FILE):
        weights_file = SHARDS_FILE
    _load(backbone.load_weights, directory, weights_file, given_path)
    task = _read_task(directory, given_path, backbone, notes)
    if hasattr(task, "masked_lm_head") and not is_ours:
        notes.append(HEAD_NOTE)
    vocab_file = os.path.join(directory, VOCAB_FILE)
    casing = _read_casing(directory, notes)
    others, absent = _read_others(directory)
    variables = bert_backbone.encoder_variables(backbone) | _head_variables(task)
    for name in absent:
        # Nonzero values were trained by KerasHub after we wrote zeros.
        if not np.any(variables[name]):
            del variables[name]
    return bert_backbone.checkpoint_of(
        given_path,
        config,
        variables,
        others,
        vocab_file if os.path.exists(vocab_file) else None,
        casing,
        notes,
    )


def write_preset(
    directory: str | os.PathLike[str], checkpoint: Checkpoint
) -> list[str]:
    """Write a preset for KerasHub's `from_preset` and our `open_preset`.

    With a vocabulary, the preset contains a tokenizer. Its task is
    `BertTextClassifier` for a classifier, else `BertMaskedLM` if there is a
    masked-LM head. `bert_config.json` and `other_weights.safetensors` store the
    rest. The directory must exist and be empty.

    Returns:
      sentences about values that KerasHub ignores or computes differently.

    Raises:
      UserError: see `bert_backbone.to_backbone`.
    """
    backbone = bert_backbone.to_backbone(checkpoint)
    assert checkpoint.config is not None
    task = _new_task(checkpoint, backbone)
    (task or backbone).save_to_preset(directory, max_shard_size=None)
    if checkpoint.vocab_file is None:
        google.write_casing(directory, checkpoint.do_lower_case)
    else:
        if task is None:
            _new_tokenizer(checkpoint).save_to_preset(directory)
        # Copy the bytes: KerasHub would strip white space from tokens.
        files.copy(checkpoint.vocab_file, os.path.join(directory, VOCAB_FILE))
    variables = bert_backbone.encoder_variables(backbone) | _head_variables(task)
    others = [name for name in checkpoint.shapes if name not in variables]
    absent = [name for name in variables if name not in checkpoint.shapes]
    if others or absent:
        tensors = {name: np.ascontiguousarray(checkpoint.read(name)) for name in others}
        other_file = os.path.join(directory, OTHER_WEIGHTS_FILE)
        with files.atomic_path(other_file) as temporary:
            save_file(tensors, temporary, {"absent": json.dumps(absent)})
    config_file = os.path.join(directory, google.CONFIG_FILE)
    files.write_text(config_file, checkpoint.config.to_json_string())
    return _writing_notes(checkpoint, task, others, absent)


def _exists(directory, name):
    return os.path.exists(os.path.join(directory, name))


def _check_kind(settings, path):
    """Raise `UserError` unless a preset is a BERT model; return notes."""
    kind = settings.get("class_name")
    if kind != "BertBackbone":
        raise UserError(
            f"{path} is a KerasHub preset of a {kind}, not of a BERT model. "
            "Give a preset of a BertBackbone."
        )
    policy = (settings.get("config") or {}).get("dtype")
    if isinstance(policy, dict):
        if policy.get("class_name") != "DTypePolicy":
            raise UserError(
                f"{path} is a quantized KerasHub preset. Give the preset "
                "before quantization."
            )
        policy = policy.get("config", {}).get("name")
    if policy in ("float16", "bfloat16"):
        return [f"The {policy} weights were read as float32."]
    return []


def _read_config(directory, settings):
    """Return (`BertConfig`, whether it comes from our own file)."""
    config_file = os.path.join(directory, CONFIG_FILE)
    theirs = bert_backbone.config_from(settings.get("config") or {}, config_file)
    own_file = os.path.join(directory, google.CONFIG_FILE)
    if not os.path.exists(own_file):
        return theirs, False
    ours = BertConfig.from_json_file(own_file)
    for name in bert_backbone.SIZES:
        if getattr(ours, name) != getattr(theirs, name):
            raise UserError(
                f"{own_file} has {name} {getattr(ours, name)}, but "
                f"{CONFIG_FILE} has {getattr(theirs, name)}. If KerasHub "
                f"rewrote the preset, remove {google.CONFIG_FILE} and "
                f"{OTHER_WEIGHTS_FILE}."
            )
    return ours, True


def _load(load, directory, name, path):
    """Call KerasHub's `load` for a file of a preset; explain its errors."""
    if not _exists(directory, name):
        raise UserError(f"{path} has no {name}. Copy the complete preset.")
    try:
        with warnings.catch_warnings():
            # Keras also raises an error for variables that it misses.
            warnings.simplefilter("ignore")
            load(os.path.join(directory, name))
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:")
        raise UserError(
            f"{path}: {name} is damaged or belongs to another model ({reason})."
        ) from error


def _read_task(directory, path, backbone, notes):
    """Return KerasHub's task with its head, or None; may append notes."""
    import keras_hub

    if not _exists(directory, TASK_FILE):
        return None
    settings = files.read_json(os.path.join(directory, TASK_FILE), "a KerasHub task")
    kind = settings.get("class_name")
    if kind == "BertMaskedLM":
        task = keras_hub.models.BertMaskedLM(backbone, compile=False)
    elif kind in ("BertTextClassifier", "BertClassifier"):
        classes = (settings.get("config") or {}).get("num_classes")
        if not isinstance(classes, int):
            raise UserError(
                f"{path}: {TASK_FILE} has no num_classes. Copy the complete preset."
            )
        task = keras_hub.models.BertTextClassifier(backbone, classes, compile=False)
    else:
        notes.append(f"The task is a {kind}; only its encoder was read.")
        return None
    _load(task.load_task_weights, directory, TASK_WEIGHTS_FILE, path)
    return task


def _read_casing(directory, notes):
    """Return whether the tokenizer lowercases, or None; may append notes."""
    if not _exists(directory, TOKENIZER_FILE):
        return google.read_casing(directory)
    path = os.path.join(directory, TOKENIZER_FILE)
    settings = files.read_json(path, "a KerasHub tokenizer").get("config") or {}
    if settings.get("lowercase") and not settings.get("strip_accents"):
        notes.append(ACCENTS_NOTE)
    return settings.get("lowercase")


def _new_tokenizer(checkpoint):
    import keras_hub

    vocab = list(load_vocab(checkpoint.vocab_file))
    lower = checkpoint.do_lower_case
    if lower is None:
        lower = guess_do_lower_case(vocab)
    # KerasHub keeps accents by default; an uncased vocabulary has no accents.
    return keras_hub.models.BertTokenizer(vocab, lowercase=lower, strip_accents=lower)


def _new_task(checkpoint, backbone):
    """Return KerasHub's task with the checkpoint's head, or None if it has no head."""
    import keras_hub

    models, shapes = keras_hub.models, checkpoint.shapes
    if len(shapes.get("output_weights", ())) == 2 and "output_bias" in shapes:
        kind = models.BertTextClassifier
        preprocessor = models.BertTextClassifierPreprocessor
        options = {"num_classes": shapes["output_weights"][0]}
    elif shapes.keys() >= MASKED_LM:
        kind, options = models.BertMaskedLM, {}
        preprocessor = models.BertMaskedLMPreprocessor
    else:
        return None
    if checkpoint.vocab_file:
        length = min(512, checkpoint.config.max_position_embeddings)
        tokenizer = _new_tokenizer(checkpoint)
        options["preprocessor"] = preprocessor(tokenizer, sequence_length=length)
    task = kind(backbone, **options)
    bert_backbone.assign(_head_variables(task), checkpoint)
    return task


def _head_variables(task):
    """Return Google's name -> variable of a task's head; {} for None."""
    if hasattr(task, "masked_lm_head"):
        head = task.masked_lm_head
        layers = {
            "cls/predictions/transform/dense": head._intermediate_dense,
            "cls/predictions/transform/LayerNorm": head._intermediate_layer_norm,
        }
        variables = bert_backbone.layer_variables(layers)
        return variables | {"cls/predictions/output_bias": head._bias}
    if hasattr(task, "output_dense"):
        head = task.output_dense
        return {"output_weights": head.kernel, "output_bias": head.bias}
    return {}


def _writing_notes(checkpoint, task, others, absent):
    config, notes = checkpoint.config, []
    if config.hidden_act == "gelu_erf":
        notes.append(
            "The model was trained with the erf GELU. KerasHub computes the "
            "tanh GELU, so its hidden states differ by some thousandths."
        )
    if hasattr(task, "masked_lm_head"):
        notes.append(HEAD_NOTE)
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append(
            "KerasHub has one dropout rate. In training it applies "
            f"{config.hidden_dropout_prob} to the attention too, instead of "
            f"{config.attention_probs_dropout_prob}."
        )
    if absent:
        notes.append(
            f"The checkpoint has no {', '.join(absent)}; KerasHub sets these to 0."
        )
    if others:
        notes.append(
            f"KerasHub cannot store {', '.join(others)}; they are in "
            f"{OTHER_WEIGHTS_FILE}."
        )
    return notes


def _read_others(directory):
    """Return (other tensors, names of variables missing in the checkpoint)."""
    path = os.path.join(directory, OTHER_WEIGHTS_FILE)
    if not os.path.exists(path):
        return {}, []
    try:
        with safetensors.safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {}).get("absent", "[]"))
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is damaged ({error}). Copy the complete preset again."
        ) from error
