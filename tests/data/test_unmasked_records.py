"""Unmasked records are made, described, shown, and rejected if they do not fit."""

import random

import pytest
import record_files
import tensorflow as tf
from record_files import MINI, MINI_CONFIG

from official_bert.data import (
    dynamic_masking,
    instances,
    masking,
    pretraining_data,
    record_parsing,
    show_instances,
)
from official_bert.data.example_encoding import make_encoder
from official_bert.data.records import examples, manifest
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError

VOCAB = masking.MaskingIds(cls_id=1, sep_id=2, mask_id=3, vocab_ids=tuple(range(300)))
CONTINUES = masking.CONTINUES
TOKENS_A, TOKENS_B = [10, 11 | CONTINUES, 12], [200, 14 | CONTINUES]
UNMASKED = {
    "input_ids": [1, 10, 11, 12, 2, 200, 14, 2, 0],
    "input_mask": [1] * 8 + [0],
    "segment_ids": [0] * 5 + [1] * 3 + [0],
    "next_sentence_labels": [1],
}
CONTINUED = {"continues_word": [0, 0, 1, 0, 0, 0, 1, 0, 0]}


def make(whole_words):
    """Return the instance and the record of one pair."""
    pair = TOKENS_A, TOKENS_B
    if not whole_words:
        pair = [[token & masking.ID_BITS for token in tokens] for tokens in pair]
    settings = instances.InstanceSettings(
        max_seq_length=9,
        max_predictions_per_seq=3,
        masking="dynamic",
        do_whole_word_mask=whole_words,
    )
    rng = random.Random(1)
    instance = instances.make_instance(*pair, True, settings, VOCAB, rng)
    return instance, make_encoder(9, 3, 300)(instance)


@pytest.mark.parametrize("whole_words", [False, True])
def test_record_has_its_tokens_and_no_masks(whole_words):
    _, encoded = make(whole_words)
    expected = UNMASKED | (CONTINUED if whole_words else {})
    example = record_files.example(expected)
    assert encoded == example.SerializeToString(deterministic=True)


@pytest.mark.parametrize("whole_words", [False, True])
def test_spec_is_that_of_the_record(tmp_path, whole_words):
    _, encoded = make(whole_words)
    path = str(tmp_path / "a")
    pretraining_data.write_records([encoded], [path])
    found = examples.infer_lengths(path)
    assert found["max_seq_length"] == 9
    assert found["max_predictions_per_seq"] is None
    parsed = tf.io.parse_single_example(
        encoded, examples.feature_spec(9, 3, found["names"])
    )
    expected = UNMASKED | (CONTINUED if whole_words else {})
    assert {name: value.numpy().tolist() for name, value in parsed.items()} == expected


def test_what_may_be_guessed_is_counted():
    """The manifest's unigram statistics count all possible labels."""
    assert make(True)[0].labels() == [10, 11, 12, 200, 14]
    static = instances.TrainingInstance([1, 3, 2, 5, 2], 3, [1], [10], False)
    assert static.labels() == [10]


def test_long_pairs_are_cut():
    settings = instances.InstanceSettings(
        max_seq_length=9, max_predictions_per_seq=3, masking="dynamic"
    )
    long = list(range(10, 30)), list(range(30, 60))
    rng = random.Random(1)
    ids = instances.make_instance(*long, True, settings, VOCAB, rng).input_ids
    assert len(ids) == 9
    assert (ids[0], ids[-1], ids.count(2)) == (1, 2, 2)


def test_masking_has_two_values():
    with pytest.raises(UserError, match="--masking is often; it must be static or"):
        instances.InstanceSettings(masking="often")


@pytest.fixture
def create(mini, mini_tokenizer, tmp_path):
    def _create(**settings):
        path = str(tmp_path / "out.tfrecord")
        pretraining_data.create_pretraining_data(
            [str(mini / "text.txt")],
            [path],
            mini_tokenizer,
            instances.InstanceSettings(
                max_seq_length=32,
                max_predictions_per_seq=5,
                dupe_factor=1,
                masking="dynamic",
                **settings,
            ),
            str(mini / "vocab.txt"),
        )
        return path

    return _create


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_manifest_tells_how_to_mask(create, whole_words):
    mix = masking.MaskingMix(0, 20, 80)
    path = create(do_whole_word_mask=whole_words, masked_lm_prob=0.2, masking_mix=mix)
    entry = manifest.read_manifest(path)
    assert entry["masking"] == "dynamic"
    # The share among all words, not among randomly drawn ones.
    assert 0 < entry["most_frequent_token"]["share"] < 1
    found = open_record_set(path, MINI_CONFIG, vocab_file=str(MINI / "vocab.txt"))
    assert found.format.masking == dynamic_masking.MaskingRules(
        masked_lm_prob=0.2,
        max_predictions_per_seq=5,
        do_whole_word_mask=whole_words,
        mask_id=9,
        vocab_size=125,
        masking_mix=mix,
    )
    assert (found.max_seq_length, found.max_predictions_per_seq) == (32, 5)


@pytest.mark.parametrize("whole_words", [False, True])
def test_whole_words_are_those_of_the_vocabulary(create, whole_words, mini_tokenizer):
    path = create(do_whole_word_mask=whole_words)
    (batch,) = open_record_set(path, MINI_CONFIG).training_batches(10, 1, 0).take(1)
    assert "continues_word" not in batch
    count = 0
    for example in examples.read_examples(path):
        feature = example.features.feature
        if not whole_words:
            assert "continues_word" not in feature
            continue
        ids = examples.feature_values(feature["input_ids"])
        tokens = mini_tokenizer.convert_ids_to_tokens(ids)
        expected = [int(token.startswith("##")) for token in tokens]
        assert list(examples.feature_values(feature["continues_word"])) == expected
        count += sum(expected)
    assert count > 0 or not whole_words


def refused(words, path, **options):
    with pytest.raises(UserError) as caught:
        open_record_set(str(path), MINI_CONFIG, **options)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unmasked_records_without_their_manifest(tmp_path):
    record_files.write_unmasked(tmp_path)
    (tmp_path / "manifest.json").unlink()
    words = ["--input_file", "0.tfrecord", "unmasked", "manifest.json", "masked_lm_"]
    refused(words, tmp_path / "*")


def test_a_manifest_that_lacks_a_setting(tmp_path):
    path = record_files.write_unmasked(tmp_path)
    entry = record_files.unmasked_manifest()
    del entry["mask_id"]
    manifest.write_manifest({str(tmp_path / "1.tfrecord"): entry})
    refused(["1.tfrecord", "states their mask_id"], path)


def test_whole_words_without_the_words(tmp_path):
    path = record_files.write_unmasked(tmp_path)
    entry = record_files.unmasked_manifest() | {"do_whole_word_mask": True}
    manifest.write_manifest({str(tmp_path / "1.tfrecord"): entry})
    refused(["1.tfrecord", "continues_word", "--do_whole_word_mask"], path)


def test_masked_and_unmasked_records_together(tmp_path):
    record_files.write_unmasked(tmp_path)
    path = record_files.write(tmp_path / "a.tfrecord", record_files.mini_records())
    manifest.write_manifest({path: record_files.mini_manifest()})
    words = ["a.tfrecord", "static masking", "dynamic masking at masked_lm_prob 0.15"]
    refused(words, tmp_path / "*.tfrecord")


def test_two_ways_of_masking_together(tmp_path):
    path = record_files.write_unmasked(tmp_path)
    entry = record_files.unmasked_manifest() | {"masked_lm_prob": 0.3}
    manifest.write_manifest({str(tmp_path / "1.tfrecord"): entry})
    refused(["1.tfrecord", "0.tfrecord", "0.3", "0.15", "equal settings"], path)


def test_other_predictions_than_the_flag(tmp_path):
    path = record_files.write_unmasked(tmp_path)
    words = ["--max_predictions_per_seq is 20", "with 5"]
    refused(words, path, max_predictions_per_seq=20)


def test_statistics_are_of_masked_words(tmp_path):
    folder = tmp_path / "masked"
    folder.mkdir()
    masked = open_record_set(record_files.write_mini(folder), MINI_CONFIG)
    found = open_record_set(record_files.write_unmasked(tmp_path), MINI_CONFIG)
    # The same text with other masked words.
    for ours, theirs in zip(
        found.label_statistics(), masked.label_statistics(), strict=True
    ):
        assert ours == pytest.approx(theirs, rel=0.35)
        assert ours != theirs


def test_they_are_shown_without_masks(tmp_path):
    record_files.write_unmasked(tmp_path)
    vocab = (MINI / "vocab.txt").read_text().split("\n")
    path = str(tmp_path / "0.tfrecord")
    (shown,) = show_instances.describe_instances([path], vocab, 0, 1, False)
    assert "tokens, masked during training, B is" in shown
    assert "[CLS]" in shown and "«" not in shown and "[MASK]" not in shown


def test_a_bad_id_is_found_before_it_is_masked(tmp_path):
    record = record_files.unmasked(record_files.mini_records()[0])
    record["input_ids"] = [999] * 32
    path = record_files.write(tmp_path / "a.tfrecord", [record] * 3)
    manifest.write_manifest({path: record_files.unmasked_manifest()})
    found = open_record_set(path, MINI_CONFIG)
    with pytest.raises(tf.errors.OpError) as caught:
        list(found.training_batches(3, 1, 0).take(1))
    error = record_parsing.user_error(caught.value, found.index, found.format)
    assert "input_ids is 999" in str(error)


def test_only_what_records_have_is_checked(tmp_path):
    path = record_files.write_unmasked(tmp_path)
    found = open_record_set(path, MINI_CONFIG)
    assert set(found.format.limits) == {
        "input_ids",
        "segment_ids",
        "next_sentence_labels",
    }
