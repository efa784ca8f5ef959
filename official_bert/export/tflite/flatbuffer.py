"""Check a `.tflite`, write its metadata, and append packed files.

A `.tflite` is a flatbuffer of TFLite's schema. Its metadata is a second
flatbuffer inside, with the schema `metadata_schema.fbs` ("M001", version 1.5.0)
used by readers on phones. The model's files are in a zip archive after the
flatbuffer.
"""

import dataclasses
import os
import zipfile
from collections.abc import Mapping

import flatbuffers
import numpy as np

from official_bert.export.tflite.converter import flatbuffer_utils, schema

_METADATA_NAME, _METADATA_IDENTIFIER = b"TFLITE_METADATA", b"M001"
# From the enum AssociatedFileType.
_UNKNOWN, _AXIS_LABELS, _VOCABULARY = 0, 2, 5
# From the union ProcessUnitOptions.
_BERT_TOKENIZER = 4
_LABELS_TEXT = "The labels in the order of their numbers, one per line."
_VOCABULARY_TEXT = "The tokens in the order of their ids, one per line."


@dataclasses.dataclass(frozen=True)
class Description:
    """The content of a model's metadata.

    Attributes:
      name: of the model.
      text: the model's purpose.
      version: of the model.
      tensors: dict of input or output name -> description.
      vocabulary: name of the packed vocabulary file; None without one.
      labels: name of the packed label file; None without one.
      labeled: names of the outputs whose last axis is the labels.
      others: dict of the name of another packed file -> description.
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
      sorted list of their registered names ("FlexErf").
    """
    custom = schema.BuiltinOperator.CUSTOM
    codes = [code for code in model.operatorCodes if code.builtinCode == custom]
    return sorted({(code.customCode or b"CUSTOM").decode() for code in codes})


def dynamic_shapes(model: schema.ModelT) -> list[str]:
    """Return a model's tensors without a fixed shape, including inputs and outputs.

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
    """Return a model's bytes with the standard metadata, replacing old metadata.

    The `schema.ModelT`, smaller than 2 GB, is modified.
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
        # The first schema version with all features used here.
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
    """Append files to a model, as a zip archive.

    They are uncompressed, as readers on phones require. The same files, a dict
    of name -> bytes, give the same bytes. The model is changed in place.

    Raises:
      ValueError: the model already has packed files.
    """
    with zipfile.ZipFile(path, "a") as packed:
        if packed.namelist():
            raise ValueError(f"{path} already contains packed files.")
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = (
                3  # Unix, also on Windows, so that the file mode is used.
            )
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content, zipfile.ZIP_STORED)


def _name(named):
    """Return the name, str, of a model part; the name may be missing."""
    return (named.name or b"").decode()


# TensorFlow has no classes for the metadata schema, so tables are dicts here:
# field number -> str, table, list of tables, or `_Byte`.


class _Byte(int):
    """A one-byte number, as in enums and unions."""


def _subgraph(subgraph, signature, description):
    """Return a SubGraphMetadata table; nested subgraphs have no signature."""
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
        # A ProcessUnit with the options of BERT's tokenizer.
        table[5] = [{0: _Byte(_BERT_TOKENIZER), 1: {0: [vocabulary]}}]
    return table


def _tensor(name, description):
    """Return a TensorMetadata table."""
    table = {0: name}
    if name in description.tensors:
        table[1] = description.tensors[name]
    if description.labels and name in description.labeled:
        table[6] = [_file(description.labels, _LABELS_TEXT, _AXIS_LABELS)]
    return table


def _file(name, text, kind):
    """Return an AssociatedFile table."""
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
