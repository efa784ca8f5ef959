import pytest
import tensorflow as tf

from official_bert.data.example_encoding import make_encoder
from official_bert.data.instances import TrainingInstance
from official_bert.data.records import examples
from official_bert.errors import UserError

INSTANCE = TrainingInstance(
    [1, 300, 2, 20000, 127, 128, 2], 3, [1, 5], [9, 16384], True
)
PADDED = {
    "input_ids": [1, 300, 2, 20000, 127, 128, 2, 0, 0],
    "input_mask": [1] * 7 + [0] * 2,
    "segment_ids": [0, 0, 0, 1, 1, 1, 1, 0, 0],
    "masked_lm_positions": [1, 5, 0, 0],
    "masked_lm_ids": [9, 16384, 0, 0],
    "masked_lm_weights": [1.0, 1.0, 0.0, 0.0],
    "next_sentence_labels": [1],
}


def _example(values):
    features = {}
    for name, numbers in values.items():
        if isinstance(numbers[0], float):
            kind = {"float_list": tf.train.FloatList(value=numbers)}
        else:
            kind = {"int64_list": tf.train.Int64List(value=numbers)}
        features[name] = tf.train.Feature(**kind)
    return tf.train.Example(features=tf.train.Features(feature=features))


def _write(path, *contents):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)
    return str(path)


def test_encoding_equals_protobuf_byte_for_byte():
    encoded = make_encoder(9, 4, 30522)(INSTANCE)
    assert encoded == _example(PADDED).SerializeToString(deterministic=True)


def test_encoding_of_long_and_full_instances():
    ids = list(range(512))
    instance = TrainingInstance(ids, 200, ids[1:78], ids[1:78], False)
    expected = {
        "input_ids": ids,
        "input_mask": [1] * 512,
        "segment_ids": [0] * 200 + [1] * 312,
        "masked_lm_positions": ids[1:78],
        "masked_lm_ids": ids[1:78],
        "masked_lm_weights": [1.0] * 77,
        "next_sentence_labels": [0],
    }
    encoded = make_encoder(512, 77, 600)(instance)
    assert encoded == _example(expected).SerializeToString(deterministic=True)


def test_spec_parses_records_and_lengths_are_inferred(tmp_path):
    path = _write(tmp_path / "a", make_encoder(9, 4, 30522)(INSTANCE))
    lengths = examples.infer_lengths(path)
    assert lengths["max_seq_length"] == 9
    assert lengths["max_predictions_per_seq"] == 4
    record = next(iter(tf.data.TFRecordDataset(path)))
    parsed = tf.io.parse_single_example(record, examples.feature_spec(9, 4))
    assert {name: value.numpy().tolist() for name, value in parsed.items()} == PADDED
    assert parsed["masked_lm_weights"].dtype == tf.float32


def test_model_garden_names_are_read(tmp_path):
    renamed = dict(PADDED)
    renamed["input_word_ids"] = renamed.pop("input_ids")
    renamed["input_type_ids"] = renamed.pop("segment_ids")
    path = _write(tmp_path / "a", _example(renamed).SerializeToString())
    lengths = examples.infer_lengths(path)
    assert lengths["max_seq_length"] == 9
    assert lengths["names"]["input_ids"] == "input_word_ids"
    record = next(iter(tf.data.TFRecordDataset(path)))
    spec = examples.feature_spec(9, 4, lengths["names"])
    parsed = tf.io.parse_single_example(record, spec)
    assert parsed["input_type_ids"].numpy().tolist() == PADDED["segment_ids"]


def test_foreign_records_are_named(tmp_path):
    classifier = {key: PADDED[key] for key in ("input_ids", "input_mask")}
    path = _write(tmp_path / "a", _example(classifier).SerializeToString())
    message = "no segment_ids, next_sentence_labels.*it has input_ids, input_mask"
    with pytest.raises(UserError, match=message):
        examples.infer_lengths(path)
    path = _write(tmp_path / "b", b"\xff\xff")
    with pytest.raises(UserError, match="record 0 is not a tf.train.Example"):
        examples.infer_lengths(path)


def test_a_cut_off_file_names_the_record(tmp_path):
    encoded = make_encoder(9, 4, 30522)(INSTANCE)
    path = tmp_path / "a"
    _write(path, encoded, encoded)
    path.write_bytes(path.read_bytes()[:-5])
    found = examples.read_examples(str(path))
    next(found)
    with pytest.raises(UserError, match="is truncated or damaged at record 1"):
        next(found)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("Some text that is not a TFRecord file at all.")
    with pytest.raises(UserError, match="is not a TFRecord file"):
        examples.infer_lengths(str(tmp_path / "text"))
    (tmp_path / "empty").write_text("")
    with pytest.raises(UserError, match="contains no records"):
        examples.infer_lengths(str(tmp_path / "empty"))
    with pytest.raises(UserError, match="does not exist"):
        examples.infer_lengths(str(tmp_path / "missing"))
    with pytest.raises(UserError, match="is a directory"):
        examples.infer_lengths(str(tmp_path))
