"""Checkpoints of TensorFlow Model Garden (`official/nlp`, TensorFlow 2), read.

Such a checkpoint stores the graph of the Python objects that were saved: objects
are nodes, attributes are edges, and the key of a variable is the shortest path to
it. That path depends on what was saved: the word embeddings are
`encoder/layer_with_weights-0/embeddings` in a released encoder,
`encoder/_embedding_layer/embeddings` in a newer one, `model/…` in a training run,
and `masked_lm/embedding_table` where a masked-LM head was saved too. So variables
are looked for by walking the graph, and their keys are only used to read them.

Covered are `BertEncoder` (a functional model), `BertEncoderV2` (a layer) and what
has its attributes, as the token-dropping encoder; `BertPretrainer`,
`BertPretrainerV2`, `BertClassifier`, `BertTokenClassifier` and `BertSpanLabeler`.
"""

import dataclasses
import os

import numpy as np
import yaml
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from official_bert import files
from official_bert.checkpoints import google, names
from official_bert.config import BertConfig
from official_bert.errors import UserError

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
KEY_ENDING = "/.ATTRIBUTES/VARIABLE_VALUE"

# Below are Google's names and where Model Garden has them: paths in the graph, as
# TensorFlow writes them in keys (a "." or "/" within an attribute's name is ".." or
# ".S"). The first path that exists counts. A functional model also numbers its
# layers in the order of the computation, which is all that old ones have.
NUMBERED = "layer_with_weights-"
EMBEDDINGS = {
    "bert/embeddings/word_embeddings": ("_embedding_layer", NUMBERED + "0"),
    "bert/embeddings/position_embeddings": (
        "_position_embedding_layer",
        NUMBERED + "1",
    ),
    "bert/embeddings/token_type_embeddings": ("_type_embedding_layer", NUMBERED + "2"),
}
EMBEDDINGS_NORM = ("_embedding_norm_layer", NUMBERED + "3")
FIRST_BLOCK = 4
BLOCK = {
    "attention/self/query": ("_attention_layer/_query_dense",),
    "attention/self/key": ("_attention_layer/_key_dense",),
    "attention/self/value": ("_attention_layer/_value_dense",),
    "attention/output/dense": (
        "_attention_layer/_output_dense",
        "_attention_output_dense",
    ),
    "attention/output/LayerNorm": ("_attention_layer_norm",),
    "intermediate/dense": ("_intermediate_dense",),
    "output/dense": ("_output_dense",),
    "output/LayerNorm": ("_output_layer_norm",),
}
MASKED_LM = {
    "cls/predictions/transform/dense": ("dense",),
    "cls/predictions/transform/LayerNorm": ("layer_norm",),
}
# The dense layer in a head: an attribute, the only layer of a model, or the head.
LOGITS = ("out_proj", NUMBERED + "0", "")

POOLER = "bert/pooler/dense"
# [C, H] in Google's checkpoints; a Keras kernel is [H, C].
TRANSPOSED = (
    "cls/seq_relationship/output_weights",
    "cls/squad/output_weights",
    "output_weights",
)

# What the keys of an optimizer's and Keras' own variables have in them.
NO_WEIGHTS = ("optimizer", "_optimizer", "keras_api", ".OPTIMIZER_SLOT")

# `params.yaml`, which a training run of Model Garden writes -> `BertConfig`.
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
    """The objects that were saved; object 0 is the root.

    Attributes:
      children: for each object, dict of attribute -> number of an object.
      keys: for each object, the key of its value in the checkpoint, or None if
        it is no variable.
    """

    children: list[dict[str, int]]
    keys: list[str | None]


def is_checkpoint(prefix):
    """Whether a checkpoint is TensorFlow 2's, with a graph of objects."""
    return google.open_checkpoint(prefix).has_tensor(GRAPH_KEY)


def open_checkpoint(prefix, path):
    """Open the BERT in a checkpoint of Model Garden.

    Its config is `bert_config.json` beside it, or else the `params.yaml` of the
    training run that wrote it.

    Args:
      prefix: of the checkpoint.
      path: what the user gave, for messages.

    Returns:
      `Checkpoint`. Where a head has a pooler, that is the model's; the encoder's
      was not trained then, and keeps the name it has.

    Raises:
      UserError: there is no BERT in it, or more than one, or it is damaged, or
        has another number of attention heads than its config.
    """
    plain = google.open_weights(prefix, path)
    reader = google.open_checkpoint(prefix)
    graph = _read_graph(reader, prefix)
    places, notes = _places(graph, plain.shapes, path)
    places |= _other_places(reader, set(places.values()))
    notes += _precision_note(reader, places.values())
    config = plain.config or _read_params(os.path.dirname(prefix))
    _check_heads(places, plain.shapes, config, path)
    shapes = {name: _shape(name, plain.shapes[key]) for name, key in places.items()}

    def read(name):
        value = plain.read(places[name])
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
        raise UserError(f"{prefix}: its {GRAPH_KEY} is damaged.") from error
    children, keys = [], []
    for node in stored.nodes:
        edges = {_escaped(edge.local_name): edge.node_id for edge in node.children}
        children.append(edges)
        values = [a for a in node.attributes if a.name == "VARIABLE_VALUE"]
        keys.append(values[0].checkpoint_key if values else None)
    return Graph(children, keys)


def _escaped(name):
    return name.replace(".", "..").replace("/", ".S")


def _follow(graph, node, paths):
    """Return the object at the first of some paths that exists, or None."""
    for path in paths:
        found = node
        for edge in filter(None, path.split("/")):
            found = None if found is None else graph.children[found].get(edge)
        if found is not None:
            return found
    return None


def _layer(graph, node, paths, name):
    """Return a layer's variables: dict of Google's name -> key, or None."""
    layer = _follow(graph, node, paths)
    keys = {}
    for leaf in names.leaves_of(name):
        variable = None if layer is None else graph.children[layer].get(leaf)
        keys[f"{name}/{leaf}"] = None if variable is None else graph.keys[variable]
    return keys


def _reached(graph, edge):
    """Return the objects that some object has as an attribute of this name."""
    found = [edges[edge] for edges in graph.children if edge in edges]
    return list(dict.fromkeys(found))


def _places(graph, shapes, path):
    """Find the model: return (dict of Google's name -> key, notes)."""
    encoder, blocks = _find_encoder(graph, path)
    places = _encoder_places(graph, encoder, blocks)
    missing = [name for name, key in places.items() if key not in shapes]
    if missing:
        raise UserError(
            f"{path} has an encoder like BERT's, but without {missing[0]}; give the "
            "checkpoint of a BERT."
        )
    after_blocks = f"{NUMBERED}{FIRST_BLOCK + len(blocks)}"
    own = _layer(graph, encoder, ("_pooler_layer", after_blocks), POOLER)
    trained, notes = _head_pooler(graph) or own, []
    if None not in own.values() and trained != own:
        name = own[POOLER + "/kernel"].removesuffix(KEY_ENDING)
        notes.append(f"The pooler is that of its head; {name} was not trained with it.")
    places |= {**trained, **_head_places(graph, shapes)}
    return {name: key for name, key in places.items() if key in shapes}, notes


def _find_encoder(graph, path):
    """Return (the encoder's number, the numbers of its blocks in order)."""
    found = [(node, _blocks(graph, node)) for node in range(len(graph.children))]
    found = [(node, blocks) for node, blocks in found if blocks]
    if not found:
        raise UserError(
            f"{path} is a TensorFlow 2 checkpoint, but of no BERT encoder of Model "
            f"Garden (the saved objects are {', '.join(graph.children[0])}); give one "
            "of a BERT."
        )
    if len(found) > 1:
        raise UserError(
            f"{path} holds {len(found)} encoders, so it is no BERT; save the one you "
            "want on its own."
        )
    encoder, blocks = found[0]
    edges = graph.children[encoder]
    if "_embedding_projection" in edges or blocks[0] != edges.get(
        f"{NUMBERED}{FIRST_BLOCK}", blocks[0]
    ):
        raise UserError(
            f"{path} has other embeddings than BERT's, as ALBERT and RoFormer have; "
            "give the checkpoint of a BERT."
        )
    return encoder, blocks


def _blocks(graph, node):
    """Return the Transformer blocks that an object has, in order."""
    listed = graph.children[node].get("_transformer_layers")
    if listed is None:
        listed, start = node, NUMBERED
    else:
        start = ""
    numbered = {
        int(edge.removeprefix(start)): child
        for edge, child in graph.children[listed].items()
        if edge.startswith(start) and edge.removeprefix(start).isdigit()
    }
    return [
        numbered[number]
        for number in sorted(numbered)
        if {"_attention_layer", "_output_layer_norm"}
        <= set(graph.children[numbered[number]])
    ]


def _encoder_places(graph, encoder, blocks):
    """Return Google's name -> key, or None for what is not there."""
    places = {}
    for name, paths in EMBEDDINGS.items():
        table = _follow(graph, encoder, [path + "/embeddings" for path in paths])
        places[name] = None if table is None else graph.keys[table]
    places |= _layer(graph, encoder, EMBEDDINGS_NORM, "bert/embeddings/LayerNorm")
    for index, block in enumerate(blocks):
        for name, paths in BLOCK.items():
            places |= _layer(graph, block, paths, f"bert/encoder/layer_{index}/{name}")
    return places


def _heads(graph):
    """Return the classification heads of a pre-training model."""
    lists = _reached(graph, "classification_heads")
    heads = [head for each in lists for head in graph.children[each].values()]
    return list(dict.fromkeys(heads))


def _head_pooler(graph):
    """Return the pooler within a head: name -> key; {} where there is none.

    Model Garden trains its next-sentence head, and by default a classifier, with
    a dense layer of its own instead of the encoder's pooler. Such layers are also
    saved as `<name of the head>.pooler_dense`.
    """
    heads = [*_heads(graph), *_reached(graph, "classifier")]
    stems = [edge for edge in graph.children[0] if edge.endswith("..pooler_dense")]
    for node, path in [*((0, stem) for stem in stems), *((h, "dense") for h in heads)]:
        found = _layer(graph, node, (path,), POOLER)
        if None not in found.values():
            return found
    return {}


def _head_places(graph, shapes):
    """Return Google's name -> key for the heads that are known."""
    places = {}
    for head in _reached(graph, "masked_lm"):
        bias = _follow(graph, head, ("output_bias.Sbias", "bias"))
        found = {
            "cls/predictions/output_bias": None if bias is None else graph.keys[bias]
        }
        for name, paths in MASKED_LM.items():
            found |= _layer(graph, head, paths, name)
        if None not in found.values():
            places |= found
    pairs = _heads(graph) or _reached(graph, "classification")
    if len(pairs) == 1:
        found = _logits(graph, pairs[0], "cls/seq_relationship/")
        # Whatever else has its own name; only this one is known by its size.
        if found and shapes[found["cls/seq_relationship/output_bias"]] == (2,):
            places |= found
    for edge, scope in (("classifier", ""), ("span_labeling", "cls/squad/")):
        for head in _reached(graph, edge):
            places |= _logits(graph, head, scope)
    return places


def _logits(graph, head, scope):
    """Return where a head's last layer is: name -> key; {} if it has none."""
    layer = _layer(graph, head, LOGITS, "logits")
    if None in layer.values():
        return {}
    return dict(
        zip(
            (scope + "output_weights", scope + "output_bias"),
            layer.values(),
            strict=True,
        )
    )


def _other_places(reader, used):
    """Return own name -> key for all other weights."""
    kinds = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    return {
        key.removesuffix(KEY_ENDING): key
        for key in sorted(shapes)
        if key.endswith(KEY_ENDING)
        and key not in used
        # A scalar is a step, a rate or a metric.
        and (kinds[key].is_floating and shapes[key])
        and not set(key.split("/")) & set(NO_WEIGHTS)
    }


def _precision_note(reader, keys):
    kinds = reader.get_variable_to_dtype_map()
    others = {kinds[key].name for key in keys} - {"float32"}
    return [f"Its {kind} weights were read as float32." for kind in sorted(others)]


def _check_heads(places, shapes, config, path):
    """Check the attention: kernels of query, key and value are [H, A, D]."""
    query, key, value = (
        tuple(shapes[places[f"bert/encoder/layer_0/attention/self/{part}/kernel"]])
        for part in ("query", "key", "value")
    )
    if not query == key == value or len(query) != 3:
        raise UserError(
            f"{path} has another kind of attention than BERT's: its kernels are "
            f"{list(query)}, {list(key)} and {list(value)}."
        )
    if config and config.num_attention_heads != query[1]:
        raise UserError(
            f"{path} has {query[1]} attention heads, and its config says "
            f"num_attention_heads {config.num_attention_heads}; correct the config."
        )


def _shape(name, stored):
    """Return the shape that Google has for a tensor of Model Garden."""
    if name in TRANSPOSED:
        return stored[::-1]
    return names.without_heads(name, stored) if name.startswith("bert/") else stored


def _read_params(directory):
    """Return the `BertConfig` that a `params.yaml` states, or None without one."""
    path = os.path.join(directory, PARAMS_FILE)
    if not os.path.exists(path):
        return None
    text = files.read_text(path, "the parameters of a training run")
    try:
        encoder = _find(yaml.load(text, _Loader), "encoder")
    except yaml.YAMLError as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is no YAML: {reason}.") from error
    if not isinstance(encoder, dict):
        return None
    kind = encoder.get("type")
    found = encoder.get(kind)
    if kind not in ("bert", "any") or not isinstance(found, dict):
        raise UserError(f"{path}: the encoder's type is {kind!r}, not bert.")
    if found.get("norm_first"):
        raise UserError(f"{path}: norm_first is true, which no BERT of Google's has.")
    known = {ours: found[key] for key, ours in PARAMS.items() if key in found}
    try:
        return BertConfig.from_dict(known)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


class _Loader(yaml.SafeLoader):
    """Takes what is tagged as an object of Python for nothing, and builds none."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _find(value, key):
    """Return what a key stands for anywhere in nested dicts, or None."""
    if not isinstance(value, dict):
        return None
    if key in value:
        return value[key]
    found = (_find(part, key) for part in value.values())
    return next((part for part in found if part is not None), None)
