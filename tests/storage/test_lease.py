"""A lease on a folder of an object store."""

import dataclasses
import json
import os
import secrets
import threading
import time

import pytest

from official_bert import files, lease, object_store
from official_bert.errors import StoreError, UserError

OTHER = lease.Claim("other", "elsewhere", 1, 0.0)


@pytest.fixture
def folder():
    return f"ram://lease-{secrets.token_hex(4)}"


def write(folder, claim):
    data = json.dumps(dataclasses.asdict(claim)).encode()
    object_store.write(f"{folder}/.lease-{claim.owner}", data)


def claims(folder):
    return [n for n in object_store.list_directory(folder) if n.startswith(".lease-")]


def test_it_is_held_and_released(folder):
    with files.locked_directory(folder):
        assert len(claims(folder)) == 1
        lease.require_held(folder)
    assert claims(folder) == []
    with pytest.raises(UserError, match="The lease on .* was lost"):
        lease.require_held(folder)


def test_after_a_refusal_the_store_is_not_asked_again(folder, monkeypatch):
    """Each request takes minutes until the client gives it up."""
    renewing, refusing = threading.Event(), threading.Event()

    def write_slowly(*_):
        renewing.set()
        assert refusing.wait(60)

    monkeypatch.setattr(lease, "RENEWAL", 0.02)
    with pytest.raises(StoreError), files.locked_directory(folder):
        monkeypatch.setattr(object_store, "remove", lambda _: pytest.fail("removed"))
        monkeypatch.setattr(object_store, "write", write_slowly)
        assert renewing.wait(60)
        raise StoreError("the quota of the store is used up.")
    assert len(claims(folder)) == 1 and not refusing.is_set()
    refusing.set()
    monkeypatch.undo()
    with files.locked_directory(folder):  # Its process counts as dead.
        assert len(claims(folder)) == 1


def test_one_that_is_renewed_is_refused(folder, monkeypatch):
    """A folder is refused while its owner, on another host, renews the lease."""
    write(folder, dataclasses.replace(OTHER, expires=time.time() + 50))

    def sleep(_):
        write(folder, dataclasses.replace(OTHER, expires=time.time() + 60))

    monkeypatch.setattr(time, "sleep", sleep)
    with (
        pytest.raises(UserError, match="--output_dir: process 1 on elsewhere is using"),
        files.locked_directory(folder),
    ):
        pass
    assert claims(folder) == [".lease-other"]


def test_one_that_is_not_renewed_is_taken_over(folder, monkeypatch, capsys):
    write(folder, dataclasses.replace(OTHER, expires=time.time() + 50))
    clock = [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))
    began = clock[0]
    with files.locked_directory(folder):
        assert 50 < clock[0] - began < 60
        # Its own time counts from the end of the wait.
        clock[0] += 30
        lease.require_held(folder)
        assert ".lease-other" not in claims(folder)
    assert "Waiting up to 65 s" in capsys.readouterr().out


def test_a_dead_process_of_this_host_at_once(folder, monkeypatch):
    dead = dataclasses.replace(
        OTHER, host=lease._host(), pid=2**22 + 1, expires=time.time() + 50
    )
    write(folder, dead)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("It waited."))
    with files.locked_directory(folder):
        assert len(claims(folder)) == 1


def test_a_live_process_of_this_host_is_refused_at_once(folder, monkeypatch):
    alive = dataclasses.replace(
        OTHER, host=lease._host(), pid=os.getppid(), expires=time.time() + 50
    )
    write(folder, alive)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("It waited."))
    with pytest.raises(UserError, match="is using"), files.locked_directory(folder):
        pass


def test_of_many_at_the_same_time_at_most_one_holds_it(folder, monkeypatch):
    """Of many competitors, at most one gets the lease; threads replace processes."""
    hosts = threading.local()
    monkeypatch.setattr(lease, "_host", lambda: hosts.name)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    holding, most, refused = [], [], []
    barrier = threading.Barrier(8)

    def work(number):
        hosts.name = f"host-{number}"
        barrier.wait()
        try:
            with lease.held(folder, "--output_dir", say=lambda _: None):
                holding.append(number)
                most.append(len(holding))
                threading.Event().wait(0.05)
                holding.remove(number)
        except UserError:
            refused.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) + len(refused) == 8
    assert max(most, default=1) == 1


def test_it_is_renewed(folder, monkeypatch):
    monkeypatch.setattr(lease, "RENEWAL", 0.02)
    with files.locked_directory(folder):
        (name,) = claims(folder)
        first = json.loads(object_store.read(f"{folder}/{name}"))["expires"]
        threading.Event().wait(0.3)
        later = json.loads(object_store.read(f"{folder}/{name}"))["expires"]
        assert later > first


def test_a_lost_one_is_not_written_again(folder, monkeypatch):
    """A lease that another owner has removed is not written again."""
    monkeypatch.setattr(lease, "RENEWAL", 0.02)
    with files.locked_directory(folder):
        (name,) = claims(folder)
        object_store.remove(f"{folder}/{name}")
        threading.Event().wait(0.1)
        assert claims(folder) == []
        with pytest.raises(UserError, match="was lost"):
            lease.require_held(folder)
