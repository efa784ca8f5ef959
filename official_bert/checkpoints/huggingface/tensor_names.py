"""Map the tensor names of Hugging Face files to Google's names.

Two kinds of files exist. One uses the names and layout of PyTorch modules
(`bert.encoder.layer.0.intermediate.dense.weight`, kernels [out, in]). The other
uses the variables of the `TFBert*` classes
(`tf_bert_model/bert/encoder/layer_._0/intermediate/dense/kernel:0`, kernels
[in, out], but heads [H, C]). Google's kernels are [in, out], and its heads are
[C, H].
"""

import re

from official_bert.checkpoints import names

TORCH, TENSORFLOW = "torch", "tensorflow"

# Google's layer names, with # for the block number.
_BLOCK = "bert/encoder/layer_#/"
_LAYERS = (
    "bert/embeddings/LayerNorm",
    _BLOCK + "attention/self/query",
    _BLOCK + "attention/self/key",
    _BLOCK + "attention/self/value",
    _BLOCK + "attention/output/dense",
    _BLOCK + "attention/output/LayerNorm",
    _BLOCK + "intermediate/dense",
    _BLOCK + "output/dense",
    _BLOCK + "output/LayerNorm",
    "bert/pooler/dense",
    "cls/predictions/transform/dense",
    "cls/predictions/transform/LayerNorm",
)
# Google's variable name -> PyTorch's.
_LEAVES = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
# Google's name -> PyTorch's, if more than separators and last parts differ.
_OTHERS = {
    "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": (
        "bert.embeddings.token_type_embeddings.weight"
    ),
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
}
# The masked LM output layer shares these weights; some files store them twice.
COPIES = {
    "cls.predictions.decoder.weight": "bert/embeddings/word_embeddings",
    "cls.predictions.decoder.bias": "cls/predictions/output_bias",
}
_TORCH_OF = _OTHERS | {
    f"{layer}/{leaf}": ".".join(
        (layer.replace("/", ".").replace("layer_", "layer."), _LEAVES[leaf])
    )
    for layer in _LAYERS
    for leaf in names.leaves_of(layer)
}
_GOOGLE_OF = {torch: google for google, torch in _TORCH_OF.items()} | COPIES

# The first relevant part of a `TFBert*` variable name -> PyTorch's name.
_ROOTS = {
    "bert": "bert",
    "predictions": "cls.predictions",
    "seq_relationship": "cls.seq_relationship",
    "classifier": "classifier",
    "qa_outputs": "qa_outputs",
}


def google_name(own: str, layout: str) -> str:
    """Return Google's name for a name in a file, or the same name if unknown.

    `layout` is `TORCH` or `TENSORFLOW`. Older spellings are also accepted.
    """
    name = _torch_spelling(own) if layout == TENSORFLOW else own
    # The first releases used TensorFlow's names here.
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
    # A model without heads may omit the prefix.
    name = re.sub(r"^(?=(embeddings|encoder|pooler)\.)", "bert.", name)
    pattern, number = _split_number(name)
    return _GOOGLE_OF[pattern].replace("#", number) if pattern in _GOOGLE_OF else own


def torch_name(name: str, prefix: bool) -> str:
    """Return PyTorch's name for a Google name, or the same name if unknown.

    `prefix`: whether encoder names begin with `bert.`. A plain `BertModel`
    omits it.
    """
    pattern, number = _split_number(name)
    if pattern not in _TORCH_OF:
        return name
    torch = _TORCH_OF[pattern].replace("#", number)
    return torch if prefix else torch.removeprefix("bert.")


def _split_number(name):
    """Return a name with # for its layer number, and that number."""
    number = re.search(r"(?<=layer[._])\d+(?=[./])", name)
    if not number:
        return name, ""
    return f"{name[: number.start()]}#{name[number.end() :]}", number.group()


def _torch_spelling(name):
    """Return PyTorch's spelling of a `TFBert*` variable name.

    Any number of levels may precede the relevant part: the group in the file,
    the model's name, `mlm___cls` and the like.
    """
    parts = name.removesuffix(":0").replace("layer_._", "layer/").split("/")
    roots = [index for index, part in enumerate(parts) if part in _ROOTS]
    if roots:
        parts = [_ROOTS[parts[roots[-1]]], *parts[roots[-1] + 1 :]]
    *scopes, leaf = parts
    # An embedding table was named "weight", "embeddings" or like its layer.
    if leaf == "kernel" or (scopes and scopes[-1].endswith("_embeddings")):
        leaf = "weight"
    return ".".join([*scopes, leaf])


def is_known(name: str) -> bool:
    """Return whether a name is Google's name for a part of BERT."""
    return _split_number(name)[0] in _TORCH_OF


def is_transposed(name: str, layout: str) -> bool:
    """Return whether this layout stores the transpose of Google's tensor."""
    leaf = {TORCH: "kernel", TENSORFLOW: "output_weights"}[layout]
    return is_known(name) and name.rpartition("/")[2] == leaf


def google_shape(name: str, shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return Google's shape for a tensor in a file.

    Transformers 4.1 and 4.2 wrote the attention of `TFBert*` with an axis for
    heads: kernels [H, A, D], output kernels [A, D, H], biases [A, D].
    """
    if is_transposed(name, layout):
        return shape[::-1]
    if layout == TENSORFLOW and is_known(name):
        return names.without_heads(name, shape)
    return shape
