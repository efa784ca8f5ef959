"""What a `.tflite` says of itself and carries with it, and what is in it.

A `.tflite` is a flatbuffer of TFLite's schema. Its metadata is a second flatbuffer
inside, of the schema `metadata_schema.fbs` ("M001", version 1.5.0) that phones' readers
know; the files that belong to the model are a zip archive behind it.
"""

import dataclasses
import zipfile

import flatbuffers
from flatbuffers.table import Table
from tensorflow.lite.python import schema_py_generated as schema

_MODEL_IDENTIFIER, _METADATA_IDENTIFIER = b"TFL3", b"M001"
_METADATA_NAME = b"TFLITE_METADATA"
# Slots of the table Model, all but the first of them offsets.
_VERSION, _BUFFERS, _METADATA, _SLOTS = 0, 4, 6, 10
# The schema wants constants to begin at multiples of 16 bytes.
_ALIGNMENT = 16
# Of the enum AssociatedFileType.
_UNKNOWN, _AXIS_LABELS, _VOCABULARY = 0, 2, 5
# Of the union ProcessUnitOptions.
_BERT_TOKENIZER = 4
_LABELS_TEXT = "The labels in the order of their numbers, one a line."
_VOCABULARY_TEXT = "The pieces of words in the order of their ids, one a line."


@dataclasses.dataclass(frozen=True)
class Description:
    """What the metadata of a model says.

    Attributes:
      name: of the model.
      text: what it does.
      version: of the model.
      tensors: dict of the name of an input or output of a signature -> what it is.
      vocabulary: name of the carried file with the vocabulary; None without one.
      labels: name of the carried file with the labels; None without one.
      labelled: names of the outputs whose last axis the labels go along.
      others: dict of the name of another carried file -> what is in it.
    """

    name: str
    text: str
    version: str
    tensors: dict
    vocabulary: str | None = None
    labels: str | None = None
    labelled: tuple = ()
    others: dict = dataclasses.field(default_factory=dict)


def operators(model):
    """Return the names of the operators in a model, sorted.

    Those of TFLite are in capitals ("FULLY_CONNECTED"); custom ones have the name
    that they are registered under ("FlexErf").

    Args:
      model: bytes, a `.tflite`.
    """
    model = schema.Model.GetRootAs(model)
    codes = (model.OperatorCodes(i) for i in range(model.OperatorCodesLength()))
    return sorted({_operator(code) for code in codes})


def custom_operators(model):
    """Return those of `operators` that stock TFLite may not have, such as Flex ops."""
    return [name for name in operators(model) if name not in _builtin_names().values()]


def dynamic_shapes(model):
    """Return the tensors of a model, inputs and outputs too, without a fixed shape.

    Args:
      model: bytes, a `.tflite`.

    Returns:
      list of str, "NAME [1, -1] of subgraph NAME".
    """
    found = []
    for subgraph in _subgraphs(schema.Model.GetRootAs(model)):
        for i in range(subgraph.TensorsLength()):
            tensor = subgraph.Tensors(i)
            shape = [
                tensor.ShapeSignature(j) for j in range(tensor.ShapeSignatureLength())
            ]
            if -1 in shape:
                name, graph = tensor.Name().decode(), _graph_name(subgraph)
                found.append(f"{name} {shape} of subgraph {graph}")
    return found


def add_metadata(model, description):
    """Add the standard metadata to a model, in place of what it has.

    The model is not packed anew, which takes four times its size in memory. Offsets
    in a flatbuffer point forward; so a new root, which points to parts of the old
    model and to the metadata, goes before it.

    Args:
      model: bytes, a `.tflite` of less than 2 GB without files behind it.
      description: `Description`.

    Returns:
      bytes: a head, and the model as it was.
    """
    content = _packed_metadata(schema.Model.GetRootAs(model), description)
    return b"".join((_new_head(model, content), model))


def append_files(path, files):
    """Pack files behind a model, as a zip archive.

    They are not compressed: readers on phones demand it. The same files give the
    same bytes.

    Args:
      path: of a `.tflite` with none behind it; it is changed in place.
      files: dict of name -> bytes.

    Raises:
      ValueError: there are some.
    """
    with zipfile.ZipFile(path, "a") as packed:
        if packed.namelist():
            raise ValueError(f"{path} carries files already.")
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, on Windows too; it gives the mode a sense.
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content, zipfile.ZIP_STORED)


def _operator(code):
    """Return the name of a `schema.OperatorCode`."""
    # The field of files from before 2020 ends at 127.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if number == schema.BuiltinOperator.CUSTOM:
        return (code.CustomCode() or b"CUSTOM").decode()
    return _builtin_names()[number]


def _builtin_names():
    """Return dict of number -> name of TFLite's own operators."""
    operator = schema.BuiltinOperator
    names = (name for name in vars(operator) if name.isupper() and name != "CUSTOM")
    return {getattr(operator, name): name for name in names}


def _subgraphs(model):
    """Return the list of `schema.SubGraph` in a `schema.Model`."""
    return [model.Subgraphs(i) for i in range(model.SubgraphsLength())]


def _graph_name(subgraph):
    """Return the name, str, of a `schema.SubGraph`."""
    return (subgraph.Name() or b"").decode()


def _new_head(model, content):
    """Return what goes before a model that it hold metadata.

    For the builder, an offset is counted back from the end of what it builds. The
    old model begins there: its byte p has the offset -p.

    Args:
      model: bytes, a `.tflite`.
      content: bytes, the metadata.

    Returns:
      bytes, a multiple of `_ALIGNMENT`.
    """
    root = Table(model, int.from_bytes(model[:4], "little"))
    buffers, entries = _elements(root, _BUFFERS), _elements(root, _METADATA)
    kept = [place for place in entries if _name_of(model, place) != _METADATA_NAME]
    builder = flatbuffers.Builder(1024)
    buffer = _buffer(builder, content)
    entry = _metadata_entry(builder, len(buffers))
    offsets = {slot: -place for slot, place in _offset_fields(root).items()}
    offsets[_BUFFERS] = _vector(builder, [-place for place in buffers] + [buffer])
    offsets[_METADATA] = _vector(builder, [-place for place in kept] + [entry])
    version = schema.Model.GetRootAs(model).Version()
    builder.Finish(
        _table(builder, offsets, {_VERSION: (builder.PrependUint32Slot, version)}),
        file_identifier=_MODEL_IDENTIFIER,
    )
    return bytes(builder.Output())


def _offset_fields(root):
    """Return dict of slot -> place in the model of what the root points to there."""
    fields = ((slot, root.Offset(_field(slot))) for slot in range(1, _SLOTS))
    return {slot: root.Indirect(root.Pos + field) for slot, field in fields if field}


def _elements(root, slot):
    """Return the places in the model of the tables in a vector of the root."""
    field = root.Offset(_field(slot))
    if not field:
        return []
    start = root.Vector(field)
    return [root.Indirect(start + 4 * i) for i in range(root.VectorLen(field))]


def _field(slot):
    """Return where a table's vtable has a slot."""
    return 4 + 2 * slot


def _name_of(model, place):
    """Return the name, bytes, of the table Metadata at a place in a model."""
    entry = schema.Metadata()
    entry.Init(model, place)
    return entry.Name()


def _buffer(builder, content):
    """Build a table Buffer; return its offset."""
    builder.Prep(_ALIGNMENT, len(content))
    return _table(builder, {0: builder.CreateByteVector(content)})


def _metadata_entry(builder, buffer):
    """Build a table Metadata that names a buffer by its number; return its offset."""
    name = builder.CreateString(_METADATA_NAME)
    return _table(builder, {0: name}, {1: (builder.PrependUint32Slot, buffer)})


def _packed_metadata(model, description):
    """Return the bytes of a flatbuffer ModelMetadata.

    Args:
      model: `schema.Model`.
      description: `Description`.
    """
    builder = flatbuffers.Builder(1024)
    signatures = _signatures(model)
    subgraphs = [
        _subgraph(builder, subgraph, signatures.get(i), description)
        for i, subgraph in enumerate(_subgraphs(model))
    ]
    others = [
        _file(builder, name, text, _UNKNOWN)
        for name, text in description.others.items()
    ]
    fields = {
        0: builder.CreateString(description.name),
        1: builder.CreateString(description.text),
        2: builder.CreateString(description.version),
        3: _vector(builder, subgraphs),
        6: _vector(builder, others),
        # The first version of the schema that knows all that is used here.
        7: builder.CreateString("1.1.0" if description.vocabulary else "1.0.0"),
    }
    builder.Finish(_table(builder, fields), file_identifier=_METADATA_IDENTIFIER)
    return bytes(builder.Output())


def _signatures(model):
    """Return what the signatures of a model call its subgraphs and their tensors.

    Args:
      model: `schema.Model`.

    Returns:
      dict of the subgraph's number -> (name of the signature, dict of the tensor's
      number -> its name).
    """
    found = {}
    for i in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(i)
        tensors = [signature.Inputs(j) for j in range(signature.InputsLength())]
        tensors += [signature.Outputs(j) for j in range(signature.OutputsLength())]
        names = {tensor.TensorIndex(): tensor.Name().decode() for tensor in tensors}
        key = signature.SignatureKey().decode()
        found[signature.SubgraphIndex()] = key, names
    return found


def _subgraph(builder, subgraph, signature, description):
    """Build a table SubGraphMetadata; return its offset.

    Args:
      builder: `flatbuffers.Builder`.
      subgraph: `schema.SubGraph`.
      signature: a value of `_signatures`; None for a subgraph inside another.
      description: `Description`.
    """
    name, names = signature or (_graph_name(subgraph), {})
    inputs = [subgraph.Inputs(i) for i in range(subgraph.InputsLength())]
    outputs = [subgraph.Outputs(i) for i in range(subgraph.OutputsLength())]
    called = {
        i: names.get(i) or subgraph.Tensors(i).Name().decode() for i in inputs + outputs
    }
    tensors = {
        slot: [_tensor(builder, called[i], description) for i in numbers]
        for slot, numbers in ((2, inputs), (3, outputs))
    }
    fields = {slot: _vector(builder, offsets) for slot, offsets in tensors.items()}
    fields[0] = builder.CreateString(name)
    if signature and description.vocabulary:
        fields[5] = _vector(builder, [_tokenizer(builder, description.vocabulary)])
    return _table(builder, fields)


def _tensor(builder, name, description):
    """Build a table TensorMetadata; return its offset."""
    fields = {0: builder.CreateString(name)}
    if name in description.tensors:
        fields[1] = builder.CreateString(description.tensors[name])
    if description.labels and name in description.labelled:
        labels = _file(builder, description.labels, _LABELS_TEXT, _AXIS_LABELS)
        fields[6] = _vector(builder, [labels])
    return _table(builder, fields)


def _tokenizer(builder, vocabulary):
    """Build a table ProcessUnit, BERT's tokenizer with a vocabulary; return its offset.

    Args:
      builder: `flatbuffers.Builder`.
      vocabulary: name of the carried file.
    """
    pieces = _file(builder, vocabulary, _VOCABULARY_TEXT, _VOCABULARY)
    options = _table(builder, {0: _vector(builder, [pieces])})
    kind = builder.PrependUint8Slot, _BERT_TOKENIZER
    return _table(builder, {1: options}, {0: kind})


def _file(builder, name, text, kind):
    """Build a table AssociatedFile; return its offset."""
    fields = {0: builder.CreateString(name), 1: builder.CreateString(text)}
    return _table(builder, fields, {2: (builder.PrependInt8Slot, kind)})


def _table(builder, offsets, numbers=None):
    """Build a table; return its offset.

    Args:
      builder: `flatbuffers.Builder`.
      offsets: dict of slot -> offset of what the field points to.
      numbers: dict of slot -> (the builder's method for the field, its value).
    """
    numbers = numbers or {}
    builder.StartObject(max([*offsets, *numbers]) + 1)
    for slot, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, (prepend, value) in numbers.items():
        prepend(slot, value, 0)
    return builder.EndObject()


def _vector(builder, offsets):
    """Build a vector of tables or strings; return its offset."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
