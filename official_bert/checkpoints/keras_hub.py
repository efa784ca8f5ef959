"""KerasHub presets, read and written, and `BertBackbone` in memory.

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
from official_bert.config import ORIGINAL_EPSILON, BertConfig
from official_bert.errors import UserError
from official_bert.tokenization.vocabulary import guess_do_lower_case, load_vocab

# KerasHub's files in a preset.
CONFIG_FILE = "config.json"
TASK_FILE = "task.json"
TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = os.path.join("assets", "tokenizer", "vocabulary.txt")
WEIGHTS_FILE = "model.weights.h5"
SHARDS_FILE = "model.weights.json"
TASK_WEIGHTS_FILE = "task.weights.h5"
# Ours, besides `google.CONFIG_FILE`.
OTHER_WEIGHTS_FILE = "other_weights.safetensors"

# What `registered_name` begins with; KerasHub was KerasNLP once.
PACKAGES = ("keras_hub>", "keras_nlp>")

# `BertConfig` -> `BertBackbone`. `dropout` is that of the attention as well.
SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}

POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")
MASKED_LM = (
    "cls/predictions/transform/dense/kernel",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/output_bias",
)
CLASSIFIER = ("output_weights", "output_bias")

ERF_NOTE = (
    "The model was trained with the erf GELU; KerasHub computes the tanh GELU, so "
    "hidden states differ there by some thousandths."
)
HEAD_NOTE = (
    "KerasHub's masked-LM head has the erf GELU and an epsilon of 1e-5, whatever "
    "the encoder has, so scores of words differ a little."
)

ACCENTS_NOTE = (
    "Its KerasHub tokenizer lower-cases and keeps accents; here, as in the original, "
    "do_lower_case removes them too."
)


def is_preset(place):
    """Whether a path is a directory with a KerasHub model, BERT or not."""
    path = os.path.join(place, CONFIG_FILE)
    if not os.path.isfile(path):
        return False
    try:
        settings = files.read_json(path, "a config")
    except UserError:
        return False
    return str(settings.get("registered_name")).startswith(PACKAGES)


def open_preset(place, path):
    """Open a preset, with the head of its task if it has one.

    Args:
      place: the directory.
      path: what the user gave, for messages.

    Returns:
      `Checkpoint`; its weights are in memory, in float32.

    Raises:
      UserError: it is no `BertBackbone`, or a file is missing, damaged or
        contradicts another.
    """
    settings = files.read_json(os.path.join(place, CONFIG_FILE), "a KerasHub config")
    notes = _check_kind(settings, path)
    config, is_ours = _read_config(place, settings)
    backbone = _new_backbone(config)
    whole = _exists(place, WEIGHTS_FILE) or not _exists(place, SHARDS_FILE)
    _load(backbone.load_weights, place, WEIGHTS_FILE if whole else SHARDS_FILE, path)
    task = _read_task(place, path, backbone, notes)
    if hasattr(task, "masked_lm_head") and not is_ours:
        notes.append(HEAD_NOTE)
    vocab_file, casing = _read_tokenizer(place, notes)
    others, absent = _read_others(place)
    variables = {**_encoder_variables(backbone), **_head_variables(task)}
    for name in absent:
        # Anything else than our zeros was trained by KerasHub since.
        if not np.any(variables[name]):
            del variables[name]
    return _checkpoint(path, config, variables, others, vocab_file, casing, notes)


def from_backbone(backbone):
    """Return a `Checkpoint` of a `keras_hub.models.BertBackbone`.

    Args:
      backbone: is read when the checkpoint is, so with its weights of then.

    Raises:
      UserError: it is another model.
    """
    import keras_hub

    if not isinstance(backbone, keras_hub.models.BertBackbone):
        raise UserError(
            f"A {type(backbone).__name__} is no keras_hub.models.BertBackbone; give "
            "the backbone of a BERT."
        )
    config = _config_from(backbone.get_config(), "The BertBackbone")
    return _checkpoint("the BertBackbone", config, _encoder_variables(backbone))


def to_backbone(checkpoint):
    """Return a `keras_hub.models.BertBackbone` with a checkpoint's encoder.

    Args:
      checkpoint: `Checkpoint` with a config. Where it has no pooler, the
        backbone's is 0.

    Raises:
      UserError: KerasHub has no such encoder: other activations than GELU,
        another epsilon; or a tensor is missing or of another size than the
        config's.
    """
    _require_possible(checkpoint)
    backbone = _new_backbone(checkpoint.config)
    variables = _encoder_variables(backbone)
    for name in POOLER:
        if name not in checkpoint.shapes:
            variable = variables.pop(name)
            variable.assign(np.zeros(variable.shape, np.float32))
    _assign(variables, checkpoint)
    return backbone


def write_preset(directory, checkpoint):
    """Write a preset that KerasHub's `from_preset` loads, and `open_preset`.

    With a vocabulary there is a tokenizer in it; with a classifier it is one of
    `BertTextClassifier`, else with a masked-LM head one of `BertMaskedLM`. All
    else is in `bert_config.json` and `other_weights.safetensors`.

    Args:
      directory: exists already, and is empty.
      checkpoint: `Checkpoint` with a config.

    Returns:
      sentences on what KerasHub will do otherwise, or not see.

    Raises:
      UserError: see `to_backbone`.
    """
    backbone = to_backbone(checkpoint)
    preset = task = _new_task(checkpoint, backbone)
    if task is None:
        preset = backbone
    preset.save_to_preset(directory, max_shard_size=None)
    _write_tokenizer(directory, checkpoint, task)
    places = {**_encoder_variables(backbone), **_head_variables(task)}
    others = [name for name in checkpoint.shapes if name not in places]
    absent = [name for name in places if name not in checkpoint.shapes]
    _write_others(directory, checkpoint, others, absent)
    config_file = os.path.join(directory, google.CONFIG_FILE)
    files.write_text(config_file, checkpoint.config.to_json_string())
    return _writing_notes(checkpoint, task, others, absent)


def _exists(place, name):
    return os.path.exists(os.path.join(place, name))


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


def _read_config(place, settings):
    """Return (`BertConfig`, whether it is from a file of ours)."""
    config_file = os.path.join(place, CONFIG_FILE)
    theirs = _config_from(settings.get("config") or {}, config_file)
    own_file = os.path.join(place, google.CONFIG_FILE)
    if not os.path.exists(own_file):
        return theirs, False
    ours = BertConfig.from_json_file(own_file)
    for name in SIZES:
        if getattr(ours, name) != getattr(theirs, name):
            raise UserError(
                f"{own_file} says {name} {getattr(ours, name)} and {CONFIG_FILE} "
                f"{getattr(theirs, name)}; if the preset was written anew, remove "
                f"{google.CONFIG_FILE} and {OTHER_WEIGHTS_FILE}."
            )
    return ours, True


def _config_from(values, where):
    """Return the `BertConfig` of a `BertBackbone`'s config."""
    missing = [theirs for theirs in SIZES.values() if theirs not in values]
    if missing:
        raise UserError(f"{where} lacks {missing[0]}; is it a BertBackbone's?")
    sizes = {ours: values[theirs] for ours, theirs in SIZES.items()}
    try:
        return BertConfig(**sizes, attention_probs_dropout_prob=values["dropout"])
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _new_backbone(config):
    import keras_hub

    sizes = {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return keras_hub.models.BertBackbone(**sizes, dtype="float32", name="bert_backbone")


def _load(load, place, name, path):
    """Call KerasHub's `load` for a file of a preset; say what is wrong with it."""
    if not _exists(place, name):
        raise UserError(f"{path} lacks {name}; copy the whole preset.")
    try:
        with warnings.catch_warnings():
            # Whatever Keras did not find is an error besides.
            warnings.simplefilter("ignore")
            load(os.path.join(place, name))
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:")
        raise UserError(
            f"{path}: {name} is damaged, or of another model ({reason})."
        ) from error


def _read_task(place, path, backbone, notes):
    """Return KerasHub's task with its head, or None; may add to the notes."""
    import keras_hub

    if not _exists(place, TASK_FILE):
        return None
    settings = files.read_json(os.path.join(place, TASK_FILE), "a KerasHub task")
    kind = settings.get("class_name")
    if kind == "BertMaskedLM":
        task = keras_hub.models.BertMaskedLM(backbone, compile=False)
    elif kind in ("BertTextClassifier", "BertClassifier"):
        classes = (settings.get("config") or {}).get("num_classes")
        if not isinstance(classes, int):
            raise UserError(f"{path}: its {TASK_FILE} states no num_classes.")
        task = keras_hub.models.BertTextClassifier(backbone, classes, compile=False)
    else:
        notes.append(f"Of its task, a {kind}, only the encoder was read.")
        return None
    _load(task.load_task_weights, place, TASK_WEIGHTS_FILE, path)
    return task


def _read_tokenizer(place, notes):
    """Return (vocabulary file, whether it lower-cases); may add to the notes."""
    vocab_file = os.path.join(place, VOCAB_FILE) if _exists(place, VOCAB_FILE) else None
    if _exists(place, TOKENIZER_FILE):
        path = os.path.join(place, TOKENIZER_FILE)
        settings = files.read_json(path, "a KerasHub tokenizer").get("config") or {}
        if settings.get("lowercase") and not settings.get("strip_accents"):
            notes.append(ACCENTS_NOTE)
        return vocab_file, settings.get("lowercase")
    if _exists(place, google.TOKENIZER_FILE):
        path = os.path.join(place, google.TOKENIZER_FILE)
        settings = files.read_json(path, "a tokenizer config")
        return vocab_file, settings.get("do_lower_case")
    return vocab_file, None


def _write_tokenizer(directory, checkpoint, task):
    if checkpoint.vocab_file is None:
        if checkpoint.do_lower_case is not None:
            settings = {"do_lower_case": checkpoint.do_lower_case}
            files.write_json(os.path.join(directory, google.TOKENIZER_FILE), settings)
        return
    if task is None:
        _new_tokenizer(checkpoint).save_to_preset(directory)
    # The bytes themselves: KerasHub writes tokens without their white space.
    files.copy(checkpoint.vocab_file, os.path.join(directory, VOCAB_FILE))


def _new_tokenizer(checkpoint):
    import keras_hub

    vocab = list(load_vocab(checkpoint.vocab_file))
    lower = checkpoint.do_lower_case
    if lower is None:
        lower = guess_do_lower_case(vocab)
    # KerasHub keeps accents unless told; an uncased vocabulary has none.
    return keras_hub.models.BertTokenizer(vocab, lowercase=lower, strip_accents=lower)


def _new_task(checkpoint, backbone):
    """Return KerasHub's task with the checkpoint's head, or None without one."""
    import keras_hub

    models, shapes = keras_hub.models, checkpoint.shapes
    if len(shapes.get("output_weights", ())) == 2 and "output_bias" in shapes:
        kind = models.BertTextClassifier
        preprocessor = models.BertTextClassifierPreprocessor
        options = {"num_classes": shapes["output_weights"][0]}
    elif all(name in shapes for name in MASKED_LM):
        kind, options = models.BertMaskedLM, {}
        preprocessor = models.BertMaskedLMPreprocessor
    else:
        return None
    if checkpoint.vocab_file:
        length = min(512, checkpoint.config.max_position_embeddings)
        tokenizer = _new_tokenizer(checkpoint)
        options["preprocessor"] = preprocessor(tokenizer, sequence_length=length)
    task = kind(backbone, **options)
    _assign(_head_variables(task), checkpoint)
    return task


def _encoder_variables(backbone):
    """Return Google's name -> variable of a `BertBackbone`, in its own shape."""
    scope = "bert/embeddings/"
    variables = {
        scope + "word_embeddings": backbone.token_embedding.embeddings,
        scope + "token_type_embeddings": backbone.segment_embedding.embeddings,
        scope + "position_embeddings": backbone.position_embedding.position_embeddings,
    }
    layers = {scope + "LayerNorm": backbone.embeddings_layer_norm}
    for index, block in enumerate(backbone.transformer_layers):
        layers |= _block_layers(f"bert/encoder/layer_{index}/", block)
    layers["bert/pooler/dense"] = backbone.pooled_dense
    for name, layer in layers.items():
        variables |= _layer_variables(name, layer)
    return variables


def _block_layers(scope, block):
    """Return Google's name -> layer of a KerasHub `TransformerEncoder`."""
    attention = block._self_attention_layer
    return {
        scope + "attention/self/query": attention.query_dense,
        scope + "attention/self/key": attention.key_dense,
        scope + "attention/self/value": attention.value_dense,
        scope + "attention/output/dense": attention.output_dense,
        scope + "attention/output/LayerNorm": block._self_attention_layer_norm,
        scope + "intermediate/dense": block._feedforward_intermediate_dense,
        scope + "output/dense": block._feedforward_output_dense,
        scope + "output/LayerNorm": block._feedforward_layer_norm,
    }


def _layer_variables(name, layer):
    leaves = ("gamma", "beta") if name.endswith("LayerNorm") else ("kernel", "bias")
    return {f"{name}/{leaf}": getattr(layer, leaf) for leaf in leaves}


def _head_variables(task):
    """Return Google's name -> variable of a task's head; {} for None."""
    if hasattr(task, "masked_lm_head"):
        head = task.masked_lm_head
        scope = "cls/predictions/transform/"
        return {
            **_layer_variables(scope + "dense", head._intermediate_dense),
            **_layer_variables(scope + "LayerNorm", head._intermediate_layer_norm),
            "cls/predictions/output_bias": head._bias,
        }
    if hasattr(task, "output_dense"):
        head = task.output_dense
        return dict(zip(CLASSIFIER, (head.kernel, head.bias), strict=True))
    return {}


def _google_shape(name, variable, width):
    """Return the shape that Google has for a variable of KerasHub.

    KerasHub's query, key and value kernels are [H, A, D] with biases [A, D], its
    attention output's kernel is [A, D, H], a classifier's [H, C].
    """
    if "/attention/" in name:
        return (width, width) if name.endswith("kernel") else (width,)
    shape = tuple(variable.shape)
    return shape[::-1] if name == "output_weights" else shape


def _checkpoint(
    path, config, variables, others=None, vocab_file=None, casing=None, notes=()
):
    """Return a `Checkpoint` of variables of KerasHub, and of other arrays.

    Args:
      path: for messages.
      config: `BertConfig`.
      variables: dict of Google's name -> variable.
      others: dict of name -> float32 array.
      vocab_file: path, or None.
      casing: whether the tokenizer lower-cases, or None.
      notes: sentences.
    """
    from keras import ops

    others = {n: v for n, v in (others or {}).items() if n not in variables}
    shapes = {
        name: _google_shape(name, variable, config.hidden_size)
        for name, variable in variables.items()
    }

    def read(name):
        if name in others:
            return others[name]
        value = np.asarray(ops.convert_to_numpy(variables[name]), np.float32)
        if name == "output_weights":
            return np.ascontiguousarray(value.T)
        return value.reshape(shapes[name])

    shapes |= {name: value.shape for name, value in others.items()}
    return Checkpoint(
        path, "keras_hub", shapes, read, config, vocab_file, casing, tuple(notes)
    )


def _assign(variables, checkpoint):
    """Set variables of KerasHub from a checkpoint, all or none of them."""
    width = checkpoint.config.hidden_size
    for name, variable in variables.items():
        expected = _google_shape(name, variable, width)
        found = checkpoint.shapes.get(name)
        if found is None:
            raise UserError(f"{checkpoint.path} lacks {name}; is it a whole BERT?")
        if tuple(found) != expected:
            raise UserError(
                f"{checkpoint.path} does not fit its config: {name} is {list(found)} "
                f"and should be {list(expected)}."
            )
    for name, variable in variables.items():
        value = checkpoint.read(name)
        if name == "output_weights":
            value = value.T
        variable.assign(np.reshape(value, variable.shape))


def _require_possible(checkpoint):
    """Raise `UserError` for a model that KerasHub cannot compute."""
    config = checkpoint.config
    if config is None:
        raise UserError(
            f"{checkpoint.path} states no config, which a KerasHub model needs; put "
            f"its {google.CONFIG_FILE} beside it."
        )
    if config.hidden_act not in ("gelu", "gelu_erf"):
        raise UserError(
            f"{checkpoint.path} has hidden_act {config.hidden_act!r}, and KerasHub's "
            "BERT computes only gelu; choose another format."
        )
    if config.layer_norm_eps != ORIGINAL_EPSILON:
        raise UserError(
            f"{checkpoint.path} has layer_norm_eps {config.layer_norm_eps}, and "
            f"KerasHub's BERT computes only {ORIGINAL_EPSILON}; choose another format."
        )


def _writing_notes(checkpoint, task, others, absent):
    config, notes = checkpoint.config, []
    if config.hidden_act == "gelu_erf":
        notes.append(ERF_NOTE)
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


def _write_others(directory, checkpoint, others, absent):
    """Write the tensors without a place, and which places have no tensor."""
    if not others and not absent:
        return
    tensors = {name: np.ascontiguousarray(checkpoint.read(name)) for name in others}
    with files.atomic_path(os.path.join(directory, OTHER_WEIGHTS_FILE)) as temporary:
        save_file(tensors, temporary, {"absent": json.dumps(absent)})


def _read_others(place):
    """Return (other tensors, names of variables that the checkpoint has not)."""
    path = os.path.join(place, OTHER_WEIGHTS_FILE)
    if not os.path.exists(path):
        return {}, []
    try:
        with safetensors.safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {}).get("absent", "[]"))
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}).") from error
