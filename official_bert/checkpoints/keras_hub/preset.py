"""Read and write KerasHub presets.

A preset is the directory that KerasHub's `save_to_preset` writes. It holds less
than a checkpoint may: one dropout rate, no choice of activation, no next-sentence
or SQuAD head, one task. What it has no place for, a preset of ours has in files
that KerasHub does not look at: `bert_config.json` is the whole config, and
`other_weights.safetensors` has all other tensors, under Google's names. So
writing and reading a preset gives the same bytes.

KerasHub computes the tanh GELU in the encoder, whatever a model was trained with,
and in its masked-LM head the erf GELU with ε 1e-5.
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
# Ours, besides `google.CONFIG_FILE`.
OTHER_WEIGHTS_FILE = "other_weights.safetensors"

MASKED_LM = {
    "cls/predictions/transform/dense/kernel",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/output_bias",
}

HEAD_NOTE = (
    "KerasHub's masked-LM head has the erf GELU and an epsilon of 1e-5, whatever "
    "the encoder has, so scores of words differ a little."
)

ACCENTS_NOTE = (
    "Its KerasHub tokenizer lower-cases and keeps accents; here, as in the original, "
    "do_lower_case removes them too."
)


def open_preset(directory: str | os.PathLike[str], given_path: str) -> Checkpoint:
    """Open a preset, with the head of its task if it has one.

    Returns:
      `Checkpoint`; its weights are in memory, in float32. Messages name
      `given_path`, what the user gave.

    Raises:
      UserError: it is no `BertBackbone`, or a file is missing, damaged or
        contradicts another.
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
        # Anything else than our zeros was trained by KerasHub since.
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
    """Write a preset that KerasHub's `from_preset` loads, and `open_preset`.

    With a vocabulary there is a tokenizer in it; with a classifier it is one of
    `BertTextClassifier`, else with a masked-LM head one of `BertMaskedLM`. All
    else is in `bert_config.json` and `other_weights.safetensors`. The directory exists
    already and is empty.

    Returns:
      sentences on what KerasHub will do otherwise, or not see.

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
        # The bytes themselves: KerasHub writes tokens without their white space.
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
    """Raise `UserError` unless a preset is a BERT's; return notes."""
    kind = settings.get("class_name")
    if kind != "BertBackbone":
        raise UserError(
            f"{path} is a KerasHub preset of a {kind}, which is no BERT; give one of "
            "a BertBackbone."
        )
    policy = (settings.get("config") or {}).get("dtype")
    if isinstance(policy, dict):
        if policy.get("class_name") != "DTypePolicy":
            raise UserError(
                f"{path} is a quantised KerasHub preset; give the one it was made from."
            )
        policy = policy.get("config", {}).get("name")
    if policy in ("float16", "bfloat16"):
        return [f"Its {policy} weights were read as float32."]
    return []


def _read_config(directory, settings):
    """Return (`BertConfig`, whether it is from a file of ours)."""
    config_file = os.path.join(directory, CONFIG_FILE)
    theirs = bert_backbone.config_from(settings.get("config") or {}, config_file)
    own_file = os.path.join(directory, google.CONFIG_FILE)
    if not os.path.exists(own_file):
        return theirs, False
    ours = BertConfig.from_json_file(own_file)
    for name in bert_backbone.SIZES:
        if getattr(ours, name) != getattr(theirs, name):
            raise UserError(
                f"{own_file} says {name} {getattr(ours, name)} and {CONFIG_FILE} "
                f"{getattr(theirs, name)}; if the preset was written anew, remove "
                f"{google.CONFIG_FILE} and {OTHER_WEIGHTS_FILE}."
            )
    return ours, True


def _load(load, directory, name, path):
    """Call KerasHub's `load` for a file of a preset; say what is wrong with it."""
    if not _exists(directory, name):
        raise UserError(f"{path} lacks {name}; copy the whole preset.")
    try:
        with warnings.catch_warnings():
            # Whatever Keras did not find is an error besides.
            warnings.simplefilter("ignore")
            load(os.path.join(directory, name))
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:")
        raise UserError(
            f"{path}: {name} is damaged, or of another model ({reason})."
        ) from error


def _read_task(directory, path, backbone, notes):
    """Return KerasHub's task with its head, or None; may add to the notes."""
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
                f"{path}: its {TASK_FILE} states no num_classes; copy the whole preset."
            )
        task = keras_hub.models.BertTextClassifier(backbone, classes, compile=False)
    else:
        notes.append(f"Of its task, a {kind}, only the encoder was read.")
        return None
    _load(task.load_task_weights, directory, TASK_WEIGHTS_FILE, path)
    return task


def _read_casing(directory, notes):
    """Return whether the tokenizer lower-cases, or None; may add to the notes."""
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
    # By default KerasHub keeps accents; an uncased vocabulary has none.
    return keras_hub.models.BertTokenizer(vocab, lowercase=lower, strip_accents=lower)


def _new_task(checkpoint, backbone):
    """Return KerasHub's task with the checkpoint's head, or None without one."""
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
            "The model was trained with the erf GELU; KerasHub computes the tanh GELU, "
            "so hidden states differ there by some thousandths."
        )
    if hasattr(task, "masked_lm_head"):
        notes.append(HEAD_NOTE)
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append(
            f"KerasHub has one dropout rate: in training it is "
            f"{config.hidden_dropout_prob} there for the attention too, not "
            f"{config.attention_probs_dropout_prob}."
        )
    if absent:
        notes.append(
            f"The checkpoint lacks {', '.join(absent)}, which KerasHub has as 0."
        )
    if others:
        notes.append(
            f"KerasHub has no place for {', '.join(others)}: {OTHER_WEIGHTS_FILE} "
            "has them."
        )
    return notes


def _read_others(directory):
    """Return (other tensors, names of variables that the checkpoint has not)."""
    path = os.path.join(directory, OTHER_WEIGHTS_FILE)
    if not os.path.exists(path):
        return {}, []
    try:
        with safetensors.safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {}).get("absent", "[]"))
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}).") from error
