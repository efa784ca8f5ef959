"""Read checkpoints of TensorFlow Model Garden (`official/nlp`, TensorFlow 2).

Such a checkpoint stores the graph of the saved Python objects. Objects are
nodes, attributes are edges, and a variable's key is the shortest path to it.
This path depends on the saved object. For example, the word embeddings are
`encoder/layer_with_weights-0/embeddings` in a released encoder,
`encoder/_embedding_layer/embeddings` in a newer one, `model/…` in a training
run, and `masked_lm/embedding_table` if a masked-LM head was saved too. This
module therefore finds variables by walking the graph, and uses the keys only to
read them.

Supported: `BertEncoder` (a functional model), `BertEncoderV2` (a layer) and
objects with the same attributes, such as the token-dropping encoder;
`BertPretrainer`, `BertPretrainerV2`, `BertClassifier`, `BertTokenClassifier`
and `BertSpanLabeler`.
"""

import dataclasses
import os
import re

import numpy as np
import yaml
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from official_bert import files
from official_bert.checkpoints import google, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.config import BertConfig
from official_bert.errors import UserError

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
KEY_ENDING = "/.ATTRIBUTES/VARIABLE_VALUE"

# The tables below map Google's names to paths in Model Garden's graph, spelled
# as in TensorFlow's keys ("." and "/" within an attribute's name become ".."
# and ".S"). The first path that exists counts. A functional model also numbers
# its layers in the order of computation; old models have only these numbers.
NUMBERED = "layer_with_weights-"
EMBEDDINGS = {
    "word": ("_embedding_layer", NUMBERED + "0"),
    "position": ("_position_embedding_layer", NUMBERED + "1"),
    "token_type": ("_type_embedding_layer", NUMBERED + "2"),
}
EMBEDDINGS_NORM = ("_embedding_norm_layer", NUMBERED + "3")
FIRST_BLOCK = 4
# A space separates alternative paths.
BLOCK = {
    "attention/self/query": "_attention_layer/_query_dense",
    "attention/self/key": "_attention_layer/_key_dense",
    "attention/self/value": "_attention_layer/_value_dense",
    "attention/output/dense": "_attention_layer/_output_dense _attention_output_dense",
    "attention/output/LayerNorm": "_attention_layer_norm",
    "intermediate/dense": "_intermediate_dense",
    "output/dense": "_output_dense",
    "output/LayerNorm": "_output_layer_norm",
}
MASKED_LM = {
    "cls/predictions/transform/dense": ("dense",),
    "cls/predictions/transform/LayerNorm": ("layer_norm",),
}
# The dense layer of a head: an attribute, the only layer of a model, or the
# head itself.
LOGITS = ("out_proj", NUMBERED + "0", "")

POOLER = "bert/pooler/dense"
# [C, H] in Google's checkpoints; Keras kernels are [H, C].
TRANSPOSED = (
    "cls/seq_relationship/output_weights",
    "cls/squad/output_weights",
    "output_weights",
)

# `params.yaml`, written by Model Garden's training runs -> `BertConfig`.
PARAMS_FILE = "params.yaml"
PARAMS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "hidden_activation": "hidden_act",
    "dropout_rate": "hidden_dropout_prob",
    "attention_dropout_rate": "attention_probs_dropout_prob",
    "max_position_embeddings": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "initializer_range": "initializer_range",
}


@dataclasses.dataclass(frozen=True)
class Graph:
    """The saved objects; object 0 is the root."""

    # For each object: attribute -> number of another object.
    children: list[dict[str, int]]
    # For each object: the key of its value, or None if it is not a variable.
    keys: list[str | None]


def is_checkpoint(prefix: str) -> bool:
    """Return whether a checkpoint is TensorFlow 2's, with an object graph."""
    return google.open_checkpoint(prefix).has_tensor(GRAPH_KEY)


def open_checkpoint(prefix: str, path: str) -> Checkpoint:
    """Open the BERT in a Model Garden checkpoint.

    Its config is the `bert_config.json` in the same folder, or else the
    `params.yaml` of the training run.

    Returns:
      `Checkpoint`. If a head has its own pooler, the model uses that pooler;
      the
      encoder's pooler was not trained and keeps its name from the file.
      Messages
      show `path`, which the user gave.

    Raises:
      UserError: the checkpoint contains no BERT or several, is damaged, or has
        a different number of attention heads than its config.
    """
    plain = google.open_weights(prefix, path)
    reader = google.open_checkpoint(prefix)
    graph = _read_graph(reader, prefix)
    keys, notes = _model_keys(graph, plain.shapes, path)
    keys |= _other_keys(reader, set(keys.values()))
    dtypes = reader.get_variable_to_dtype_map()
    others = {dtypes[key].name for key in keys.values()} - {"float32"}
    notes += [f"The {dtype} weights were read as float32." for dtype in sorted(others)]
    config = plain.config or _read_params(os.path.dirname(prefix))
    _check_heads(keys, plain.shapes, config, path)
    shapes = {name: plain.shapes[key] for name, key in keys.items()}
    for name, shape in shapes.items():
        if name in TRANSPOSED:
            shapes[name] = shape[::-1]
        elif name.startswith("bert/"):
            shapes[name] = names.without_heads(name, shape)

    def read(name):
        value = plain.read(keys[name])
        if name in TRANSPOSED:
            return np.ascontiguousarray(value.T)
        return value.reshape(shapes[name])

    return dataclasses.replace(
        plain,
        format="model_garden",
        shapes=shapes,
        read=read,
        config=config,
        notes=tuple(notes),
    )


def _read_graph(reader, prefix):
    try:
        stored = TrackableObjectGraph.FromString(
            google.read_tensor(reader, GRAPH_KEY, prefix)
        )
    except DecodeError as error:
        raise UserError(
            f"{prefix}: {GRAPH_KEY} is damaged. Copy the checkpoint again."
        ) from error
    children, keys = [], []
    for node in stored.nodes:
        children.append(
            {
                edge.local_name.replace(".", "..").replace("/", ".S"): edge.node_id
                for edge in node.children
            }
        )
        values = [a for a in node.attributes if a.name == "VARIABLE_VALUE"]
        keys.append(values[0].checkpoint_key if values else None)
    return Graph(children, keys)


def _follow(graph, node, paths):
    """Return the object at the first existing path, or None."""
    for path in paths:
        target = node
        for edge in filter(None, path.split("/")):
            target = None if target is None else graph.children[target].get(edge)
        if target is not None:
            return target
    return None


def _key(graph, node, paths):
    """Return the key of the variable at the first existing path, or None."""
    variable = _follow(graph, node, paths)
    return None if variable is None else graph.keys[variable]


def _layer(graph, node, paths, name):
    """Return a layer's variables: dict of Google's name -> key, or None."""
    layer = _follow(graph, node, paths)
    return {
        f"{name}/{leaf}": _key(graph, layer, (leaf,)) for leaf in names.leaves_of(name)
    }


def _attribute_values(graph, edge):
    """Return the objects that any object has under this attribute name."""
    values = [edges[edge] for edges in graph.children if edge in edges]
    return list(dict.fromkeys(values))


def _model_keys(graph, shapes, path):
    """Find the model; return (dict of Google's name -> key, notes)."""
    encoder, blocks = _find_encoder(graph, path)
    keys = {
        f"bert/embeddings/{name}_embeddings": _key(
            graph, encoder, [path + "/embeddings" for path in paths]
        )
        for name, paths in EMBEDDINGS.items()
    }
    keys |= _layer(graph, encoder, EMBEDDINGS_NORM, "bert/embeddings/LayerNorm")
    for index, block in enumerate(blocks):
        for name, paths in BLOCK.items():
            layer = f"bert/encoder/layer_{index}/{name}"
            keys |= _layer(graph, block, paths.split(), layer)
    missing = [name for name, key in keys.items() if key not in shapes]
    if missing:
        raise UserError(
            f"{path} has an encoder similar to BERT's, but without "
            f"{missing[0]}. Give a BERT checkpoint."
        )
    after_blocks = f"{NUMBERED}{FIRST_BLOCK + len(blocks)}"
    own = _layer(graph, encoder, ("_pooler_layer", after_blocks), POOLER)
    trained, notes = _head_pooler(graph) or own, []
    if None not in own.values() and trained != own:
        name = own[POOLER + "/kernel"].removesuffix(KEY_ENDING)
        notes.append(
            f"The pooler of the head is used, because {name} was not trained with it."
        )
    keys |= {**trained, **_head_keys(graph, shapes)}
    return {name: key for name, key in keys.items() if key in shapes}, notes


def _find_encoder(graph, path):
    """Return (the encoder's number, the numbers of its blocks in order)."""
    encoders = [(node, _blocks(graph, node)) for node in range(len(graph.children))]
    encoders = [(node, blocks) for node, blocks in encoders if blocks]
    if not encoders:
        raise UserError(
            f"{path} is a TensorFlow 2 checkpoint without a Model Garden BERT "
            f"encoder (the saved objects are {', '.join(graph.children[0])}). "
            "Give a BERT checkpoint."
        )
    if len(encoders) > 1:
        raise UserError(
            f"{path} contains {len(encoders)} encoders, but a BERT has one. "
            "Save the encoder that you want alone."
        )
    encoder, blocks = encoders[0]
    edges = graph.children[encoder]
    if "_embedding_projection" in edges or blocks[0] != edges.get(
        f"{NUMBERED}{FIRST_BLOCK}", blocks[0]
    ):
        raise UserError(
            f"{path} has other embeddings than BERT, as ALBERT and RoFormer do. "
            "Give a BERT checkpoint."
        )
    return encoder, blocks


def _blocks(graph, node):
    """Return the Transformer blocks of an object, in order."""
    edges = graph.children[node]
    prefix = "" if "_transformer_layers" in edges else NUMBERED
    layers = graph.children[edges.get("_transformer_layers", node)]
    numbered = {
        int(edge.removeprefix(prefix)): child
        for edge, child in layers.items()
        if re.fullmatch(prefix + "[0-9]+", edge)
    }
    parts = {"_attention_layer", "_output_layer_norm"}
    children = [numbered[number] for number in sorted(numbered)]
    return [child for child in children if parts <= graph.children[child].keys()]


def _classification_heads(graph):
    """Return the classification heads of a pre-training model."""
    lists = _attribute_values(graph, "classification_heads")
    heads = [head for each in lists for head in graph.children[each].values()]
    return list(dict.fromkeys(heads))


def _head_pooler(graph):
    """Return the pooler within a head: name -> key; {} if no head has one.

    Model Garden trains its next-sentence head, and by default a classifier,
    with a separate dense layer instead of the encoder's pooler. Such layers are
    also saved as `<name of the head>.pooler_dense`.
    """
    heads = _classification_heads(graph) + _attribute_values(graph, "classifier")
    stems = [edge for edge in graph.children[0] if edge.endswith("..pooler_dense")]
    candidates = [(0, stem) for stem in stems] + [(head, "dense") for head in heads]
    layers = (_layer(graph, node, (path,), POOLER) for node, path in candidates)
    return next((layer for layer in layers if None not in layer.values()), {})


def _head_keys(graph, shapes):
    """Return Google's name -> key for the known heads."""
    keys: dict[str, str] = {}
    for head in _attribute_values(graph, "masked_lm"):
        bias = _key(graph, head, ("output_bias.Sbias", "bias"))
        of_head = {"cls/predictions/output_bias": bias}
        for name, paths in MASKED_LM.items():
            of_head |= _layer(graph, head, paths, name)
        if None not in of_head.values():
            keys |= of_head
    pairs = _classification_heads(graph) or _attribute_values(graph, "classification")
    if len(pairs) == 1:
        of_head = _logits(graph, pairs[0], "cls/seq_relationship/")
        # Other heads have their own names; this head is identified by its size.
        if of_head and shapes[of_head["cls/seq_relationship/output_bias"]] == (2,):
            keys |= of_head
    for edge, scope in (("classifier", ""), ("span_labeling", "cls/squad/")):
        for head in _attribute_values(graph, edge):
            keys |= _logits(graph, head, scope)
    return keys


def _logits(graph, head, scope):
    """Return the keys of a head's last layer: name -> key; {} if it has none."""
    kernel, bias = _layer(graph, head, LOGITS, "logits").values()
    if None in (kernel, bias):
        return {}
    return {scope + "output_weights": kernel, scope + "output_bias": bias}


def _other_keys(reader, used):
    """Return the file's name -> key for all other weights."""
    # Parts of keys that belong to optimizer and Keras variables.
    no_weights = {"optimizer", "_optimizer", "keras_api", ".OPTIMIZER_SLOT"}
    dtypes = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    return {
        key.removesuffix(KEY_ENDING): key
        for key in sorted(shapes)
        if key.endswith(KEY_ENDING)
        and key not in used
        # A scalar is a step, a learning rate or a metric.
        and (dtypes[key].is_floating and shapes[key])
        and not set(key.split("/")) & no_weights
    }


def _check_heads(keys, shapes, config, path):
    """Check the attention: kernels of query, key and value are [H, A, D]."""
    scope = "bert/encoder/layer_0/attention/self/"
    parts = (f"{scope}{part}/kernel" for part in ("query", "key", "value"))
    query, key, value = (tuple(shapes[keys[part]]) for part in parts)
    if not query == key == value or len(query) != 3:
        raise UserError(
            f"{path} has another kind of attention than BERT: its kernels are "
            f"{list(query)}, {list(key)} and {list(value)}."
        )
    if config and config.num_attention_heads != query[1]:
        raise UserError(
            f"{path} has {query[1]} attention heads, but its config has "
            f"num_attention_heads {config.num_attention_heads}. Correct the "
            "config."
        )


def _read_params(directory):
    """Return the `BertConfig` from a `params.yaml`, or None without this file."""
    path = os.path.join(directory, PARAMS_FILE)
    if not os.path.exists(path):
        return None
    text = files.read_text(path, "the parameters of a training run")
    try:
        encoder = _find(yaml.load(text, _Loader), "encoder")
    except yaml.YAMLError as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is not YAML: {reason}.") from error
    if not isinstance(encoder, dict):
        return None
    kind = encoder.get("type")
    params = encoder.get(kind)
    if kind not in ("bert", "any") or not isinstance(params, dict):
        raise UserError(f"{path}: the encoder's type is {kind!r}, not bert.")
    if params.get("norm_first"):
        raise UserError(
            f"{path}: norm_first is true, which is not supported: Google's BERT "
            "models never use it."
        )
    try:
        return BertConfig.from_dict(
            {ours: params[key] for key, ours in PARAMS.items() if key in params}
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


class _Loader(yaml.SafeLoader):
    """Reads tagged Python objects as None, and creates no objects."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _find(value, key):
    """Return the value of a key anywhere in nested dicts, or None."""
    if not isinstance(value, dict):
        return None
    if key in value:
        return value[key]
    inner = (_find(part, key) for part in value.values())
    return next((part for part in inner if part is not None), None)
