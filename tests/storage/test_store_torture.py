"""The torture of an object store would notice, and kills at every stage."""

import json
import random

import pytest
import store_client
import store_torture

from official_bert import object_store


@pytest.mark.parametrize("seed", range(20))
def test_kills_are_at_every_stage(seed):
    kills = store_torture.draw_kills(random.Random(seed))
    assert kills == store_torture.draw_kills(random.Random(seed))
    names = [kill.name for kill in kills]
    stages = store_torture.REQUESTS | store_torture.DELETING | store_torture.AFTERWARDS
    assert set(names) == {*stages, store_torture.RANDOM} and len(names) >= 10
    (deleting,) = (names.index(name) for name in store_torture.DELETING)
    assert deleting >= store_torture.EARLIEST_DELETING
    assert names[-2:] == list(store_torture.AFTERWARDS)
    # Five checkpoints come before the first deletion, two before any other request.
    most = sum(7 * 5 if kill.name in store_torture.DELETING else 10 for kill in kills)
    assert most < store_torture.STEPS


def test_only_complete_checkpoints_count(monkeypatch):
    held, contents = {}, {}
    for step, size in ((5, 7), (10, 7), (15, 6)):
        prefix = f"{store_torture.OUTPUT}/model.ckpt-{step}"
        held |= {f"{prefix}.index": size, f"{prefix}.parts.json": 1}
        parts = {f"model.ckpt-{step}.index": {"bytes": 7}}
        contents[f"{prefix}.parts.json"] = json.dumps({"parts": parts}).encode()
    held[f"{store_torture.OUTPUT}/model.ckpt-20.index"] = 7
    monkeypatch.setattr(store_client, "objects", lambda: held)
    monkeypatch.setattr(object_store, "read", contents.__getitem__)
    assert store_torture.newest_complete() == 10
    del held[f"{store_torture.OUTPUT}/model.ckpt-10.index"]
    assert store_torture.newest_complete() == 5


@pytest.mark.parametrize(
    ("printed", "expected", "is_right"),
    [
        ("The run in gs://bucket/killed resumes at step 15.", 15, True),
        ("The run in gs://bucket/killed resumes at step 10.", 15, False),
        ("nothing of it", 0, True),
        ("nothing of it", 5, False),
    ],
)
def test_a_wrong_start_is_noticed(tmp_path, printed, expected, is_right):
    (tmp_path / "log").write_text(printed)
    killer = store_torture.Killer([], tmp_path / "log", random.Random(0))
    killer._check_resumed(expected)
    assert (killer.problems == []) is is_right
