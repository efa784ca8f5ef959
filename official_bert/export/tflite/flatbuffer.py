"""Check a `.tflite`, describe it in its metadata, and pack files behind it.

A `.tflite` is a flatbuffer of TFLite's schema. Its metadata is a second flatbuffer
inside, of the schema `metadata_schema.fbs` ("M001", version 1.5.0) that phones' readers
know; the files that belong to the model are a zip archive behind it.
"""

import dataclasses
import os
import zipfile
from collections.abc import Mapping

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

_METADATA_NAME, _METADATA_IDENTIFIER = b"TFLITE_METADATA", b"M001"
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
      vocabulary: name of the packed file with the vocabulary; None without one.
      labels: name of the packed file with the labels; None without one.
      labeled: names of the outputs whose last axis the labels go along.
      others: dict of the name of another packed file -> what is in it.
    """

    name: str
    text: str
    version: str
    tensors: dict[str, str]
    vocabulary: str | None = None
    labels: str | None = None
    labeled: tuple[str, ...] = ()
    others: dict[str, str] = dataclasses.field(default_factory=dict)


def read(content: bytes) -> schema.ModelT:
    """Return the `schema.ModelT` of a `.tflite`'s bytes; constants are not copied."""
    return flatbuffer_utils.convert_bytearray_to_object(content)


def custom_operators(model: schema.ModelT) -> list[str]:
    """Return the operators that stock TFLite may not have, such as Flex ops.

    Returns:
      list of the names that they are registered under ("FlexErf"), sorted.
    """
    custom = schema.BuiltinOperator.CUSTOM
    codes = [code for code in model.operatorCodes if code.builtinCode == custom]
    return sorted({(code.customCode or b"CUSTOM").decode() for code in codes})


def dynamic_shapes(model: schema.ModelT) -> list[str]:
    """Return the tensors of a model, inputs and outputs too, without a fixed shape.

    Returns:
      list of str, "NAME [1, -1] of subgraph NAME".
    """
    return [
        f"{tensor.name.decode()} {list(map(int, tensor.shapeSignature))} of subgraph "
        f"{_name(subgraph)}"
        for subgraph in model.subgraphs
        for tensor in subgraph.tensors
        if tensor.shapeSignature is not None and -1 in tensor.shapeSignature
    ]


def with_metadata(model: schema.ModelT, description: Description) -> bytes:
    """Return a model's bytes with the standard metadata, in place of what it has.

    The `schema.ModelT`, of less than 2 GB, is changed.
    """
    signatures = {one.subgraphIndex: one for one in model.signatureDefs or ()}
    subgraphs = [
        _subgraph(subgraph, signatures.get(i), description)
        for i, subgraph in enumerate(model.subgraphs)
    ]
    # The table ModelMetadata.
    table = {
        0: description.name,
        1: description.text,
        2: description.version,
        3: subgraphs,
        6: [_file(name, text, _UNKNOWN) for name, text in description.others.items()],
        # The first version of the schema that knows all that is used here.
        7: "1.1.0" if description.vocabulary else "1.0.0",
    }
    builder = flatbuffers.Builder(1024)
    builder.Finish(_pack(builder, table), file_identifier=_METADATA_IDENTIFIER)
    model.metadata = [m for m in model.metadata or () if m.name != _METADATA_NAME]
    entry = schema.MetadataT()
    entry.name, entry.buffer = _METADATA_NAME, len(model.buffers)
    model.metadata.append(entry)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(bytes(builder.Output()), np.uint8)
    model.buffers.append(buffer)
    return flatbuffer_utils.convert_object_to_bytearray(model)


def append_files(path: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Pack files behind a model, as a zip archive.

    They are not compressed: readers on phones demand it. The same files, a dict of
    name -> bytes, give the same bytes. The model is changed in place.

    Raises:
      ValueError: there are files behind it already.
    """
    with zipfile.ZipFile(path, "a") as packed:
        if packed.namelist():
            raise ValueError(f"{path} carries files already.")
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, on Windows too; it gives the mode a sense.
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content, zipfile.ZIP_STORED)


def _name(named):
    """Return the name, str, of a part of a model that may have none."""
    return (named.name or b"").decode()


# TensorFlow has no classes for the metadata's schema. So its tables are dicts here, of
# the number of a field -> str, table, list of tables, or `_Byte`.


class _Byte(int):
    """A number of one byte, as enums and unions have them."""


def _subgraph(subgraph, signature, description):
    """Return a table SubGraphMetadata; one inside another has no signature."""
    names = {i: _name(tensor) for i, tensor in enumerate(subgraph.tensors)}
    if signature:
        named = [*signature.inputs, *signature.outputs]
        names |= {tensor.tensorIndex: _name(tensor) for tensor in named}
    table = {
        0: signature.signatureKey.decode() if signature else _name(subgraph),
        2: [_tensor(names[i], description) for i in subgraph.inputs],
        3: [_tensor(names[i], description) for i in subgraph.outputs],
    }
    if signature and description.vocabulary:
        vocabulary = _file(description.vocabulary, _VOCABULARY_TEXT, _VOCABULARY)
        # A ProcessUnit, whose options are those of BERT's tokenizer.
        table[5] = [{0: _Byte(_BERT_TOKENIZER), 1: {0: [vocabulary]}}]
    return table


def _tensor(name, description):
    """Return a table TensorMetadata."""
    table = {0: name}
    if name in description.tensors:
        table[1] = description.tensors[name]
    if description.labels and name in description.labeled:
        table[6] = [_file(description.labels, _LABELS_TEXT, _AXIS_LABELS)]
    return table


def _file(name, text, kind):
    """Return a table AssociatedFile."""
    return {0: name, 1: text, 2: _Byte(kind)}


def _pack(builder, value):
    """Build a str, table or list of tables; return its offset."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, list):
        offsets = [_pack(builder, one) for one in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
    fields = {
        number: field if isinstance(field, _Byte) else _pack(builder, field)
        for number, field in value.items()
    }
    builder.StartObject(max(fields) + 1)
    for number, field in fields.items():
        if isinstance(field, _Byte):
            builder.PrependUint8Slot(number, field, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(number, field, 0)
    return builder.EndObject()
