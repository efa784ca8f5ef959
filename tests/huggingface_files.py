"""Write small checkpoints as Hugging Face's libraries do, without those libraries.

This file spells out the names again, independent of the code under test.
"""

import io
import itertools
import json
import pickle
import zipfile

import h5py
import numpy as np
import safetensors.numpy

VOCAB, WIDTH, LAYERS, HEADS, INNER, POSITIONS, LABELS = 11, 8, 2, 2, 12, 16, 3
CONFIG = {
    "model_type": "bert",
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
}

# Google's name, PyTorch's, Google's shape.
ENCODER = [
    ("embeddings/word_embeddings", "embeddings.word_embeddings.weight", (11, 8)),
    (
        "embeddings/position_embeddings",
        "embeddings.position_embeddings.weight",
        (16, 8),
    ),
    (
        "embeddings/token_type_embeddings",
        "embeddings.token_type_embeddings.weight",
        (2, 8),
    ),
    ("embeddings/LayerNorm/gamma", "embeddings.LayerNorm.weight", (8,)),
    ("embeddings/LayerNorm/beta", "embeddings.LayerNorm.bias", (8,)),
    ("pooler/dense/kernel", "pooler.dense.weight", (8, 8)),
    ("pooler/dense/bias", "pooler.dense.bias", (8,)),
]
LAYER = [
    ("attention/self/query/kernel", "attention.self.query.weight", (8, 8)),
    ("attention/self/query/bias", "attention.self.query.bias", (8,)),
    ("attention/self/key/kernel", "attention.self.key.weight", (8, 8)),
    ("attention/self/key/bias", "attention.self.key.bias", (8,)),
    ("attention/self/value/kernel", "attention.self.value.weight", (8, 8)),
    ("attention/self/value/bias", "attention.self.value.bias", (8,)),
    ("attention/output/dense/kernel", "attention.output.dense.weight", (8, 8)),
    ("attention/output/dense/bias", "attention.output.dense.bias", (8,)),
    ("attention/output/LayerNorm/gamma", "attention.output.LayerNorm.weight", (8,)),
    ("attention/output/LayerNorm/beta", "attention.output.LayerNorm.bias", (8,)),
    ("intermediate/dense/kernel", "intermediate.dense.weight", (8, 12)),
    ("intermediate/dense/bias", "intermediate.dense.bias", (12,)),
    ("output/dense/kernel", "output.dense.weight", (12, 8)),
    ("output/dense/bias", "output.dense.bias", (8,)),
    ("output/LayerNorm/gamma", "output.LayerNorm.weight", (8,)),
    ("output/LayerNorm/beta", "output.LayerNorm.bias", (8,)),
]
MASKED_LM = [
    (
        "cls/predictions/transform/dense/kernel",
        "cls.predictions.transform.dense.weight",
        (8, 8),
    ),
    (
        "cls/predictions/transform/dense/bias",
        "cls.predictions.transform.dense.bias",
        (8,),
    ),
    (
        "cls/predictions/transform/LayerNorm/gamma",
        "cls.predictions.transform.LayerNorm.weight",
        (8,),
    ),
    (
        "cls/predictions/transform/LayerNorm/beta",
        "cls.predictions.transform.LayerNorm.bias",
        (8,),
    ),
    ("cls/predictions/output_bias", "cls.predictions.bias", (11,)),
]
NEXT_SENTENCE = [
    ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", (2, 8)),
    ("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", (2,)),
]
CLASSIFIER = [
    ("output_weights", "classifier.weight", (3, 8)),
    ("output_bias", "classifier.bias", (3,)),
]
SQUAD = [
    ("cls/squad/output_weights", "qa_outputs.weight", (2, 8)),
    ("cls/squad/output_bias", "qa_outputs.bias", (2,)),
]
HEADS_OF = {
    "BertModel": [],
    "BertForPreTraining": MASKED_LM + NEXT_SENTENCE,
    "BertForMaskedLM": MASKED_LM,
    "BertForNextSentencePrediction": NEXT_SENTENCE,
    "BertForSequenceClassification": CLASSIFIER,
    "BertForTokenClassification": CLASSIFIER,
    "BertForQuestionAnswering": SQUAD,
}


def rows(architecture):
    """Return a list of (Google's name, PyTorch's with prefix, Google's shape)."""
    layers = [
        (f"bert/encoder/layer_{i}/{google}", f"bert.encoder.layer.{i}.{torch}", shape)
        for i in range(LAYERS)
        for google, torch, shape in LAYER
    ]
    encoder = [(f"bert/{g}", f"bert.{t}", shape) for g, t, shape in ENCODER]
    return encoder + layers + HEADS_OF[architecture]


def weights(architecture="BertForPreTraining"):
    """Return dict of Google's name -> random float32 array."""
    random = np.random.default_rng(0)
    return {
        google: random.normal(size=shape).astype(np.float32)
        for google, _, shape in rows(architecture)
    }


def torch_tensors(architecture="BertForPreTraining", prefix=True):
    """Return dict of PyTorch's name -> `weights`, in PyTorch's orientation."""
    values = weights(architecture)
    return {
        torch if prefix else torch.removeprefix("bert."): np.ascontiguousarray(
            values[google].T if google.endswith("/kernel") else values[google]
        )
        for google, torch, _ in rows(architecture)
    }


def tf_tensors(architecture="BertForPreTraining"):
    """Return dict of a `TFBert*` variable's name -> `weights`."""
    tensors = {}
    for name, value in weights(architecture).items():
        if name.endswith("output_weights"):
            value = np.ascontiguousarray(value.T)
        tensors[f"tf_bert_2/{tf_name(name)}:0"] = value
    return tensors


def tf_name(name):
    """Return the `TFBert*` name of a variable with a Google name."""
    name = name.replace("/layer_", "/layer_._")
    if name.endswith("word_embeddings"):
        return name + "/weight"
    if name.endswith("_embeddings"):
        return name + "/embeddings"
    name = name.replace("output_weights", "kernel").replace("output_bias", "bias")
    name = name.replace("cls/predictions", "mlm___cls/predictions")
    name = name.replace("cls/seq_relationship", "nsp___cls/seq_relationship")
    name = name.replace("cls/squad", "qa_outputs")
    return f"classifier/{name}" if "/" not in name else name


def write_safetensors(path, tensors, layout="pt"):
    safetensors.numpy.save_file(tensors, path, {"format": layout})


def write_h5(path, tensors):
    """Write groups of layers, with the names of their variables as attributes."""
    with h5py.File(path, "w") as file:
        groups = {}
        for name in tensors:
            groups.setdefault(name.split("/")[1], []).append(name)
        file.attrs["layer_names"] = [group.encode() for group in groups]
        for layer, names in groups.items():
            group = file.create_group(layer)
            if layer == "mlm___cls":  # It shares the encoder's embeddings.
                names += [name for name in tensors if "/bert/embeddings/" in name]
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name in names:
                group[name] = tensors[name]


class Global:
    """The name of a function or class in a pickle."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        raise AssertionError("only its name is wanted")


class Call:
    """A function call in a pickle."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


class Storage:
    """Numbers that several tensors may share; `view`: as in the oldest files."""

    def __init__(self, numbers, kind="FloatStorage", view=None):
        self.data, self.count = np.ascontiguousarray(numbers).tobytes(), numbers.size
        self.kind, self.view = kind, view


KINDS = {
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float64": "DoubleStorage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}


def tensor(storage, offset, shape, strides):
    """Return the pickle content of a tensor."""
    function = Global("torch._utils", "_rebuild_tensor_v2")
    return Call(function, storage, offset, shape, strides, False, {})


def whole(array):
    """Return the pickle content of a tensor with its own storage."""
    steps = [stride // array.itemsize for stride in np.empty_like(array).strides]
    storage = Storage(array, KINDS[array.dtype.name])
    return tensor(storage, 0, array.shape, tuple(steps))


class _Pickler(pickle._Pickler):
    """Python's pickler, extended to write names of missing objects."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file, with_views, protocol):
        super().__init__(file, protocol)
        self.with_views = with_views
        self.keys = {}

    def save_global_name(self, value):
        self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())

    dispatch[Global] = save_global_name

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        key = self.keys.setdefault(value, str(len(self.keys)))
        kind = Global("torch", value.kind)
        views = (value.view,) if self.with_views else ()
        return ("storage", kind, key, "cpu", value.count, *views)


def pickled(value, with_views=False, protocol=2):
    """Return (bytes, dict of `Storage` -> its key) of a value's pickle."""
    file = io.BytesIO()
    pickler = _Pickler(file, with_views, protocol)
    pickler.dump(value)
    return file.getvalue(), pickler.keys


def write_torch(path, value, byteorder="little"):
    """Write a value as `torch.save` does since version 1.6."""
    data, keys = pickled(value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/byteorder", byteorder)
        for storage, key in keys.items():
            archive.writestr(f"archive/data/{key}", storage.data)
        archive.writestr("archive/version", "3\n")


def write_older_torch(path, value, little_endian=True):
    """Write a value as `torch.save` did before version 1.6."""
    data, keys = pickled(value, with_views=True)
    machine = {"protocol_version": 1001, "little_endian": little_endian}
    with open(path, "wb") as file:
        for head in (0x1950A86A20F9469CFC6C, 1001, machine):
            pickle.dump(head, file, 2)
        file.write(data)
        pickle.dump(list(keys.values()), file, 2)
        for storage in keys:
            file.write(storage.count.to_bytes(8, "little") + storage.data)


def write_shards(directory, tensors, name, write):
    """Write tensors to two files and their index; return the two names."""
    base, ending = name.split(".")
    half = len(tensors) // 2
    items = iter(tensors.items())
    parts = [dict(itertools.islice(items, half)), dict(items)]
    weight_map, shards = {}, []
    for number, part in enumerate(parts, 1):
        shard = f"{base}-{number:05}-of-00002.{ending}"
        write(directory / shard, part)
        weight_map |= dict.fromkeys(part, shard)
        shards.append(shard)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (directory / f"{name}.index.json").write_text(json.dumps(index))
    return shards


def in_torch_file(tensors):
    return {name: whole(array) for name, array in tensors.items()}


# Kind of file -> function that writes the weights of an architecture to it.
FILES = {
    "safetensors": lambda directory, architecture: write_safetensors(
        directory / "model.safetensors", torch_tensors(architecture)
    ),
    "sharded safetensors": lambda directory, architecture: write_shards(
        directory, torch_tensors(architecture), "model.safetensors", write_safetensors
    ),
    "safetensors of TensorFlow": lambda directory, architecture: write_safetensors(
        directory / "model.safetensors",
        # Without the model's name, as such files were written.
        {n.partition("/")[2]: v for n, v in tf_tensors(architecture).items()},
        "tf",
    ),
    "h5": lambda directory, architecture: write_h5(
        directory / "tf_model.h5", tf_tensors(architecture)
    ),
    "bin": lambda directory, architecture: write_torch(
        directory / "pytorch_model.bin", in_torch_file(torch_tensors(architecture))
    ),
    "older bin": lambda directory, architecture: write_older_torch(
        directory / "pytorch_model.bin", in_torch_file(torch_tensors(architecture))
    ),
    "sharded bin": lambda directory, architecture: write_shards(
        directory,
        torch_tensors(architecture),
        "pytorch_model.bin",
        lambda path, part: write_torch(path, in_torch_file(part)),
    ),
}


def write_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps(CONFIG | changes))
    return path
