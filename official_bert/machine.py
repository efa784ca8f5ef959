"""Describe the machine that this process runs on, and its packages."""

import contextlib
import importlib.metadata
import os
import pathlib
from collections.abc import Iterable

# Memory limit of a container in bytes, or "max".
_CONTAINER_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")
# A package that replaces another one: on a TPU VM, TensorFlow is `tensorflow-tpu`.
_REPLACED_BY = {"tensorflow": "tensorflow-tpu"}


def available_cores() -> int | None:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Exists only on Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def total_memory() -> int | None:
    """Return the memory that processes may use, in bytes; None if unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if _CONTAINER_LIMIT.exists():
            text = _CONTAINER_LIMIT.read_text().strip()
            memory = min(memory, int(text)) if text.isdigit() else memory
        return memory
    except (AttributeError, OSError, ValueError):
        return None


def installed_versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Return a dict: package -> its version, or None if it is not installed."""
    versions: dict[str, str | None] = dict.fromkeys(packages)
    for name in versions:
        for candidate in (_REPLACED_BY.get(name), name):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                if candidate:
                    versions[name] = importlib.metadata.version(candidate)
    return versions
