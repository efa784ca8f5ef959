"""CoNLL-2003 by name has the same sentences as our reader gets from the files."""

import pytest
from named_datasets import opened, prepare, prepare_rows, tfds

from official_bert.errors import UserError
from official_bert.tasks.ner.datasets import read_sentences
from official_bert.tasks.ner.files import read_ner_file

SENTENCES = (
    "Anna NNP B-NP B-PER\nis VBZ B-VP O\nin IN B-PP O\nRome NNP B-NP B-LOC\n",
    "Bob NNP B-NP B-PER\nSmith NNP I-NP I-PER\nsings VBZ B-VP O\n. . O O\n",
    "U.N. NNP I-NP I-ORG\nmet VBD I-VP O\n",
)
FILE = "-DOCSTART- -X- -X- O\n\n" + "\n".join(SENTENCES) + "\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return (path of a CoNLL file, folder of TFDS)."""
    folder = tmp_path_factory.mktemp("conll")
    for name in ("train.txt", "valid.txt", "test.txt"):
        (folder / name).write_text(FILE)
    prepare("conll2003", folder / "tfds", folder)
    return folder / "train.txt", folder / "tfds"


def test_sentences_are_those_of_the_file(prepared):
    path, data_dir = prepared
    dataset = opened("conll2003", data_dir)
    found = read_sentences(dataset, dataset.require_split("train"))
    wanted = read_ner_file(path)
    (sentences,), (others,) = found.documents, wanted.documents
    by_text = {one.text: one for one in sentences}
    assert len(sentences) == len(others) == 3
    for other in others:
        one = by_text[other.text]
        assert (one.words, one.tags) == (other.words, other.tags)
        assert one.offsets == other.offsets and one.columns == other.columns
    assert by_text["U.N. met"].tags == ("B-ORG", "O")
    assert by_text["U.N. met"].columns == (("NNP", "I-NP"), ("VBD", "I-VP"))
    assert found.labels == wanted.labels == ("LOC", "ORG", "PER")
    assert found.format == wanted.format
    assert found.notes[0] == (
        "conll2003 (train): sentences are read one by one, because TFDS keeps no "
        "documents."
    )
    assert "1 of 4 entities begin with I" in found.notes[1]


def test_splits(prepared):
    dataset = opened("conll2003", prepared[1])
    assert (dataset.find_split("dev"), dataset.find_split("test")) == ("dev", "test")


def test_unknown_types(prepared):
    dataset = opened("conll2003", prepared[1])
    with pytest.raises(
        UserError, match=r"conll2003 \(dev\): 1 row .* 'I-ORG' of an un"
    ):
        read_sentences(dataset, "dev", {"PER", "LOC"})
    assert read_sentences(dataset, "dev", {"PER", "LOC", "ORG"}).documents


def classes(*names):
    return tfds.features.Sequence(tfds.features.ClassLabel(names=names))


def made_up(folder, row, **features):
    words = {"words": tfds.features.Sequence(tfds.features.Text())}
    prepare_rows("tagged", folder, words | features, {"train": [row]})
    return opened("tagged", folder)


def test_another_dataset(tmp_path):
    dataset = made_up(
        tmp_path,
        {"words": ["Ada", "sings"], "tags": ["S-PER", "O"]},
        tags=classes("O", "S-PER"),
    )
    (((sentence,),)) = read_sentences(dataset, "train").documents
    assert sentence.tags == ("B-PER", "O") and sentence.columns == ((), ())


@pytest.mark.parametrize(
    ("row", "tags", "message"),
    [
        ({"words": ["a", "b"], "tags": ["O"]}, ("O",), "has 2 words and 1 tags"),
        ({"words": ["a", " "], "tags": ["O", "O"]}, ("O",), "has an empty word"),
        (
            {"words": ["a"], "tags": ["noun"]},
            ("noun",),
            "has 'noun', which is not a tag",
        ),
        ({"words": [], "tags": []}, ("O",), r"tagged \(train\) has no words"),
    ],
)
def test_rows_that_cannot_be_used(tmp_path, row, tags, message):
    dataset = made_up(tmp_path, row, tags=classes(*tags))
    with pytest.raises(UserError, match=message):
        read_sentences(dataset, "train")


def test_other_features(tmp_path):
    row = {"words": ["a"], "x": ["O"], "y": ["O"]}
    dataset = made_up(tmp_path, row, x=classes("O"), y=classes("O"))
    with pytest.raises(UserError, match="one sequence of tags.* x .sequence of class"):
        read_sentences(dataset, "train")
