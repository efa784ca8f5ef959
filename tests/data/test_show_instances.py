import re

import pytest

from official_bert.data import pretraining_data, show_instances
from official_bert.data.example_encoding import make_encoder
from official_bert.data.instances import TrainingInstance
from official_bert.errors import UserError

VOCAB = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "the", "sea", "##s", "sleeps", "now"]
INSTANCES = [
    TrainingInstance([1, 3, 5, 6, 2, 8, 2], 5, [1, 5], [4, 7], True),
    TrainingInstance([1, 4, 2, 5, 2], 3, [3], [5], False),
]


@pytest.fixture
def record_file(tmp_path):
    encode = make_encoder(9, 3, len(VOCAB))
    path = str(tmp_path / "a.tfrecord")
    pretraining_data.write_records(list(map(encode, INSTANCES)), [path])
    return path


def _describe(path, skip=0, count=5, in_colour=False, vocab=VOCAB):
    return list(
        show_instances.describe_instances([path], vocab, skip, count, in_colour)
    )


def test_tokens_masks_segments_and_label_are_shown(record_file):
    first, second = _describe(record_file)
    assert first.split("\n") == [
        f"{record_file}: record 0: 7 of 9 tokens, 2 masked, B is a random text "
        "(label 1)",
        "  A  [CLS] [MASK]«the» sea ##s [SEP]",
        "  B  now«sleeps» [SEP]",
        "",
    ]
    assert "1 masked, B is the next text (label 0)" in second
    assert "  B  sea«sea» [SEP]" in second


def test_colours_are_only_added(record_file):
    coloured = "\n".join(_describe(record_file, in_colour=True))
    assert "\033[" in coloured
    plain = "\n".join(_describe(record_file))
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == plain


def test_skip_and_count(record_file):
    (only,) = _describe(record_file, skip=1, count=1)
    assert "record 1:" in only
    with pytest.raises(UserError, match="--skip=2 skips all"):
        _describe(record_file, skip=2)


def test_a_smaller_vocabulary_is_noticed(record_file):
    with pytest.raises(UserError, match="record 0 has an id of 8 or more"):
        _describe(record_file, vocab=VOCAB[:8])
