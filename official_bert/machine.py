"""The machine that this process runs on, and the packages on it."""

import contextlib
import importlib.metadata
import os
import pathlib
from collections.abc import Iterable

# How much memory a container may use, or "max".
_CONTAINER_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")


def available_cores() -> int | None:
    """Return how many CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Only Linux has it.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def total_memory() -> int | None:
    """Return the bytes of memory that processes may use; None if nobody tells."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if _CONTAINER_LIMIT.exists():
            text = _CONTAINER_LIMIT.read_text().strip()
            memory = min(memory, int(text)) if text.isdigit() else memory
        return memory
    except (AttributeError, OSError, ValueError):
        return None


def installed_versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Return a dict, package -> its version, or None if it is not installed."""
    versions = dict.fromkeys(packages)
    for name in versions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
