"""`training.json`: what a run is, and what it has run on.

    {"run_id": …,                     also in each of its checkpoints
     "settings": {…},                 must not change when it is continued
     "history": [{"from_step": 0, "environment": {…}}, …]}

The same settings in the same environment give the same bits.
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
# Ends of names of settings by which data are told from others.
_OF_DATA = ("_bytes", "_crc32")


@dataclasses.dataclass(frozen=True)
class _Period:
    """The steps from one on, and the environment in which they were made."""

    from_step: int
    environment: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Manifest:
    """What `training.json` holds; see this module's docstring."""

    run_id: int
    settings: dict[str, Any]
    history: tuple[_Period, ...]

    @classmethod
    def read(cls, path):
        """Read the file; a `UserError` says what is wrong with it."""
        remedy = "take it from another copy of the run, or choose another directory"
        return read_record(cls, path, "the manifest of a run", remedy)

    def write(self, path):
        """Replace the file."""
        files.write_json(path, dataclasses.asdict(self))


def open_run(
    directory: str | os.PathLike[str],
    settings: dict[str, Any],
    allow_changes: bool = False,
) -> int:
    """Begin a run, or compare its settings with those it began with.

    Args:
      directory: the run's output directory.
      settings: dict of what must not change when the run is continued.
      allow_changes: go on with other settings, and tell.

    Returns:
      the run's id, an int.

    Raises:
      UserError: they differ; the message names the first difference.
    """
    path = os.path.join(directory, MANIFEST_FILE)
    begun = bool(names.numbered_checkpoints(directory)) and files.exists(path)
    if not begun:
        if any_format.holds_model(directory):
            raise UserError(
                f"--output_dir: {directory} holds a model and no run to continue; "
                "choose another directory, or give it as --model."
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
            f"({_kind(before)}); choose another directory."
        )
    if not allow_changes:
        name, old, new = differences[0]
        difference = f"{name} {reprlib.repr(old)}, and now it is {reprlib.repr(new)}"
        if name.endswith(_OF_DATA):
            difference = f"other data ({difference})"
        raise UserError(
            f"--output_dir: {directory} holds a run with {difference}; "
            "choose another directory, give the same flags to continue that run, or "
            "--allow_changed_settings to continue it with these."
        )
    print(f"Going on with other settings: {_tell(differences)}.", flush=True)
    return manifest.run_id


def run_id_of(directory: str | os.PathLike[str]) -> int | None:
    """Return the id of the run in a directory; None if there is none."""
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
    """Note with what a run goes on, and tell how the environment changed.

    Args:
      directory: the run's output directory.
      step: where the run goes on.
      settings: dict, as given to `open_run`.
      environment: dict, as of `environment.describe`.
    """
    path = os.path.join(directory, MANIFEST_FILE)
    manifest = _Manifest.read(path)
    # A kill may have taken back steps that a later environment had made.
    history = [period for period in manifest.history if period.from_step < step]
    before = history[-1].environment if history else {}
    # An older version may have recorded less: the rest is unknown, and no difference.
    known = {name: value for name, value in environment.items() if name in before}
    differences = list(_differences(before, known))
    if differences:
        print(f"Going on, not bit-exact because {_tell(differences)}.", flush=True)
    if before != environment:
        history.append(_Period(step, environment))
    _Manifest(manifest.run_id, settings, tuple(history)).write(path)


def _kind(settings):
    """Return the name of what is trained."""
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
