import random

import pytest

from official_bert.data import masking
from official_bert.engines import token_store
from official_bert.errors import UserError


def _documents(rng, number, highest):
    return [
        [
            [rng.randint(0, highest) for _ in range(rng.randint(1, 9))]
            for _ in range(rng.randint(1, 7))
        ]
        for _ in range(number)
    ]


def _store(tmp_path, blocks, highest):
    paths = [str(tmp_path / f"{number}.ids") for number in range(len(blocks))]
    sizes = [
        token_store.write_block(path, block, highest)
        for path, block in zip(paths, blocks, strict=True)
    ]
    return token_store.TokenStore(paths, sizes), sizes


def _read(store, document):
    starts = store.starts_of(document)
    pairs = zip(starts[:-1], starts[1:], strict=True)
    return [store.tokens_of(document, start, end) for start, end in pairs]


@pytest.mark.parametrize("highest", [65535, 65536, masking.CONTINUES | 30000])
def test_documents_come_back_from_any_block(tmp_path, monkeypatch, highest):
    monkeypatch.setattr(token_store, "MOST_OPEN", 2)
    rng = random.Random(1)
    blocks = [_documents(rng, number, highest) for number in (3, 0, 1, 0, 5, 2)]
    blocks[0][0][0][0] = highest
    store, sizes = _store(tmp_path, blocks, highest)
    documents = [document for block in blocks for document in block]
    assert store.num_documents == len(documents) == 11
    assert {size.token_bytes for size in sizes} == {2 if highest < 65536 else 4}
    places = list(range(11)) * 2
    rng.shuffle(places)
    assert all(_read(store, place) == documents[place] for place in places)


def test_sizes_say_what_there_is(tmp_path):
    _, (size,) = _store(tmp_path, [[[[1, 2], [3]], [[4]]]], 9)
    assert size == token_store.BlockSize(2, 3, 4, 2)
    assert (tmp_path / "0.ids").stat().st_size == 3 * 4 + 4 * 4 + 4 * 2


def test_a_file_that_was_cut_off_is_noticed(tmp_path):
    store, _ = _store(tmp_path, [[[[1, 2], [3]]]], 9)
    with open(tmp_path / "0.ids", "r+b") as file:
        file.truncate(22)
    with pytest.raises(UserError, match=f"0.ids is truncated. Delete {tmp_path} and"):
        _read(store, 0)
