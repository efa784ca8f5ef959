"""`training.json`: the settings of a run, and the machines that it ran on.

    {"run_id": …,                     also in each of the run's checkpoints
     "settings": {…},                 must not change when the run continues
     "history": [{"from_step": 0, "environment": {…}}, …]}

The same settings in the same environment give bit-identical results.
"""

import dataclasses
import os
import reprlib
import secrets
from typing import Any

from official_bert import files
from official_bert.checkpoints import any_format, names
from official_bert.errors import UserError
from official_bert.json_records import read_record

MANIFEST_FILE = "training.json"
# Suffixes of the names of settings that identify data.
_OF_DATA = ("_bytes", "_crc32")


@dataclasses.dataclass(frozen=True)
class _Period:
    """The first step of a part of the run, and the environment of that part."""

    from_step: int
    environment: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Manifest:
    """The content of `training.json`; see this module's docstring."""

    run_id: int
    settings: dict[str, Any]
    history: tuple[_Period, ...]

    @classmethod
    def read(cls, path):
        """Read the file; raise `UserError` if it is invalid."""
        remedy = "restore it from a copy of the run, or choose another directory"
        return read_record(cls, path, "the manifest of a run", remedy)

    def write(self, path):
        """Replace the file."""
        files.write_json(path, dataclasses.asdict(self))


def open_run(
    directory: str | os.PathLike[str],
    settings: dict[str, Any],
    allow_changes: bool = False,
) -> int:
    """Begin a run, or compare its settings with those at its beginning.

    Args:
      directory: the run's output directory.
      settings: dict of values that must not change when the run continues.
      allow_changes: continue with changed settings, and report them.

    Returns:
      the run's id, an int.

    Raises:
      UserError: the settings differ; the message shows the first difference.
    """
    path = os.path.join(directory, MANIFEST_FILE)
    begun = bool(names.numbered_checkpoints(directory)) and files.exists(path)
    if not begun:
        if any_format.holds_model(directory):
            raise UserError(
                f"--output_dir: {directory} holds a model but no run to continue. "
                "Choose another directory, or start from this model with --model."
            )
        run_id = secrets.randbits(63)
        _Manifest(run_id, settings, ()).write(path)
        return run_id
    manifest = _Manifest.read(path)
    before = manifest.settings
    differences = list(_differences(before, settings))
    if not differences:
        return manifest.run_id
    if _kind(before) != _kind(settings):
        raise UserError(
            f"--output_dir: {directory} holds a run of another task "
            f"({_kind(before)}). Choose another directory."
        )
    if not allow_changes:
        name, old, new = differences[0]
        difference = f"{name} {reprlib.repr(old)}, and now it is {reprlib.repr(new)}"
        if name.endswith(_OF_DATA):
            difference = f"other data ({difference})"
        raise UserError(
            f"--output_dir: {directory} holds a run with {difference}. To continue "
            "that run, give the same flags, or --allow_changed_settings to accept the "
            "change. Otherwise choose another directory."
        )
    print(f"Continuing with changed settings: {_tell(differences)}.", flush=True)
    return manifest.run_id


def run_id_of(directory: str | os.PathLike[str]) -> int | None:
    """Return the id of the run in a directory; None without a run."""
    try:
        return _Manifest.read(os.path.join(directory, MANIFEST_FILE)).run_id
    except UserError:
        return None


def note_start(
    directory: str | os.PathLike[str],
    step: int,
    settings: dict[str, Any],
    environment: dict[str, Any],
) -> None:
    """Record the start or resumption of a run, and report changes of the environment.

    Args:
      directory: the run's output directory.
      step: the step at which the run starts or resumes.
      settings: dict, as for `open_run`.
      environment: dict from `environment.describe`.
    """
    path = os.path.join(directory, MANIFEST_FILE)
    manifest = _Manifest.read(path)
    # After a kill, steps of a later environment may be lost. Drop their entries.
    history = [period for period in manifest.history if period.from_step < step]
    before = history[-1].environment if history else {}
    # An older version may have recorded fewer values. Compare only the recorded ones.
    known = {name: value for name, value in environment.items() if name in before}
    differences = list(_differences(before, known))
    if differences:
        print(f"Resuming, not bit-exact because {_tell(differences)}.", flush=True)
    if before != environment:
        history.append(_Period(step, environment))
    _Manifest(manifest.run_id, settings, tuple(history)).write(path)


def _kind(settings):
    """Return the name of the task that a run trains."""
    return settings.get("task", {}).get("task", "pre-training")


def _differences(before, now, prefix=""):
    """Yield (name, old value, new value) of each difference."""
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{name}: ")
        elif old != new:
            yield prefix + name, old, new


def _tell(differences):
    return "; ".join(
        f"{name} was {reprlib.repr(old)} and is {reprlib.repr(new)}"
        for name, old, new in differences
    )
