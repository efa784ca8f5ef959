"""A command starts another command of the same package, from any folder."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
from places import ROOT

from official_bert.command_line import child_commands


def test_it_starts_this_package_from_any_folder(monkeypatch, tmp_path):
    """Files of that folder do not hide Python modules."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "textwrap.py").write_text("raise SystemExit('the wrong module')\n")
    config = "--bert_config_file=configs/bert_tiny.json"
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "text": True}
    status, printed = child_commands.run_child("describe", [config], **options)
    assert status == 0
    assert printed.startswith("L=2 layers, H=128 hidden")


def test_its_status_is_that_of_the_command(capfd):
    assert child_commands.run_child("describe", []) == (1, None)
    assert "error: Give either --bert_config_file or --size" in capfd.readouterr().err


@pytest.mark.parametrize("installed", [True, False])
def test_an_installed_package_needs_no_path(monkeypatch, installed):
    """Adding its folder to the path could hide Python modules."""
    folders = [os.fspath(ROOT)] if installed else []
    monkeypatch.setattr(child_commands.site, "getsitepackages", lambda: folders)
    found = child_commands._with_package({"PYTHONPATH": "mine"})
    wanted = "mine" if installed else os.pathsep.join([os.fspath(ROOT), "mine"])
    assert found == {"PYTHONPATH": wanted}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_child_ends_with_its_parent(tmp_path):
    """SIGTERM, as a job manager sends it, ends both."""
    program = (
        "from official_bert.command_line import child_commands as c\n"
        "c.exit_at_sigterm()\n"
        "c.run_child('vocab', ['--input_file=-', '--output_file=v.txt'])\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while not children.read_text().split():
        assert parent.poll() is None
    (child,) = children.read_text().split()
    # The child waits for text from the pipe, which the parent keeps open.
    parent.terminate()
    assert parent.wait(60) == 128 + 15
    assert not pathlib.Path(f"/proc/{child}").exists()
    parent.stdin.close()


def test_sigterm_while_a_child_starts(monkeypatch):
    """SIGTERM also ends the child that was just created."""
    made = []

    class Started(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(child_commands.subprocess, "Popen", Started)
    before = signal.getsignal(signal.SIGTERM)
    child_commands.exit_at_sigterm()
    try:
        with pytest.raises(SystemExit, match="143"):
            child_commands.run_child("vocab", ["--input_file=-"], stdin=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert made[0].returncode is not None
