"""The memory of the machine, also in containers."""

import importlib.metadata
import os

import pytest

from official_bert import machine


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("1000000\n", 1_000_000), ("max\n", 8_192_000), ("99999999999\n", 8_192_000)],
)
def test_a_container_has_less_memory_than_its_machine(
    monkeypatch, tmp_path, limit, expected
):
    values = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2000}
    monkeypatch.setattr(os, "sysconf", values.__getitem__)
    monkeypatch.setattr(machine, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert machine.total_memory() == 8_192_000
    (tmp_path / "memory.max").write_text(limit)
    assert machine.total_memory() == expected


def test_a_system_that_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert machine.total_memory() is None


def test_this_machine_has_cores_and_memory():
    cores, memory = machine.available_cores(), machine.total_memory()
    assert cores >= 1
    assert memory is None or memory > 10**8


def test_versions_of_packages():
    versions = machine.installed_versions(["pytest", "not-a-package"])
    assert versions == {"pytest": pytest.__version__, "not-a-package": None}


def test_tensorflow_of_a_tpu_vm_is_found(monkeypatch):
    def version(name):
        if name != "tensorflow-tpu":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.20.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    versions = machine.installed_versions(["tensorflow", "keras"])
    assert versions == {"tensorflow": "2.20.0", "keras": None}
