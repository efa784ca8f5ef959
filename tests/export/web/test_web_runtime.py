"""The runtime's files come from npm or a folder, and only tested versions."""

import os

import packed_runtime
import pytest

from official_bert.errors import UserError
from official_bert.export.web import runtime


def test_files_of_a_folder(tmp_path, monkeypatch):
    packed = packed_runtime.write(tmp_path / "packed", monkeypatch)
    runtime.write(tmp_path / "litert", packed)
    folder = tmp_path / "litert"
    core = (folder / "core.js").read_text()
    assert core == 'import { f } from "./wasm-utils.js";\nf();\n'
    assert (folder / "wasm-utils.js").read_text().startswith("export const f")
    wasm = {"litert_wasm_internal.js", "litert_wasm_internal.wasm"}
    assert set(os.listdir(folder / "wasm")) == wasm
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert "@litertjs/core@2.5.3" in (folder / "NOTICE").read_text()


def test_another_file_is_refused(tmp_path, monkeypatch):
    packed = packed_runtime.write(tmp_path / "packed", monkeypatch)
    path = tmp_path / "packed" / runtime.CORE.file
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"core-2.5.3.tgz is not @litertjs/core@2.5.3"):
        runtime.write(tmp_path / "litert", packed)
    assert not (tmp_path / "litert").exists()


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="--web_runtime: cannot read .* `npm pack"):
        runtime.write(tmp_path / "litert", str(tmp_path))


def test_without_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="npm is not installed .*--web_runtime=FOLDER"):
        runtime.write(tmp_path / "litert")


def test_npm_runs_and_its_files_are_compared(tmp_path, monkeypatch):
    packed = packed_runtime.write(tmp_path / "packed", monkeypatch)
    _npm(tmp_path, monkeypatch, f'[ "$1" = pack ] && cp {packed}/*.tgz .')
    runtime.write(tmp_path / "litert")
    assert (tmp_path / "litert" / "core.js").exists()


def test_npm_fails(tmp_path, monkeypatch):
    _npm(tmp_path, monkeypatch, "echo 'npm error code ENOTFOUND' >&2; exit 1")
    with pytest.raises(UserError, match="failed: npm error code ENOTFOUND. Run `npm"):
        runtime.write(tmp_path / "litert")


def _npm(folder, patch, script):
    """Put a program named npm on the PATH."""
    (folder / "bin").mkdir()
    path = folder / "bin" / "npm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
